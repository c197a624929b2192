// What needs no daemon: the protocol's vectors, cursors, pauses, the queue, the store.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Backoff, Cursors, Samples, SessionStore, isAway, isCursor, matches, splitPlace, whole, type EarshotEvent, type Frame, type SessionFrame } from "../src/index.js";
import { Queue } from "../src/queue.js";
import { Reads } from "../src/reads.js";
import { Ring } from "../src/ring.js";
import { vectors } from "./daemon.js";

const sdk = join(dirname(fileURLToPath(import.meta.url)), "../..");
const load = <T>(name: string): T => JSON.parse(readFileSync(join(vectors, name), "utf8")) as T;
const client = ["hello", "subscribe", "unsubscribe", "read"];

function frames(): Frame[] {
  return readdirSync(vectors).filter((name) => name.endsWith(".json") && !["cursors.json", "filters.json", "subjects.json", "connection.json"].includes(name))
    .filter((name) => !client.includes(name.replace(".json", "")))
    .flatMap((name) => load<Array<{ frame: Frame }>>(name).map((one) => one.frame));
}

test("the types are what the schemas say", () => {
  execFileSync(process.execPath, [join(sdk, "scripts/generate.mjs"), "--check"], { stdio: "pipe" });
});

test("every vector is of its type, as the compiler sees it", () => {
  const folder = mkdtempSync(join(tmpdir(), "earshot-vectors-"));
  try {
    const lines = [`import type { Frame, ClientMessage } from ${JSON.stringify(join(sdk, "src/protocol.js"))};`];
    for (const name of readdirSync(vectors).filter((one) => one.endsWith(".json") && !["cursors.json", "filters.json", "subjects.json"].includes(one))) {
      for (const { frame, from } of load<Array<{ frame: { type: string }; from?: string }>>(name)) {
        const kind = from === "client" || client.includes(name.replace(".json", "")) ? "ClientMessage" : "Frame";
        lines.push(`(${JSON.stringify(frame)}) satisfies ${kind};`);
      }
    }
    assert.ok(lines.length > 60);
    lines.push(`({type: "subscribe", id: "a", filter: {host: ["ada*"]}}) satisfies ClientMessage;`);
    lines.push(`// @ts-expect-error: hosts are a list\n({type: "subscribe", id: "a", filter: {host: "ada"}}) satisfies ClientMessage;`);
    lines.push(`// @ts-expect-error: a state is one of five\n({type: "status", host: "h", session: "s", state: "busy", source: "clock"}) satisfies Frame;`);
    writeFileSync(join(folder, "vectors.ts"), lines.join("\n"));
    execFileSync(join(sdk, "node_modules/.bin/tsc"), ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", join(folder, "vectors.ts")], { stdio: "pipe" });
  } catch (error) {
    throw new Error(String((error as { stdout?: Buffer }).stdout ?? error));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("filters and cursors are judged as the vectors say", () => {
  for (const { pattern, text, match } of load<Array<{ pattern: string; text: string; match: boolean }>>("filters.json")) {
    assert.equal(matches(pattern, text), match, `${pattern} ~ ${text}`);
  }
  for (const { cursor, valid } of load<Array<{ cursor: string; valid: boolean }>>("cursors.json")) assert.equal(isCursor(cursor), valid, cursor);
});

test("the store takes every vector, and a whole connection", () => {
  const store = new SessionStore();
  for (const frame of frames()) store.take(frame);
  assert.ok(store.sessions.size > 0);
  const one = new SessionStore();
  const told = load<Array<{ from: string; frame: Frame }>>("connection.json").filter(({ from }) => from === "server").map(({ frame }) => frame);
  for (const frame of told) one.take(frame);
  const last = new Map(told.filter((frame) => frame.type === "status").map((frame) => [frame.session, frame]));
  for (const state of one.sessions.values()) {
    if (last.has(state.now.session)) assert.equal(state.now.status.state, last.get(state.now.session)!.state);
    const events = told.filter((frame): frame is EarshotEvent => "cursor" in frame && frame.session === state.now.session);
    assert.deepEqual(state.events.list(), events);
  }
});

test("a place is split at its last colon, and text that was cut shows that", () => {
  assert.deepEqual(splitPlace("claude/a%3Ab/c:1.2.9c1e44d0a1b2c3d4"), ["claude/a%3Ab/c", "1.2.9c1e44d0a1b2c3d4"]);
  assert.equal(whole({ text: "abc", bytes: 9000, truncated: true }), "abc…");
});

const session = (cursors: string[], more: Partial<SessionFrame> = {}): SessionFrame => ({
  type: "session", host: "h", session: "s", cursors, directory: "d", status: { state: "idle", source: "transcript" }, turn: { number: 0, open: false },
  tools: [], todos: [], agents: [], usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 }, ...more,
});

test("a session frame does not move a stream that is being caught up, a reset and its frame do", () => {
  const cursors = new Cursors(["a:1.1.0000000000000001"]);
  cursors.await(["a", "new"]);
  cursors.handled(session(["a:9.1.0000000000000009", "b:5.1.0000000000000005"]));
  assert.deepEqual(cursors.places(), ["a:1.1.0000000000000001", "new:", "b:5.1.0000000000000005"]);
  cursors.handled({ type: "reset", id: "a", stream: "a", reason: "rewritten" });
  cursors.handled(session(["a:2.1.0000000000000002"]));
  assert.deepEqual(cursors.places(), ["new:", "b:5.1.0000000000000005", "a:2.1.0000000000000002"]);
  cursors.handled({ type: "reset", stream: "b", reason: "rewritten" });
  cursors.handled({ type: "stream.removed", stream: "new" });
  assert.deepEqual(cursors.places(), ["b:", "a:2.1.0000000000000002"]);
});

test("pauses grow, are random and end at the longest", () => {
  const low = new Backoff({ random: () => 0 });
  const high = new Backoff({ random: () => 1 });
  const pauses = Array.from({ length: 8 }, () => [low.next(), high.next()]);
  assert.deepEqual(pauses[0], [100, 200]);
  assert.deepEqual(pauses[1], [200, 400]);
  assert.deepEqual(pauses[7], [5000, 10000]);
});

test("a queue tells when it is full and when it is not, and what was handled", async () => {
  const told: string[] = [];
  const queue = new Queue<number>({ high: 4, full: () => told.push("full"), drained: () => told.push("drained"), taken: (one) => told.push(`handled ${one}`) });
  for (let n = 1; n <= 5; n++) queue.push(n);
  for (let n = 1; n <= 5; n++) assert.deepEqual(await queue.next(), { done: false, value: n });
  assert.deepEqual(told, ["full", "handled 1", "handled 2", "drained", "handled 3", "handled 4"]);
  queue.end();
  assert.equal((await queue.next()).done, true);
});

test("a ring keeps the newest", () => {
  const ring = new Ring<number>(1000);
  for (let n = 0; n < 5000; n++) ring.push(n);
  assert.deepEqual([ring.length, ring.dropped, ring.at(0), ring.at(-1), ring.at(-1001)], [1000, 4000, 4000, 4999, undefined]);
});

test("samples keep the whole course in bounded space, and the newest always", () => {
  const samples = new Samples(16);
  for (let n = 1; n <= 10_000; n++) {
    samples.push(n);
    assert.ok(samples.list().length <= 16);
    assert.equal(samples.list().at(-1), n);
  }
  const kept = samples.list();
  assert.ok(kept.length >= 8 && kept[0]! < 2_500, kept.join());
  assert.deepEqual(kept, [...kept].sort((a, b) => a - b));
});

const event = (type: string, cursor: number, more: object = {}) =>
  ({ type, host: "h", stream: "r/d/s", session: "s", cursor: `${cursor}.1.0000000000000000`, turn: 1, time: `2026-01-01T00:00:0${cursor}.000Z`, ...more }) as EarshotEvent;

test("events move a session on between its frames", () => {
  const store = new SessionStore({ events_max: 3 });
  store.take(session(["r/d/s:0.0.0000000000000000"]));
  const now = () => store.sessions.get("h\ns")!.now;
  store.take(event("turn.started", 1, { origin: "human", prompt: "go" }));
  assert.deepEqual([now().turn.open, now().status.state, now().turn.prompt], [true, "working", "go"]);
  store.take(event("tool.invoked", 2, { call: "c", tool: "Bash", input: { command: "ls" } }));
  store.take(event("todo.updated", 2, { todos: [{ content: "x", status: "pending" }], source: "tool" }));
  assert.deepEqual([now().tools.map((tool) => tool.tool), now().todos.length], [["Bash"], 1]);
  store.take(event("usage.updated", 3, { input: 3, output: 4, cache_read: 5, cache_write: 6, total: { input: 3, output: 4, cache_read: 5, cache_write: 6 } }));
  assert.deepEqual([now().usage.output, now().usage.context], [4, 14]);
  assert.deepEqual(store.sessions.get("h\ns")!.context.list(), [14]);
  store.take(event("tool.finished", 4, { call: "c", outcome: "ok" }));
  store.take(event("turn.finished", 5, { outcome: "completed" }));
  assert.deepEqual([now().tools, now().turn.outcome, now().status.state, now().last_activity], [[], "completed", "idle", "2026-01-01T00:00:05.000Z"]);
  const kept = store.sessions.get("h\ns")!.events;
  assert.deepEqual([kept.length, kept.dropped], [3, 3]);
  store.take({ type: "status", host: "h", session: "s", state: "waiting", reason: "permission", source: "registry" });
  store.take(event("turn.started", 6, { origin: "human" }));
  assert.equal(now().status.state, "waiting"); // the registry knows better than a transcript
});

test("events that were missed go to history only, and a snapshot forgets who is gone", () => {
  const store = new SessionStore();
  const gone: string[] = [];
  store.onChange((change) => change.kind === "gone" && gone.push(change.session.now.session));
  store.take(session([], { session: "old" }));
  store.take({ type: "welcome", protocol: 1, server: "earshot/0", instance: "i", host: "h", view: "full", limits: { frame_bytes: 1, subscriptions: 1 } });
  store.take(session(["r/d/s:9.1.0000000000000000"]));
  store.take({ type: "ready", id: "a" });
  assert.deepEqual(gone, ["old"]);
  store.take(event("tool.invoked", 2, { call: "c", tool: "Bash" }), true);
  const state = store.sessions.get("h\ns")!;
  assert.deepEqual([state.now.tools.length, state.events.length], [0, 1]);
  store.take({ type: "reset", stream: "r/d/s", reason: "truncated" });
  assert.equal(state.events.length, 0);
  store.take(event("tool.invoked", 2, { call: "c", tool: "Bash" }), true); // told anew: no session frame has it
  assert.equal(state.now.tools.length, 1);
});

test("at a hub: sessions of two hosts are two, and that a host is away is told by a status alone", () => {
  const store = new SessionStore();
  store.take(session(["hub/ada/s:1.1.0000000000000000"], { host: "ada", session: "s@ada" }));
  store.take(session(["hub/bob/s:1.1.0000000000000000"], { host: "bob", session: "s@bob" }));
  const of = (host: string) => store.sessions.get(`${host}\ns@${host}`)!.now;
  store.take({ type: "status", host: "bob", session: "s@bob", state: "unknown", reason: "host_offline", source: "clock", since: "2026-01-01T00:00:00Z" });
  assert.deepEqual([isAway(of("ada")), isAway(of("bob"))], [false, true]);
  store.take({ ...event("turn.started", 2, { origin: "human" }), host: "bob", stream: "hub/bob/s", session: "s@bob" } as EarshotEvent); // on its way when the host went
  assert.ok(isAway(of("bob")));
  assert.ok(of("bob").turn.open);
  store.take({ type: "status", host: "bob", session: "s@bob", state: "unknown", source: "clock" });
  assert.ok(!isAway(of("bob"))); // quiet for long is another matter
});

test("a record of a host that is away, or that keeps its records, is refused at once and says why; a busy daemon is asked again", async () => {
  const sent: string[] = [];
  const reads = new Reads(({ id }) => sent.push(id));
  reads.again();
  const asked = [1, 2, 3].map((n) => reads.ask(`hub/bob/${n}`, "1.1.0000000000000000"));
  const refusals = Promise.allSettled(asked);
  const code = (n: number, code: string, retry: boolean) => reads.error({ type: "error", id: `r${n}`, code, message: code, retry });
  assert.ok(code(1, "host_offline", true) && code(2, "not_allowed", false) && code(3, "busy", true));
  while (sent.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(sent, ["r1", "r2", "r3", "r3"]);
  reads.record({ type: "record", id: "r3", part: 1, parts: 1, data: "{}" });
  assert.deepEqual((await refusals).map((one) => (one.status === "rejected" ? (one.reason as { code: string }).code : one.value)), ["host_offline", "not_allowed", {}]);
});
