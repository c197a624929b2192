// Keys: j and k move the focus through what has data-item, which the virtual list may first have to bring onto the page.
import { go, openSession, query } from "./route.js";
import { showHelp } from "./Help.js";

type Mover = (step: 1 | -1) => void;
let mover: Mover | undefined;

/** Who moves the focus now; returns how to stop. */
export function moves(own: Mover): () => void {
  mover = own;
  return () => mover === own && (mover = undefined);
}

/** For lists that are on the page as a whole. */
export function step(by: 1 | -1) {
  const items = [...document.querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.indexOf(document.activeElement?.closest<HTMLElement>("[data-item]") ?? document.body);
  const next = items[at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);

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
    if (event.key === "Enter") (mover ?? step)(1);
    return;
  }
  const keys: Record<string, () => void> = {
    j: () => (mover ?? step)(1),
    k: () => (mover ?? step)(-1),
    g: () => scrollTo(0, 0),
    G: toEnd,
    "/": () => document.getElementById("search")?.focus(),
    "?": () => showHelp(),
  };
  const own = keys[event.key];
  if (!own) return;
  event.preventDefault();
  own();
});
