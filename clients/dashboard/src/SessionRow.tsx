import { useEffect } from "preact/hooks";
import { whole, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { shortModel, tokens } from "./format.js";
import { onScreen } from "./history.js";
import { follow, address } from "./route.js";
import { nameOf, phaseWords, projectOf, team, titleOf, type Phase } from "./rows.js";
import { Spark } from "./Spark.js";
import { Ticking } from "./Ticking.js";
import { doneOf, Todos } from "./Todos.js";
import { gist, inHand, Tool } from "./Tool.js";

/** The one word for what it does; of who waits, what for. */
const word = (frame: SessionFrame, phase: Phase) => (phase === "waiting" ? (frame.status.reason ?? "waiting") : phaseWords[phase]);

/** What a screen reader says of the row: a sentence, where the eye has columns. What it has is hidden where it stands a second time. */
function label(frame: SessionFrame, phase: Phase, said: string): string {
  const hand = inHand(frame)?.tool;
  const { usage, todos } = frame;
  return [
    phase === "waiting" ? `needs you, ${word(frame, phase)}` : phaseWords[phase],
    titleOf(frame),
    `in ${projectOf(frame)}${team.value ? ` on ${frame.host}` : ""}`,
    hand && `${hand.tool} ${gist(hand.input, frame.project)}`.trim(),
    todos.length > 0 && `${doneOf(todos)} of ${todos.length} things to do are done`,
    usage.context !== undefined && `${tokens(usage.context)} tokens in the context`,
    said,
  ].filter(Boolean).join(". ");
}

/** Props are compared by the signals' integration: what changes must be another object. */
export function SessionRow({ frame, session, phase, where }: { frame: SessionFrame; session: SessionState; phase: Phase; where: boolean }) {
  const id = session.key;
  useEffect(() => onScreen(id, frame), [id]);
  const target = { session: frame.session, host: frame.host };
  const said = (phase === "waiting" ? (frame.status.detail ?? "") : whole(frame.last_text)).replaceAll(/\s+/g, " ");
  const { context, output } = frame.usage;
  const since = phase === "waiting" || phase === "working" ? (frame.status.since ?? frame.turn.started) : (frame.last_activity ?? frame.status.since);
  return (
    <div class="row" data-state={frame.status.state} data-phase={phase} onClick={follow(target)}>
      <span class="status" data-state={frame.status.state} data-phase={phase} aria-hidden="true">{word(frame, phase)}</span>
      <a class="title" data-item={id} href={address(target)} aria-label={label(frame, phase, said)}>{titleOf(frame)}</a>
      <Tool frame={frame} phase={phase} hidden />
      <Todos frame={frame} hidden />
      <Spark sizes={session.context.list()} />
      <span class="context" aria-hidden="true" title={context === undefined ? "" : `${context.toLocaleString()} tokens in the context`}>{context === undefined ? "" : <>{tokens(context)} <i>ctx</i></>}</span>
      <span class="written" title={`${output.toLocaleString()} tokens written in all`}>{output > 0 ? <>{tokens(output)} <i>out</i></> : ""}</span>
      <span class="model" title={frame.model}>{shortModel(frame.model)}</span>
      <span class="turn">{frame.turn.number > 0 ? `turn ${frame.turn.number}` : ""}</span>
      <span class="age"><Ticking since={since} short /></span>
      <span class="said" aria-hidden="true">{where ? <span class="where" title={projectOf(frame)}>{nameOf(projectOf(frame))}{team.value ? ` on ${frame.host}` : ""}</span> : null}{said}</span>
    </div>
  );
}
