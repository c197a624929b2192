// How a session's context went before this page was opened: asked for once for each row that comes on screen, some rows at a time.
import { effect } from "@preact/signals";
import { Samples, contextOf, sessionKey, type SessionFrame } from "../../sdk/src/index.js";
import { earshot, recall, state } from "./connection.js";
import { exactly } from "./route.js";

const rest_ms = 300; // rows that only pass by while somebody scrolls are not asked for
const batch_max = 24; // sessions; the daemon reads their transcripts for it
const asked_max = 5_000; // beyond, who was asked for is forgotten: it is asked for again

const asked = new Set<string>();
const shown = new Map<string, SessionFrame>(); // rows on screen that were not asked for yet
let timer = 0;
let busy = false;

/** This row is on screen; returns what to call when it is not any more. */
export function onScreen(key: string, frame: SessionFrame): () => void {
  if (asked.has(key)) return () => {};
  shown.set(key, frame);
  soon();
  return () => shown.delete(key);
}

function soon() {
  clearTimeout(timer);
  timer = window.setTimeout(ask, rest_ms);
}

function ask() {
  if (busy || shown.size === 0 || state.peek().state !== "live") return;
  const batch = [...shown].slice(0, batch_max);
  if (asked.size > asked_max) asked.clear();
  const found = new Map<string, Samples>();
  for (const [key] of batch) {
    asked.add(key);
    shown.delete(key);
    found.set(key, new Samples(64));
  }
  busy = true;
  const done = () => {
    if (!busy) return;
    subscription.close();
    busy = false;
    soon();
  };
  const again = () => batch.forEach(([key]) => asked.delete(key)); // when the row comes on screen once more
  const filter = { session: batch.map(([, frame]) => exactly(frame.session)), type: ["usage.updated"] };
  const subscription = earshot.subscribe({ filter, history: true, on_lag: "catch_up" }, {
    frame: (frame) => {
      if (frame.type !== "usage.updated") return;
      const size = contextOf(frame);
      if (size !== undefined) found.get(sessionKey(frame.host, frame.session))?.push(size);
    },
    state: (now) => {
      if (!busy || now.state === "connecting" || now.state === "catching_up") return;
      if (now.state === "live") for (const [key, samples] of found) recall(key, samples.list());
      else again();
      queueMicrotask(done);
    },
  });
}

effect(() => {
  if (state.value.state === "live") soon();
});
