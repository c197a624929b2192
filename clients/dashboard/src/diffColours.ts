// Colours the lines of a diff by the language of their file: the text before the change and the text after it are each coloured as a whole, hunk by hunk.
import type { DiffLine, DiffPart, FileEdit, Hunk } from "./edits.js";
import type { CodeSpan } from "./highlight.js";

export const coloured_length_max = 20_000; // characters of all changes of a call; further files stay plain
const extension_length_max = 12;
const names: Record<string, string> = { gemfile: "ruby", rakefile: "ruby", ".bashrc": "bash", ".profile": "bash", ".zshrc": "bash", ".gitconfig": "ini", ".editorconfig": "ini" };

/** The name of a language that the highlighter may know, from a file's name; empty: none. */
export function languageOf(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).toLowerCase();
  if (Object.hasOwn(names, name)) return names[name]!;
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 ? name.slice(dot + 1) : "";
  return extension.length <= extension_length_max && /^[a-z0-9+]+$/.test(extension) ? extension : "";
}

type Highlight = (code: string, language: string) => CodeSpan[] | undefined;

const textOf = (lines: readonly DiffLine[]) => lines.map(({ text }) => text).join("\n");

/** Divides the spans of a text into those of its lines. */
function byLine(spans: readonly CodeSpan[]): CodeSpan[][] {
  const lines: CodeSpan[][] = [[]];
  for (const { text, scope } of spans) {
    text.split("\n").forEach((part, n) => {
      if (n > 0) lines.push([]);
      if (part !== "") lines.at(-1)!.push({ text: part, scope });
    });
  }
  return lines;
}

function colourHunk(hunk: Hunk, language: string, highlight: Highlight, out: Map<DiffLine, CodeSpan[]>) {
  if (hunk.lines.some(({ text }) => text.includes("\n"))) return; // a record may contain anything
  for (const side of ["-", "+"] as const) { // a line that did not change is coloured in the text after the change
    const lines = hunk.lines.filter(({ kind }) => kind === side || kind === " ");
    const spans = lines.some(({ kind }) => kind === side || side === "+") ? highlight(textOf(lines), language) : undefined;
    const divided = spans && byLine(spans);
    if (divided?.length === lines.length) lines.forEach((line, n) => out.set(line, divided[n]!));
  }
}

/** The coloured spans of each line, as far as the language of its file is known. */
export function coloursOf(edits: readonly FileEdit[], highlight: Highlight): Map<DiffLine, CodeSpan[]> {
  const out = new Map<DiffLine, CodeSpan[]>();
  let left = coloured_length_max;
  for (const edit of edits) {
    const language = languageOf(edit.moved_to ?? edit.path);
    left -= edit.hunks.reduce((sum, { lines }) => lines.reduce((length, { text }) => length + text.length + 1, sum), 0);
    if (left < 0) break;
    if (language !== "") for (const hunk of edit.hunks) colourHunk(hunk, language, highlight, out);
  }
  return out;
}

/** The parts of a line, each divided at the borders of its spans; the texts are those of the parts. */
export function divideParts(parts: readonly DiffPart[], spans: readonly CodeSpan[]): Array<{ changed: boolean; spans: CodeSpan[] }> {
  let [at, used] = [0, 0]; // the span, and how much of it the parts before contain
  return parts.map(({ text, changed }) => {
    const divided: CodeSpan[] = [];
    for (let from = 0; from < text.length; ) {
      const span = spans[at];
      const length = span ? Math.min(span.text.length - used, text.length - from) : text.length - from;
      divided.push({ text: text.slice(from, from + length), scope: span?.scope ?? "" });
      from += length;
      used += length;
      if (span && used >= span.text.length) [at, used] = [at + 1, 0];
    }
    return { changed, spans: divided };
  });
}
