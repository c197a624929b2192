// What a store holds is bounded by its options, not by what happens. EARSHOT_HOUR=1: as much as an hour brings at 1,000 events a second.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { SessionStore, type EarshotEvent } from "../src/index.js";

const sessions = 1000;
const rounds = process.env.EARSHOT_HOUR ? 3600 : 400; // an event for each session
const growth_max = 1.1;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed / (1 << 20);
}

/** What a session does, over and over: a turn with a tool, text and tokens. */
function event(session: number, round: number): EarshotEvent {
  const at = { host: "h", stream: `claude/d/s${session}`, session: `s${session}`, cursor: `${round}.1.0000000000000000`, turn: Math.floor(round / 6) + 1, time: new Date(1_767_225_600_000 + round * 1000).toISOString() };
  const total = { input: round, output: round, cache_read: round, cache_write: round };
  switch (round % 6) {
    case 0: return { type: "turn.started", ...at, origin: "human", prompt: `prompt ${round}` };
    case 1: return { type: "tool.invoked", ...at, call: `c${round}`, tool: "Bash", input: { command: `make ${round}` }, message: `m${round}` } as EarshotEvent;
    case 2: return { type: "usage.updated", ...at, message: `m${round}`, ...total, total } as EarshotEvent;
    case 3: return { type: "tool.finished", ...at, call: `c${round - 2}`, tool: "Bash", outcome: "ok", output: "x".repeat(200) } as EarshotEvent;
    case 4: return { type: "message.added", ...at, role: "assistant", kind: "text", text: `text ${round}`, message: `n${round}` } as EarshotEvent;
    default: return { type: "turn.finished", ...at, outcome: "completed" } as EarshotEvent;
  }
}

test(`a store stays as large as it is while ${(sessions * rounds).toLocaleString("en")} events go through it`, (t) => {
  const store = new SessionStore({ events_max: 20 });
  const heaps: number[] = [];
  const begin = Date.now();
  for (let round = 0; round < rounds; round++) {
    for (let session = 0; session < sessions; session++) store.take(event(session, round));
    if (round % (rounds / 4) === rounds / 4 - 1) heaps.push(heap());
  }
  t.diagnostic(`${Date.now() - begin} ms; heap after each quarter: ${heaps.map((size) => size.toFixed(1)).join(", ")} MiB`);
  assert.equal(store.sessions.size, sessions);
  for (const { events, context } of store.sessions.values()) assert.ok(events.length <= 20 && context.list().length <= 64);
  assert.ok(heaps.at(-1)! < heaps[0]! * growth_max, heaps.join());
});
