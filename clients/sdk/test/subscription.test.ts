// A subscription against a fake socket: what it sends, and when it reconnects.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Earshot, SessionStore, type ConnectionState, type EarshotOptions, type Frame, type SocketHandlers, type SubscribeOptions } from "../src/index.js";
import { until } from "./harness.js";

const backoff = { first_ms: 1, last_ms: 2 };
const limits = { frame_bytes: 1 << 20, subscriptions: 32, outbound_bytes: 1 << 20 };
const welcome: Frame = { type: "welcome", protocol: 1, server: "earshot/0", instance: "i", host: "h", view: "full", limits };
const ready: Frame = { type: "ready", id: "a" };
const complete: Frame = { type: "bookmark", id: "a", complete: true, cursors: [] };
const place = (stream: string, cursor: number) => `${stream}:${cursor}.1.0000000000000000`;
const session = (...cursors: string[]): Frame => ({
  type: "session", host: "h", session: "s", cursors, directory: "d", status: { state: "idle", source: "transcript" }, turn: { number: 0, open: false },
  tools: [], todos: [], agents: [], usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
});
const message = (stream: string, cursor: number) =>
  ({ type: "message.added", host: "h", stream, session: "s", cursor: `${cursor}.1.0000000000000000`, turn: 1, role: "user", kind: "text", text: `${cursor}` }) as Frame;

interface Connection { sent: Array<Record<string, unknown>>; closed: boolean; receive(...frames: Frame[]): void; receiveText(text: string): void; drop(code: number): void }

function connect(options: SubscribeOptions, client: EarshotOptions = {}) {
  const connections: Connection[] = [];
  const states: ConnectionState[] = [];
  const frames: Frame[] = [];
  const earshot = new Earshot({
    backoff, ...client,
    connect: () => (handlers) => {
      const connection: Connection = {
        sent: [], closed: false,
        receive: (...received) => received.forEach((frame) => handlers.message(JSON.stringify(frame))),
        receiveText: (text) => handlers.message(text),
        drop: (code) => handlers.closed(code, ""),
      };
      connections.push(connection);
      setImmediate(() => handlers.opened());
      return { authorized: true, send: (text) => connection.sent.push(JSON.parse(text)), close: () => (connection.closed = true) };
    },
  });
  const { store, subscription } = earshot.watch(options, new SessionStore(), { frame: (frame) => frames.push(frame), state: (state) => states.push(state) });
  const connection = (number: number) => until(`connection ${number}`, () => connections[number - 1]);
  return { earshot, store, subscription, connections, connection, states, frames };
}

/** Replaces timers and the time until the test ends, as Node 18 has no mock of the time. Returns a function that lets milliseconds pass. */
function controlTime(t: TestContext): (ms: number) => void {
  const { setTimeout, clearTimeout } = globalThis;
  const real_now = Date.now;
  t.after(() => {
    Object.assign(globalThis, { setTimeout, clearTimeout });
    Date.now = real_now;
  });
  let now = real_now();
  let last_timer = 0;
  const timers = new Map<number, { due: number; expire: () => void }>();
  Object.assign(globalThis, {
    setTimeout: (expire: () => void, ms = 0) => (timers.set(++last_timer, { due: now + ms, expire }), last_timer),
    clearTimeout: (timer: number) => timers.delete(timer),
  });
  Date.now = () => now;
  return (ms) => {
    const end = now + ms;
    for (;;) {
      const [next] = [...timers].filter(([, { due }]) => due <= end).sort(([, a], [, b]) => a.due - b.due);
      if (!next) break;
      timers.delete(next[0]);
      now = next[1].due;
      next[1].expire();
    }
    now = end;
  };
}

/** Lets the promises and immediates of connecting run, where the test controls the time. */
async function settle() {
  for (let n = 0; n < 10; n++) await new Promise((resolve) => setImmediate(resolve));
}

test("fault 157: a frame that is not a JSON object is an error frame, and the connection goes on", async () => {
  const { earshot, subscription, connection, connections, frames } = connect({});
  const first = await connection(1);
  first.receive(welcome, session(place("a", 1)), ready);
  for (const text of ["<html>", "", "null", "3", '{"type":']) first.receiveText(text);
  first.receive(message("a", 2));
  assert.deepEqual(frames.slice(3).map((frame) => (frame.type === "error" ? frame.code : frame.type)), [...Array<string>(5).fill("bad_message"), "message.added"]);
  assert.equal(subscription.state.state, "live");
  assert.equal(connections.length, 1);
  earshot.close();
});

test("a reconnect resumes each stream and asks for new ones from their beginning", async () => {
  const { earshot, subscription, connection, states, store } = connect({ filter: { program: ["claude-code"], type: ["message.*"] }, on_lag: "catch_up" });
  const first = await connection(1);
  first.receive(welcome, session(place("a", 1)), ready, message("a", 2));
  assert.deepEqual(first.sent, [{ type: "subscribe", id: "a", filter: { program: ["claude-code"], type: ["message.*"] }, on_lag: "catch_up" }]);
  assert.deepEqual(states.map(({ state }) => state), ["connecting", "live"]);
  first.drop(1001);
  const second = await connection(2);
  second.receive(welcome, session(place("a", 3), place("b", 2)), ready);
  assert.deepEqual(second.sent[0]!.after, [place("a", 2)]);
  assert.equal(second.sent[0]!.new_streams, "beginning");
  assert.equal(subscription.state.state, "catching_up");
  second.receive(message("b", 1));
  second.drop(1006); // in the middle of the replay
  const third = await connection(3);
  third.receive(welcome, session(place("a", 3), place("b", 2)), ready);
  assert.deepEqual(third.sent[0]!.after, [place("a", 2), place("b", 1)]);
  third.receive(message("a", 3), message("b", 2), complete, message("b", 3));
  assert.equal(subscription.state.state, "live");
  assert.deepEqual(subscription.places(), [place("a", 3), place("b", 3)]);
  assert.deepEqual([...store.sessions.values()].map((state) => state.events.list().map(({ cursor }) => cursor.split(".")[0]).join()), ["2,1,3,2,3"]);
  earshot.close();
});

test("history, since and deliver are passed on; state subscriptions never resume", async () => {
  const cases: Array<[SubscribeOptions, object]> = [
    [{ history: true, all: true }, { all: true, new_streams: "beginning" }],
    [{ since: new Date(0) }, { since: "1970-01-01T00:00:00.000Z", new_streams: "beginning" }],
    [{ after: [place("a", 1)] }, { after: [place("a", 1)], new_streams: "beginning" }],
    [{ deliver: "state", after: [place("a", 1)] }, { deliver: "state" }],
  ];
  for (const [options, expected] of cases) {
    const { earshot, connection } = connect(options);
    const first = await connection(1);
    first.receive(welcome);
    assert.deepEqual(first.sent, [{ type: "subscribe", id: "a", ...expected }]);
    earshot.close();
  }
});

test("pages are requested one at a time, and a refused continuation leads to a new snapshot", async () => {
  const rest = (sessions: number) => ({ sessions, waiting: 0, working: 1, unseen: 0 });
  const { earshot, connection, store, subscription } = connect({ deliver: "state", page: 1 });
  const changes: string[] = [];
  store.onChange(({ kind }) => changes.push(kind));
  const first = await connection(1);
  first.receive(welcome);
  assert.deepEqual(first.sent, [{ type: "subscribe", id: "a", deliver: "state", page: 1 }]);
  assert.deepEqual([subscription.rest, subscription.isPageArriving, subscription.nextPage()], [undefined, true, false]);
  first.receive(session(), { type: "page", id: "a", rest: rest(2), next: "n1" });
  assert.deepEqual([subscription.state.state, subscription.rest?.sessions, subscription.isPageArriving], ["live", 2, false]);
  assert.deepEqual(changes, ["updated", "page"]);
  assert.deepEqual([store.isSent("h\ns"), store.isSent("h\nother")], [true, false]);
  assert.deepEqual([subscription.nextPage(), subscription.nextPage(), subscription.isPageArriving], [true, false, true]);
  assert.deepEqual(first.sent.slice(1), [{ type: "next_page", id: "a", next: "n1" }]);
  first.receive({ ...session(), session: "t" } as Frame, { type: "page", id: "a", rest: rest(0) }, ready);
  assert.deepEqual([subscription.rest?.sessions, subscription.isPageArriving, subscription.nextPage()], [0, false, false]);
  assert.deepEqual(changes.slice(2), ["updated", "page", "snapshot"]);

  first.drop(1006);
  assert.equal(subscription.rest, undefined);
  const second = await connection(2);
  second.receive(welcome, session(), { type: "page", id: "a", rest: rest(1), next: "n2" });
  assert.deepEqual([store.sessions.size, store.isSent("h\ns"), store.isSent("h\nt")], [2, true, false]); // known from before
  assert.ok(subscription.nextPage());
  second.receive({ type: "error", id: "a", code: "bad_page", message: "stale", retry: false });
  assert.ok(second.closed);
  const third = await connection(3);
  third.receive(welcome, session(), { type: "page", id: "a", rest: rest(0) }, ready);
  assert.deepEqual([...store.sessions.keys()], ["h\ns"]); // the other one is gone
  earshot.close();
});

test("a connection without frames is closed and reopened; a heartbeat keeps it", async (t) => {
  const pass = controlTime(t);
  const { earshot, connections, states, frames } = connect({}, { silence_ms_max: 200 });
  await settle();
  const first = connections[0]!;
  first.receive(welcome, ready);
  for (let n = 0; n < 25; n++) {
    first.receive({ type: "heartbeat", time: new Date().toISOString() });
    pass(20);
  }
  assert.deepEqual([first.closed, frames.at(-1)!.type, connections.length], [false, "heartbeat", 1]);
  pass(200);
  pass(backoff.last_ms);
  await settle();
  assert.equal(connections.length, 2);
  assert.ok(first.closed);
  assert.ok(states.some((state) => state.state === "retrying" && state.reason.startsWith("no frame for")));
  earshot.close();
});

// Fault 103.
test("a token function that throws or rejects is retried", async () => {
  for (const fail of [() => Promise.reject(new Error("keyring locked")), () => { throw new Error("keyring locked"); }]) {
    let tries = 0;
    const { earshot, connection, states } = connect({}, { token: () => (++tries < 3 ? fail() : "good") });
    await connection(1);
    assert.equal(tries, 3);
    const retries = states.flatMap((state) => (state.state === "retrying" ? [state.reason] : []));
    assert.deepEqual(retries, Array.from({ length: 2 }, () => "cannot authenticate: keyring locked"));
    earshot.close();
  }
});

test("a socket that cannot be created is retried", async () => {
  let tries = 0;
  const states: ConnectionState[] = [];
  const earshot = new Earshot({ backoff, connect: () => { tries++; throw new Error("no route"); } });
  earshot.subscribe({}, { frame() {}, state: (state) => states.push(state) });
  await until("three attempts", () => tries >= 3);
  earshot.close();
  assert.ok(states.some((state) => state.state === "retrying" && state.reason === "cannot connect: no route"));
});

test("a connection that is lost while the consumer is behind is reopened when the consumer has caught up", async () => {
  const connections: Array<{ paused: boolean; handlers: SocketHandlers }> = [];
  const earshot = new Earshot({
    backoff,
    connect: () => (handlers) => {
      const connection = { paused: false, handlers };
      connections.push(connection);
      return { authorized: true, send() {}, close() {}, pause: () => (connection.paused = true), resume: () => (connection.paused = false) };
    },
  });
  const subscription = earshot.subscribe({ queue_frames_max: 4 });
  await until("the connection", () => connections[0]);
  for (const frame of [welcome, ready, message("a", 1), message("a", 2)]) connections[0]!.handlers.message(JSON.stringify(frame));
  assert.ok(connections[0]!.paused);
  connections[0]!.handlers.closed(4408, "");
  await until("the pause", () => subscription.state.state === "paused");
  const frames = subscription[Symbol.asyncIterator]();
  for (let n = 0; n < 2; n++) await frames.next();
  await until("the new connection", () => connections[1]);
  assert.equal(subscription.state.state, "connecting");
  earshot.close();
});

test("a closed subscription receives nothing and does not reconnect", async (t) => {
  const pass = controlTime(t);
  const { earshot, connections, subscription, frames } = connect({}, { silence_ms_max: 20 });
  await settle();
  const first = connections[0]!;
  first.receive(welcome);
  earshot.close();
  first.receive(ready);
  assert.deepEqual([frames.length, first.closed, subscription.state.state], [1, true, "closed"]);
  for (let n = 0; n < 6; n++) {
    pass(10); // longer than silence_ms_max and the delay
    await settle();
  }
  assert.deepEqual([subscription.state.state, connections.length], ["closed", 1]);
});
