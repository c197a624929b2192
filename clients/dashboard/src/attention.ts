// Somebody must act: the title says how many wait; a notification and a sound, for those who asked for them.
import { effect, signal } from "@preact/signals";
import { isAway, type SessionFrame } from "../../sdk/src/index.js";
import { team, titleOf, waiting } from "./rows.js";
import { ready, sessions } from "./connection.js";
import { beep, preferences } from "./preferences.js";
import { go } from "./route.js";

/** For screen readers: who began to wait. */
export const announcement = signal("");

let known: Map<string, string> | undefined; // who waits already, and which session that is; who waits when the page opens is no news

const needs = (frame: SessionFrame) => `${titleOf(frame)}${team.peek() ? ` on ${frame.host}` : ""} needs you`;

effect(() => {
  const all = waiting.value;
  document.title = all.length > 0 ? `(${all.length}) earshot` : "earshot";
  if (!ready.value) return;
  const named = new Map(all.map((session) => [`${session.key}\u0000${session.now.status.reason}\u0000${session.now.status.since}`, session]));
  const news = known ? [...named].filter(([key]) => !known!.has(key)).map(([, session]) => session) : [];
  // Whose host is away has not been answered: when it comes back it waits as before.
  const away = new Set(known ? sessions.peek().filter((session) => isAway(session.now)).map((session) => session.key) : []);
  known = new Map([...[...(known ?? [])].filter(([, key]) => away.has(key)), ...[...named].map(([name, session]) => [name, session.key] as const)]);
  if (news.length === 0) return;
  announcement.value = news.map((session) => `${needs(session.now)}: ${session.now.status.detail ?? session.now.status.reason ?? ""}`).join(". ");
  const { notify, sound } = preferences.peek();
  if (sound) beep();
  if (!notify || document.visibilityState === "visible") return;
  for (const session of news.slice(0, 3)) {
    const one = new Notification(needs(session.now), { body: session.now.status.detail ?? session.now.status.reason ?? "", tag: session.key });
    one.onclick = () => {
      window.focus();
      go({ session: session.now.session, host: session.now.host });
    };
  }
});
