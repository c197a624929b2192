// Keyboard shortcuts. j and k move the focus between elements with data-item; a virtual list registers its own function, since an item may not be rendered.
// Keys that an input or a select uses are left to it, and keys with a modifier to the browser.
import { findText, go, historyView, openSession, openView, overview, query } from "./route.js";
import { showHelp } from "./Dialog.js";
import { snoozing } from "./snooze.js";

type MoveFocus = (step: 1 | -1) => void;
let list_focus: MoveFocus | undefined;

/** Registers a list's function for j and k. Returns a function that removes it. */
export function onMoveFocus(move: MoveFocus): () => void {
  list_focus = move;
  return () => list_focus === move && (list_focus = undefined);
}

export type RowAction = "details" | "resume" | "path" | "snooze";
let row_action: ((action: RowAction) => void) | undefined;

/** Registers what the keys do with the focused session. Returns a function that removes it. */
export function onRowAction(act: (action: RowAction) => void): () => void {
  row_action = act;
  return () => row_action === act && (row_action = undefined);
}

function moveFocus(step: 1 | -1) {
  const items = [...document.querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.indexOf(document.activeElement?.closest<HTMLElement>("[data-item]") ?? document.body);
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** Scrolls to the card of a title: to all of it, or, if it is higher than the window, to its beginning. */
export function showCard(title: Element | null | undefined) {
  const card = title?.closest(".card");
  card?.scrollIntoView({ block: "nearest" });
  card?.firstElementChild!.scrollIntoView({ block: "nearest" });
}

/** The next session that needs the user, after the focused one. */
function focusNextCard() {
  const all = [...document.querySelectorAll<HTMLElement>("[data-card]")];
  const at = all.indexOf(document.activeElement?.closest(".card")?.querySelector<HTMLElement>("[data-card]") ?? document.body);
  const next = all[(at + 1) % all.length];
  next?.focus({ preventScroll: true });
  showCard(next);
}

/** The search of this view; without one, that of the history. */
function focusSearch() {
  const search = document.getElementById("search");
  if (search) search.focus();
  else searchHistory();
}

/** Opens the history, unless it is shown, and focuses its search. */
function searchHistory() {
  if (openSession.value || openView.value !== "history") go(historyView);
  requestAnimationFrame(() => document.getElementById("search")?.focus());
}

/** The conversation stays at its end from now on, also while what is rendered there grows. */
export function scrollToEnd() {
  scrollTo(0, document.documentElement.scrollHeight);
  dispatchEvent(new Event("scrolledtoend"));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const target = event.target as HTMLElement;
  const typing = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target.isContentEditable;
  if (event.key === "Escape") {
    if (typing) {
      if (target.id === "search" && !openSession.value) { // the conversation clears its own search
        if (openView.value ? findText.value : query.value) go(openView.value ? { find: "" } : { q: "" }, true);
      }
      target.blur();
    } else if (snoozing.value) {
      const title = target.closest(".card")?.querySelector<HTMLElement>("[data-card]");
      snoozing.value = "";
      title?.focus();
    } else if (openSession.value) {
      go({ session: "", host: "", at: "" });
    } else if (target instanceof HTMLSelectElement) {
      target.blur();
    } else if (openView.value) {
      go(overview);
    }
    return;
  }
  if (target instanceof HTMLSelectElement) return; // chooses an option by its letters
  if (typing) {
    if (event.key === "Enter" && target.id === "search") (list_focus ?? moveFocus)(1);
    return;
  }
  const actions: Record<string, () => void> = {
    j: () => (list_focus ?? moveFocus)(1),
    k: () => (list_focus ?? moveFocus)(-1),
    g: () => scrollTo(0, 0),
    G: scrollToEnd,
    "/": focusSearch,
    h: searchHistory,
    "?": () => showHelp(),
    ...(!openSession.value && {
      n: focusNextCard,
      x: () => row_action?.("details"),
      c: () => row_action?.("resume"),
      p: () => row_action?.("path"),
      s: () => row_action?.("snooze"),
    }),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
