// A text of any size as it is. Long texts are divided: Chromium takes seconds to lay out a word of 1 MB, and parts out of sight are not laid out.
import { useState } from "preact/hooks";

const chunk_max = 4_000; // characters
const shown_max = 40_000; // characters until the user asks for more

/** Splits a text into chunks, at line ends where possible. */
export function chunks(text: string): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length; ) {
    const line = text.length - at > chunk_max ? text.lastIndexOf("\n", at + chunk_max) : -1;
    let end = line >= at ? line + 1 : Math.min(at + chunk_max, text.length);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end--; // not inside a surrogate pair
    out.push(text.slice(at, end).replace(/\n$/, ""));
    at = end;
  }
  return out;
}

export function PlainText({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, shown_max);
  return (
    <>
      {shown.length <= chunk_max ? <div class="text">{shown}</div> : <div class="text chunks">{chunks(shown).map((chunk) => <div>{chunk}</div>)}</div>}
      {shown.length < text.length ? <p class="note"><button type="button" onClick={() => setAll(true)}>Show {(text.length - shown.length).toLocaleString()} more characters</button></p> : null}
    </>
  );
}
