// Applies one event to a session frame: a pure function from (frame, event) to the next frame.
import { contextTokens, isOffline, timeKind, truncatedTexts } from "./frames.js";
import type { AgentFinished, AgentStarted, EarshotEvent, OpenTool, SessionFrame, Stream, Tokens, ToolFinished, ToolInvoked, Truncated, TurnFinished, TurnStarted } from "./protocol.js";

/** A stream's tokens so far, and their cost where the transcript records it. */
export type StreamTotal = Tokens & { cost_usd?: number };

interface ReduceContext {
  /** Totals of each stream before this event. */
  totals: ReadonlyMap<Stream, StreamTotal>;
  /** The session has one stream only. */
  single_stream: boolean;
}

type Change = Partial<SessionFrame>;
type Agent = SessionFrame["agents"][number];
type Rules = { [T in EarshotEvent["type"]]?: (session: SessionFrame, event: Extract<EarshotEvent, { type: T }>, context: ReduceContext) => Change };

const token_kinds = ["input", "output", "cache_read", "cache_write"] as const;
const header_fields = ["program", "title", "git_branch", "model", "version", "mode", "permission_mode", "sandbox", "source", "originator", "project", "dialect"] as const;

function headerFields(event: object): Change {
  return Object.fromEntries(header_fields.filter((name) => name in event).map((name) => [name, event[name as never]]));
}

const isSubagent = (event: EarshotEvent) => event.agent !== undefined;

function openTool(event: ToolInvoked): OpenTool {
  const { call, tool, input, time } = event;
  return { call, tool, ...(input !== undefined && { input }), ...(time && { started: time }) };
}

const withoutCall = (tools: OpenTool[], call: string) => tools.filter((tool) => tool.call !== call);

const withAgentTools = (session: SessionFrame, id: string, change: (tools: OpenTool[]) => OpenTool[]): Change =>
  session.agents.some((agent) => agent.agent === id) ? { agents: session.agents.map((agent) => (agent.agent === id ? { ...agent, tools: change(agent.tools) } : agent)) } : {};

function toolInvoked(session: SessionFrame, event: ToolInvoked): Change {
  const add = (tools: OpenTool[]) => [...withoutCall(tools, event.call), openTool(event)];
  return event.agent === undefined ? { tools: add(session.tools) } : withAgentTools(session, event.agent, add);
}

function toolFinished(session: SessionFrame, event: ToolFinished): Change {
  const remove = (tools: OpenTool[]) => withoutCall(tools, event.call);
  const change = event.agent === undefined ? { tools: remove(session.tools) } : withAgentTools(session, event.agent, remove);
  const { background } = event;
  // A subagent that its call started and that has no id yet: the call's result names it.
  const isNamed = (agent: Agent) => background !== undefined && agent.call === event.call && agent.agent === undefined;
  const agents = change.agents ?? session.agents;
  return agents.some(isNamed) ? { ...change, agents: agents.map((agent) => (isNamed(agent) ? { ...agent, agent: background! } : agent)) } : change;
}

function agentStarted(session: SessionFrame, event: AgentStarted): Change {
  const { subagent, agent_type, description, call, time } = event;
  const others = session.agents.filter((agent) => agent.call !== call || call === undefined);
  const agent = { ...(subagent && { agent: subagent }), ...(agent_type && { agent_type }), ...(description !== undefined && { description }),
    ...(call && { call }), ...(event.background && { background: true as const }), ...(time && { started: time }), tools: [] };
  return { agents: [...others, agent] };
}

function agentFinished(session: SessionFrame, event: AgentFinished): Change {
  const finished = (agent: Agent) => (event.call !== undefined && agent.call === event.call) || (event.subagent !== undefined && agent.agent === event.subagent);
  return { agents: session.agents.filter((agent) => !finished(agent)) };
}

/**
 * Sets the status and adds the time in the previous state to `times`. The status of an offline host does not end the period: the session
 * continues, and the status that follows states since when.
 */
export function withStatus(session: Pick<SessionFrame, "status" | "times">, status: SessionFrame["status"]): Pick<SessionFrame, "status" | "times"> {
  const { times, status: before } = session;
  const kind = timeKind(before.state);
  const period_ms = Date.parse(status.since ?? "") - Date.parse(before.since ?? "");
  if (!times || !kind || Number.isNaN(period_ms) || isOffline({ status })) return { status };
  const add = (sum_ms: number) => Math.max(0, sum_ms + period_ms); // negative if the state began earlier than stated before
  const turn = kind === "idle_ms" ? times.turn : { ...times.turn, [kind]: add(times.turn[kind]) };
  return { status, times: { ...times, [kind]: add(times[kind]), turn } };
}

/** The status after a turn began or ended. Only `status` frames replace a status from the registry or of an offline host. */
function turnStatus(session: SessionFrame, state: "working" | "idle", since: string | undefined): Change {
  if (session.status.source === "registry" || isOffline(session)) return {};
  return withStatus(session, { state, source: "transcript", ...(since && { since }) });
}

function turnStarted(session: SessionFrame, event: TurnStarted): Change {
  const status = turnStatus(session, "working", event.time);
  const times = status.times ?? session.times;
  return {
    turn: { number: event.turn, open: true, ...(event.time && { started: event.time }), ...(event.prompt !== undefined && { prompt: event.prompt }) },
    ...status,
    ...(times && { times: { ...times, turn: { waited_ms: 0, worked_ms: 0 } } }),
  };
}

function turnFinished(session: SessionFrame, event: TurnFinished): Change {
  return {
    turn: { ...session.turn, open: false, outcome: event.outcome, ...(event.time && { finished: event.time }) },
    ...turnStatus(session, "idle", event.time),
    tools: [],
    ...((event.outcome === "completed" || event.outcome === "failed") && { unseen: true as const }),
  };
}

/** Adds the cost that an event records. Estimates are the daemon's: the next session frame states them. */
function addCost(usage: SessionFrame["usage"], cost_usd: number, before: number | undefined, single_stream: boolean) {
  const all_recorded = usage.cost_source === undefined || usage.cost_source === "recorded";
  if (usage.cost_usd === undefined || (single_stream && all_recorded)) Object.assign(usage, { cost_usd, cost_source: "recorded" });
  else if (before !== undefined) usage.cost_usd = Math.max(0, usage.cost_usd + cost_usd - before);
}

const rules: Rules = {
  "session.started": (_, event) => (isSubagent(event) ? {} : headerFields(event)),
  "session.updated": (_, event) => (isSubagent(event) ? {} : headerFields(event)),
  "turn.started": (session, event) => (isSubagent(event) ? {} : turnStarted(session, event)),
  "turn.finished": (session, event) => (isSubagent(event) ? {} : turnFinished(session, event)),
  "message.added": (_, event) =>
    isSubagent(event) || event.role !== "assistant" || event.kind !== "text" || event.text === undefined ? {} : { last_text: event.text },
  "tool.invoked": toolInvoked,
  "tool.finished": toolFinished,
  "todo.updated": (_, event) => (isSubagent(event) ? {} : { todos: event.todos }),
  "agent.started": agentStarted,
  "agent.finished": agentFinished,
  "usage.updated": (session, event, { totals, single_stream }) => {
    // Totals are per stream. For the first event of one of several streams only the message's own tokens are known; the next session frame corrects the sum.
    const before = totals.get(event.stream);
    const usage = { ...session.usage };
    for (const kind of token_kinds) {
      usage[kind] = single_stream ? event.total[kind] : usage[kind] + (before ? event.total[kind] - before[kind] : (event[kind] ?? 0));
    }
    const context = contextTokens(event);
    if (context !== undefined) usage.context = context;
    if (!isSubagent(event) && event.context_window !== undefined) usage.context_window = event.context_window;
    if (event.cost_usd !== undefined) addCost(usage, event.cost_usd, before?.cost_usd, single_stream);
    return { usage };
  },
  "limits.updated": ({ limits = [] }, { time, limit, plan, reached, windows }) => {
    const known = limits.find((other) => other.limit === limit);
    if (known?.time && time && known.time > time) return {}; // of another stream
    const next = { ...(time && { time }), ...(limit && { limit }), ...(plan && { plan }), ...(reached && { reached }), windows };
    return { limits: known ? limits.map((other) => (other === known ? next : other)) : [...limits, next] };
  },
};

/** Maps an event's text path to the frame paths that it sets: the inverse of the rules above. */
function targetPath(next: SessionFrame, event: EarshotEvent, path: string): string | undefined {
  const lastTool = (tools: OpenTool[]) => `tools/${tools.length - 1}/${path}`;
  switch (event.type) {
    case "session.started": case "session.updated": return path === "title" ? path : undefined;
    case "turn.started": return path === "prompt" ? "turn/prompt" : undefined;
    case "message.added": return "last_text";
    case "todo.updated": return path;
    case "agent.started": return `agents/${next.agents.length - 1}/${path}`;
    case "tool.invoked": {
      if (event.agent === undefined) return lastTool(next.tools);
      const index = next.agents.findIndex((agent) => agent.agent === event.agent);
      return index < 0 ? undefined : `agents/${index}/${lastTool(next.agents[index]!.tools)}`;
    }
    default: return undefined;
  }
}

/** Follows an element of `tools` or `agents` to its new index; `undefined` if its text was replaced or removed. */
function movedPath(before: SessionFrame, next: SessionFrame, path: string): string | undefined {
  const [field, index, inner, inner_index, ...rest] = path.split("/") as [keyof SessionFrame, string?, string?, string?, ...string[]];
  if (before[field] === next[field]) return path;
  if (field === "turn") return before.turn.prompt === next.turn.prompt ? path : undefined;
  const position = Number(index);
  if (field === "tools") {
    const moved = next.tools.indexOf(before.tools[position]!);
    return moved < 0 ? undefined : ["tools", moved, ...[inner, inner_index, ...rest].filter((part) => part !== undefined)].join("/");
  }
  if (field !== "agents") return undefined;
  const agent = before.agents[position];
  const moved = next.agents.findIndex((other) => agent && other.call === agent.call && other.agent === agent.agent);
  if (moved < 0 || inner !== "tools") return moved < 0 ? undefined : ["agents", moved, inner].join("/");
  const tool = next.agents[moved]!.tools.indexOf(agent!.tools[Number(inner_index)]!);
  return tool < 0 ? undefined : ["agents", moved, "tools", tool, ...rest].join("/");
}

function truncatedAfter(before: SessionFrame, next: SessionFrame, event: EarshotEvent, changed: Change): Truncated | undefined {
  const entries = Object.entries(truncatedTexts(before)).flatMap(([path, bytes]) => {
    const moved = movedPath(before, next, path);
    return moved === undefined ? [] : [[moved, bytes] as const];
  });
  if (Object.keys(changed).length > 0) {
    for (const [path, bytes] of Object.entries(truncatedTexts(event))) {
      const target = targetPath(next, event, path);
      if (target !== undefined) entries.push([target, bytes]);
    }
  }
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

export function reduce(session: SessionFrame, event: EarshotEvent, totals: ReadonlyMap<Stream, StreamTotal>, single_stream: boolean): SessionFrame {
  const rule = rules[event.type] as ((session: SessionFrame, event: EarshotEvent, context: ReduceContext) => Change) | undefined;
  const changed = rule?.(session, event, { totals, single_stream }) ?? {};
  const newer = event.time && (!session.last_activity || event.time > session.last_activity) ? { last_activity: event.time } : {};
  const { truncated: _, ...next }: SessionFrame = { ...session, ...changed, ...newer };
  if (event.type === "turn.started" && !isSubagent(event)) delete next.unseen;
  const truncated = session.truncated || "truncated" in event ? truncatedAfter(session, next, event, changed) : undefined;
  return truncated ? { ...next, truncated } : next;
}
