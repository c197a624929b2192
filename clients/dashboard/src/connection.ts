// Sign-in, and the overview's subscription. All data of the page arrives here or in session.ts.
import { batch, computed, signal } from "@preact/signals";
import { Earshot, SessionStore, type ConnectionState, type Page, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { stale } from "./format.js";
import { HttpError, fetchJson } from "./http.js";
import { sanitizingSocket } from "./sanitize.js";
import { answerChallenge, forget, isRegistered, properAddress, register, type SignInProblem } from "./signin.js";

export type PageState = ConnectionState | { state: SignInProblem };

const lagged_notice_ms = 8_000;

export const connection = signal<PageState>({ state: "connecting" });
export const ready = signal(false); // the first snapshot was complete
export const laggedUntil = signal(0);
export const daemonHost = signal("");
/** By program: the words of the command that continues a session. */
export const resumeCommands = signal<Record<string, string[]>>({});
/** When the last frame arrived. */
export const lastFrameAt = signal(0);
export const sessionConnection = signal<PageState | undefined>(undefined); // of the open session's own subscription

const render_ms_min = 100;
const render_ms_max = 1000;
const render_share = 4; // rendering takes at most a quarter of the time

/** Returns `schedule`, which calls `render` after a delay, once for all changes until then. The delay grows with the time that rendering takes. */
export function throttle(render: () => void): { schedule: () => void; cancel: () => void } {
  let timer = 0;
  let delay = render_ms_min;
  const run = () => {
    timer = 0;
    const start = performance.now();
    render();
    requestAnimationFrame(() => setTimeout(() => (delay = Math.min(render_ms_max, Math.max(render_ms_min, render_share * (performance.now() - start))))));
  };
  return { schedule: () => void (timer ||= window.setTimeout(run, delay)), cancel: () => clearTimeout(timer) };
}

const version = signal(0);
const sessions_max = 20_000; // of a team; above it those with the oldest activity are left out
const store = new SessionStore({ events_max: 0, sessions_max });
/** This browser was revoked: nothing of a session is shown. The page is not loaded again: another program may use the port. */
export const isRevoked = computed(() => connection.value.state === "refused");

/** What the sessions that were not sent yet add to the figures; `undefined`: all were sent. */
export const rest = signal<Page["rest"] | undefined>(undefined);
/** Sessions that `rest` counts have arrived, and it is not renewed yet: figures stay as they are. */
export const pageArrives = signal(false);
/** False: the daemon has not sent the session on this connection yet, so that `rest` counts it. */
export const isSent = (key: string) => store.isSent(key);

/** All sessions: a new array after each change. */
export const sessions = computed<SessionState[]>(() => {
  void version.value;
  return isRevoked.value ? [] : [...store.sessions.values()];
});

/** The overview's frame of a session: its daemon states estimates and times in each. `undefined` if the session is not live. */
export function currentFrame(key: string): SessionFrame | undefined {
  void version.value;
  return store.sessions.get(key)?.frame;
}

export const earshot = new Earshot({
  connect: () => sanitizingSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/v1/ws`),
  authorize: () => answerChallenge("hello"),
  client: "dashboard/0.1.0",
  backoff: { first_ms: 300 },
});

/** The page is not hidden. */
export const visible = signal(document.visibilityState === "visible");
document.addEventListener("visibilitychange", () => (visible.value = document.visibilityState === "visible"));

/** Sends a request as this browser. Returns the status of the response, 0 if there is none. */
export async function post(path: string, body: object): Promise<number> {
  try {
    await fetchJson(path, { method: "POST", body });
    return 200;
  } catch (error) {
    return error instanceof HttpError ? error.status : 0;
  }
}

let has_snapshot = false;
const { schedule } = throttle(() => {
  batch(() => {
    version.value++;
    ready.value = has_snapshot; // together with the sessions, so that those already waiting are not announced
    pageArrives.value = subscription?.isPageArriving ?? false;
    if (!pageArrives.value) rest.value = subscription?.rest?.sessions ? subscription.rest : undefined;
  });
  if (rest.value && !pageArrives.value) loadWhenIdle();
});

store.onChange((change) => {
  has_snapshot ||= change.kind === "page" || change.kind === "snapshot";
  schedule();
});

// The first page is shown at once. The others follow whenever the page has nothing to do, or as soon as the user scrolls or searches.
const page_sessions = 500;
const idle_ms_max = 500;
const whenIdle = globalThis.requestIdleCallback ?? ((load: () => void) => setTimeout(load, idle_ms_max / 5));
let awaits_idle = false;

function loadNextPage() {
  subscription?.nextPage();
}

function loadWhenIdle() {
  if (awaits_idle) return;
  awaits_idle = true;
  whenIdle(() => {
    awaits_idle = false;
    loadNextPage();
  }, { timeout: idle_ms_max });
}

addEventListener("scroll", loadNextPage, { passive: true });
addEventListener("input", loadNextPage);

export const setContextHistory = (key: string, tokens: Iterable<number>) => store.setContextHistory(key, tokens);

/** Takes the one-time code out of the address, and so out of the browser's history. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

let last_frame_ms = 0;

/** While there is no connection, what is shown stays, marked with the time of the last frame. */
function setState(state: PageState) {
  batch(() => {
    connection.value = state;
    lastFrameAt.value = last_frame_ms;
    stale.value = ready.peek() && state.state !== "refused" && state.state !== "live" && state.state !== "catching_up" && state.state !== "paused";
  });
}

let subscription: ReturnType<Earshot["subscribe"]> | undefined;

/** The reason is a problem of this page's (signin.ts), or what the daemon closed the connection with. */
function problemOf(reason: string): SignInProblem {
  const own: SignInProblem[] = ["signed_out", "other_daemon", "impostor", "unsupported"];
  return own.find((problem) => problem === reason) ?? "refused";
}

function subscribe() {
  if (subscription) return earshot.retry();
  let known = 0;
  subscription = earshot.watch({ deliver: "state", page: page_sessions }, store, {
    frame: (frame) => {
      last_frame_ms = Date.now();
      // A session of a later page has changed, or a new one began: the next page has the figures without it.
      if (frame.type === "session" && store.sessions.size > known && !subscription?.isPageArriving) loadNextPage();
      known = store.sessions.size;
      if (frame.type === "welcome") {
        resumeCommands.value = frame.resume ?? {};
        daemonHost.value = frame.host;
      }
      if (frame.type === "lagged") laggedUntil.value = Date.now() + lagged_notice_ms;
    },
    state: (state) => setState(state.state === "unauthorized" ? { state: problemOf(state.reason) } : state),
  }).subscription;
}

// The other tabs of this browser sign in and out together with this one.
let other_tabs: BroadcastChannel | undefined;

function listenToOtherTabs() {
  if (other_tabs) return;
  other_tabs = new BroadcastChannel("earshot sign-in");
  other_tabs.onmessage = ({ data }) => (data === "signed out" ? location.reload() : subscribe());
}

/** Signs in with a one-time code, or a link that contains one. */
export async function signIn(code: string): Promise<void> {
  setState({ state: "connecting" });
  const result = await register(code);
  if (result !== "signed_in") return setState({ state: result });
  subscribe();
  other_tabs?.postMessage("signed in");
}

/** Signs this browser out, in all of its tabs. */
export async function signOut(): Promise<void> {
  await forget((browser) => fetchJson("/v1/browsers/revoke", { body: { browser } }));
  other_tabs?.postMessage("signed out");
  location.reload(); // and what the page showed is gone
}

/** Signs in with the address's code, if it has one, and subscribes. */
export async function connect() {
  const proper = await properAddress();
  if (proper) return location.replace(proper);
  listenToOtherTabs();
  const code = takeCode();
  if (code) return signIn(code);
  if (await isRegistered()) subscribe();
  else setState({ state: "signed_out" });
}

export const retry = () => (subscription ? earshot.retry() : void connect());

// Reconnect at once when the network returns or the page becomes visible.
addEventListener("online", retry);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && connection.value.state === "retrying" && retry());
addEventListener("hashchange", () => location.hash && location.reload());
