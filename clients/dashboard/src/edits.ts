// What a tool call changes in files, as unified diffs, for the tools of all agent programs.
import { diffLines, diffWordsWithSpace, parsePatch } from "diff";
import type { JsonValue } from "../../sdk/src/index.js";

export interface DiffPart { text: string; changed: boolean }
export interface DiffLine { kind: " " | "+" | "-"; text: string; old?: number; new?: number; parts?: DiffPart[] }
/** `gap`: lines are left out before it. */
export interface Hunk { heading?: string; gap?: boolean; lines: DiffLine[] }
export interface FileEdit { path: string; kind: "edit" | "add" | "delete" | "write"; moved_to?: string; hunks: Hunk[] }

const lines_max = 5_000; // of one call; further ones are left out
const edits_max = 200; // of one call
const edit_length_max = 1_500; // changed lines; above it everything old is removed and everything new added
const context_lines = 3; // unchanged ones around a change
const word_line_max = 400; // characters of a line that is compared by words

const linesOf = (text: string) => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => line.replace(/\r$/, ""));
};

/** Marks the changed words of removed lines that are followed by as many added ones. */
function markWords(lines: DiffLine[]) {
  for (let at = 0; at < lines.length; ) {
    const count = (from: number, kind: DiffLine["kind"]) => {
      let end = from;
      while (lines[end]?.kind === kind) end++;
      return end - from;
    };
    const removed = count(at, "-");
    const added = count(at + removed, "+");
    for (let n = 0; n < removed && removed === added; n++) {
      const [before, after] = [lines[at + n]!, lines[at + removed + n]!];
      if (before.text.length > word_line_max || after.text.length > word_line_max) continue;
      const changes = diffWordsWithSpace(before.text, after.text);
      const kept = changes.reduce((sum, change) => sum + (change.added || change.removed ? 0 : change.value.trim().length), 0);
      if (kept * 3 < Math.min(before.text.trim().length, after.text.trim().length)) continue; // another line, not a changed one
      before.parts = changes.filter((change) => !change.added).map(({ value, removed }) => ({ text: value, changed: removed }));
      after.parts = changes.filter((change) => !change.removed).map(({ value, added }) => ({ text: value, changed: added }));
    }
    at += Math.max(1, removed + added);
  }
}

/** The lines near a change; what is between them becomes a gap. */
function nearChanges(lines: DiffLine[]): Hunk[] {
  const near = new Uint8Array(lines.length);
  lines.forEach(({ kind }, n) => kind !== " " && near.fill(1, Math.max(0, n - context_lines), n + context_lines + 1));
  const hunks: Hunk[] = [];
  lines.forEach((line, n) => {
    if (!near[n]) return;
    if (n === 0 || !near[n - 1]) hunks.push({ lines: [], ...(n > 0 && { gap: true }) });
    hunks.at(-1)!.lines.push(line);
  });
  return hunks;
}

/** `start`: the number of the first line, where it is known. */
function hunksOfTexts(before: string, after: string, start?: number): Hunk[] {
  const lines: DiffLine[] = [];
  let [old_line, new_line] = [start ?? 0, start ?? 0];
  const add = (kind: DiffLine["kind"], texts: string[]) => {
    for (const text of texts) {
      const line: DiffLine = { kind, text };
      if (start !== undefined && kind !== "+") line.old = old_line++;
      if (start !== undefined && kind !== "-") line.new = new_line++;
      if (lines.length < lines_max) lines.push(line);
    }
  };
  // A missing line feed at the end of one text alone is not shown as a change.
  const closed = (text: string) => (text === "" || text.endsWith("\n") ? text : `${text}\n`);
  const changes = diffLines(closed(before), closed(after), { maxEditLength: edit_length_max });
  if (changes) for (const { value, added, removed } of changes) add(added ? "+" : removed ? "-" : " ", linesOf(value));
  else {
    add("-", linesOf(before));
    add("+", linesOf(after));
  }
  markWords(lines);
  return nearChanges(lines);
}

function hunkOfLines(texts: string[], old_start: number | undefined, new_start: number | undefined, heading?: string): Hunk {
  let [old_line, new_line] = [old_start ?? 0, new_start ?? 0];
  const lines: DiffLine[] = [];
  for (const text of texts.slice(0, lines_max)) {
    const kind = text[0] === "+" || text[0] === "-" ? text[0] : " ";
    if (text[0] === "\\") continue; // no line feed at the end of the file
    const line: DiffLine = { kind, text: text.slice(1) };
    if (old_start !== undefined && kind !== "+") line.old = old_line++;
    if (new_start !== undefined && kind !== "-") line.new = new_line++;
    lines.push(line);
  }
  markWords(lines);
  return { gap: true, lines, ...(heading && { heading }) };
}

/** A patch of the form `*** Begin Patch`, which has no line numbers. */
function editsOfPatch(patch: string): FileEdit[] {
  const edits: FileEdit[] = [];
  let texts: string[] = [];
  let heading = "";
  const closeHunk = () => {
    const edit = edits.at(-1);
    if (edit && texts.length > 0) edit.hunks.push(edit.kind === "add" ? hunkOfLines(texts, undefined, 1) : hunkOfLines(texts, undefined, undefined, heading));
    texts = [];
    heading = "";
  };
  for (const line of patch.split("\n")) {
    const begin = /^\*\*\* (Update|Add|Delete) File: (.+)$/.exec(line);
    if (begin) {
      closeHunk();
      if (edits.length >= edits_max) break;
      edits.push({ path: begin[2]!.trim(), kind: begin[1] === "Add" ? "add" : begin[1] === "Delete" ? "delete" : "edit", hunks: [] });
    } else if (line.startsWith("*** Move to: ")) {
      const edit = edits.at(-1);
      if (edit) edit.moved_to = line.slice(13).trim();
    } else if (line.startsWith("*** ")) {
      closeHunk();
    } else if (line.startsWith("@@")) {
      closeHunk();
      heading = line.slice(2).trim();
    } else if (edits.length > 0 && /^[ +-]|^$/.test(line)) texts.push(line === "" ? " " : line);
  }
  closeHunk();
  for (const { hunks } of edits) for (const hunk of hunks) while (hunk.lines.at(-1)?.kind === " " && hunk.lines.at(-1)?.text === "") hunk.lines.pop();
  return edits.map((edit) => ({ ...edit, hunks: edit.hunks.filter(({ lines }) => lines.length > 0) }));
}

const gitPath = (name: string | undefined) => (name === undefined || name === "/dev/null" ? undefined : name.replace(/^[ab]\//, ""));

/** A unified diff. `path`: of the file, if it is known otherwise. */
function editsOfDiff(text: string, path?: string): FileEdit[] {
  try {
    return parsePatch(text).slice(0, edits_max).flatMap((file) => {
      if (file.hunks.length === 0) return [];
      const [before, after] = [gitPath(file.oldFileName), gitPath(file.newFileName)];
      return [{
        path: path ?? after ?? before ?? "", kind: file.newFileName === "/dev/null" ? "delete" as const : file.oldFileName === "/dev/null" ? "add" as const : "edit" as const,
        hunks: file.hunks.map(({ oldStart, newStart, lines }) => hunkOfLines(lines, oldStart, newStart)),
      }];
    });
  } catch {
    return []; // cut, or not a diff
  }
}

type Fields = Record<string, JsonValue>;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (fields: Fields, ...names: string[]) => names.map((name) => fields[name]).find((value): value is string => typeof value === "string");
const patch_start = "*** Begin Patch";

/** The patch in a command such as `apply_patch <<'EOF'`. */
function patchIn(text: string | undefined): string | undefined {
  const at = text?.indexOf(patch_start) ?? -1;
  if (at < 0) return undefined;
  const end = text!.indexOf("*** End Patch", at);
  return text!.slice(at, end < 0 ? undefined : end);
}

function replacement(fields: Fields): Hunk[] {
  const before = textOf(fields, "old_string", "old_str", "oldText");
  const after = textOf(fields, "new_string", "new_str", "newText");
  const hunks = before === undefined || after === undefined ? [] : hunksOfTexts(before, after);
  if (hunks[0]) hunks[0].gap = true; // it is somewhere in the file
  return hunks;
}

const writes = new Set(["Write", "write", "create", "create_file", "write_file"]);

/** The changes that a call asks for. Empty if it changes no file, or if its input does not contain the change. */
export function editsOfInput(tool: string, input: JsonValue | undefined): FileEdit[] {
  const name = tool.slice(tool.lastIndexOf(".") + 1);
  if (typeof input === "string") return input.includes(patch_start) ? editsOfPatch(patchIn(input)!) : name === "apply_patch" ? editsOfPatch(input) : [];
  if (!isObject(input)) return [];
  const path = textOf(input, "file_path", "path", "filePath", "notebook_path");
  const patch = patchIn(textOf(input, "patch", "input", "cmd", "command") ?? (Array.isArray(input.command) ? input.command.find((word): word is string => typeof word === "string" && word.includes(patch_start)) : undefined));
  if (patch !== undefined) return editsOfPatch(patch);
  if (path === undefined) return [];
  if (Array.isArray(input.edits)) {
    const hunks = input.edits.slice(0, edits_max).flatMap((edit) => (isObject(edit) ? replacement(edit) : []));
    if (hunks.length > 0) return [{ path, kind: "edit", hunks }];
  }
  const hunks = replacement(input);
  if (hunks.length > 0) return [{ path, kind: "edit", hunks }];
  const content = textOf(input, "content", "file_text", "contents");
  if (content !== undefined && writes.has(name)) return [{ path, kind: "write", hunks: hunksOfTexts("", content, 1) }];
  return [];
}

const depth_max = 12; // of a record's objects that are searched

/** The changes with their line numbers, as the result's record states them; empty if it does not. */
export function editsOfRecord(record: JsonValue, path?: string, depth = 0): FileEdit[] {
  if (depth > depth_max) return [];
  if (Array.isArray(record)) {
    for (const item of record) {
      const edits = editsOfRecord(item, path, depth + 1);
      if (edits.length > 0) return edits;
    }
    return [];
  }
  if (!isObject(record)) return [];
  const { structuredPatch, changes } = record;
  if (Array.isArray(structuredPatch) && structuredPatch.length > 0) { // Claude Code
    const hunks = structuredPatch.slice(0, edits_max).flatMap((hunk) => {
      if (!isObject(hunk) || !Array.isArray(hunk.lines)) return [];
      const [from, to] = [hunk.oldStart, hunk.newStart].map((start) => (typeof start === "number" ? start : undefined));
      return [hunkOfLines(hunk.lines.filter((line): line is string => typeof line === "string"), from, to)];
    });
    if (hunks.length > 0) return [{ path: textOf(record, "filePath") ?? path ?? "", kind: "edit", hunks }];
  }
  if (isObject(changes)) { // Codex
    const edits = Object.entries(changes).slice(0, edits_max).flatMap(([file, change]): FileEdit[] => {
      if (!isObject(change)) return [];
      const content = textOf(change, "content");
      if (content !== undefined) return [change.type === "delete" ? { path: file, kind: "delete", hunks: hunksOfTexts(content, "", 1) } : { path: file, kind: "add", hunks: hunksOfTexts("", content, 1) }];
      const diff = textOf(change, "unified_diff");
      const moved = textOf(change, "move_path");
      return diff === undefined ? [] : editsOfDiff(diff, file).map((edit) => ({ ...edit, ...(moved && { moved_to: moved }) }));
    });
    if (edits.length > 0) return edits;
  }
  const diff = textOf(record, "unified_diff", "patch", "diff", "detailedContent"); // Pi, Copilot CLI
  if (diff !== undefined && /^@@ -\d/m.test(diff)) {
    const edits = editsOfDiff(diff, path);
    if (edits.length > 0) return edits;
  }
  for (const value of Object.values(record)) {
    const edits = editsOfRecord(value, path, depth + 1);
    if (edits.length > 0) return edits;
  }
  return [];
}

export const isEmpty = (edits: readonly FileEdit[]) => edits.every(({ hunks }) => hunks.length === 0);

/** The number of added and removed lines. */
export function countLines(edit: Pick<FileEdit, "hunks">): { added: number; removed: number } {
  const counted = { added: 0, removed: 0 };
  for (const { lines } of edit.hunks) for (const { kind } of lines) kind === "+" ? counted.added++ : kind === "-" && counted.removed++;
  return counted;
}
