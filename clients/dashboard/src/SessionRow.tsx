import { useEffect } from "preact/hooks";
import type { SessionFrame, SessionState } from "../../sdk/src/index.js";
import { onScreen } from "./contextHistory.js";
import { programName, shortModel, tokens } from "./format.js";
import { follow, address } from "./route.js";
import { isTeam, nameOf, phaseLabels, projectOf, titleOf, type Phase } from "./rows.js";
import { ContextSparkline, Elapsed, TodoProgress, Tool, completedCount, currentTool, inputSummary } from "./SessionParts.js";

/** The phase or, for a waiting session, what it waits for. */
const phaseText = (frame: SessionFrame, phase: Phase) => (phase === "waiting" ? (frame.status.reason ?? "waiting") : phaseLabels[phase]);

/** The row as one sentence for screen readers; the columns themselves are hidden from them. */
function accessibleName(frame: SessionFrame, phase: Phase, message: string): string {
  const open = currentTool(frame);
  const { usage, todos } = frame;
  return [
    phase === "waiting" ? `needs you, ${phaseText(frame, phase)}` : phaseLabels[phase],
    titleOf(frame),
    `in ${projectOf(frame)}${isTeam.value ? ` on ${frame.host}` : ""}`,
    open && `${open.tool} ${inputSummary(open.input, frame.project)}`.trim(),
    todos.length > 0 && `${completedCount(todos)} of ${todos.length} to-do items completed`,
    usage.context !== undefined && `${tokens(usage.context)} tokens in the context`,
    message,
  ].filter(Boolean).join(". ");
}

/** The signals integration compares props by identity: `frame` must be a new object after a change. */
export function SessionRow({ frame, session, phase, show_project }: { frame: SessionFrame; session: SessionState; phase: Phase; show_project: boolean }) {
  const id = session.key;
  useEffect(() => onScreen(id, frame), [id]);
  const target = { session: frame.session, host: frame.host };
  const message = (phase === "waiting" ? (frame.status.detail ?? "") : (frame.last_text ?? "")).replaceAll(/\s+/g, " ");
  const { context, output } = frame.usage;
  const since = phase === "waiting" || phase === "working" ? (frame.status.since ?? frame.turn.started) : (frame.last_activity ?? frame.status.since);
  return (
    <div class="row" data-state={frame.status.state} data-phase={phase} onClick={follow(target)}>
      <span class="status" data-state={frame.status.state} data-phase={phase} aria-hidden="true">{phaseText(frame, phase)}</span>
      <a class="title" data-item={id} href={address(target)} aria-label={accessibleName(frame, phase, message)}>{titleOf(frame)}</a>
      <Tool frame={frame} phase={phase} hidden />
      <TodoProgress frame={frame} hidden />
      <ContextSparkline sizes={session.context.list()} />
      <span class="context" aria-hidden="true" title={context === undefined ? "" : `${context.toLocaleString()} tokens in the context`}>{context === undefined ? "" : <>{tokens(context)} <i>ctx</i></>}</span>
      <span class="written" title={`${output.toLocaleString()} output tokens`}>{output > 0 ? <>{tokens(output)} <i>out</i></> : ""}</span>
      <span class="model" title={[programName(frame.program), frame.version, frame.model].filter(Boolean).join(" ")}>{shortModel(frame.model)}</span>
      <span class="turn">{frame.turn.number > 0 ? `turn ${frame.turn.number}` : ""}</span>
      <span class="age"><Elapsed since={since} short /></span>
      <span class="message" aria-hidden="true">{show_project ? <span class="project" title={projectOf(frame)}>{nameOf(projectOf(frame))}{isTeam.value ? ` on ${frame.host}` : ""}</span> : null}{message}</span>
    </div>
  );
}
