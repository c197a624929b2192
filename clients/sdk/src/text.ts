// Small things that every reader of frames needs.
import type { Text } from "./protocol.js";

/** What is there of a text, with `…` where it was cut. */
export function whole(text: Text | undefined): string {
  if (text === undefined) return "";
  return typeof text === "string" ? text : text.text + "…";
}

export const isCut = (text: unknown): text is { text: string; bytes: number; truncated: true } =>
  typeof text === "object" && text !== null && (text as { truncated?: unknown }).truncated === true;

/** As the daemon compares a filter's pattern: `*` is any number of characters, `?` is one; letters' case counts. */
export function matches(pattern: string, text: string): boolean {
  const wanted = [...pattern];
  const given = [...text];
  let at = 0;
  let star = -1;
  let marked = 0; // where the last star's part ends so far
  for (let n = 0; n < given.length; ) {
    if (at < wanted.length && wanted[at] === "*") {
      star = at++;
      marked = n;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === given[n])) {
      at++;
      n++;
    } else if (star >= 0) {
      at = star + 1;
      n = ++marked;
    } else {
      return false;
    }
  }
  while (wanted[at] === "*") at++;
  return at === wanted.length;
}
