// Changes of files as a unified diff, with line numbers where they are known and changed words marked.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Spans, highlighter, loadHighlighter } from "./Code.js";
import { coloursOf, divideParts, languageOf } from "./diffColours.js";
import { plural } from "./format.js";
import { countLines, type DiffLine, type FileEdit } from "./edits.js";
import type { CodeSpan } from "./highlight.js";
import { chunks } from "./PlainText.js";
import { relativePath } from "./toolInput.js";

const shown_max = 24; // lines until the user asks for more
const all_max = 3_000;
const line_max = 4_000; // characters; longer lines are divided

const signs = { "+": "added", "-": "removed", " ": "" };

function LineText({ line, spans }: { line: DiffLine; spans: readonly CodeSpan[] | undefined }) {
  if (line.text.length > line_max) return <>{chunks(line.text).map((chunk) => <span class="part">{chunk}</span>)}</>;
  if (spans && line.parts) return <>{divideParts(line.parts, spans).map((part) => (part.changed ? <mark><Spans spans={part.spans} /></mark> : <Spans spans={part.spans} />))}</>;
  if (spans) return <Spans spans={spans} />;
  return <>{line.parts ? line.parts.map(({ text, changed }) => (changed ? <mark>{text}</mark> : text)) : line.text}</>;
}

function Row({ line, spans }: { line: DiffLine; spans: readonly CodeSpan[] | undefined }) {
  const word = signs[line.kind];
  return (
    <div class="line" data-kind={word || undefined}>
      <span class="number" aria-hidden="true">{line.old ?? ""}</span><span class="number" aria-hidden="true">{line.new ?? ""}</span>
      <span class="sign">{line.kind === " " ? "" : line.kind}{word ? <span class="visually-hidden"> {word}: </span> : null}</span>
      <span class="content"><LineText line={line} spans={spans} /></span>
    </div>
  );
}

/** `+12 −3` */
export function Counts({ added, removed, least }: { added: number; removed: number; least?: boolean | undefined }) {
  const at_least = least ? "≥" : "";
  return (
    <span class="counts" title={`${least ? "at least " : ""}${plural(added, "line")} added, ${removed} removed`}>
      <span class="added">{at_least}+{added}</span> <span class="removed">{at_least}−{removed}</span>
    </span>
  );
}

const kinds = { edit: "", add: "new file", delete: "deleted", write: "written" };

/** `base`: the project directory, removed from paths. `named`: the line above names the file, if it is one. */
export function DiffView({ edits, base, whole, named }: { edits: readonly FileEdit[]; base: string; whole: boolean; named: boolean }) {
  const [all, setAll] = useState(false);
  const highlight = highlighter.value;
  const can = edits.some(({ path, moved_to }) => languageOf(moved_to ?? path) !== "");
  useEffect(() => {
    if (can) void loadHighlighter();
  }, [can]);
  const colours = useMemo(() => (can && highlight ? coloursOf(edits, highlight) : undefined), [edits, can, highlight]);
  const shorten = (path: string) => relativePath(path, base);
  const total = edits.reduce((sum, { hunks }) => sum + hunks.reduce((lines, hunk) => lines + hunk.lines.length, 0), 0);
  let left = all || whole ? all_max : total <= shown_max * 1.5 ? total : shown_max;
  const limit = left;
  return (
    <div class="diff">
      {edits.map((edit) => {
        const has_numbers = edit.hunks.some(({ lines }) => lines.some((line) => line.old !== undefined || line.new !== undefined));
        return (
          <div class="file" data-numbers={has_numbers ? "" : undefined}>
            {named && edits.length === 1 && !edit.moved_to ? null : <p class="file-head"><span class="path">{shorten(edit.path)}{edit.moved_to ? ` → ${shorten(edit.moved_to)}` : ""}</span>{kinds[edit.kind] ? <span class="kind">{kinds[edit.kind]}</span> : null}<Counts {...countLines(edit)} /></p>}
            <div class="lines" data-coloured={edit.hunks[0]?.lines.some((line) => colours?.has(line)) ? "" : undefined}>
              {edit.hunks.map((hunk, n) => {
                const lines = hunk.lines.slice(0, Math.max(0, left));
                left -= lines.length;
                if (lines.length === 0) return null;
                return <>{hunk.heading || (hunk.gap && n > 0) ? <div class="gap">{hunk.heading || "⋯"}</div> : null}{lines.map((line) => <Row line={line} spans={colours?.get(line)} />)}</>;
              })}
            </div>
          </div>
        );
      })}
      {total > limit ? <p class="more-lines"><button type="button" onClick={() => setAll(true)}>{all ? `only the first ${plural(limit, "line")} of ${total.toLocaleString()}` : `Show ${plural(total - limit, "more line")}`}</button></p> : null}
    </div>
  );
}
