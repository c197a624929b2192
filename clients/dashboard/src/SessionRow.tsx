import { useEffect } from "preact/hooks";
import { sessionTimes, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { onScreen } from "./contextHistory.js";
import { contextShare, now, programMark, programName, shortModel, tokens } from "./format.js";
import { RowContext, RowCost, RowTimes, costText, timesText } from "./Numbers.js";
import { follow, address } from "./route.js";
import { isTeam, nameOf, phaseLabels, projectOf, showsPrograms, titleOf, type Phase } from "./rows.js";
import { ContextSparkline, Elapsed, ProgramMark, TodoProgress, Tool, completedCount, currentTool, inputSummary } from "./SessionParts.js";

const unseen_title = "Finished since you last looked";

/** The phase or, for a waiting session, what it waits for. */
const phaseText = (frame: SessionFrame, phase: Phase) => (phase === "waiting" ? (frame.status.reason ?? "waiting") : phaseLabels[phase]);

/** The row as one sentence for screen readers; the columns themselves are hidden from them. */
function accessibleName(frame: SessionFrame, phase: Phase, message: string): string {
  const open = currentTool(frame);
  const { usage, todos } = frame;
  const share = contextShare(usage);
  const times = sessionTimes(frame, now.peek());
  return [
    (phase === "waiting" ? `needs you, ${phaseText(frame, phase)}` : phaseLabels[phase]) + (frame.unseen ? ", unseen" : ""),
    `${showsPrograms.value && frame.program ? `${programMark(frame.program)} ` : ""}${titleOf(frame)}`,
    `in ${projectOf(frame)}${isTeam.value ? ` on ${frame.host}` : ""}`,
    open && `${open.tool} ${inputSummary(open.input, frame.project)}`.trim(),
    todos.length > 0 && `${completedCount(todos)} of ${todos.length} to-do items completed`,
    usage.context !== undefined && `${tokens(usage.context)} tokens in the context${share === undefined ? "" : `, ${share} % of it`}`,
    usage.cost_usd !== undefined && `cost ${costText(usage).replace("~", "about ")}`,
    times && timesText(times),
    message,
  ].filter(Boolean).join(". ");
}

/** The signals integration compares props by identity: `frame` must be a new object after a change. */
export function SessionRow({ frame, session, phase, show_project }: { frame: SessionFrame; session: SessionState; phase: Phase; show_project: boolean }) {
  const id = session.key;
  useEffect(() => onScreen(id, frame), [id]);
  const target = { session: frame.session, host: frame.host };
  const message = (phase === "waiting" ? (frame.status.detail ?? "") : ((phase === "working" && frame.status.detail) || (frame.last_text ?? ""))).replaceAll(/\s+/g, " ");
  const { context, context_window, output } = frame.usage;
  const since = phase === "waiting" || phase === "working" ? (frame.status.since ?? frame.turn.started) : (frame.last_activity ?? frame.status.since);
  return (
    <div class="row" data-state={frame.status.state} data-phase={phase} data-unseen={frame.unseen ? "" : undefined} onClick={follow(target)}>
      <span class="status" data-state={frame.status.state} data-phase={phase} aria-hidden="true" title={frame.unseen ? unseen_title : undefined}>{phaseText(frame, phase)}</span>
      <a class="title" data-item={id} href={address(target)} aria-label={accessibleName(frame, phase, message)}><ProgramMark program={frame.program} />{titleOf(frame)}</a>
      <Tool frame={frame} phase={phase} hidden />
      <TodoProgress frame={frame} hidden />
      <ContextSparkline sizes={session.context.list()} window={context_window} />
      <RowContext usage={frame.usage} />
      <span class="size" aria-hidden="true">{context !== undefined && context_window ? `${tokens(context)} of ${tokens(context_window)}` : ""}</span>
      <RowCost usage={frame.usage} />
      <span class="written" title={`${output.toLocaleString()} output tokens`}>{output > 0 ? <>{tokens(output)} <i>out</i></> : ""}</span>
      <RowTimes frame={frame} />
      <span class="model" title={[programName(frame.program), frame.version, frame.model].filter(Boolean).join(" ")}>{shortModel(frame.model)}</span>
      <span class="turn">{frame.turn.number > 0 ? `turn ${frame.turn.number}` : ""}</span>
      <span class="age"><Elapsed since={since} short offset_ms={frame.clock_offset_ms} /></span>
      <span class="message" aria-hidden="true">{show_project ? <span class="project" title={projectOf(frame)}>{nameOf(projectOf(frame))}{isTeam.value ? ` on ${frame.host}` : ""}</span> : null}{message}</span>
    </div>
  );
}
