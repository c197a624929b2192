// The memory of a store is bounded by its options, not by the number of events. EARSHOT_HOUR=1: one hour at 1,000 events a second.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { SessionStore, type EarshotEvent } from "../src/index.js";

const sessions = 1000;
const rounds = process.env.EARSHOT_HOUR ? 3600 : 400; // one event per session each
const growth_max = 1.1;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed / (1 << 20);
}

/** Six rounds are one turn with a tool call, its tokens and a message. */
function event(session: number, round: number): EarshotEvent {
  const common = { host: "h", stream: `claude/d/s${session}`, session: `s${session}`, cursor: `${round}.1.0000000000000000`, turn: Math.floor(round / 6) + 1, time: new Date(1_767_225_600_000 + round * 1000).toISOString() };
  const total = { input: round, output: round, cache_read: round, cache_write: round };
  switch (round % 6) {
    case 0: return { type: "turn.started", ...common, origin: "human", prompt: `prompt ${round}` };
    case 1: return { type: "tool.invoked", ...common, call: `c${round}`, tool: "Bash", input: { command: `make ${round}` }, message: `m${round}` } as EarshotEvent;
    case 2: return { type: "usage.updated", ...common, message: `m${round}`, ...total, total } as EarshotEvent;
    case 3: return { type: "tool.finished", ...common, call: `c${round - 2}`, tool: "Bash", outcome: "ok", output: "x".repeat(200) } as EarshotEvent;
    case 4: return { type: "message.added", ...common, role: "assistant", kind: "text", text: `text ${round}`, message: `n${round}` } as EarshotEvent;
    default: return { type: "turn.finished", ...common, outcome: "completed" } as EarshotEvent;
  }
}

test(`${(sessions * rounds).toLocaleString("en")} events do not grow a store`, (t) => {
  const store = new SessionStore({ events_max: 20 });
  const heaps: number[] = [];
  const start_ms = Date.now();
  for (let round = 0; round < rounds; round++) {
    for (let session = 0; session < sessions; session++) store.apply(event(session, round));
    if (round % (rounds / 4) === rounds / 4 - 1) heaps.push(heap());
  }
  t.diagnostic(`${Date.now() - start_ms} ms; heap after each quarter: ${heaps.map((size) => size.toFixed(1)).join(", ")} MiB`);
  assert.equal(store.sessions.size, sessions);
  for (const { events, context } of store.sessions.values()) assert.ok(events.length <= 20 && context.list().length <= 64);
  assert.ok(heaps.at(-1)! < heaps[0]! * growth_max, heaps.join());
});
