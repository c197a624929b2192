// Charts of a session: the context against its window, the cost by turn, and how the time was spent. Plain SVG: a few hundred points.
import { useRef, useState } from "preact/hooks";
import { sessionTimes, type SessionFrame } from "../../sdk/src/index.js";
import { clock, cost, hourMinute, now, plural, running, tokens } from "./format.js";
import type { Entry, SessionModel, Turn } from "./model.js";
import { contextSteps, costByTurn } from "./chartData.js";

const size = { width: 320, height: 120, left: 40, bottom: 18, top: 8 };

function niceSteps(maximum: number): number[] {
  const rough = maximum / 3;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!;
  return Array.from({ length: Math.floor(maximum / step) + 1 }, (_, n) => n * step);
}

/** Tokens in the context over time. `window`: the size that it can have, if it is known. */
export function ContextChart({ model, frame }: { model: SessionModel; frame: SessionFrame; changes: number }) {
  const [hover, setHover] = useState("");
  const svg = useRef<SVGSVGElement>(null);
  const points = model.usage;
  if (points.length < 2) return null;
  const maximum = points.reduce((most, { context }) => Math.max(most, context), 0);
  const window = frame.usage.context_window;
  const full = Math.max(window ?? 0, maximum, 1) * 1.05;
  const [from, to] = [points[0]!.at, points.at(-1)!.at];
  const [inner_width, inner_height] = [size.width - size.left - 4, size.height - size.bottom - size.top];
  const x = (at: number) => size.left + ((at - from) / Math.max(1, to - from)) * inner_width;
  const y = (count: number) => size.top + inner_height - (count / full) * inner_height;
  const steps = contextSteps(points, inner_width);
  const line = steps.map(({ at, context }, n) => (n === 0 ? `M${x(at).toFixed(1)},${y(context).toFixed(1)}` : `H${x(at).toFixed(1)}V${y(context).toFixed(1)}`)).join("");
  const current = points.at(-1)!.context;
  const text = `${tokens(current)} tokens now, ${tokens(maximum)} at most${window ? `, of ${tokens(window)}` : ""}`;
  const onMove = (event: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    const at = from + (((event.clientX - box.left) / box.width) * size.width - size.left) / inner_width * (to - from);
    const point = steps.findLast((step) => step.at <= at) ?? steps[0]!;
    setHover(`${tokens(point.context)} at ${clock(point.at)}`);
  };
  return (
    <section class="chart">
      <h3>Context <span class="count">{hover || text}</span></h3>
      <svg ref={svg} viewBox={`0 0 ${size.width} ${size.height}`} role="img" aria-label={`Tokens in the context over time: ${text}; ${plural(model.compactions.length, "compaction")}`} onPointerMove={onMove} onPointerLeave={() => setHover("")}>
        {niceSteps(full).map((value) => <g><path class="grid" d={`M${size.left},${y(value)}H${size.width - 4}`} /><text class="axis" x={size.left - 6} y={y(value) + 3.5} text-anchor="end">{tokens(value)}</text></g>)}
        {window ? <path class="window" d={`M${size.left},${y(window)}H${size.width - 4}`} /> : null}
        <path class="area" d={`${line}V${y(0)}H${x(from)}Z`} />
        <path class="line" d={line} />
        {model.compactions.filter(({ at }) => at >= from && at <= to).map(({ at, text: what }) => <g class="compaction"><path d={`M${x(at)},${size.top}V${y(0)}`} /><title>{what}</title></g>)}
        <text class="axis" x={size.left} y={size.height - 4}>{hourMinute(from)}</text>
        <text class="axis" x={size.width - 4} y={size.height - 4} text-anchor="end">{hourMinute(to)}</text>
      </svg>
    </section>
  );
}

const bars_max = 60; // turns, the newest

/** `show`: scrolls the conversation to a turn. */
export function CostChart({ model, frame, show }: { model: SessionModel; frame: SessionFrame; changes: number; show: (entry: Entry) => void }) {
  const [hover, setHover] = useState<Turn | undefined>(undefined);
  const { costs, source } = costByTurn(model.turns, frame.usage.cost_usd, frame.usage.cost_source);
  const shown = costs.slice(-bars_max);
  if (shown.length === 0) return null;
  const maximum = Math.max(...shown.map((one) => one.usd), 0.0001);
  const sum = costs.reduce((all, { usd }) => all + usd, 0);
  const step = (size.width - size.left - 4) / shown.length;
  const bar = Math.max(1, Math.min(36, step - Math.min(4, step * 0.3)));
  const inner_height = 64;
  const height = size.top + inner_height + size.bottom;
  const y = (usd: number) => size.top + inner_height - (usd / maximum) * inner_height;
  const is_estimate = source !== "recorded";
  const hovered = hover && costs.find(({ turn }) => turn === hover);
  const note = source === "recorded" ? "recorded" : "shares of the estimated total, by tokens";
  return (
    <section class="chart">
      <h3>Cost by turn <span class="count">{hovered ? `turn ${hovered.turn.number}: ${cost(hovered.usd, is_estimate)}, ${tokens(hovered.turn.output)} out` : `${cost(sum, is_estimate)} in ${plural(costs.length, "turn")}`}</span></h3>
      <svg viewBox={`0 0 ${size.width} ${height}`} role="img" aria-label={`Cost by turn, ${note}: ${shown.slice(-12).map(({ turn, usd }) => `turn ${turn.number} ${cost(usd)}`).join(", ")}`} onPointerLeave={() => setHover(undefined)}>
        {[0, maximum].map((value) => <g><path class="grid" d={`M${size.left},${y(value)}H${size.width - 4}`} /><text class="axis" x={size.left - 6} y={y(value) + 3.5} text-anchor="end">{cost(value)}</text></g>)}
        {shown.map(({ turn, usd }, n) => (
          <g class="turn-cost" data-open={turn.end === undefined ? "" : undefined} onPointerEnter={() => setHover(turn)} onClick={() => {
            const entry = model.entries.find((one) => one.kind === "turn" && one.turn === turn);
            if (entry) show(entry);
          }}>
            <rect class="hit" x={size.left + n * step} y={size.top} width={step} height={inner_height} />
            <rect class="cost-bar" x={size.left + (n + 0.5) * step - bar / 2} y={y(usd)} width={bar} height={Math.max(1, size.top + inner_height - y(usd))} rx={1.5} />
          </g>
        ))}
        <text class="axis" x={size.left} y={height - 4}>turn {shown[0]!.turn.number}</text>
        {shown.length > 1 ? <text class="axis" x={size.width - 4} y={height - 4} text-anchor="end">{shown.at(-1)!.turn.number}</text> : null}
      </svg>
      {source === "recorded" ? null : <p class="note">Shares of the estimated total, by tokens.</p>}
    </section>
  );
}

const time_kinds = [["worked_ms", "working"], ["waited_ms", "waiting for you"], ["idle_ms", "idle"]] as const;

/** How the session's time was spent. A component of its own, because it is rendered every second. */
export function TimeChart({ frame }: { frame: SessionFrame }) {
  const times = sessionTimes(frame, now.value);
  if (!times) return null;
  const sum = times.worked_ms + times.waited_ms + times.idle_ms;
  if (sum < 1000) return null;
  const label = time_kinds.map(([kind, name]) => `${name} ${running(times[kind])}`).join(", ");
  let x = 0;
  return (
    <section class="chart times-chart">
      <h3>Time <span class="count">{running(sum)}</span></h3>
      <svg viewBox="0 0 320 12" preserveAspectRatio="none" role="img" aria-label={label}>
        {time_kinds.map(([kind]) => {
          const width = (times[kind] / sum) * 320;
          const rect = <rect class={kind} x={x} y={0} width={times[kind] > 0 ? Math.max(1.5, width) : 0} height={12} />;
          x += width;
          return rect;
        })}
      </svg>
      <dl class="shares">{time_kinds.map(([kind, name]) => <div data-kind={kind}><dt>{name}</dt><dd>{running(times[kind])} <span class="count">{Math.round((times[kind] / sum) * 100)}%</span></dd></div>)}</dl>
    </section>
  );
}
