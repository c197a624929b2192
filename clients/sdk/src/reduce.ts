// One event on top of what a session is. Pure; a table from event type to function.
import type { AgentFinished, AgentStarted, EarshotEvent, OpenTool, SessionFrame, Stream, Tokens, ToolFinished, ToolInvoked, UsageUpdated } from "./protocol.js";

interface Context {
  totals: ReadonlyMap<Stream, Tokens>; // before this event
  only: boolean; // the session has one stream
}

type Rules = { [T in EarshotEvent["type"]]?: (now: SessionFrame, event: Extract<EarshotEvent, { type: T }>, context: Context) => Partial<SessionFrame> };

const counts = ["input", "output", "cache_read", "cache_write"] as const;
const said = ["title", "git_branch", "model", "version", "mode", "permission_mode", "project", "dialect"] as const;

function told(event: object): Partial<SessionFrame> {
  return Object.fromEntries(said.filter((name) => name in event).map((name) => [name, event[name as never]]));
}

/** At a hub: its host is not heard any more, and was last heard at `status.since`. What it does now nobody knows. */
export const isAway = (session: Pick<SessionFrame, "status">) => session.status.state === "unknown" && session.status.reason === "host_offline";

/** Is it a subagent's, in a transcript of its own or not? */
const inner = (event: EarshotEvent) => event.agent !== undefined;

/** How many tokens the model was given, as a message of the main chain tells it. */
export function contextOf(event: UsageUpdated): number | undefined {
  return inner(event) || event.input === undefined ? undefined : event.input + (event.cache_read ?? 0) + (event.cache_write ?? 0);
}

function open(event: ToolInvoked): OpenTool {
  const { call, tool, input, time } = event;
  return { call, tool, ...(input !== undefined && { input }), ...(time && { started: time }) };
}

const without = (tools: OpenTool[], call: string) => tools.filter((tool) => tool.call !== call);

function invoked(now: SessionFrame, event: ToolInvoked): Partial<SessionFrame> {
  if (!inner(event)) return { tools: [...without(now.tools, event.call), open(event)] };
  if (!now.agents.some((agent) => agent.agent === event.agent)) return {};
  return { agents: now.agents.map((agent) => (agent.agent === event.agent ? { ...agent, tools: [...without(agent.tools, event.call), open(event)] } : agent)) };
}

function finished(now: SessionFrame, event: ToolFinished): Partial<SessionFrame> {
  if (!inner(event)) return { tools: without(now.tools, event.call) };
  return { agents: now.agents.map((agent) => (agent.agent === event.agent ? { ...agent, tools: without(agent.tools, event.call) } : agent)) };
}

function agentStarted(now: SessionFrame, event: AgentStarted): Partial<SessionFrame> {
  const { subagent, agent_type, description, call, time } = event;
  const others = now.agents.filter((agent) => agent.call !== call || call === undefined);
  const one = { ...(subagent && { agent: subagent }), ...(agent_type && { agent_type }), ...(description !== undefined && { description }),
    ...(call && { call }), ...(event.background && { background: true as const }), ...(time && { started: time }), tools: [] };
  return { agents: [...others, one] };
}

function agentFinished(now: SessionFrame, event: AgentFinished): Partial<SessionFrame> {
  const ended = (agent: SessionFrame["agents"][number]) =>
    (event.call !== undefined && agent.call === event.call) || (event.subagent !== undefined && agent.agent === event.subagent);
  return { agents: now.agents.filter((agent) => !ended(agent)) };
}

const rules: Rules = {
  "session.started": (_now, event) => (inner(event) ? {} : told(event)),
  "session.updated": (_now, event) => (inner(event) ? {} : told(event)),
  "turn.started": (now, event) => inner(event) ? {} : {
    turn: { number: event.turn, open: true, ...(event.time && { started: event.time }), ...(event.prompt !== undefined && { prompt: event.prompt }) },
    status: transcript(now, "working", event.time),
  },
  "turn.finished": (now, event) => inner(event) ? {} : {
    turn: { ...now.turn, open: false, outcome: event.outcome, ...(event.time && { finished: event.time }) },
    status: transcript(now, "idle", event.time),
    tools: [],
  },
  "message.added": (_now, event) =>
    inner(event) || event.role !== "assistant" || event.kind !== "text" || event.text === undefined ? {} : { last_text: event.text },
  "tool.invoked": invoked,
  "tool.finished": finished,
  "todo.updated": (_now, event) => (inner(event) ? {} : { todos: event.todos }),
  "agent.started": agentStarted,
  "agent.finished": agentFinished,
  "usage.updated": (now, event, { totals, only }) => {
    // Totals are a stream's. Of the first one of several streams only the message's own share is known: the next session frame sets it right.
    const before = totals.get(event.stream);
    const usage = { ...now.usage };
    for (const name of counts) {
      usage[name] = only ? event.total[name] : usage[name] + (before ? event.total[name] - before[name] : (event[name] ?? 0));
    }
    const context = contextOf(event);
    if (context !== undefined) usage.context = context;
    if (!inner(event) && event.cost_usd !== undefined) usage.cost_usd = event.cost_usd;
    return { usage };
  },
};

/** A status that a registry told of stays, and that a host is away: the next `status` frame changes it, not a transcript. */
function transcript(now: SessionFrame, state: "working" | "idle", since: string | undefined): SessionFrame["status"] {
  if (now.status.source === "registry" || isAway(now)) return now.status;
  return { state, source: "transcript", ...(since && { since }) };
}

export function reduce(now: SessionFrame, event: EarshotEvent, totals: ReadonlyMap<Stream, Tokens>, only: boolean): SessionFrame {
  const rule = rules[event.type] as ((now: SessionFrame, event: EarshotEvent, context: Context) => Partial<SessionFrame>) | undefined;
  const changed = rule?.(now, event, { totals, only }) ?? {};
  const later = event.time && (!now.last_activity || event.time > now.last_activity) ? { last_activity: event.time } : {};
  return { ...now, ...changed, ...later };
}
