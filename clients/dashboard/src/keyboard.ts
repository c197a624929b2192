// Keyboard shortcuts. j and k move the focus between elements with data-item; a virtual list registers its own function, since an item may not be rendered.
import { go, openSession, query } from "./route.js";
import { showHelp } from "./Dialog.js";

type MoveFocus = (step: 1 | -1) => void;
let list_focus: MoveFocus | undefined;

/** Registers a list's function for j and k. Returns a function that removes it. */
export function onMoveFocus(move: MoveFocus): () => void {
  list_focus = move;
  return () => list_focus === move && (list_focus = undefined);
}

function moveFocus(step: 1 | -1) {
  const items = [...document.querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.indexOf(document.activeElement?.closest<HTMLElement>("[data-item]") ?? document.body);
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export const scrollToEnd = () => scrollTo(0, document.documentElement.scrollHeight);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const target = event.target as HTMLElement;
  const typing = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
  if (event.key === "Escape") {
    if (typing) {
      if (query.value) go({ q: "" }, true);
      target.blur();
    } else if (openSession.value) {
      go({ session: "", host: "" });
    }
    return;
  }
  if (typing) {
    if (event.key === "Enter") (list_focus ?? moveFocus)(1);
    return;
  }
  const actions: Record<string, () => void> = {
    j: () => (list_focus ?? moveFocus)(1),
    k: () => (list_focus ?? moveFocus)(-1),
    g: () => scrollTo(0, 0),
    G: scrollToEnd,
    "/": () => document.getElementById("search")?.focus(),
    "?": () => showHelp(),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
