// Loads the context size of sessions before the page was opened: once per session whose row is on screen, in batches.
import { effect } from "@preact/signals";
import { SampledSeries, contextTokens, sessionKey, type SessionFrame } from "../../sdk/src/index.js";
import { connection, earshot, setContextHistory } from "./connection.js";
import { exactPattern } from "./route.js";

const delay_ms = 300; // rows that only scroll past are not requested
const batch_max = 24; // sessions; the daemon reads their transcripts
const requested_max = 5_000; // above it the set is cleared, and rows are requested again
const samples_max = 64;

const requested = new Set<string>();
const on_screen = new Map<string, SessionFrame>(); // not requested yet
let timer = 0;
let busy = false;

/** Reports that a row is on screen. Returns a function that reports that it no longer is. */
export function onScreen(key: string, frame: SessionFrame): () => void {
  if (requested.has(key)) return () => {};
  on_screen.set(key, frame);
  schedule();
  return () => on_screen.delete(key);
}

function schedule() {
  clearTimeout(timer);
  timer = window.setTimeout(request, delay_ms);
}

function request() {
  if (busy || on_screen.size === 0 || connection.peek().state !== "live") return;
  const batch = [...on_screen].slice(0, batch_max);
  if (requested.size > requested_max) requested.clear();
  const histories = new Map<string, SampledSeries>();
  for (const [key] of batch) {
    requested.add(key);
    on_screen.delete(key);
    histories.set(key, new SampledSeries(samples_max));
  }
  busy = true;
  const done = () => {
    if (!busy) return;
    subscription.close();
    busy = false;
    schedule();
  };
  const allowAgain = () => batch.forEach(([key]) => requested.delete(key));
  const filter = { session: batch.map(([, frame]) => exactPattern(frame.session)), type: ["usage.updated"] };
  const subscription = earshot.subscribe({ filter, history: true, on_lag: "catch_up" }, {
    frame: (frame) => {
      if (frame.type !== "usage.updated") return;
      const tokens = contextTokens(frame);
      if (tokens !== undefined) histories.get(sessionKey(frame.host, frame.session))?.push(tokens);
    },
    state: ({ state }) => {
      if (!busy || state === "connecting" || state === "catching_up") return;
      if (state === "live") for (const [key, history] of histories) setContextHistory(key, history.list());
      else allowAgain();
      queueMicrotask(done);
    },
  });
}

effect(() => {
  if (connection.value.state === "live") schedule();
});
