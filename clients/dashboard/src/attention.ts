// Somebody must act: the title says how many wait; a notification and a sound, for those who asked for them.
import { effect, signal } from "@preact/signals";
import { waiting, titleOf } from "./rows.js";
import { ready } from "./connection.js";
import { beep, preferences } from "./preferences.js";
import { go } from "./route.js";

/** For screen readers: who began to wait. */
export const announcement = signal("");

let known: Set<string> | undefined; // who waits already; who waits when the page opens is no news

effect(() => {
  const all = waiting.value;
  document.title = all.length > 0 ? `(${all.length}) earshot` : "earshot";
  if (!ready.value) return;
  const named = new Map(all.map((session) => [`${session.key}\u0000${session.now.status.reason}\u0000${session.now.status.since}`, session]));
  const news = known ? [...named].filter(([key]) => !known!.has(key)).map(([, session]) => session) : [];
  known = new Set(named.keys());
  if (news.length === 0) return;
  announcement.value = news.map((session) => `${titleOf(session.now)} needs you: ${session.now.status.detail ?? session.now.status.reason ?? ""}`).join(". ");
  const { notify, sound } = preferences.peek();
  if (sound) beep();
  if (!notify || document.visibilityState === "visible") return;
  for (const session of news.slice(0, 3)) {
    const one = new Notification(`${titleOf(session.now)} needs you`, { body: session.now.status.detail ?? session.now.status.reason ?? "", tag: session.key });
    one.onclick = () => {
      window.focus();
      go({ session: session.now.session, host: session.now.host });
    };
  }
});
