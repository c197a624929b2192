import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { sessionTimes, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { onScreen } from "./contextHistory.js";
import { contextShare, now, programMark, programName, shortModel, tokens } from "./format.js";
import { RowContext, RowCost, RowTimes, costText, timesText } from "./Numbers.js";
import { follow, address } from "./route.js";
import { isTeam, nameOf, phaseLabels, projectOf, showsPrograms, sinceOf, titleOf, type Phase } from "./rows.js";
import { ContextSparkline, Elapsed, ProgramMark, TodoProgress, Tool, completedCount, currentTool } from "./SessionParts.js";
import { inputSummary } from "./toolInput.js";

const unseen_title = "Finished since you last looked";
const expanded_max = 200; // above it the first ones close

/** Sessions whose details are shown. */
export const expanded = signal<ReadonlySet<string>>(new Set());

export function toggleDetails(key: string) {
  const next = new Set(expanded.peek());
  if (!next.delete(key)) next.add(key);
  expanded.value = new Set([...next].slice(-expanded_max));
}

/** The phase; for a waiting session what it waits for, for a turn that was not completed how it ended. */
function phaseText({ status, turn }: SessionFrame, phase: Phase): string {
  if (phase === "waiting") return status.reason ?? "waiting";
  if (phase === "working" && status.reason === "compaction") return "compacting";
  if (phase === "working" && status.reason === "background") return "agents work";
  if (phase === "idle" && status.reason === "background") return "background";
  return phase === "idle" && (turn.outcome === "failed" || turn.outcome === "interrupted") ? turn.outcome : phaseLabels[phase];
}

/** The row as one sentence for screen readers; the columns themselves are hidden from them. */
function accessibleName(frame: SessionFrame, phase: Phase, message: string): string {
  const open = currentTool(frame);
  const { usage, todos } = frame;
  const share = contextShare(usage);
  const times = sessionTimes(frame, now.peek());
  return [
    (phase === "waiting" ? `needs you, ${phaseText(frame, phase)}` : phaseText(frame, phase)) + (frame.unseen ? ", unseen" : ""),
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

function Details({ frame, session }: { frame: SessionFrame; session: SessionState }) {
  const id = session.key;
  useEffect(() => onScreen(id, frame), [id]);
  const { context, context_window, output } = frame.usage;
  const { prompt } = frame.turn;
  const program = [programName(frame.program), frame.version].filter(Boolean).join(" ");
  const facts: Array<[string, string, string]> = [
    ["Model", shortModel(frame.model), frame.model ?? ""],
    ["Turn", frame.turn.number > 0 ? String(frame.turn.number) : "", ""],
    ["Branch", frame.git_branch ?? "", frame.git_branch ?? ""],
    ["Program", program, program],
    ["Context", context === undefined ? "" : `${tokens(context)}${context_window ? ` of ${tokens(context_window)}` : ""}`, ""],
    ["Written", output > 0 ? tokens(output) : "", `${output.toLocaleString()} output tokens`],
  ];
  return (
    <div class="details">
      <dl>{facts.map(([name, text, title]) => (text ? <div><dt>{name}</dt><dd title={title || undefined}>{text}</dd></div> : null))}</dl>
      <ContextSparkline sizes={session.context.list()} window={context_window} />
      <RowTimes frame={frame} />
      {prompt ? <p dir="auto"><b dir="ltr">Prompt</b> {prompt.replaceAll(/\s+/g, " ")}</p> : null}
    </div>
  );
}

/** The signals integration compares props by identity: `frame` must be a new object after a change. */
export function SessionRow({ frame, session, phase, show_project, show_host }: { frame: SessionFrame; session: SessionState; phase: Phase; show_project: boolean; show_host: boolean }) {
  const id = session.key;
  const target = { session: frame.session, host: frame.host };
  const message = (phase === "waiting" ? (frame.status.detail ?? "") : ((phase === "working" && frame.status.detail) || (frame.last_text ?? ""))).replaceAll(/\s+/g, " ");
  const open = expanded.value.has(id);
  const has_tool = phase === "working" || currentTool(frame) !== undefined;
  return (
    <div class="row" data-state={frame.status.state} data-phase={phase} data-unseen={frame.unseen ? "" : undefined} data-tool={has_tool ? "" : undefined} data-open={open ? "" : undefined} onClick={follow(target)}>
      <span class="status" data-state={frame.status.state} data-phase={phase} aria-hidden="true" title={frame.unseen ? unseen_title : undefined}>{phaseText(frame, phase)}</span>
      <a class="title" dir="auto" data-item={id} href={address(target)} aria-label={accessibleName(frame, phase, message)}><ProgramMark program={frame.program} />{titleOf(frame)}</a>
      <span class="message" dir="auto" aria-hidden="true">
        {show_host && isTeam.value ? <bdi class="host">{frame.host}{phase === "offline" && frame.status.since ? <>, offline <Elapsed since={frame.status.since} short /></> : null}</bdi> : null}
        {show_project ? <bdi class="project" title={projectOf(frame)}>{nameOf(projectOf(frame))}</bdi> : null}{message ? <span class="said">{message}</span> : null}
      </span>
      {has_tool ? <Tool frame={frame} phase={phase} hidden /> : null}
      <TodoProgress frame={frame} hidden />
      <RowContext usage={frame.usage} />
      <RowCost usage={frame.usage} />
      <span class="age"><Elapsed since={sinceOf(frame)} short offset_ms={phase === "offline" ? 0 : frame.clock_offset_ms} /></span>
      <button type="button" class="more" aria-label="Details" aria-expanded={open} tabIndex={-1} onClick={(event) => {
        event.stopPropagation();
        toggleDetails(id);
      }} />
      {open ? <Details frame={frame} session={session} /> : null}
    </div>
  );
}
