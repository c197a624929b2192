// What a waiting session asks of the user, from its pending call: by the fields of the input, which are the same for many tools and programs.
import type { OpenTool, SessionFrame } from "../../sdk/src/index.js";
import { commandIn, fieldsOf, filesOfPatch, questionsOf, textOf, textsOf, type Question } from "./toolInput.js";
import { startsAgent } from "./toolKind.js";

/** What a card shows; and when it is unfolded: texts of the daemon have at most 4 KiB. `lines`: of each side of an edit. */
const short = { lines: 6, edits: 4, patch_lines: 16, plan_lines: 14 };
const unfolded = { lines: 500, edits: 200, patch_lines: 1_000, plan_lines: 1_000 };
type Limits = typeof short;

export interface ChangedLine { kind: "-" | "+" | " "; text: string }
export interface Request {
  call: OpenTool | undefined;
  description: string;
  command: string;
  path: string; // or a URL, a pattern, …
  change: ChangedLine[];
  change_rest: number; // lines
  questions: Question[];
  plan: string[];
  plan_rest: number; // lines
  text: string; // where the call says nothing
  /** Texts of the call are incomplete; see loadWholeCall() */
  is_cut: boolean;
}

const asks = ({ input }: OpenTool) => questionsOf(input).length > 0 || typeof fieldsOf(input).plan === "string";

/** Each open call with the path of its input in `truncated`. */
function openCalls(frame: SessionFrame): Array<{ call: OpenTool; path: string }> {
  return [...frame.tools.map((call, n) => ({ call, path: `tools/${n}/input` })), ...frame.agents.flatMap(({ tools }, n) => tools.map((call, m) => ({ call, path: `agents/${n}/tools/${m}/input` })))];
}

/** The call that waits: the one that `status.detail` names, as far as that can be told. */
function pendingCall(frame: SessionFrame): { call: OpenTool; path: string } | undefined {
  const all = openCalls(frame);
  const { reason, detail = "" } = frame.status;
  if (reason === "question" || reason === "plan") return all.find(({ call }) => asks(call));
  const named = all.filter(({ call }) => detail.startsWith(`approve ${call.tool}`));
  const squeeze = (value: string) => value.replaceAll(/\s+/g, " ");
  const shown = squeeze(detail);
  return named.find(({ call }) => Object.values(fieldsOf(call.input)).some((value) => typeof value === "string" && value.length > 0 && shown.includes(squeeze(value).slice(0, 60)))) ??
    named.at(-1) ?? (detail ? undefined : all.findLast(({ call }) => !startsAgent(call.tool)));
}

const linesOf = (value: string) => value.split("\n").filter((line, n, all) => n < all.length - 1 || line !== "");

/** The patch of an input that is one, or has one as a field. */
function patchOf(input: unknown): string {
  const { patch, input: inner } = fieldsOf(input);
  return [input, patch, inner].map(textOf).find((value) => filesOfPatch(value).length > 0) ?? "";
}

/** The changed lines, of several edits one after another, within the limits. */
function changeOf(fields: Record<string, unknown>, patch: string, limits: Limits): Pick<Request, "change" | "change_rest"> {
  if (patch) {
    const all = linesOf(patch).filter((line) => !/^\*\*\* (Begin|End) /.test(line));
    const change = all.slice(0, limits.patch_lines).map((line): ChangedLine => (line[0] === "-" || line[0] === "+" ? { kind: line[0], text: line.slice(1) } : { kind: " ", text: line[0] === " " ? line.slice(1) : line }));
    return { change, change_rest: all.length - change.length };
  }
  const change: ChangedLine[] = [];
  let count = 0;
  const edits = Array.isArray(fields.edits) ? fields.edits.map(fieldsOf) : [fields];
  edits.forEach((edit, n) => {
    for (const [kind, value] of [["-", edit.old_string], ["+", edit.new_string ?? edit.content]] as const) {
      const all = linesOf(textOf(value));
      count += all.length;
      if (n < limits.edits) change.push(...all.slice(0, limits.lines).map((line) => ({ kind, text: line })));
    }
  });
  return { change, change_rest: count - change.length };
}

/** `whole`: the input of the call, loaded because the frame's is incomplete. `is_unfolded`: nothing that has arrived is left out. */
export function requestOf(frame: SessionFrame, whole?: { call: string; input: unknown }, is_unfolded = false): Request {
  const limits = is_unfolded ? unfolded : short;
  const pending = pendingCall(frame);
  const loaded = whole && whole.call === pending?.call.call;
  const input = loaded ? whole.input : pending?.call.input;
  const fields = fieldsOf(input);
  const command = commandIn(fields);
  const patch = command ? "" : patchOf(input);
  const path = textOf(fields.file_path) || textOf(fields.notebook_path) || textOf(fields.path) || textOf(fields.url) || textOf(fields.query) || textOf(fields.pattern) || textsOf(fields.files).join("\n") || filesOfPatch(patch).join("\n");
  const plan = textOf(fields.plan).split("\n");
  const questions = questionsOf(input);
  const has_plan = textOf(fields.plan) !== "";
  return {
    call: pending?.call, description: questions.length > 0 ? "" : textOf(fields.description), command, path: command ? "" : path, questions,
    ...changeOf(fields, patch, limits), plan: has_plan ? plan.slice(0, limits.plan_lines) : [], plan_rest: has_plan ? Math.max(0, plan.length - limits.plan_lines) : 0,
    text: command || path || has_plan || questions.length > 0 ? "" : textOf(input) || (frame.status.detail ?? ""),
    is_cut: !loaded && pending !== undefined && Object.keys(frame.truncated ?? {}).some((cut) => cut === pending.path || cut.startsWith(`${pending.path}/`)),
  };
}
