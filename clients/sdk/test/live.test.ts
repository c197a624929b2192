// Against a real daemon: what was told before and after trouble is, put together, what happened: each event once, in order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { Earshot, SessionStore, local, nodeSocket, type ConnectionState, type EarshotEvent, type Frame, type Subscription } from "../src/node/index.js";
import { Place, Transcript, missing, until } from "./daemon.js";

const quick = { first_ms: 20, last_ms: 200 };
const isEvent = (frame: Frame): frame is EarshotEvent => "cursor" in frame && typeof frame.cursor === "string";
const prompts = (frames: Frame[]) => frames.flatMap((frame) => (frame.type === "turn.started" ? [String(frame.prompt)] : []));

function collect(client: Earshot, options: Parameters<Earshot["subscribe"]>[0]) {
  const frames: Frame[] = [];
  const states: ConnectionState[] = [];
  const subscription = client.subscribe(options, { frame: (frame) => frames.push(frame), state: (state) => states.push(state) });
  return { frames, states, subscription, live: () => until("live", () => subscription.state.state === "live") };
}

describe("with a daemon", { skip: missing }, () => {
  let place: Place;
  let client: Earshot;
  beforeEach(async () => {
    place = await new Place().start();
    client = local({ state: place.state, socket: false, backoff: quick, client: "test/1" });
  });
  afterEach(async () => {
    client.close();
    await place.end();
  });

  test("what happens is told, by callback and by iteration, and a record is read whole", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("first"));
    const told = collect(client, { filter: { type: ["turn.*", "message.*"] } });
    const iterated = client.subscribe({ filter: { session: [one.session] } });
    await told.live();
    await until("live", () => iterated.state.state === "live");
    const long = "x".repeat(10_000);
    one.append(one.says(long));
    const seen: string[] = [];
    for await (const frame of iterated) {
      seen.push(frame.type);
      if (frame.type === "turn.finished") break;
    }
    assert.deepEqual([seen[0], seen[1], seen[2], seen.at(-1)], ["welcome", "session", "ready", "turn.finished"]);
    assert.equal(iterated.state.state, "closed");
    const message = await until("the message", () => told.frames.find((frame) => frame.type === "message.added" && frame.role === "assistant"));
    assert.ok(isEvent(message));
    const record = (await told.subscription.read(message.stream, message.cursor)) as { message: { content: Array<{ text: string }> } };
    assert.equal(record.message.content[0]!.text, long);
    await assert.rejects(told.subscription.read("claude/nobody/nothing", message.cursor), { name: "ReadError", code: "not_found" });
  });

  test("a record of many parts is read as one, at once", async () => {
    const one = new Transcript(place.root);
    const long = "x".repeat(3 << 20);
    one.append(one.prompt("go"), one.says(long));
    const told = collect(client, { history: true });
    const message = await until("the message", () => told.frames.find((frame) => frame.type === "message.added" && frame.role === "assistant"));
    assert.ok(isEvent(message));
    let read = 0;
    void told.subscription.read(message.stream, message.cursor).then((record) => (read = JSON.stringify(record).length));
    await until("all of it", () => read > long.length);
  });

  test("after a restart it goes on where it was: nothing missing, nothing twice, streams that were born meanwhile from their first line", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("1"));
    const told = collect(client, { on_lag: "catch_up" });
    await told.live();
    one.append(one.says("done"), one.prompt("2"));
    await until("prompt 2", () => prompts(told.frames).includes("2"));
    await place.stop();
    await until("a pause", () => told.states.some((state) => state.state === "retrying"));
    one.append(one.says("done"), one.prompt("3"));
    const other = new Transcript(place.root, "/home/ada/buoy");
    other.append(other.prompt("other 1"), other.says("done"));
    await place.start();
    await until("live again", () => told.states.filter((state) => state.state === "live").length === 2);
    one.append(one.says("done"), one.prompt("4"));
    other.append(other.prompt("other 2"));
    await until("the newest", () => prompts(told.frames).includes("4") && prompts(told.frames).includes("other 2"));
    assert.deepEqual(prompts(told.frames).filter((text) => !text.startsWith("other")), ["2", "3", "4"]);
    assert.deepEqual(prompts(told.frames).filter((text) => text.startsWith("other")), ["other 1", "other 2"]);
    const cursors = told.frames.filter(isEvent).map((event) => `${event.stream}:${event.cursor}`);
    assert.equal(new Set(cursors).size, cursors.length);
  });

  test("places() let another process go on, with all that was missed", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("1"), one.says("done"));
    const first = collect(client, { history: true });
    await first.live();
    await until("the whole history", () => first.frames.some((frame) => frame.type === "turn.finished"));
    assert.deepEqual(prompts(first.frames), ["1"]); // from the first line on
    const kept = first.subscription.places();
    first.subscription.close();
    one.append(one.prompt("2"));
    const second = collect(client, { after: kept });
    await until("what was missed", () => prompts(second.frames).length > 0);
    assert.deepEqual(prompts(second.frames), ["2"]);
  });

  test("a transcript that is written anew while connected is told from its first line", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("old 1"), one.says("done"));
    const { store, subscription } = client.watch({ history: true }, new SessionStore());
    await until("live", () => subscription.state.state === "live");
    one.append(one.prompt("old 2"));
    const state = await until("two turns", () => [...store.sessions.values()].find((session) => session.now.turn.number === 2));
    one.rewrite(one.prompt("new"));
    await until("the new history", () => state.now.turn.prompt === "new" && state.now.turn.number === 1);
    assert.deepEqual(prompts(state.events.list()), ["new"]);
  });

  test("one that was written anew while nobody listened is reset, and goes on from its session frame", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("old"));
    const told = collect(client, {});
    await told.live();
    await place.stop();
    one.rewrite(one.prompt("new"), one.says("done"));
    await place.start();
    const reset = await until("reset", () => told.frames.find((frame) => frame.type === "reset"));
    assert.deepEqual([reset.type === "reset" && reset.reason, reset.type === "reset" && reset.stream], ["rewritten", one.stream]);
    await until("live again", () => told.subscription.state.state === "live");
    one.append(one.prompt("newer"));
    await until("what is newer", () => prompts(told.frames).includes("newer"));
    assert.ok(!prompts(told.frames).includes("new")); // the session frame has it
    assert.ok(told.frames.some((frame) => frame.type === "session" && frame.turn.prompt === "new"));
  });

  test("the whole history comes, also of what is written while the daemon is asked for it", async () => {
    const many = 40;
    const all = Array.from({ length: many }, (_, n) => new Transcript(place.root, `/home/ada/project-${n}`));
    const told: Array<ReturnType<typeof collect>> = [];
    for (const one of all) { // each client looks while transcripts come into being
      one.append(one.prompt("1"), one.says("done"), one.prompt("2"));
      if (all.indexOf(one) % 10 === 0) told.push(collect(client, { history: true }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const { frames } of told) {
      await until("all of them", () => prompts(frames).length === many * 2);
      const cursors = frames.filter(isEvent).map((event) => `${event.stream}:${event.cursor}`);
      assert.equal(new Set(cursors).size, cursors.length);
    }
  });

  async function slowly(subscription: Subscription, one: Transcript, many: number): Promise<string[]> {
    const filler = "y".repeat(3000);
    await until("live", () => subscription.state.state === "live");
    for (let n = 0; n < many; n += 100) {
      one.append(...Array.from({ length: 100 }, (_, m) => one.says(`${n + m} ${filler}`, null)));
    }
    one.append(one.says("the last"));
    const numbers: string[] = [];
    for await (const frame of subscription) {
      if (numbers.length === 0) await new Promise((resolve) => setTimeout(resolve, 300)); // slow: much more comes than is taken
      if (frame.type !== "message.added" || frame.role !== "assistant") continue;
      const text = typeof frame.text === "string" ? frame.text : (frame.text?.text ?? "");
      if (text === "the last") break;
      numbers.push(text.split(" ")[0]!);
    }
    return numbers;
  }

  test("a slow reader misses nothing: what is too much waits in the daemon's files, not here", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("go"));
    const numbers = await slowly(client.subscribe({ queue_frames_max: 50, on_lag: "catch_up" }), one, 10_000);
    assert.deepEqual(numbers, Array.from({ length: 10_000 }, (_, n) => String(n)));
  });

  test("nor does one whose socket cannot pause, as in a browser: it lets go, and is resumed", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("go"));
    const states: string[] = [];
    const browserlike = new Earshot({
      url: place.url, token: place.token, backoff: quick,
      connect: () => (handlers) => {
        const socket = nodeSocket({ url: place.url })(handlers);
        return { send: (text) => socket.send(text), close: () => socket.close() };
      },
    });
    const subscription = browserlike.subscribe({ queue_frames_max: 50 }, { state: ({ state }) => states.push(state) });
    const numbers = await slowly(subscription, one, 1000);
    assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, n) => String(n)));
    assert.ok(states.includes("held"));
  });

  test("a wrong token is said so, by 401 and by hello, and is not tried again and again; a good one gets in", async () => {
    let token = "0".repeat(64);
    let asked = 0;
    const give = () => (asked++, token);
    for (const connect of [(given: string) => nodeSocket({ url: place.url, token: given }), () => nodeSocket({ url: place.url })]) {
      asked = 0;
      token = "0".repeat(64);
      const stranger = new Earshot({ token: give, connect, backoff: quick });
      const told = collect(stranger, {});
      await until("the answer", () => told.subscription.state.state === "unauthorised");
      assert.equal(asked, 2); // read once more, since it may have been rotated, and no more
      token = place.token;
      told.subscription.retry();
      await told.live();
      stranger.close();
    }
  });

  test("over the Unix socket no token is needed", async () => {
    const one = new Transcript(place.root);
    one.append(one.prompt("hello"));
    const unix = local({ state: place.state, token: "", backoff: quick });
    const told = collect(unix, { view: "meta" });
    await told.live();
    assert.ok(told.frames.some((frame) => frame.type === "welcome" && frame.view === "meta"));
    unix.close();
  });

  test("what cannot be had fails with the daemon's own words", async () => {
    const told = collect(client, { filter: { project: Array.from({ length: 100 }, () => "x") } });
    await until("the failure", () => told.subscription.state.state === "failed");
    const { state } = told.subscription;
    assert.ok(state.state === "failed" && state.error.code === "bad_filter" && state.error.message.includes("64"));
  });
});

describe("without a daemon", () => {
  let server: ReturnType<typeof createServer>;
  let tries = 0;
  before(async () => {
    server = createServer((socket) => (tries++, socket.destroy())).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  test("it tries again, with pauses that grow, until it is closed", async () => {
    const client = new Earshot({ connect: () => nodeSocket({ url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/ws` }), token: "x", backoff: { first_ms: 4, last_ms: 40 } });
    const pauses: number[] = [];
    const subscription = client.subscribe({}, { frame() {}, state: (state) => state.state === "retrying" && pauses.push(state.at - Date.now()) });
    await until("six tries", () => tries >= 6);
    client.close();
    assert.equal(subscription.state.state, "closed");
    const before = tries;
    assert.ok(Math.max(...pauses.slice(3)) > Math.max(...pauses.slice(0, 1)));
    await new Promise((resolve) => setTimeout(resolve, 60)); // longer than the longest pause
    assert.equal(tries, before);
  });
});
