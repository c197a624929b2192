// Sign-in, and the overview's subscription. All data of the page arrives here or in session.ts.
import { batch, computed, signal } from "@preact/signals";
import { Earshot, SessionStore, type ConnectionState, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { stale } from "./format.js";
import { sanitizingSocket } from "./sanitize.js";

export type PageState = ConnectionState | { state: "signed_out" | "used" | "unreachable" };

const lagged_notice_ms = 8_000;
const token_key = "earshot page token"; // in sessionStorage: of this origin, deleted with the tab, and never sent by the browser itself

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
/** All sessions: a new array after each change. */
export const sessions = computed<SessionState[]>(() => {
  void version.value;
  return [...store.sessions.values()];
});

/** The overview's frame of a session: its daemon states estimates and times in each. `undefined` if the session is not live. */
export function currentFrame(key: string): SessionFrame | undefined {
  void version.value;
  return store.sessions.get(key)?.frame;
}

/** The page's token, and the daemon's instance that accepts it: another one may be another program on the same port. */
interface PageToken {
  token: string;
  instance?: string; // known after the first connection
}

const storedToken = () => JSON.parse(sessionStorage.getItem(token_key) ?? "null") as PageToken | null;
const storeToken = (token: PageToken) => sessionStorage.setItem(token_key, JSON.stringify(token));

/** False if the token belongs to another instance. */
function acceptInstance(instance: string): boolean {
  const stored = storedToken();
  if (stored?.instance === undefined) storeToken({ token: stored?.token ?? "", instance });
  return stored?.instance === undefined || stored.instance === instance;
}

export const earshot = new Earshot({
  connect: () => sanitizingSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/v1/ws`),
  token: () => storedToken()?.token ?? "",
  client: "dashboard/0.1.0",
  backoff: { first_ms: 300 },
});

/** The page is not hidden. */
export const visible = signal(document.visibilityState === "visible");
document.addEventListener("visibilitychange", () => (visible.value = document.visibilityState === "visible"));

/** Sends a request with the page's token. Returns the status of the response, 0 if there is none. */
export async function post(path: string, body: object): Promise<number> {
  try {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${storedToken()?.token ?? ""}` };
    return (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).status;
  } catch {
    return 0;
  }
}

let has_snapshot = false;
const { schedule } = throttle(() => batch(() => {
  version.value++;
  ready.value = has_snapshot; // together with the sessions, so that those already waiting are not announced
}));

store.onChange((change) => {
  has_snapshot ||= change.kind === "snapshot";
  schedule();
});

export const setContextHistory = (key: string, tokens: Iterable<number>) => store.setContextHistory(key, tokens);

/** Takes the one-time code out of the address, and so out of the browser's history. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Exchanges the one-time code of `earshot open` for the token. */
async function signIn(code: string): Promise<"signed_in" | "used" | "unreachable"> {
  try {
    const response = await fetch("/v1/token", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
    if (response.status === 401) return "used";
    if (!response.ok) return "unreachable";
    storeToken({ token: ((await response.json()) as { token: string }).token });
    return "signed_in";
  } catch {
    return "unreachable";
  }
}

let last_frame_ms = 0;

/** While there is no connection, what is shown stays, marked with the time of the last frame. */
function setState(state: PageState) {
  batch(() => {
    connection.value = state;
    lastFrameAt.value = last_frame_ms;
    stale.value = ready.peek() && state.state !== "live" && state.state !== "catching_up" && state.state !== "paused";
  });
}

let subscription: ReturnType<Earshot["subscribe"]> | undefined;

function subscribe() {
  subscription = earshot.watch({ deliver: "state" }, store, {
    frame: (frame) => {
      last_frame_ms = Date.now();
      if (frame.type === "welcome") {
        resumeCommands.value = frame.resume ?? {};
        if (!acceptInstance(frame.instance)) return signOut("the daemon was restarted");
        daemonHost.value = frame.host;
      }
      if (frame.type === "lagged") laggedUntil.value = Date.now() + lagged_notice_ms;
    },
    state: (state) => {
      if (state.state === "unauthorized") sessionStorage.removeItem(token_key);
      setState(state);
    },
  }).subscription;
}

function signOut(reason: string) {
  subscription?.close();
  subscription = undefined;
  sessionStorage.removeItem(token_key);
  setState({ state: "unauthorized", reason });
}

/** Signs in with the address's code, if it has one, and subscribes. */
export async function connect() {
  const code = takeCode();
  const result = code ? await signIn(code) : "signed_in";
  if (result !== "signed_in") connection.value = { state: result };
  else if (!storedToken()) connection.value = { state: "signed_out" };
  else subscribe();
}

export const retry = () => (subscription ? subscription.retry() : void connect());

// Reconnect at once when the network returns or the page becomes visible.
addEventListener("online", retry);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && connection.value.state === "retrying" && retry());
addEventListener("hashchange", () => location.hash && location.reload());
