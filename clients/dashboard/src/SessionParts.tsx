// Small parts that the rows of the overview and the session page share.
import type { OpenTool, SessionFrame } from "../../sdk/src/index.js";
import { age, duration, ms, now } from "./format.js";
import type { Phase } from "./rows.js";

/** Time since `since`. A component of its own, because it is rendered every second. */
export function Elapsed({ since, short }: { since: string | undefined; short?: boolean }) {
  const start = ms(since);
  if (start === undefined) return null;
  return <time dateTime={since} title={new Date(start).toLocaleString()}>{short ? age(since, now.value) : duration(Math.floor(Math.max(0, now.value - start) / 1000) * 1000)}</time>;
}

export const completedCount = (todos: SessionFrame["todos"]) => todos.filter((todo) => todo.status === "completed").length;

export function TodoProgress({ frame, hidden }: { frame: Pick<SessionFrame, "todos">; hidden?: boolean }) {
  const total = frame.todos.length;
  if (total === 0) return <span class="todos" />;
  const completed = completedCount(frame.todos);
  return (
    <span class="todos" aria-hidden={hidden} title={`${completed} of ${total} to-do items completed`}>
      <progress value={completed} max={total} aria-label="to-do items" /> {completed}/{total}
    </span>
  );
}

const summary_max = 200; // characters: more than one line shows
const summary_fields = ["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt", "skill"]; // most informative first

/** One line from a tool's input: its most informative field; paths below `base` are relative. */
export function inputSummary(input: unknown, base = ""): string {
  if (typeof input === "string") return input.slice(0, summary_max);
  if (typeof input !== "object" || input === null) return "";
  const fields = input as Record<string, unknown>;
  for (const name of summary_fields) {
    const value = fields[name];
    if (typeof value !== "string") continue;
    const text = value.slice(0, 4 * summary_max).replaceAll(/\s+/g, " ");
    return (base && text.startsWith(base + "/") ? text.slice(base.length + 1) : text).slice(0, summary_max);
  }
  return "";
}

/** The most informative open tool call: a subagent's call rather than the call that started the subagent. */
export function currentTool(frame: SessionFrame): OpenTool | undefined {
  const subagent_tools = frame.agents.flatMap((agent) => agent.tools);
  return frame.tools.find(({ tool }) => tool !== "Agent" && tool !== "Task") ?? subagent_tools.at(-1) ?? frame.tools.at(-1);
}

function withoutTool(frame: SessionFrame, phase: Phase) {
  const { status, turn, last_activity } = frame;
  if (phase === "working") return <>{status.reason === "compaction" ? "compacting" : "thinking"} <Elapsed since={last_activity} /></>;
  if (status.reason === "background") return "background task";
  return turn.outcome && turn.outcome !== "completed" ? turn.outcome : "";
}

/** The current tool call and its duration. */
export function Tool({ frame, phase, hidden }: { frame: SessionFrame; phase: Phase; hidden?: boolean }) {
  const open = currentTool(frame);
  if (!open) return <span class="tool quiet" aria-hidden={hidden}>{withoutTool(frame, phase)}</span>;
  const agents = frame.agents.length;
  return (
    <span class="tool" aria-hidden={hidden} title={`${open.tool} ${inputSummary(open.input)}`}>
      <b>{open.tool}</b> <span class="input-summary">{inputSummary(open.input, frame.project)}</span>
      {agents > 0 ? <span class="agents">{agents} {agents === 1 ? "agent" : "agents"}</span> : null}
      {phase === "offline" ? null : <Elapsed since={open.started} />}
    </span>
  );
}

const sparkline = { width: 64, height: 30 };
const context_sizes = [200_000, 1_000_000]; // common context windows: the scale of all rows, so that they compare

/** Size of the context over time. */
export function ContextSparkline({ sizes }: { sizes: readonly number[] }) {
  const { width, height } = sparkline;
  const maximum = Math.max(...sizes, 0);
  const full = context_sizes.find((size) => maximum <= size) ?? maximum;
  const values = sizes.length === 1 ? [sizes[0]!, sizes[0]!] : sizes;
  const step = (width - 2) / Math.max(1, values.length - 1);
  const points = values.map((size, index) => `${(index * step + 1).toFixed(1)},${(height - 1 - (size / full) * (height - 2)).toFixed(1)}`);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path class="floor" d={`M1 ${height - 0.5}H${width - 1}`} />
      {points.length > 1 ? <path class="area" d={`M1,${height - 1}L${points.join("L")}L${width - 1},${height - 1}Z`} /> : null}
      {points.length > 1 ? <path class="line" d={`M${points.join("L")}`} /> : null}
    </svg>
  );
}
