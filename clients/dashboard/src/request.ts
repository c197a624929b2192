// What a waiting session asks of the user, from its pending call: by the fields of the input, which are the same for many tools and programs.
import type { OpenTool, SessionFrame } from "../../sdk/src/index.js";
import { commandOf, filesOfPatch, startsAgent, texts } from "./SessionParts.js";

const questions_max = 8; // of a call
const options_max = 12; // of a question
const lines_max = 6; // of each side of a change
const plan_lines_max = 14;

export interface Question { text: string; options: Array<{ label: string; description: string }> }
export interface Request {
  call: OpenTool | undefined;
  description: string;
  command: string;
  path: string; // or a URL, a pattern, …
  removed: string[];
  added: string[];
  questions: Question[];
  plan: string[];
  plan_rest: number; // lines
  text: string; // where the call says nothing
  /** Texts of the call are incomplete; see loadWholeCall() */
  is_cut: boolean;
}

const fieldsOf = (input: unknown): Record<string, unknown> => (typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Record<string, unknown>) : {});
const text = (value: unknown) => (typeof value === "string" ? value : "");

function questionOf(value: unknown): Question | undefined {
  const { question, options, choices } = fieldsOf(value);
  if (typeof question !== "string") return undefined;
  const all = Array.isArray(options) ? options : Array.isArray(choices) ? choices : [];
  return { text: question, options: all.slice(0, options_max).map((option) => (typeof option === "string" ? { label: option, description: "" } : { label: text(fieldsOf(option).label), description: text(fieldsOf(option).description) })).filter(({ label }) => label) };
}

function questionsOf(input: unknown): Question[] {
  const { questions } = fieldsOf(input);
  const all = Array.isArray(questions) ? questions.slice(0, questions_max).map(questionOf) : [questionOf(input)];
  return all.filter((one): one is Question => one !== undefined);
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

const lines = (value: unknown) => text(value).split("\n").filter((line, n, all) => n < all.length - 1 || line !== "").slice(0, lines_max);

/** `whole`: the input of the call, loaded because the frame's is incomplete. */
export function requestOf(frame: SessionFrame, whole?: { call: string; input: unknown }): Request {
  const pending = pendingCall(frame);
  const loaded = whole && whole.call === pending?.call.call;
  const input = loaded ? whole.input : pending?.call.input;
  const fields = fieldsOf(input);
  const command = Array.isArray(fields.command) ? commandOf(texts(fields.command)) : text(fields.command) || text(fields.cmd);
  const patch = typeof input === "string" ? input : "";
  const path = text(fields.file_path) || text(fields.notebook_path) || text(fields.path) || text(fields.url) || text(fields.query) || text(fields.pattern) || texts(fields.files).join("\n") || filesOfPatch(patch).join("\n");
  const plan = text(fields.plan).split("\n");
  const questions = questionsOf(input);
  const has_plan = text(fields.plan) !== "";
  return {
    call: pending?.call, description: questions.length > 0 ? "" : text(fields.description), command, path: command ? "" : path, questions,
    removed: lines(fields.old_string), added: lines(fields.new_string ?? fields.content), plan: has_plan ? plan.slice(0, plan_lines_max) : [], plan_rest: Math.max(0, plan.length - plan_lines_max),
    text: command || path || has_plan || questions.length > 0 ? "" : patch || (frame.status.detail ?? ""),
    is_cut: !loaded && pending !== undefined && Object.keys(frame.truncated ?? {}).some((cut) => cut === pending.path || cut.startsWith(`${pending.path}/`)),
  };
}
