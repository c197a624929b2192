// The open session's events as turns, tool calls, subagents and conversation entries. Updated event by event; every list is bounded.
import { contextTokens, type EarshotEvent, type JsonValue, type SessionFrame, type TurnFinished } from "../../sdk/src/index.js";
import { countLines, editsOfInput } from "./edits.js";
import { ms } from "./format.js";
import { samePlace, type Place } from "./place.js";
import { filesOfPatch } from "./toolInput.js";

export const entries_max = 20_000; // older ones are dropped
export const usage_points_max = 4_000; // above it, every second point is removed
const files_max = 2_000; // the newest
const agents_max = 1_000; // the newest; also limits the streams
const compactions_max = 1_000; // the newest; also limits waits, queued prompts and failures
const file_calls_max = 20; // of one file, the newest
const same_wait_ms = 5_000;
const streams_max = 1_000; // whose totals are kept

/** `weight`: the turn's tokens, weighted as models are usually priced; `cost_usd`: where the transcript records it. Both include subagents. */
export interface Turn { number: number; agent: string | undefined; start: number; end?: number; outcome?: TurnFinished["outcome"]; waited_ms?: number | undefined; prompt: string; weight: number; cost_usd?: number; output: number }
/** `cut`: the daemon has cut a text of the input. */
export interface ToolCall { call: string; tool: string; agent: string | undefined; input?: JsonValue; cut?: true; start: number; end?: number; outcome?: string; finished?: EarshotEvent; background?: string }
/** A time in which the session waited for the user. */
export interface Wait { start: number; end?: number; reason: string }
export interface Mark { at: number; text: string; event: EarshotEvent }
export interface Agent { key: string; name: string; type: string; call: string | undefined; start: number; end?: number }
export type Entry = { at: number } & (
  | { kind: "turn"; event: Extract<EarshotEvent, { type: "turn.started" }>; turn: Turn }
  | { kind: "message"; event: Extract<EarshotEvent, { type: "message.added" }> }
  | { kind: "tool"; event: Extract<EarshotEvent, { type: "tool.invoked" }>; tool: ToolCall }
  | { kind: "notice"; event: EarshotEvent; text: string });
type WithoutTime<T> = T extends Entry ? Omit<T, "at"> : never;
/** `least`: some of the changes are not known completely. */
export interface FileUse { path: string; changed: number; read: number; last: number; added: number; removed: number; least?: true; calls: ToolCall[] }

/** Sets the value as the newest one and removes the oldest one above `size_max`. */
function setBounded<V>(map: Map<string, V>, key: string, value: V, size_max: number) {
  map.delete(key);
  map.set(key, value);
  if (map.size > size_max) map.delete(map.keys().next().value!);
}

const questions: Record<string, string> = { AskUserQuestion: "question", ExitPlanMode: "plan", ask_user: "question", exit_plan_mode: "plan", request_user_input: "question" };
const price_ratio = { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }; // usual among models: for a turn's share of the cost
export const isWriting = (tool: string) => writing_tools.has(tool);
const writing_tools = new Set(["Edit", "MultiEdit", "Write", "NotebookEdit", "edit", "write", "create", "apply_patch"]);
const reading_tools = new Set(["read", "view", "view_image"]); // their files, and those of writing tools, may be named `path`

function filesOf(tool: string, input: JsonValue | undefined): string[] {
  if (typeof input === "string") return tool === "apply_patch" ? filesOfPatch(input) : [];
  if (typeof input !== "object" || input === null || Array.isArray(input)) return [];
  const named = input.file_path ?? input.notebook_path ?? (writing_tools.has(tool) || reading_tools.has(tool) ? input.path : undefined);
  const files = tool === "apply_patch" && Array.isArray(input.files) ? input.files : [named];
  return files.filter((path): path is string => typeof path === "string");
}

const turnKey = (event: EarshotEvent) => `${event.stream}\n${event.agent ?? ""}`;

function renameKey<T>(map: Map<string, T>, from: string, to: string) {
  const value = map.get(from);
  if (value !== undefined && !map.has(to)) map.set(to, value);
  map.delete(from);
}

export class SessionModel {
  /** How often the model has changed: what is derived from it is derived again when this is another number. */
  changes = 0;
  entries: Entry[] = [];
  dropped = 0;
  turns: Turn[] = [];
  tools: ToolCall[] = [];
  agents = new Map<string, Agent>();
  compactions: Mark[] = [];
  waits: Wait[] = []; // for questions and plans of the transcript, and what the daemon saw while the page was open
  queued: Mark[] = [];
  failures: Mark[] = []; // of requests to the API
  /** Where the page should open: `found` is the entry that shows this event. */
  target: { place: Place; found?: Entry } | undefined;
  files = new Map<string, FileUse>();
  usage: Array<{ at: number; context: number; output: number }> = [];
  start = 0;
  end = 0;
  private readonly stream_times = new Map<string, number>();
  private readonly open_tools = new Map<string, ToolCall>();
  private readonly open_turns = new Map<string, Turn>();
  private readonly agents_by_call = new Map<string, Agent>();
  private readonly totals = new Map<string, { weight: number; output: number; cost_usd: number }>(); // by stream
  private readonly call_waits = new Map<string, Wait>();
  private status_wait: (Wait & { request?: string | undefined }) | undefined;

  apply(event: EarshotEvent) {
    this.changes++;
    this.applyEvent(event);
    const { target } = this;
    if (target && !target.found && event.cursor === target.place.cursor && event.stream === target.place.stream) {
      const found = this.find(target.place) ?? this.entries.findLast((entry) => entry.event.stream === event.stream); // an event without an entry: the one before it
      if (found) target.found = found;
    }
  }

  /** The events of a stream go on under another name. */
  renameStream(from: string, to: string) {
    this.changes++;
    renameKey(this.stream_times, from, to);
    renameKey(this.totals, from, to);
    for (const key of [...this.open_turns.keys()]) if (key.startsWith(from + "\n")) renameKey(this.open_turns, key, to + key.slice(from.length));
  }

  /** The entry that shows the event at a place. */
  find(place: Place): Entry | undefined {
    return this.entries.findLast((entry) => samePlace(entry.event, place) || (entry.kind === "tool" && entry.tool.finished && samePlace(entry.tool.finished, place)));
  }

  /** What the session is doing now. Transcripts do not record every wait. */
  observe({ state, reason, since, request }: SessionFrame["status"], now = Date.now()) {
    const at = ms(since);
    if (at === undefined) return;
    this.changes++;
    if (this.status_wait) {
      if (state === "waiting" && this.status_wait.request === request) return;
      this.status_wait.end = Math.max(state === "waiting" ? now : at, this.status_wait.start); // another request may be older than this answer
      this.status_wait = undefined;
    }
    if (state !== "waiting" || [...this.call_waits.values()].some((wait) => wait.end === undefined)) return;
    this.status_wait = { start: at, reason: reason ?? "", request };
    this.addWait(this.status_wait);
  }

  private addWait(wait: Wait) {
    this.waits.push(wait);
    if (this.waits.length > compactions_max) this.waits.shift();
  }

  private mark(marks: Mark[], at: number, text: string, event: EarshotEvent) {
    marks.push({ at, text, event });
    if (marks.length > compactions_max) marks.shift();
  }

  private applyEvent(event: EarshotEvent) {
    const at = ms(event.time) ?? this.end;
    if (at > 0) {
      if (this.start === 0 || at < this.start) this.start = at;
      if (at > this.end) this.end = at;
    }
    switch (event.type) {
      case "turn.started": {
        const turn: Turn = { number: event.turn, agent: event.agent, start: at, prompt: event.prompt ?? "", weight: 0, output: 0 };
        this.turns.push(turn);
        setBounded(this.open_turns, turnKey(event), turn, agents_max);
        return this.add({ kind: "turn", event, turn });
      }
      case "turn.finished": {
        const turn = this.open_turns.get(turnKey(event));
        if (turn) Object.assign(turn, { end: at, outcome: event.outcome, waited_ms: event.waited_ms });
        if (event.outcome !== "completed") this.add({ kind: "notice", event, text: `turn ${event.turn} ${event.outcome}` });
        return;
      }
      case "message.added":
        if (event.role === "user" && this.open_turns.get(turnKey(event))?.prompt === event.text) return; // shown by the turn's entry
        return this.add({ kind: "message", event });
      case "tool.invoked": {
        const tool: ToolCall = { call: event.call, tool: event.tool, agent: event.agent, start: at, ...(event.input !== undefined && { input: event.input as JsonValue }), ...(event.truncated && { cut: true as const }) };
        this.tools.push(tool);
        if (Object.hasOwn(questions, event.tool) && !event.agent) {
          const wait = { start: at, reason: questions[event.tool]! };
          this.addWait(wait);
          setBounded(this.call_waits, event.call, wait, agents_max);
          if (this.status_wait && at >= this.status_wait.start - same_wait_ms) { // the same wait, which the daemon's status stated first
            this.waits.splice(this.waits.indexOf(this.status_wait), 1);
            this.status_wait = undefined;
          }
        }
        this.open_tools.set(event.call, tool);
        this.addFile(tool);
        return this.add({ kind: "tool", event, tool });
      }
      case "tool.finished": {
        const tool = this.open_tools.get(event.call);
        if (tool) Object.assign(tool, { end: at, outcome: event.outcome, finished: event, ...(event.background && { background: event.background }) });
        this.open_tools.delete(event.call);
        const wait = this.call_waits.get(event.call);
        if (wait) wait.end = at;
        this.call_waits.delete(event.call);
        if (tool && event.outcome === "ok") this.countChanges(tool);
        const started = event.background ? this.agents_by_call.get(event.call) : undefined;
        if (started && !this.agents.has(event.background!)) setBounded(this.agents, event.background!, started, agents_max);
        return;
      }
      case "session.started": {
        if (!event.agent || !event.agent_type || this.agents.has(event.agent)) return;
        setBounded(this.agents, event.agent, { key: event.agent, name: event.agent_type, type: event.agent_type, call: undefined, start: at }, agents_max);
        return;
      }
      case "agent.started": {
        const agent: Agent = { key: event.subagent ?? event.call ?? "", name: event.description || event.agent_type || "agent", type: event.agent_type ?? "", call: event.call, start: at };
        if (event.call) setBounded(this.agents_by_call, event.call, agent, agents_max);
        if (event.subagent) setBounded(this.agents, event.subagent, agent, agents_max);
        return;
      }
      case "agent.finished": {
        const agent = (event.call ? this.agents_by_call.get(event.call) : undefined) ?? (event.subagent ? this.agents.get(event.subagent) : undefined);
        if (!agent) return;
        agent.end = at;
        if (event.subagent) setBounded(this.agents, event.subagent, agent, agents_max);
        return;
      }
      case "compaction.finished": {
        const text = `context compacted${event.pre_tokens ? `, ${event.pre_tokens.toLocaleString()} tokens before` : ""}${event.post_tokens ? `, ${event.post_tokens.toLocaleString()} after` : ""}`;
        this.mark(this.compactions, at, text, event);
        return this.add({ kind: "notice", event, text });
      }
      case "queue.changed": {
        if (event.operation !== "enqueue" || !event.text) return;
        const text = `queued: ${event.text}`;
        this.mark(this.queued, at, text, event);
        return this.add({ kind: "notice", event, text });
      }
      case "usage.updated": return this.addUsage(event, at);
      case "limits.updated":
        if (event.reached) this.add({ kind: "notice", event, text: `the account's limit is reached: ${event.reached}` });
        return;
      case "api.failed": {
        const text = `the API failed${event.status ? ` with ${event.status}` : ""}${event.kind ? ` (${event.kind})` : ""}${event.fatal ? "" : ", retrying"}: ${event.error ?? ""}`;
        this.mark(this.failures, at, text, event);
        return this.add({ kind: "notice", event, text });
      }
      case "task.finished": return this.add({ kind: "notice", event, text: `background task ${event.outcome}: ${event.summary ?? ""}` });
      case "line.skipped": return this.add({ kind: "notice", event, text: `${event.lines} ${event.lines === 1 ? "line" : "lines"} of the transcript could not be read: ${event.reason}` });
    }
  }

  /** Inserts by time without reordering a stream: in a replay the streams arrive one after another, and times are not monotonic. */
  private add(added: WithoutTime<Entry>) {
    const { stream, time } = added.event;
    const at = Math.max(ms(time) ?? 0, this.stream_times.get(stream) ?? 0);
    setBounded(this.stream_times, stream, at, agents_max);
    const entry = { ...added, at } as Entry;
    let position = this.entries.length;
    while (position > 0 && this.entries[position - 1]!.at > at) position--;
    if (position === this.entries.length) this.entries.push(entry);
    else this.entries.splice(position, 0, entry);
    if (this.entries.length <= entries_max * 1.1) return;
    this.dropped += this.entries.length - entries_max;
    this.entries = this.entries.slice(-entries_max);
    const tools = new Set(this.entries.flatMap((entry) => (entry.kind === "tool" ? [entry.tool] : [])));
    const turns = new Set(this.entries.flatMap((entry) => (entry.kind === "turn" ? [entry.turn] : [])));
    this.tools = this.tools.filter((tool) => tools.has(tool));
    this.turns = this.turns.filter((turn) => turns.has(turn) || turn.end === undefined);
    for (const [call, tool] of this.open_tools) if (!tools.has(tool)) this.open_tools.delete(call);
  }

  private addFile({ tool, input, start }: ToolCall) {
    for (const path of filesOf(tool, input)) this.useFile(path, tool, start);
  }

  /** Counts the lines that a successful call has added and removed. */
  private countChanges(call: ToolCall) {
    for (const edit of editsOfInput(call.tool, call.input)) {
      if (!this.files.has(edit.path)) this.useFile(edit.path, "edit", call.start);
      const file = this.files.get(edit.path)!;
      const { added, removed } = countLines(edit);
      file.added += added;
      file.removed += removed;
      if (call.cut) file.least = true;
      file.calls.push(call);
      if (file.calls.length > file_calls_max) file.calls.shift();
    }
  }

  private useFile(path: string, tool: string, start: number) {
    const file = this.files.get(path) ?? { path, changed: 0, read: 0, last: 0, added: 0, removed: 0, calls: [] };
    if (writing_tools.has(tool)) file.changed++;
    else file.read++;
    file.last = start;
    setBounded(this.files, path, file, files_max);
  }

  /** Adds what a stream has used since its last event to the main agent's turn of that time. */
  private addToTurn(event: Extract<EarshotEvent, { type: "usage.updated" }>, at: number) {
    const before = this.totals.get(event.stream) ?? { weight: 0, output: 0, cost_usd: 0 };
    const { total } = event;
    const weight = (Object.keys(price_ratio) as Array<keyof typeof price_ratio>).reduce((sum, kind) => sum + total[kind] * price_ratio[kind], 0);
    setBounded(this.totals, event.stream, { weight, output: total.output, cost_usd: event.cost_usd ?? before.cost_usd }, streams_max);
    const turn = this.turns.findLast((one) => one.agent === undefined && one.start <= at);
    if (!turn) return;
    turn.weight += Math.max(0, weight - before.weight);
    turn.output += Math.max(0, total.output - before.output);
    if (event.cost_usd !== undefined) turn.cost_usd = (turn.cost_usd ?? 0) + Math.max(0, event.cost_usd - before.cost_usd);
  }

  private addUsage(event: Extract<EarshotEvent, { type: "usage.updated" }>, at: number) {
    this.addToTurn(event, at);
    const context = contextTokens(event);
    if (context === undefined) return;
    const last = this.usage.at(-1);
    this.usage.push({ at: Math.max(at, last?.at ?? 0), context, output: event.total.output });
    if (this.usage.length > usage_points_max) this.usage = this.usage.filter((_, n) => n % 2 === 1);
  }
}
