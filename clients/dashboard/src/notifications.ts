// Announces sessions that start to wait, and those that are done: for screen readers and, if enabled, by a notification and a tone. The title counts those that wait and those that are unseen.
import { effect, signal } from "@preact/signals";
import { isOffline, waitOf, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { ready, rest, sessions } from "./connection.js";
import { go } from "./route.js";
import { ms, programMark } from "./format.js";
import { isTeam, needingYou, showsPrograms, titleOf, unseenOfAll, waiting } from "./rows.js";

const preferences_key = "earshot preferences"; // in localStorage, once the user has changed a setting
const notifications_max = 3; // at once
type Preferences = { notify: boolean; sound: boolean };

function loadPreferences(): Preferences {
  const defaults = { notify: false, sound: false };
  try {
    return { ...defaults, ...(JSON.parse(localStorage.getItem(preferences_key) ?? "{}") as Partial<Preferences>) };
  } catch {
    return defaults;
  }
}

export const preferences = signal(loadPreferences());

export function setPreferences(changed: Partial<Preferences>) {
  preferences.value = { ...preferences.value, ...changed };
  localStorage.setItem(preferences_key, JSON.stringify(preferences.value));
}

/** Why no notification appears. `blocked`: by the user, and the browser does not ask again. `refused`: by the browser, as on Android, where pages may show none. */
export const notificationTrouble = signal<"" | "blocked" | "refused">("");

/** Asks the browser for permission before it enables notifications. */
export async function toggleNotifications() {
  if (preferences.value.notify) return setPreferences({ notify: false });
  try {
    const granted = (await Notification.requestPermission()) === "granted";
    notificationTrouble.value = granted ? "" : "blocked";
    if (granted) setPreferences({ notify: true });
  } catch {
    notificationTrouble.value = "refused";
  }
}

function refuseNotifications() {
  notificationTrouble.value = "refused";
  setPreferences({ notify: false });
}

const tone_hz = { wait: 660, done: 440 };
let audio: AudioContext | undefined;
function playTone(hz: number) {
  audio ??= new AudioContext();
  const tone = audio.createOscillator();
  const gain = audio.createGain();
  tone.frequency.value = hz;
  gain.gain.setValueAtTime(0.08, audio.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.35);
  tone.connect(gain).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

/** Text of the live region: how many sessions need the user after each change, and those that began to. */
export const announcement = signal("");

/** Waits that were announced: session and wait to key of the session. `undefined` until the first snapshot, whose waits are not announced. */
let announced: Map<string, string> | undefined;
let announced_count: number | undefined;
const spoken_max = 3; // sessions named at once
let waits_were_left = false; // sessions that wait had not arrived yet: the next page contains them

const mark = ({ program }: SessionFrame) => (program && showsPrograms.peek() ? `${programMark(program)} · ` : "");
const headline = (frame: SessionFrame, state: string) => `${mark(frame)}${titleOf(frame)}${isTeam.peek() ? ` on ${frame.host}` : ""} ${state}`;
const request = ({ status }: SessionFrame) => status.detail ?? status.reason ?? "";

const icon_count_max = 99;

effect(() => {
  const [needs_you, finished] = [needingYou.value, unseenOfAll.value];
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  const href = needs_you > 0 ? `/icon.svg?count=${Math.min(needs_you, icon_count_max)}` : "/icon.svg";
  if (icon && icon.getAttribute("href") !== href) icon.setAttribute("href", href);
  document.title = `${needs_you > 0 ? `(${needs_you}) ` : ""}earshot${finished > 0 ? `: ${finished} unseen` : ""}`;
});

effect(() => {
  const all = waiting.value;
  if (!ready.value) return;
  const waits = new Map(all.map((session) => [`${session.key}\u0000${waitOf(session.frame)}`, session]));
  const is_first = !announced || waits_were_left;
  waits_were_left = (rest.value?.waiting ?? 0) > 0;
  const fresh = !is_first ? [...waits].filter(([key]) => !announced!.has(key)).map(([, session]) => session) : [];
  // A session of an offline host still waits: keep its wait, so that it is not announced again when the host returns.
  const offline = new Set(announced ? sessions.peek().filter((session) => isOffline(session.frame)).map((session) => session.key) : []);
  announced = new Map([...[...(announced ?? [])].filter(([, key]) => offline.has(key)), ...[...waits].map(([wait, session]) => [wait, session.key] as const)]);
  const changed = !is_first && announced_count !== all.length;
  announced_count = all.length;
  if (fresh.length === 0 && !changed) return;
  const spoken = fresh.slice(0, spoken_max).map(({ frame }) => `${headline(frame, "needs you")}: ${request(frame)}`);
  announcement.value = [...spoken, all.length === 0 ? "No session needs you" : `${all.length} ${all.length === 1 ? "session needs" : "sessions need"} you`].join(". ");
  notify(fresh, "wait", ({ frame }) => [headline(frame, "needs you"), request(frame)]);
});

/** The last prompt of each session that was done, announced or not; empty: none. `undefined` until the first snapshot. */
let results: Map<string, string> | undefined;
const long_ms = 30_000; // the end of a shorter one was waited for
const fresh_ms = 120_000; // a result that was read later is history

const promptOf = ({ status: { done } }: SessionFrame) => (done ? `${done.prompted ?? ""} ${done.turn}` : "");

/** As the notifier's rules: what took long, and what failed. */
function isNews({ status: { done }, clock_offset_ms = 0 }: SessionFrame): boolean {
  if (!done || done.headless) return false;
  const duration_ms = done.duration_ms ?? 0;
  if (Date.now() - (ms(done.prompted) ?? 0) - duration_ms - clock_offset_ms > fresh_ms) return false;
  return done.outcome === "failed" || (done.outcome === "completed" && duration_ms > long_ms);
}

effect(() => {
  const all = sessions.value;
  if (!ready.value) return;
  const before = results;
  results = new Map(all.map(({ key, frame }) => [key, promptOf(frame) || (before?.get(key) ?? "")])); // a host that returns says it again
  const fresh = all.filter(({ key, frame }) => before?.has(key) && before.get(key) !== results!.get(key) && isNews(frame));
  if (fresh.length === 0) return;
  const describe = ({ frame }: SessionState) => headline(frame, frame.status.done?.outcome === "failed" ? "has failed" : "is done");
  announcement.value = fresh.slice(0, spoken_max).map(describe).join(". ");
  notify(fresh, "done", (session) => [describe(session), session.frame.turn.prompt ?? ""]);
});

function notify(fresh: SessionState[], kind: keyof typeof tone_hz, describe: (session: SessionState) => [title: string, body: string]) {
  if (fresh.length === 0) return;
  const { notify, sound } = preferences.peek();
  if (sound) playTone(tone_hz[kind]);
  if (!notify || document.visibilityState === "visible") return;
  for (const session of fresh.slice(0, notifications_max)) {
    const [title, body] = describe(session);
    try {
      const notification = new Notification(title, { body, tag: `${kind} ${session.key}` });
      notification.onclick = () => {
        window.focus();
        go({ session: session.frame.session, host: session.frame.host });
      };
    } catch {
      return refuseNotifications();
    }
  }
}
