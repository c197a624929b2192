// Small parts that the rows of the overview and the session page share.
import type { AccountLimit, OpenTool, SessionFrame } from "../../sdk/src/index.js";
import { age, clock, isHigh, ms, now, period, programMark, programName, dayTime, running } from "./format.js";
import { isTeam, showsPrograms, type Phase } from "./rows.js";
import { inputSummary } from "./toolInput.js";
import { startsAgent } from "./toolKind.js";

/** The agent program, where not all sessions are Claude Code's. */
export function ProgramMark({ program }: { program: string | undefined }) {
  return program && showsPrograms.value ? <><span class="program" dir="ltr" data-program={program} title={programName(program)}>{programMark(program)}</span> </> : null;
}

const scrolls_above = 4; // rows
/** Attributes of a part of the session's summary, which scrolls on a phone: a keyboard can scroll it. */
export const scrollable = (label: string, rows: number) => (rows > scrolls_above ? ({ tabIndex: 0, role: "group", "aria-label": label } as const) : {});

const limits_max = 6; // the fullest: a team may have a thousand accounts
const fullness = ({ windows }: AccountLimit) => Math.max(...windows.map(({ used_percent = 0 }) => used_percent));

/** How much of the accounts' limits is used, and until when that is valid. */
export function LimitList({ limits: all }: { limits: AccountLimit[] }) {
  if (all.length === 0) return null;
  const at = Date.now();
  const limits = all.length <= limits_max ? all : [...all].sort((a, b) => fullness(b) - fullness(a)).slice(0, limits_max);
  return (
    <ul class="limits" aria-label="Limits of accounts">
      {limits.map(({ host, program, limit, plan, reached, windows }) => (
        <li title={[programName(program), limit !== program && limit, plan, reached && `reached: ${reached}`].filter(Boolean).join(", ")}>
          <span class="program">{programMark(program)}</span>{isTeam.value ? <span>{host}</span> : null}
          <span class="windows">
            {windows.map(({ name, used_percent = 0, window_minutes, resets_at }) => {
              const span = window_minutes ? period(window_minutes) : name;
              const reset = resets_at ? `, resets ${dayTime(ms(resets_at) ?? 0, at)}` : "";
              return (
                <span class="window" data-high={isHigh(used_percent, 100)} title={`${used_percent} % of ${span} used${resets_at ? `, resets ${new Date(resets_at).toLocaleString()}` : ""}`}>
                  <progress data-high={isHigh(used_percent, 100)} value={Math.min(used_percent, 100)} max={100} aria-label={`used of ${span}`} /> {Math.floor(used_percent)}% of {span}<span class="reset">{reset}</span>
                </span>
              );
            })}
          </span>
        </li>
      ))}
      {all.length > limits.length ? <li class="more">{all.length - limits.length} more, less used</li> : null}
    </ul>
  );
}

/** Time since `since`. A component of its own, because it is rendered every second. `offset_ms`: see `clock_offset_ms` of a session. */
export function Elapsed({ since, short, offset_ms = 0 }: { since: string | undefined; short?: boolean; offset_ms?: number | undefined }) {
  const start = ms(since);
  if (start === undefined) return null;
  const at = now.value - offset_ms;
  return <time dateTime={since} title={new Date(start + offset_ms).toLocaleString()}>{short ? age(since, at) : running(at - start)}</time>;
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

/** The most informative open tool call: a subagent's call rather than the call that started the subagent. */
export function currentTool(frame: SessionFrame): OpenTool | undefined {
  const subagent_tools = frame.agents.flatMap((agent) => agent.tools);
  return frame.tools.find(({ tool }) => !startsAgent(tool)) ?? subagent_tools.at(-1) ?? frame.tools.at(-1);
}

function withoutTool(frame: SessionFrame, phase: Phase) {
  const { status, turn, last_activity } = frame;
  if (status.reason === "background") return status.detail ?? "background task";
  if (status.reason === "scheduled") return `goes on at ${clock((ms(status.detail) ?? 0) + (frame.clock_offset_ms ?? 0))}`;
  if (phase === "working") return <>{status.reason === "compaction" ? "compacting" : "thinking"} <Elapsed since={last_activity} offset_ms={frame.clock_offset_ms} /></>;
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
      {phase === "offline" ? null : <Elapsed since={open.started} offset_ms={frame.clock_offset_ms} />}
    </span>
  );
}

const sparkline = { width: 64, height: 30 };
const context_sizes = [200_000, 1_000_000]; // common context windows: the scale of all rows, so that they compare

/** Size of the context over time. `window`: the size that it can have, if known. */
export function ContextSparkline({ sizes, window }: { sizes: readonly number[]; window: number | undefined }) {
  const { width, height } = sparkline;
  const maximum = Math.max(...sizes, 0);
  const full = window && window >= maximum ? window : context_sizes.find((size) => maximum <= size) ?? maximum;
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
