// Against a real daemon: over restarts, lost connections and slow consumers, each event arrives once and in order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectSocket, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { Earshot, SessionStore, isEvent, local, nodeSocket, truncatedBytes, type ConnectionState, type Frame, type Socket, type SocketHandlers, type Subscription } from "../src/node/index.js";
import { TestDaemon, Transcript, no_daemon, patient_limits, until } from "./harness.js";

const backoff = { first_ms: 20, last_ms: 200 };
const prompts = (frames: Frame[]) => frames.flatMap((frame) => (frame.type === "turn.started" ? [frame.prompt ?? ""] : []));

/** Subscribes and collects what arrives. */
function collect(client: Earshot, options: Parameters<Earshot["subscribe"]>[0]) {
  const frames: Frame[] = [];
  const states: ConnectionState[] = [];
  const subscription = client.subscribe(options, { frame: (frame) => frames.push(frame), state: (state) => states.push(state) });
  return { frames, states, subscription, live: () => until("live", () => subscription.state.state === "live") };
}

/** As in a browser: authenticates with `hello` and cannot pause. */
const browserSocket = (url: string) => () => (handlers: SocketHandlers): Socket => {
  const socket = nodeSocket({ url })(handlers);
  return { send: (text) => socket.send(text), close: () => socket.close() };
};

/** The daemon has found the transcript (fault 107): its content is in the snapshots of later subscriptions. */
async function found(client: Earshot, transcript: Transcript): Promise<void> {
  const { frames, subscription } = collect(client, {});
  const mentions = (frame: Frame) => (isEvent(frame) ? frame.stream === transcript.stream : frame.type === "session" && frame.cursors.some((place) => place.startsWith(transcript.stream + ":")));
  await until("the daemon to find the transcript", () => frames.some(mentions));
  subscription.close();
}

describe("with a daemon", { skip: no_daemon }, () => {
  let daemon: TestDaemon;
  let client: Earshot;
  beforeEach(async () => {
    daemon = await new TestDaemon().start();
    client = local({ state: daemon.state, socket: false, backoff, client: "test/1" });
  });
  afterEach(async () => {
    client.close();
    await daemon.remove();
  });

  test("sessions arrive by page, and each once", async () => {
    const all = Array.from({ length: 5 }, () => new Transcript(daemon.root));
    for (const transcript of all) {
      transcript.append(transcript.prompt("go"));
      await found(client, transcript);
    }
    const { store, subscription } = client.watch({ deliver: "state", page: 2 });
    await until("the first page", () => subscription.rest);
    assert.deepEqual([subscription.rest!.sessions, subscription.state.state], [3, "live"]);
    const changed = all.find(({ session }) => ![...store.sessions.values()].some(({ frame }) => frame.session === session))!;
    changed.append(changed.reply("done"));
    await until("the session that changed", () => [...store.sessions.values()].some(({ frame }) => frame.session === changed.session && frame.turn.outcome === "completed"));
    assert.ok(subscription.nextPage());
    await until("the last page", () => subscription.rest?.sessions === 0);
    assert.equal(store.sessions.size, 5);
    assert.equal(subscription.nextPage(), false);
  });

  test("frames arrive by callback and by iteration, and a record can be read whole", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("first"));
    await found(client, transcript);
    const received = collect(client, { filter: { type: ["turn.*", "message.*"] } });
    const iterated = client.subscribe({ filter: { session: [transcript.session] } });
    await received.live();
    await until("live", () => iterated.state.state === "live");
    const long = "x".repeat(10_000);
    transcript.append(transcript.reply(long));
    const seen: string[] = [];
    for await (const frame of iterated) {
      seen.push(frame.type);
      if (frame.type === "turn.finished") break;
    }
    assert.deepEqual([seen[0], seen[1], seen[2], seen.at(-1)], ["welcome", "session", "ready", "turn.finished"]);
    assert.equal(iterated.state.state, "closed");
    const message = await until("the message", () => received.frames.find((frame) => frame.type === "message.added" && frame.role === "assistant"));
    assert.ok(isEvent(message));
    const record = (await received.subscription.read(message.stream, message.cursor)) as { message: { content: Array<{ text: string }> } };
    assert.equal(record.message.content[0]!.text, long);
    assert.ok(message.type === "message.added");
    assert.deepEqual([message.text, truncatedBytes(message, "text")], [long.slice(0, 4096), long.length]);
    await assert.rejects(received.subscription.read("claude/missing/missing", message.cursor), { name: "ReadError", code: "not_found" });
  });

  test("a record in many parts is joined", async () => {
    const transcript = new Transcript(daemon.root);
    const long = "x".repeat(3 << 20);
    transcript.append(transcript.prompt("go"), transcript.reply(long));
    const received = collect(client, { history: true });
    const message = await until("the message", () => received.frames.find((frame) => frame.type === "message.added" && frame.role === "assistant"));
    assert.ok(isEvent(message));
    let read = 0;
    void received.subscription.read(message.stream, message.cursor).then((record) => (read = JSON.stringify(record).length));
    await until("the whole record", () => read > long.length);
  });

  test("after a restart it resumes: no event is lost or repeated, and streams created in between are sent from their first event", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("1"));
    await found(client, transcript);
    const received = collect(client, { on_lag: "catch_up" });
    await received.live();
    transcript.append(transcript.reply("done"), transcript.prompt("2"));
    await until("prompt 2", () => prompts(received.frames).includes("2"));
    await daemon.stop();
    await until("a retry", () => received.states.some((state) => state.state === "retrying"));
    transcript.append(transcript.reply("done"), transcript.prompt("3"));
    const other = new Transcript(daemon.root, "/home/ada/buoy");
    other.append(other.prompt("other 1"), other.reply("done"));
    await daemon.start();
    await until("live again", () => received.states.filter((state) => state.state === "live").length >= 2);
    transcript.append(transcript.reply("done"), transcript.prompt("4"));
    other.append(other.prompt("other 2"));
    await until("the newest prompts", () => prompts(received.frames).includes("4") && prompts(received.frames).includes("other 2"));
    assert.deepEqual(prompts(received.frames).filter((text) => !text.startsWith("other")), ["2", "3", "4"]);
    assert.deepEqual(prompts(received.frames).filter((text) => text.startsWith("other")), ["other 1", "other 2"]);
    const cursors = received.frames.filter(isEvent).map((event) => `${event.stream}:${event.cursor}`);
    assert.equal(new Set(cursors).size, cursors.length);
  });

  test("places() let another process resume with the missed events", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("1"), transcript.reply("done"));
    const first = collect(client, { history: true });
    await first.live();
    await until("the whole history", () => first.frames.some((frame) => frame.type === "turn.finished"));
    assert.deepEqual(prompts(first.frames), ["1"]); // from the first event
    const kept = first.subscription.places();
    first.subscription.close();
    transcript.append(transcript.prompt("2"));
    const second = collect(client, { after: kept });
    await until("the missed prompt", () => prompts(second.frames).length > 0);
    assert.deepEqual(prompts(second.frames), ["2"]);
  });

  test("a transcript that is rewritten while connected is sent from its first event", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("old 1"), transcript.reply("done"));
    const { store, subscription } = client.watch({ history: true }, new SessionStore());
    await until("live", () => subscription.state.state === "live");
    transcript.append(transcript.prompt("old 2"));
    const sessionWith = (number: number, prompt: string) => [...store.sessions.values()].find(({ frame, events }) => frame.turn.number === number && frame.turn.prompt === prompt && prompts(events.list()).includes(prompt));
    await until("two turns", () => sessionWith(2, "old 2"));
    transcript.rewrite(transcript.prompt("new")); // the session is another one if the daemon saw the file while it was empty
    const state = await until("the new history", () => sessionWith(1, "new"));
    assert.deepEqual(prompts(state.events.list()), ["new"]);
  });

  test("a transcript that was rewritten while the daemon was stopped is reset and continues from its session frame", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("old"));
    await found(client, transcript);
    const received = collect(client, {});
    await received.live();
    await daemon.stop();
    transcript.rewrite(transcript.prompt("new"), transcript.reply("done"));
    await daemon.start();
    const reset = await until("reset", () => received.frames.find((frame) => frame.type === "reset"));
    assert.deepEqual([reset.type === "reset" && reset.reason, reset.type === "reset" && reset.stream], ["rewritten", transcript.stream]);
    await until("live again", () => received.subscription.state.state === "live");
    transcript.append(transcript.prompt("newer"));
    await until("the newer prompt", () => prompts(received.frames).includes("newer"));
    assert.ok(!prompts(received.frames).includes("new")); // included in the session frame
    assert.ok(received.frames.some((frame) => frame.type === "session" && frame.turn.prompt === "new"));
  });

  test("the history is complete, also for transcripts created while it is requested", async () => {
    const many = 40;
    const all = Array.from({ length: many }, (_, n) => new Transcript(daemon.root, `/home/ada/project-${n}`));
    const received: Array<ReturnType<typeof collect>> = [];
    for (const transcript of all) { // subscriptions start while transcripts are created
      transcript.append(transcript.prompt("1"), transcript.reply("done"), transcript.prompt("2"));
      if (all.indexOf(transcript) % 10 === 0) received.push(collect(client, { history: true }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const { frames } of received) {
      await until("all prompts", () => prompts(frames).length === many * 2);
      const cursors = frames.filter(isEvent).map((event) => `${event.stream}:${event.cursor}`);
      assert.equal(new Set(cursors).size, cursors.length);
    }
  });

  test("since sends the events from that time on, also to a subscription with a filter for the program", async () => {
    const transcript = new Transcript(daemon.root);
    const since = new Date(Date.now() - 60_000);
    transcript.clock = () => new Date(since.getTime() - 60_000);
    transcript.append(transcript.prompt("before"), transcript.reply("done"));
    transcript.clock = () => new Date();
    transcript.append(transcript.prompt("after"), transcript.reply("done"));
    await found(client, transcript);
    const received = collect(client, { since, filter: { program: ["claude-*"], type: ["turn.started"] } });
    await received.live();
    assert.deepEqual(prompts(received.frames), ["after"]);
    assert.ok(received.frames.some((frame) => frame.type === "session" && frame.program === "claude-code"));
    const other = collect(client, { since, filter: { program: ["codex"] } });
    await other.live();
    assert.ok(!other.frames.some((frame) => frame.type === "session" || isEvent(frame)));
  });

  test("an idle connection receives heartbeats and stays open", async () => {
    const config = join(daemon.home, "earshot.toml");
    writeFileSync(config, patient_limits + 'heartbeat = "1s"\n');
    await daemon.stop();
    await daemon.start("--config", config);
    const impatient = local({ state: daemon.state, backoff, silence_ms_max: 60_000 });
    const received = collect(impatient, {});
    await until("heartbeats", () => received.frames.filter((frame) => frame.type === "heartbeat").length >= 2);
    assert.deepEqual(received.states.map(({ state }) => state), ["connecting", "live"]);
    impatient.close();
  });

  /** Handles no message before `isBehind`: then the daemon has sent more than the queue holds. */
  async function readSlowly(subscription: Subscription, transcript: Transcript, many: number, isBehind: () => boolean): Promise<string[]> {
    const filler = "y".repeat(3000);
    await until("live", () => subscription.state.state === "live");
    for (let n = 0; n < many; n += 100) {
      transcript.append(...Array.from({ length: 100 }, (_, m) => transcript.reply(`${n + m} ${filler}`, null)));
    }
    transcript.append(transcript.reply("last message"));
    const numbers: string[] = [];
    for await (const frame of subscription) {
      if (frame.type !== "message.added" || frame.role !== "assistant") continue;
      if (numbers.length === 0) await until("the queue to be full", isBehind);
      const text = frame.text ?? "";
      if (text === "last message") break;
      numbers.push(text.split(" ")[0]!);
    }
    return numbers;
  }

  test("a slow consumer loses nothing: the daemon waits and sends the rest from the transcripts", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("go"));
    let pauses = 0;
    const slow = new Earshot({
      token: daemon.token, backoff,
      connect: (token) => (handlers) => {
        const socket = nodeSocket({ url: daemon.url, token })(handlers);
        const pause = socket.pause!.bind(socket);
        socket.pause = () => (pauses++, pause());
        return socket;
      },
    });
    const numbers = await readSlowly(slow.subscribe({ queue_frames_max: 50, on_lag: "catch_up" }), transcript, 10_000, () => pauses > 0);
    slow.close();
    assert.deepEqual(numbers, Array.from({ length: 10_000 }, (_, n) => String(n)));
  });

  test("a slow consumer whose socket cannot pause, as in a browser, disconnects and resumes", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("go"));
    const states: string[] = [];
    const browserlike = new Earshot({
      url: daemon.url, token: daemon.token, backoff,
      connect: browserSocket(daemon.url),
    });
    const subscription = browserlike.subscribe({ queue_frames_max: 50 }, { state: ({ state }) => states.push(state) });
    const numbers = await readSlowly(subscription, transcript, 1000, () => states.includes("paused"));
    assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, n) => String(n)));
    assert.ok(states.includes("paused"));
  });

  test("a wrong token is reported, by the proof and by hello, and not retried; a valid one connects", async () => {
    let token = "0".repeat(64);
    let reads = 0;
    const readToken = () => (reads++, token);
    for (const connect of [(token: string) => nodeSocket({ url: daemon.url, token }), browserSocket(daemon.url)]) {
      reads = 0;
      token = "0".repeat(64);
      const wrong = new Earshot({ token: readToken, connect, backoff });
      const received = collect(wrong, {});
      await until("the rejection", () => received.subscription.state.state === "unauthorized");
      assert.equal(reads, 2); // read again once: it may have been rotated
      token = daemon.token;
      received.subscription.retry();
      await received.live();
      wrong.close();
    }
  });

  test("the Unix socket needs no token", async () => {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("hello"));
    const unix = local({ state: daemon.state, token: "", backoff });
    const received = collect(unix, { view: "meta" });
    await received.live();
    assert.ok(received.frames.some((frame) => frame.type === "welcome" && frame.view === "meta"));
    unix.close();
  });

  test("a rejected request fails with the daemon's message", async () => {
    const received = collect(client, { filter: { project: Array.from({ length: 100 }, () => "x") } });
    await until("the failure", () => received.subscription.state.state === "failed");
    const { state } = received.subscription;
    assert.ok(state.state === "failed" && state.error.code === "bad_filter" && state.error.message.includes("64"));
  });
});

describe("without a daemon", () => {
  let server: ReturnType<typeof createServer>;
  let attempts = 0;
  before(async () => {
    server = createServer((socket) => (attempts++, socket.destroy())).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  test("it reconnects with growing delays until it is closed", async () => {
    const client = new Earshot({ connect: () => nodeSocket({ url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/ws` }), token: "x", backoff: { first_ms: 4, last_ms: 40 } });
    const delays: number[] = [];
    const subscription = client.subscribe({}, { frame() {}, state: (state) => state.state === "retrying" && delays.push(state.at - Date.now()) });
    await until("ten attempts", () => attempts >= 10);
    client.close();
    assert.equal(subscription.state.state, "closed");
    const probe = connectSocket((server.address() as AddressInfo).port, "127.0.0.1");
    await once(probe, "close"); // connections that were already made are accepted before it
    const before = attempts;
    assert.ok(Math.max(...delays.slice(3)) > Math.max(...delays.slice(0, 1)));
    await new Promise((resolve) => setTimeout(resolve, 60)); // longer than the longest delay
    assert.equal(attempts, before);
  });
});
