// Tests without a daemon: types against vectors, resuming, backoff, the queue, the store.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Backoff, RingBuffer, SampledSeries, SessionStore, StreamResumer, accountLimits, contextTokens, isCursor, isEvent, isOffline, matchesPattern, sessionTimes, splitPlace, truncatedBytes, usageOfDay, waitOf, type EarshotEvent, type Frame, type SessionFrame } from "../src/index.js";
import { FrameQueue } from "../src/queue.js";
import { RecordRequests } from "../src/record_requests.js";
import { vectors } from "./harness.js";

const sdk = join(dirname(fileURLToPath(import.meta.url)), "../..");
const load = <T>(name: string): T => JSON.parse(readFileSync(join(vectors, name), "utf8")) as T;
const client_types = ["hello", "subscribe", "next_page", "unsubscribe", "read"];

function frames(): Frame[] {
  return readdirSync(vectors).filter((name) => name.endsWith(".json") && !["cursors.json", "filters.json", "subjects.json", "connection.json"].includes(name))
    .filter((name) => !client_types.includes(name.replace(".json", "")))
    .flatMap((name) => load<Array<{ frame: Frame }>>(name).map(({ frame }) => frame));
}

test("protocol.ts is up to date with the schemas", () => {
  execFileSync(process.execPath, [join(sdk, "scripts/generate.mjs"), "--check"], { stdio: "pipe" });
});

test("every vector satisfies its generated type", () => {
  const folder = mkdtempSync(join(tmpdir(), "earshot-vectors-"));
  try {
    const lines = [`import type { Frame, ClientMessage } from ${JSON.stringify(join(sdk, "src/protocol.js"))};`];
    for (const name of readdirSync(vectors).filter((file) => file.endsWith(".json") && !["cursors.json", "filters.json", "subjects.json"].includes(file))) {
      for (const { frame, from } of load<Array<{ frame: { type: string }; from?: string }>>(name)) {
        const kind = from === "client" || client_types.includes(name.replace(".json", "")) ? "ClientMessage" : "Frame";
        lines.push(`(${JSON.stringify(frame)}) satisfies ${kind};`);
      }
    }
    assert.ok(lines.length > 60);
    lines.push(`({type: "subscribe", id: "a", filter: {host: ["ada*"]}}) satisfies ClientMessage;`);
    lines.push(`// @ts-expect-error: host is a list\n({type: "subscribe", id: "a", filter: {host: "ada"}}) satisfies ClientMessage;`);
    lines.push(`// @ts-expect-error: unknown state\n({type: "status", host: "h", session: "s", state: "busy", source: "clock"}) satisfies Frame;`);
    writeFileSync(join(folder, "vectors.ts"), lines.join("\n"));
    execFileSync(join(sdk, "node_modules/.bin/tsc"), ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", join(folder, "vectors.ts")], { stdio: "pipe" });
  } catch (error) {
    throw new Error(String((error as { stdout?: Buffer }).stdout ?? error));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("patterns and cursors match the vectors", () => {
  for (const { pattern, text, match } of load<Array<{ pattern: string; text: string; match: boolean }>>("filters.json")) {
    assert.equal(matchesPattern(pattern, text), match, `${pattern} ~ ${text}`);
  }
  for (const { cursor, valid } of load<Array<{ cursor: string; valid: boolean }>>("cursors.json")) assert.equal(isCursor(cursor), valid, cursor);
});

test("the store accepts every vector and a complete connection", () => {
  const store = new SessionStore();
  for (const frame of frames()) store.apply(frame);
  assert.ok(store.sessions.size > 0);
  const connection = new SessionStore();
  const received = load<Array<{ from: string; frame: Frame }>>("connection.json").filter(({ from }) => from === "server").map(({ frame }) => frame);
  for (const frame of received) connection.apply(frame);
  const last = new Map(received.filter((frame) => frame.type === "status").map((frame) => [frame.session, frame]));
  for (const state of connection.sessions.values()) {
    if (last.has(state.frame.session)) assert.equal(state.frame.status.state, last.get(state.frame.session)!.state);
    const events = received.filter(isEvent).filter((event) => event.session === state.frame.session);
    assert.deepEqual(state.events.list(), events);
  }
});

test("a place is split at its last colon", () => {
  assert.deepEqual(splitPlace("claude/a%3Ab/c:1.2.9c1e44d0a1b2c3d4"), ["claude/a%3Ab/c", "1.2.9c1e44d0a1b2c3d4"]);
});

test("truncatedBytes returns the size of a cut text by its path", () => {
  const frame = { truncated: { output: 48_211, "input/command": 9000, "input/a~1b~0c": 5000, "tools/1/input/command": 7000 } };
  assert.deepEqual([truncatedBytes(frame, "output"), truncatedBytes(frame, "input", "command"), truncatedBytes(frame, "input", "a/b~c")], [48_211, 9000, 5000]);
  assert.deepEqual([truncatedBytes(frame, "tools", 1, "input", "command"), truncatedBytes(frame, "text"), truncatedBytes({}, "text")], [7000, undefined, undefined]);
});

const session = (cursors: string[], more: Partial<SessionFrame> = {}): SessionFrame => ({
  type: "session", host: "h", session: "s", cursors, directory: "d", status: { state: "idle", source: "transcript" }, turn: { number: 0, open: false },
  tools: [], todos: [], agents: [], usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 }, ...more,
});

const event = (type: string, cursor: number, more: object = {}) =>
  ({ type, host: "h", stream: "r/d/s", session: "s", cursor: `${cursor}.1.0000000000000000`, turn: 1, time: `2026-01-01T00:00:0${cursor}.000Z`, ...more }) as EarshotEvent;

const at = (stream: string, cursor: number) => event("message.added", cursor, { stream });
const place = (stream: string, cursor: number) => `${stream}:${cursor}.1.0000000000000000`;

test("session frames do not move the position of a stream that is replayed; a reset and its session frame do", () => {
  const resumer = new StreamResumer([place("a", 1)]);
  const { request, left_out } = resumer.request(1 << 20);
  assert.deepEqual([request, left_out], [{ after: [place("a", 1)], new_streams: "beginning" }, 0]);
  resumer.connected(request);
  resumer.handle(session([place("a", 9), place("b", 5)]));
  resumer.handle({ type: "ready", id: "a" });
  assert.deepEqual(resumer.places(), [place("a", 1)]);
  assert.ok(resumer.isReplayed(at("a", 2)));
  resumer.handle(at("b", 4));
  resumer.handle({ type: "bookmark", cursors: [place("a", 9)] }); // ahead of the replay
  assert.deepEqual(resumer.places(), [place("a", 1), place("b", 4)]);
  resumer.handle({ type: "reset", id: "a", stream: "a", reason: "rewritten" });
  resumer.handle(session([place("a", 2)]));
  assert.deepEqual(resumer.places(), [place("b", 4), place("a", 2)]);
  resumer.handle({ type: "bookmark", id: "a", complete: true, cursors: [place("b", 5)] });
  assert.ok(!resumer.isReplaying);
  resumer.handle({ type: "reset", stream: "b", reason: "rewritten" });
  resumer.handle({ type: "stream.removed", stream: "a" });
  assert.deepEqual(resumer.places(), ["b:"]);
});

test("fault 125: a renamed stream keeps its position, unless the new name has one", () => {
  const resumer = new StreamResumer([place("a", 1), place("b", 1), place("c", 1)]);
  resumer.connected(resumer.request(1 << 20).request);
  resumer.handle({ type: "stream.renamed", session: "s", from: "a", to: "d" });
  resumer.handle({ type: "stream.renamed", session: "s", from: "b", to: "c" });
  resumer.handle({ type: "stream.renamed", session: "s", from: "x", to: "y" });
  assert.deepEqual(resumer.places(), [place("c", 1), place("d", 1)]);
});

test("streams without an event in the replay are where their session frame says, once it is complete", () => {
  const resumer = new StreamResumer();
  resumer.connected(resumer.request(1 << 20).request);
  resumer.handle(session([place("a", 3)]));
  resumer.handle({ type: "ready", id: "a" });
  assert.deepEqual([resumer.places(), resumer.isReplaying], [[], true]); // after a disconnect the stream is new again
  resumer.handle({ type: "bookmark", id: "a", complete: true, cursors: [] });
  assert.deepEqual([resumer.places(), resumer.isReplaying], [[place("a", 3)], false]);
  // A stream with history that appears later is replayed, too.
  resumer.handle(session([place("a", 4), place("b", 7)]));
  assert.deepEqual(resumer.places(), [place("a", 4)]);
  assert.deepEqual([resumer.isReplayed(at("a", 5)), resumer.isReplayed(at("b", 6))], [false, true]);
  resumer.handle(at("b", 6));
  resumer.handle(at("b", 7));
  assert.ok(!resumer.isReplayed(at("b", 8)));
});

test("an empty snapshot needs no replay, unless streams were named", () => {
  for (const [places, replaying] of [[[], false], [[place("a", 1)], true]] as const) {
    const resumer = new StreamResumer(places);
    resumer.connected(resumer.request(1 << 20).request);
    resumer.handle({ type: "ready", id: "a" });
    assert.equal(resumer.isReplaying, replaying);
  }
});

test("streams that exceed the size of a message are left out, and new streams are not replayed then", () => {
  const resumer = new StreamResumer(Array.from({ length: 30_000 }, (_, n) => place(`r/d/${n}`, 1)));
  const { request, left_out } = resumer.request(64 << 20);
  assert.deepEqual([request.after?.length, request.new_streams, left_out], [20_000, undefined, 10_000]);
  const small = resumer.request(64 << 10);
  assert.ok(JSON.stringify(small.request).length < 64 << 10);
  assert.equal(small.request.after!.length + small.left_out, 30_000);
});

test("delays grow, are random and bounded", () => {
  const low = new Backoff({ random: () => 0 });
  const high = new Backoff({ random: () => 1 });
  const delays = Array.from({ length: 8 }, () => [low.next(), high.next()]);
  assert.deepEqual(delays[0], [100, 200]);
  assert.deepEqual(delays[1], [200, 400]);
  assert.deepEqual(delays[7], [5000, 10000]);
});

test("a queue reports when it is full, when it is drained, and which items were handled", async () => {
  const calls: string[] = [];
  const queue = new FrameQueue<number>({ capacity: 4, on_full: () => calls.push("full"), on_drained: () => calls.push("drained"), on_handled: (item) => calls.push(`handled ${item}`) });
  for (let n = 1; n <= 5; n++) queue.push(n);
  for (let n = 1; n <= 5; n++) assert.deepEqual(await queue.next(), { done: false, value: n });
  assert.deepEqual(calls, ["full", "handled 1", "handled 2", "drained", "handled 3", "handled 4"]);
  queue.close();
  assert.equal((await queue.next()).done, true);
});

test("a ring buffer keeps the newest items", () => {
  const ring = new RingBuffer<number>(1000);
  for (let n = 0; n < 5000; n++) ring.push(n);
  assert.deepEqual([ring.length, ring.dropped, ring.at(0), ring.at(-1), ring.at(-1001)], [1000, 4000, 4000, 4999, undefined]);
});

test("a sampled series covers the whole time in bounded space and always has the newest value", () => {
  const series = new SampledSeries(16);
  for (let n = 1; n <= 10_000; n++) {
    series.push(n);
    assert.ok(series.list().length <= 16);
    assert.equal(series.list().at(-1), n);
  }
  const kept = series.list();
  assert.ok(kept.length >= 8 && kept[0]! < 2_500, kept.join());
  assert.deepEqual(kept, [...kept].sort((a, b) => a - b));
});

test("events update a session between its frames", () => {
  const store = new SessionStore({ events_max: 3 });
  store.apply(session(["r/d/s:0.0.0000000000000000"]));
  const frame = () => store.sessions.get("h\ns")!.frame;
  store.apply(event("turn.started", 1, { origin: "human", prompt: "go" }));
  assert.deepEqual([frame().turn.open, frame().status.state, frame().turn.prompt], [true, "working", "go"]);
  store.apply(event("tool.invoked", 2, { call: "c", tool: "Bash", input: { command: "ls" } }));
  store.apply(event("todo.updated", 2, { todos: [{ content: "x", status: "pending" }], source: "tool" }));
  assert.deepEqual([frame().tools.map((tool) => tool.tool), frame().todos.length], [["Bash"], 1]);
  store.apply(event("usage.updated", 3, { input: 3, output: 4, cache_read: 5, cache_write: 6, total: { input: 3, output: 4, cache_read: 5, cache_write: 6 } }));
  assert.deepEqual([frame().usage.output, frame().usage.context], [4, 14]);
  assert.deepEqual(store.sessions.get("h\ns")!.context.list(), [14]);
  store.apply(event("tool.finished", 4, { call: "c", outcome: "ok" }));
  store.apply(event("turn.finished", 5, { outcome: "completed" }));
  assert.deepEqual([frame().tools, frame().turn.outcome, frame().status.state, frame().last_activity], [[], "completed", "idle", "2026-01-01T00:00:05.000Z"]);
  const { events } = store.sessions.get("h\ns")!;
  assert.deepEqual([events.length, events.dropped], [3, 3]);
  store.apply({ type: "status", host: "h", session: "s", state: "waiting", reason: "permission", source: "registry" });
  store.apply(event("turn.started", 6, { origin: "human" }));
  assert.equal(frame().status.state, "waiting"); // the registry takes precedence over the transcript
});

test("fault 125: a renamed stream keeps its events, and goes with its new name", () => {
  const store = new SessionStore();
  store.apply(session(["r/d/s:0.0.0000000000000000"]));
  store.apply(event("turn.started", 1, { origin: "human", prompt: "go" }));
  store.apply({ type: "stream.renamed", host: "h", session: "s", from: "r/d/s", to: "r/t/s" });
  store.apply({ ...event("turn.finished", 2, { outcome: "completed" }), stream: "r/t/s" });
  store.apply({ type: "stream.removed", host: "h", session: "s", stream: "r/d/s" });
  const { events, frame } = store.sessions.get("h\ns")!;
  assert.deepEqual([events.list().map((each) => [each.type, each.stream]), frame.turn.outcome], [[["turn.started", "r/t/s"], ["turn.finished", "r/t/s"]], "completed"]);
  store.apply({ type: "stream.removed", host: "h", session: "s", stream: "r/t/s" });
  assert.equal(store.sessions.size, 0);
});

test("events of Codex update sandbox, context and limits", () => {
  const store = new SessionStore();
  store.apply(session(["r/d/s:0.0.0000000000000000"]));
  const frame = () => store.sessions.get("h\ns")!.frame;
  store.apply(event("session.started", 1, { program: "codex", dialect: "codex-paginated", source: "cli", originator: "codex-tui" }));
  store.apply(event("session.started", 1, { program: "codex", dialect: "codex-paginated", source: "subagent", parent: "s", agent: "a" }));
  store.apply(event("session.updated", 1, { sandbox: "read-only" }));
  assert.deepEqual([frame().program, frame().source, frame().originator, frame().sandbox], ["codex", "cli", "codex-tui", "read-only"]);
  const total = { input: 300, output: 40, cache_read: 1000, cache_write: 0 };
  store.apply(event("usage.updated", 2, { ...total, total, context_tokens: 1340, context_window: 258_400 }));
  store.apply(event("usage.updated", 2, { ...total, total, context_tokens: 7, context_window: 8, agent: "a" }));
  assert.deepEqual([frame().usage.context, frame().usage.context_window], [1340, 258_400]);
  assert.deepEqual(store.sessions.get("h\ns")!.context.list(), [1340]);
  const primary = (used_percent: number) => ({ limit: "codex", windows: [{ name: "primary", used_percent }] });
  store.apply(event("limits.updated", 3, primary(12)));
  store.apply(event("limits.updated", 4, { windows: [] }));
  store.apply(event("limits.updated", 5, { ...primary(60), plan: "plus" }));
  store.apply(event("limits.updated", 4, primary(30))); // of another stream, older
  assert.deepEqual(frame().limits, [{ time: "2026-01-01T00:00:05.000Z", plan: "plus", ...primary(60) }, { time: "2026-01-01T00:00:04.000Z", windows: [] }]);
});

test("the result of the call that started a subagent may name it", () => {
  const store = new SessionStore();
  store.apply(session([]));
  const agents = () => store.sessions.get("h\ns")!.frame.agents;
  store.apply(event("agent.started", 1, { call: "c", description: "looker", background: true }));
  store.apply(event("tool.finished", 2, { call: "c", outcome: "ok", background: "S2" }));
  assert.deepEqual(agents().map(({ agent, call }) => [agent, call]), [["S2", "c"]]);
  store.apply(event("tool.invoked", 3, { call: "d", tool: "exec_command", agent: "S2" }));
  assert.deepEqual(agents()[0]!.tools.map(({ tool }) => tool), ["exec_command"]);
  store.apply(event("agent.finished", 4, { subagent: "S2", call: "c", outcome: "completed" }));
  assert.deepEqual(agents(), []);
});

test("a program that does not record the size of the context leaves it unknown", () => {
  const total = { input: 0, output: 9, cache_read: 0, cache_write: 0 };
  assert.equal(contextTokens(event("usage.updated", 1, { ...total, total }) as never), undefined);
  assert.equal(contextTokens(event("usage.updated", 1, { total }) as never), undefined);
  assert.equal(contextTokens(event("usage.updated", 1, { ...total, input: 5, cache_read: 6, cache_write: 7, total }) as never), 18);
});

test("an account's limits are the newest that any session states", () => {
  const limit = (time: string, used_percent: number, resets_at?: string) => ({ time, limit: "codex", windows: [{ name: "primary", used_percent, ...(resets_at && { resets_at }) }] });
  const frames = [
    session([], { session: "a", program: "codex", limits: [limit("2026-01-01T00:00:01Z", 10)] }),
    session([], { session: "b", program: "codex", limits: [limit("2026-01-01T00:00:03Z", 30)] }),
    session([], { session: "c", program: "codex", limits: [limit("2026-01-01T00:00:02Z", 20)] }),
    session([], { session: "d", program: "codex", host: "other", limits: [limit("2026-01-01T00:00:02Z", 40)] }),
    session([], { session: "e", program: "claude-code" }),
  ];
  const used = (found: ReturnType<typeof accountLimits>) => found.map(({ host, program, windows }) => [host, program, windows[0]!.used_percent]);
  assert.deepEqual(used(accountLimits(frames, 0)), [["h", "codex", 30], ["other", "codex", 40]]);
  assert.deepEqual(used(accountLimits([...frames].reverse(), 0)), [["h", "codex", 30], ["other", "codex", 40]]);
  const ended = session([], { program: "codex", limits: [limit("2026-01-01T00:00:09Z", 90, "2026-01-01T05:00:00Z")] });
  assert.deepEqual(accountLimits([...frames.slice(0, 3), ended], Date.parse("2026-01-01T05:00:00Z")), []); // it began anew: not known
  assert.deepEqual(used(accountLimits([ended], Date.parse("2026-01-01T04:59:59Z"))), [["h", "codex", 90]]);
});

const time = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000Z`;
const statusFrame = (state: "working" | "waiting" | "idle" | "ended" | "unknown", since: number, more: object = {}): Frame =>
  ({ type: "status", host: "h", session: "s", state, source: "registry", since: time(since), ...more });

test("a change of the state ends a period of waiting, working or idling", () => {
  const store = new SessionStore();
  const times = { waited_ms: 100, worked_ms: 2000, idle_ms: 30_000, turn: { waited_ms: 10, worked_ms: 20 } };
  const frame = () => store.sessions.get("h\ns")!.frame;
  const sums = () => [frame().times!.waited_ms, frame().times!.worked_ms, frame().times!.idle_ms, frame().times!.turn.waited_ms, frame().times!.turn.worked_ms];
  store.apply(session([], { times, status: { state: "idle", source: "registry", since: time(0) } }));
  store.apply(statusFrame("working", 4));
  assert.deepEqual(sums(), [100, 2000, 34_000, 10, 20]);
  store.apply(event("turn.started", 4, { origin: "human" }));
  assert.deepEqual(sums(), [100, 2000, 34_000, 0, 0]); // a new turn
  store.apply(statusFrame("waiting", 9, { reason: "permission" }));
  assert.deepEqual(sums(), [100, 7000, 34_000, 0, 5000]);
  store.apply(statusFrame("waiting", 9, { reason: "permission", detail: "approve" })); // a refinement
  assert.deepEqual(sums(), [100, 7000, 34_000, 0, 5000]);
  store.apply(statusFrame("unknown", 10, { reason: "host_offline" }));
  store.apply(statusFrame("waiting", 9, { reason: "permission" })); // the host returned
  store.apply(statusFrame("idle", 19));
  assert.deepEqual(sums(), [10_100, 7000, 34_000, 10_000, 5000]);
  store.apply(statusFrame("ended", 22));
  store.apply(statusFrame("ended", 30));
  assert.deepEqual(sums(), [10_100, 7000, 37_000, 10_000, 5000]);
  store.apply(session([], { status: { state: "idle", source: "registry", since: time(0) } })); // an older daemon
  store.apply(statusFrame("working", 4));
  assert.equal(frame().times, undefined);
});

test("turns of the transcript end periods if no other source states the status", () => {
  const store = new SessionStore();
  store.apply(session([], { times: { waited_ms: 0, worked_ms: 0, idle_ms: 0, turn: { waited_ms: 0, worked_ms: 7 } }, status: { state: "idle", source: "transcript", since: time(0) } }));
  store.apply(event("turn.started", 2, { origin: "human" }));
  store.apply(event("turn.finished", 5, { outcome: "completed" }));
  store.apply(event("turn.finished", 9, { outcome: "completed", agent: "a" }));
  assert.deepEqual(store.sessions.get("h\ns")!.frame.times, { waited_ms: 0, worked_ms: 3000, idle_ms: 2000, turn: { waited_ms: 0, worked_ms: 3000 } });
});

test("sessionTimes includes the present state", () => {
  const times = { waited_ms: 1000, worked_ms: 2000, idle_ms: 3000, turn: { waited_ms: 100, worked_ms: 200 } };
  const at = Date.parse(time(10));
  const of = (state: "working" | "waiting" | "idle" | "ended", more: Partial<SessionFrame> = {}) => {
    const found = sessionTimes({ times, status: { state, source: "registry", since: time(4) }, ...more }, at)!;
    return [found.waited_ms, found.worked_ms, found.idle_ms, found.turn.waited_ms, found.turn.worked_ms];
  };
  assert.deepEqual(of("waiting"), [7000, 2000, 3000, 6100, 200]);
  assert.deepEqual(of("working"), [1000, 8000, 3000, 100, 6200]);
  assert.deepEqual(of("idle"), [1000, 2000, 9000, 100, 200]);
  assert.deepEqual(of("ended"), [1000, 2000, 3000, 100, 200]);
  assert.deepEqual(of("waiting", { clock_offset_ms: 5000 }), [2000, 2000, 3000, 1100, 200]); // the host's clock is behind
  assert.deepEqual(of("waiting", { clock_offset_ms: 60_000 }), [1000, 2000, 3000, 100, 200]);
  assert.deepEqual(sessionTimes({ times, status: { state: "waiting", source: "registry" } }, at), times); // since when is not known
  assert.equal(sessionTimes({ status: { state: "waiting", source: "registry", since: time(4) } }, at), undefined);
});

test("usageOfDay is that of the day that contains the time", () => {
  const day = { since: "2026-10-24T22:00:00.000Z", until: "2026-10-25T23:00:00.000Z", input: 1, output: 2, cache_read: 3, cache_write: 4 }; // 25 hours
  for (const [at, expected] of [["2026-10-24T21:59:59.999Z", undefined], [day.since, day], ["2026-10-25T22:30:00Z", day], [day.until, undefined]] as const) {
    assert.equal(usageOfDay({ day }, Date.parse(at)), expected, at);
  }
  assert.equal(usageOfDay({}, Date.parse(day.since)), undefined);
});

test("a finished turn is unseen until a frame says otherwise or a new turn starts", () => {
  const store = new SessionStore();
  const finished = (outcome: string, more: object = {}) => {
    store.apply(session([]));
    store.apply(event("turn.started", 1, { origin: "human" }));
    store.apply(event("turn.finished", 2, { outcome, ...more }));
    return store.sessions.get("h\ns")!.frame.unseen;
  };
  assert.deepEqual(["completed", "failed", "interrupted", "superseded"].map((outcome) => finished(outcome)), [true, true, undefined, undefined]);
  assert.equal(finished("completed", { agent: "a" }), undefined);
  finished("completed");
  store.apply(event("turn.started", 3, { origin: "agent", agent: "a" }));
  assert.equal(store.sessions.get("h\ns")!.frame.unseen, true);
  store.apply(event("turn.started", 3, { origin: "human" }));
  assert.ok(!("unseen" in store.sessions.get("h\ns")!.frame));
  finished("completed");
  store.apply(session([]));
  assert.equal(store.sessions.get("h\ns")!.frame.unseen, undefined);
});

test("recorded cost is summed over the streams, and an estimate waits for its session frame", () => {
  const total = { input: 1, output: 1, cache_read: 0, cache_write: 0 };
  const usage = (cost_usd: number | undefined, stream = "r/d/s") => event("usage.updated", 1, { stream, total, ...(cost_usd !== undefined && { cost_usd }), ...(stream !== "r/d/s" && { agent: "a" }) });
  const run = (first: SessionFrame, ...events: EarshotEvent[]) => {
    const store = new SessionStore();
    store.apply(first);
    for (const each of events) store.apply(each);
    const { cost_usd, cost_source } = store.sessions.get("h\ns")!.frame.usage;
    return [cost_usd, cost_source];
  };
  const one = ["r/d/s:0.0.0000000000000000"];
  const two = [...one, "r/d/s/a:0.0.0000000000000000"];
  const having = (cursors: string[], cost: object) => session(cursors, { usage: { ...total, ...cost } });
  assert.deepEqual(run(having(one, {}), usage(undefined)), [undefined, undefined]);
  assert.deepEqual(run(having(one, {}), usage(0.25)), [0.25, "recorded"]);
  assert.deepEqual(run(having(one, { cost_usd: 1, cost_source: "recorded" }), usage(0.5)), [0.5, "recorded"]); // it can decrease
  assert.deepEqual(run(having(one, { cost_usd: 1, cost_source: "estimated" }), usage(undefined), usage(0.5)), [1, "estimated"]);
  assert.deepEqual(run(having(one, { cost_usd: 1, cost_source: "mixed" }), usage(0.5), usage(undefined), usage(0.75)), [1.25, "mixed"]);
  assert.deepEqual(run(having(two, { cost_usd: 3, cost_source: "recorded" }), usage(0.5), usage(1, "r/d/s/a"), usage(1.5, "r/d/s/a"), usage(0.25)), [3.25, "recorded"]);
});

test("a status names program and project before the first session frame does", () => {
  const store = new SessionStore();
  store.apply(session([]));
  store.apply({ type: "status", host: "h", session: "s", program: "pi", project: "/p", state: "working", source: "process" });
  const { program, project, status } = store.sessions.get("h\ns")!.frame;
  assert.deepEqual([program, project, status], ["pi", "/p", { state: "working", source: "process" }]);
  for (const title of ["Lamp", "Lamp and horn", undefined]) store.apply({ type: "status", host: "h", session: "s", ...(title && { title }), state: "idle", source: "process" });
  assert.equal(store.sessions.get("h\ns")!.frame.title, "Lamp and horn"); // of the last one that states it
});

test("truncated follows the texts that events replace, move and remove", () => {
  const store = new SessionStore();
  const tool = (call: string) => ({ call, tool: "Bash", input: { command: call } });
  store.apply(session([], {
    last_text: "old", tools: [tool("a"), tool("b")], agents: [{ agent: "x", call: "p", description: "d", tools: [tool("c")] }, { agent: "y", call: "q", tools: [tool("d"), tool("e")] }],
    truncated: { last_text: 5000, "tools/1/input/command": 6000, "agents/1/tools/1/input/command": 7000, "agents/0/description": 8000 },
  }));
  const truncated = () => store.sessions.get("h\ns")!.frame.truncated;
  store.apply(event("tool.finished", 1, { call: "a", outcome: "ok" }));
  assert.equal(truncated()?.["tools/0/input/command"], 6000);
  store.apply(event("message.added", 2, { role: "assistant", kind: "text", text: "new" }));
  store.apply(event("agent.finished", 2, { call: "p", outcome: "completed" }));
  store.apply(event("tool.finished", 3, { call: "d", outcome: "ok", agent: "y" }));
  assert.deepEqual(truncated(), { "tools/0/input/command": 6000, "agents/0/tools/0/input/command": 7000 });
  store.apply(event("turn.started", 4, { origin: "human", prompt: "long", truncated: { prompt: 9000 } }));
  store.apply(event("tool.invoked", 5, { call: "f", tool: "Write", input: { content: "x" }, truncated: { "input/content": 9500 } }));
  assert.deepEqual(truncated(), { "tools/0/input/command": 6000, "agents/0/tools/0/input/command": 7000, "turn/prompt": 9000, "tools/1/input/content": 9500 });
  store.apply(event("turn.finished", 6, { outcome: "completed" }));
  assert.deepEqual(truncated(), { "agents/0/tools/0/input/command": 7000, "turn/prompt": 9000 });
});

test("replayed events are added to the history only, and a snapshot removes the sessions that it does not contain", () => {
  const store = new SessionStore();
  const removed: string[] = [];
  store.onChange((change) => change.kind === "removed" && removed.push(change.session.frame.session));
  store.apply(session([], { session: "old" }));
  store.apply({ type: "welcome", protocol: 1, server: "earshot/0", instance: "i", host: "h", view: "full", limits: { frame_bytes: 1, subscriptions: 1, outbound_bytes: 1 } });
  store.apply(session(["r/d/s:9.1.0000000000000000"]));
  store.apply({ type: "ready", id: "a" });
  assert.deepEqual(removed, ["old"]);
  store.apply(event("tool.invoked", 2, { call: "c", tool: "Bash" }), true);
  const state = store.sessions.get("h\ns")!;
  assert.deepEqual([state.frame.tools.length, state.events.length], [0, 1]);
  store.apply({ type: "reset", stream: "r/d/s", reason: "truncated" });
  assert.equal(state.events.length, 0);
  store.apply(event("tool.invoked", 2, { call: "c", tool: "Bash" }), true); // no session frame includes it after the reset
  assert.equal(state.frame.tools.length, 1);
});

test("a wait is the same as long as its request is, or its reason and since where the daemon names none", () => {
  const wait = (status: object) => waitOf(session([], { status: { state: "waiting", source: "transcript", since: "2026-01-01T00:00:00Z", ...status } }) as SessionFrame);
  assert.equal(wait({ request: "r1" }), wait({ request: "r1", reason: "permission", detail: "approve Bash" }));
  assert.notEqual(wait({ request: "r1" }), wait({ request: "r2" }));
  assert.equal(wait({ reason: "plan" }), wait({ reason: "plan", detail: "a plan" }));
  assert.notEqual(wait({ reason: "plan" }), wait({ reason: "question" }));
  assert.notEqual(wait({ reason: "plan" }), wait({ reason: "plan", since: "2026-01-01T00:00:01Z" }));
});

test("at a hub, equal session names of two hosts are two sessions, and only a status frame marks a host offline", () => {
  const store = new SessionStore();
  store.apply(session(["hub/ada/s:1.1.0000000000000000"], { host: "ada", session: "s@ada" }));
  store.apply(session(["hub/bob/s:1.1.0000000000000000"], { host: "bob", session: "s@bob" }));
  const of = (host: string) => store.sessions.get(`${host}\ns@${host}`)!.frame;
  store.apply({ type: "status", host: "bob", session: "s@bob", state: "unknown", reason: "host_offline", source: "clock", since: "2026-01-01T00:00:00Z" });
  assert.deepEqual([isOffline(of("ada")), isOffline(of("bob"))], [false, true]);
  store.apply({ ...event("turn.started", 2, { origin: "human" }), host: "bob", stream: "hub/bob/s", session: "s@bob" } as EarshotEvent); // was in flight
  assert.ok(isOffline(of("bob")));
  assert.ok(of("bob").turn.open);
  store.apply({ type: "status", host: "bob", session: "s@bob", state: "unknown", source: "clock" });
  assert.ok(!isOffline(of("bob"))); // a session without activity is a different case
});

test("a read is rejected at once if the host is offline or refuses it, and repeated if the daemon is busy", async () => {
  const sent: string[] = [];
  const records = new RecordRequests(({ id }) => sent.push(id));
  records.connected();
  const results = Promise.allSettled([1, 2, 3].map((n) => records.request(`hub/bob/${n}`, "1.1.0000000000000000")));
  const fail = (n: number, code: string, retry: boolean) => records.fail({ type: "error", id: `r${n}`, code, message: code, retry });
  assert.ok(fail(1, "host_offline", true) && fail(2, "not_allowed", false) && fail(3, "busy", true));
  while (sent.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(sent, ["r1", "r2", "r3", "r3"]);
  records.receive({ type: "record", id: "r3", part: 1, parts: 1, data: "{}" });
  assert.deepEqual((await results).map((result) => (result.status === "rejected" ? (result.reason as { code: string }).code : result.value)), ["host_offline", "not_allowed", {}]);
});
