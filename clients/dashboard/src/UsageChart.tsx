import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { hourMinute, tokens } from "./format.js";
import type { SessionModel } from "./model.js";

const height_px = 130;
const dark = matchMedia("(prefers-color-scheme: dark)");

function createChart(container: HTMLElement, data: uPlot.AlignedData): uPlot {
  const style = getComputedStyle(container);
  const muted = style.getPropertyValue("--muted").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis: uPlot.Axis = { stroke: muted, font: "10px system-ui", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return new uPlot({
    width: container.clientWidth || 280, height: height_px, legend: { show: false }, cursor: { drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: true }, y: { range: (_, _min, max) => [0, Math.max(max, 1) * 1.1] } },
    series: [{}, { label: "context", stroke: style.getPropertyValue("--text").trim(), width: 1.25, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }],
    axes: [{ ...axis, size: 24, grid: { show: false }, values: (_, all) => all.map((seconds) => hourMinute(seconds * 1000)) }, { ...axis, size: 42, values: (_, all) => all.map(tokens) }],
  }, data, container);
}

/** Tokens in the context after each message. */
export function UsageChart({ model, version }: { model: SessionModel; version: number }) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const points = model.usage;
  const has_points = points.length > 1;
  const data = (): uPlot.AlignedData => [points.map(({ at }) => at / 1000), points.map(({ context }) => context)];

  useEffect(() => {
    if (!has_points || !container.current) return;
    const element = container.current;
    const create = () => {
      chart.current?.destroy();
      chart.current = createChart(element, data());
    };
    create();
    const observer = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: height_px }));
    observer.observe(element);
    dark.addEventListener("change", create);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", create);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [has_points, model]);
  useEffect(() => chart.current?.setData(data()), [version]);

  if (!has_points) return null;
  const maximum = Math.max(...points.map(({ context }) => context));
  const current = points.at(-1)!.context;
  return (
    <section>
      <h3>Context <span class="count">{tokens(current)} tokens now, {tokens(maximum)} at most</span></h3>
      <div ref={container} class="chart" role="img" aria-label={`Tokens in the context over time: ${tokens(current)} now, ${tokens(maximum)} at most`} />
    </section>
  );
}
