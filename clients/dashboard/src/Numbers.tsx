// How full the context is, what a session has cost, and how long it waited for the user: for the rows of the overview and for the session page.
import type { ComponentChildren } from "preact";
import { sessionTimes, type AccountLimit, type SessionFrame } from "../../sdk/src/index.js";
import { contextShare, cost, isHigh, now, running, span, tokens } from "./format.js";
import { LimitList } from "./SessionParts.js";

type Usage = SessionFrame["usage"];
type Times = NonNullable<SessionFrame["times"]>;

/** How much of the context is used: a bar and a percentage, where its size is known. */
export function ContextBar({ context, context_window }: { context: number; context_window: number }) {
  return <><progress data-high={isHigh(context, context_window)} value={Math.min(context, context_window)} max={context_window} aria-label="context in use" /> {contextShare({ context, context_window })}%</>;
}

export function RowContext({ usage }: { usage: Usage }) {
  const { context, context_window } = usage;
  if (context === undefined) return <span class="context" />;
  const size = context_window ? ` of ${context_window.toLocaleString()}` : "";
  return (
    <span class="context" aria-hidden="true" data-high={isHigh(context, context_window)} title={`${context.toLocaleString()}${size} tokens in the context`}>
      {context_window ? <ContextBar context={context} context_window={context_window} /> : <>{tokens(context)} <i>ctx</i></>}
    </span>
  );
}

const cost_sources = { recorded: "as the agent program recorded it", estimated: "estimated from a table of prices", mixed: "partly recorded, partly estimated from a table of prices" };
const cost_words = { recorded: "recorded", estimated: "estimated", mixed: "partly estimated" };
/** A daemon that does not estimate sends recorded cost only, without a source. */
const costSource = ({ cost_source }: Usage) => cost_source ?? "recorded";

const costTitle = (usage: Usage) => `$${usage.cost_usd!.toFixed(4)}, ${cost_sources[costSource(usage)]}; subagents included`;

/** `~$1.20` where a part is estimated. */
export function costText(usage: Usage): string {
  return usage.cost_usd === undefined ? "" : cost(usage.cost_usd, costSource(usage) !== "recorded");
}

export function RowCost({ usage }: { usage: Usage }) {
  return <span class="cost" aria-hidden="true" title={usage.cost_usd === undefined ? undefined : costTitle(usage)}>{costText(usage)}</span>;
}

/** In words, for tooltips and screen readers. */
export const timesText = ({ waited_ms, worked_ms, idle_ms }: Times) => `waited for you ${span(waited_ms)}, worked ${span(worked_ms)}, idle ${span(idle_ms)}`;

const bar_width = 60;

/** The parts of the session's time: waited for the user, worked, idle. Their text is updated every second. */
export function RowTimes({ frame }: { frame: SessionFrame }) {
  const times = sessionTimes(frame, now.value);
  if (!times) return <span class="times" />;
  const { waited_ms, worked_ms, idle_ms } = times;
  const sum_ms = waited_ms + worked_ms + idle_ms || 1;
  const waited = (waited_ms / sum_ms) * bar_width;
  const worked = (worked_ms / sum_ms) * bar_width;
  const shown = waited_ms >= 1000 ? { ms: waited_ms, word: "waited" } : { ms: worked_ms, word: "worked" };
  return (
    <span class="times" aria-hidden="true" title={timesText(times)}>
      <svg width={bar_width} height={4} viewBox={`0 0 ${bar_width} 4`}>
        <rect class="idle" width={bar_width} height={4} />
        <rect class="worked" width={waited + worked} height={4} />
        <rect class="waited" width={waited} height={4} />
      </svg>
      <span class="longest">{span(shown.ms)} <i>{shown.word}</i></span>
    </span>
  );
}

function Gauge({ name, children, note, title, high, kind, present }: { name: string; children: ComponentChildren; note?: string | undefined; title?: string; high?: "" | undefined; kind: string; present?: boolean }) {
  return <div data-kind={kind} data-high={high} data-present={present ? "" : undefined} title={title}><dt>{name}</dt><dd>{children}{note ? <span class="note">{note}</span> : null}</dd></div>;
}

/** The three times of a session, updated every second. `turn`: of the open turn, else the last one. */
function TimeGauges({ frame }: { frame: SessionFrame }) {
  const times = sessionTimes(frame, now.value);
  if (!times) return null;
  const { turn } = times;
  const ofTurn = (time_ms: number | undefined) => (frame.turn.number > 1 && time_ms ? `${frame.turn.open ? "this" : "last"} turn ${running(time_ms)}` : undefined);
  return (
    <>
      <Gauge kind="waited" name="Waited for you" present={frame.status.state === "waiting"} note={ofTurn(turn?.waited_ms)}>{running(times.waited_ms)}</Gauge>
      <Gauge kind="worked" name="Worked" note={ofTurn(turn?.worked_ms)}>{running(times.worked_ms)}</Gauge>
      <Gauge kind="idle" name="Idle">{running(times.idle_ms)}</Gauge>
    </>
  );
}

/** The numbers of the session page's header. Each is absent where it is not known. */
export function Gauges({ frame, limits }: { frame: SessionFrame; limits: AccountLimit[] }) {
  const { usage } = frame;
  const { context, context_window } = usage;
  return (
    <dl class="gauges">
      {context === undefined ? null : (
        <Gauge kind="context" name="Context" high={isHigh(context, context_window)} note={context_window ? `${tokens(context)} of ${tokens(context_window)} tokens` : "tokens"} title={`${context.toLocaleString()} tokens`}>
          {context_window ? <ContextBar context={context} context_window={context_window} /> : tokens(context)}
        </Gauge>
      )}
      {usage.cost_usd === undefined ? null : <Gauge kind="cost" name="Cost" note={cost_words[costSource(usage)]} title={costTitle(usage)}>{costText(usage)}</Gauge>}
      <TimeGauges frame={frame} />
      {limits.length > 0 ? <Gauge kind="limits" name="Limits"><LimitList limits={limits} /></Gauge> : null}
    </dl>
  );
}
