// The overview's subscription, and what became of it. Everything the page knows comes through here or through session.ts.
import { batch, computed, signal } from "@preact/signals";
import { Earshot, SessionStore, type ConnectionState, type SessionState } from "../../sdk/src/index.js";
import { forgetToken, signIn, takeCode, token } from "./auth.js";
import { beat } from "./beat.js";
import { harmlessSocket } from "./visible.js";

export type PageState = ConnectionState | { state: "signed_out" | "used" | "unreachable" };

const lagged_ms = 8_000; // how long it is told

export const state = signal<PageState>({ state: "connecting" });
export const ready = signal(false); // a snapshot was complete once
export const laggedUntil = signal(0);
export const ownHost = signal(""); // the daemon's own
export const sessionLive = signal<PageState | undefined>(undefined); // of the session page's own subscription

const version = signal(0);
const store = new SessionStore({ events_max: 0 });
/** All sessions; another array whenever something changed. */
export const sessions = computed<SessionState[]>(() => {
  void version.value;
  return [...store.sessions.values()];
});

export const earshot = new Earshot({
  connect: () => harmlessSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/v1/ws`),
  token,
  client: "dashboard/0.1.0",
  backoff: { first_ms: 300 },
});

let complete = false;
const { soon } = beat(() => batch(() => {
  version.value++;
  ready.value = complete; // together: who was there when the page opened is no news
}));

store.onChange((change) => {
  complete ||= change.kind === "snapshot";
  soon();
});

/** A context's course that was read from the transcript: history.ts. */
export const recall = (key: string, sizes: Iterable<number>) => store.recall(key, sizes);

let subscription: ReturnType<Earshot["subscribe"]> | undefined;

function follow() {
  subscription = earshot.watch({ deliver: "state" }, store, {
    frame: (frame) => {
      if (frame.type === "welcome") ownHost.value = frame.host;
      if (frame.type === "lagged") laggedUntil.value = Date.now() + lagged_ms;
    },
    state: (now) => {
      if (now.state === "unauthorised") forgetToken();
      state.value = now;
    },
  }).subscription;
}

/** Trades a code, if the address has one, and begins to listen. */
export async function begin() {
  const code = takeCode();
  if (code) {
    const got = await signIn(code);
    if (got !== "in") {
      state.value = { state: got === "used" ? "used" : "unreachable" };
      return;
    }
  }
  if (!token()) state.value = { state: "signed_out" };
  else follow();
}

export const retry = () => (subscription ? subscription.retry() : void begin());

// Whoever comes back to the page, or to the network, does not want to wait for the end of a pause.
addEventListener("online", retry);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && state.value.state === "retrying" && retry());
addEventListener("hashchange", () => location.hash && location.reload());
