// Waits that the user has put off, in this browser. A snooze belongs to one wait: it ends with its time, and as soon as the session asks for something else.
import { computed, signal } from "@preact/signals";
import { waitOf, type SessionState } from "../../sdk/src/index.js";
import { sessions, ready } from "./connection.js";
import { wallClock } from "./format.js";

const key = "earshot snoozed"; // in localStorage
const snoozed_max = 500; // the newest; older ones end

/** Key of the session whose choices are open; empty: none. */
export const snoozing = signal("");

interface Snooze { session: string; wait: string; until: number | null } // `until`: null: until it changes

export const snoozeChoices = [
  { label: "10 min", minutes: 10 },
  { label: "1 hour", minutes: 60 },
  { label: "Until it changes", minutes: null },
] as const;

function load(): Map<string, Snooze> {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "[]") as Snooze[];
    return new Map(stored.filter((one) => typeof one.session === "string" && typeof one.wait === "string").slice(-snoozed_max).map((one) => [one.session, one]));
  } catch {
    return new Map();
  }
}

const snoozes = signal(load());
addEventListener("storage", (event) => event.key === key && (snoozes.value = load())); // another tab

function save(next: Map<string, Snooze>) {
  snoozes.value = next;
  try {
    localStorage.setItem(key, JSON.stringify([...next.values()].slice(-snoozed_max)));
  } catch { /* storage is full or forbidden: the snooze ends with the tab */ }
}

export function snooze({ key: session, frame }: SessionState, minutes: number | null) {
  const others = [...snoozes.peek()].filter(([other]) => other !== session);
  save(new Map([...others, [session, { session, wait: waitOf(frame), until: minutes === null ? null : Date.now() + minutes * 60_000 }] as const].slice(-snoozed_max)));
}

export function wake(session: string) {
  save(new Map([...snoozes.peek()].filter(([other]) => other !== session)));
}

/** The snooze of this session's present wait; `undefined`: none, or it is over. */
export function snoozeOf({ key: session, frame }: SessionState, at: number): Snooze | undefined {
  const one = snoozes.value.get(session);
  return one && one.wait === waitOf(frame) && (one.until === null || one.until > at) ? one : undefined;
}

/** Changes when a snooze begins or ends. */
export const snoozeVersion = computed(() => {
  const at = wallClock.value;
  return [...snoozes.value.values()].map((one) => `${one.session} ${one.until === null || one.until > at}`).join();
});

const prune_ms = 60_000;
setInterval(() => {
  // Those that are over: of sessions that ask for something else, or no longer exist.
  if (snoozes.peek().size === 0 || !ready.peek()) return;
  const present = new Map(sessions.peek().map((session) => [session.key, session]));
  const kept = [...snoozes.peek()].filter(([session]) => present.has(session) && snoozeOf(present.get(session)!, Date.now()));
  if (kept.length < snoozes.peek().size) save(new Map(kept));
}, prune_ms);
