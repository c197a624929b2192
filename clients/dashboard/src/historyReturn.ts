// What the history showed when a session was opened from it, for the way back: the pages, and where the user was in them.
import { effect } from "@preact/signals";
import type { Page } from "./history.js";
import { openSession, openView } from "./route.js";

/** `key`: of the filters that the pages belong to; `item`: the focused entry. */
interface Shown { key: string; pages: Page[]; scroll: number; item?: string | undefined }

const kept_ms = 10 * 60_000; // later the pages are loaded again
let left: (Shown & { at: number }) | undefined;

/** To be called when the view is left. Nothing is kept unless a session is opened. */
export function keepHistory(shown: Shown) {
  left = openSession.peek() && shown.pages.length > 0 ? { ...shown, at: performance.now() } : undefined;
}

/** What was kept with these filters; `undefined` if nothing was, or too long ago. */
export function takeHistory(key: string): Shown | undefined {
  const kept = left;
  left = undefined;
  return kept?.key === key && performance.now() - kept.at < kept_ms ? kept : undefined;
}

/** The focused entry of a list. */
export const focusedItem = () => (document.activeElement as HTMLElement | null)?.dataset.item;

/** Scrolls and focuses as it was. */
export function restorePosition({ scroll, item }: Shown) {
  scrollTo(0, scroll);
  if (item) [...document.querySelectorAll<HTMLElement>("[data-item]")].find((each) => each.dataset.item === item)?.focus({ preventScroll: true });
}

effect(() => {
  if (!openSession.value && !openView.value) left = undefined; // the overview: the history begins anew
});
