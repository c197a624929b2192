import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { hourMinute, tokens } from "./format.js";
import type { SessionModel } from "./model.js";

const height_px = 130;
const dark = matchMedia("(prefers-color-scheme: dark)");

function chart(place: HTMLElement, data: uPlot.AlignedData): uPlot {
  const style = getComputedStyle(place);
  const muted = style.getPropertyValue("--muted").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis: uPlot.Axis = { stroke: muted, font: "10px system-ui", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return new uPlot({
    width: place.clientWidth || 280, height: height_px, legend: { show: false }, cursor: { drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: true }, y: { range: (_, _min, max) => [0, Math.max(max, 1) * 1.1] } },
    series: [{}, { label: "context", stroke: style.getPropertyValue("--text").trim(), width: 1.25, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }],
    axes: [{ ...axis, size: 24, grid: { show: false }, values: (_, all) => all.map((seconds) => hourMinute(seconds * 1000)) }, { ...axis, size: 42, values: (_, all) => all.map(tokens) }],
  }, data, place);
}

/** How full the context was, message by message. */
export function UsageChart({ model, version }: { model: SessionModel; version: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const points = model.usage;
  const enough = points.length > 1;
  const data = (): uPlot.AlignedData => [points.map(({ at }) => at / 1000), points.map(({ context }) => context)];

  useEffect(() => {
    if (!enough || !place.current) return;
    const element = place.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = chart(element, data());
    };
    make();
    const watcher = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: height_px }));
    watcher.observe(element);
    dark.addEventListener("change", make);
    return () => {
      watcher.disconnect();
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [enough, model]);
  useEffect(() => plot.current?.setData(data()), [version]);

  if (!enough) return null;
  const most = Math.max(...points.map(({ context }) => context));
  return (
    <section>
      <h3>Context <span class="count">{tokens(points.at(-1)!.context)} tokens now, {tokens(most)} at most</span></h3>
      <div ref={place} class="chart" role="img" aria-label={`Tokens in the context over time: ${tokens(points.at(-1)!.context)} now, ${tokens(most)} at most`} />
    </section>
  );
}
