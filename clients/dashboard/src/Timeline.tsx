// The timeline is drawn on a canvas, since a session may have thousands of calls. The conversation contains the same as text.
import { useEffect, useRef, useState } from "preact/hooks";
import { now, plural } from "./format.js";
import type { SessionModel } from "./model.js";
import { layoutTimeline, type Box, type Colors } from "./timelineLayout.js";

const ranges = [["all", 0], ["last hour", 3_600_000], ["last 10 min", 600_000]] as const;

function themeColors(element: Element): Colors {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: color("text"), muted: color("muted"), line: color("line"), raised: color("raised"), accent: color("accent"), onAccent: color("on-accent"), bar: color("bar"), bad: color("bad"),
    ground: color("ground"),
  };
}

export function Timeline({ model, base, version, open }: { model: SessionModel; base: string; version: number; open: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useRef<Box[]>([]);
  const [width, setWidth] = useState(0);
  const [range, setRange] = useState(0);
  const [tooltip, setTooltip] = useState("");
  const until = Math.max(model.end, open ? now.value : 0);
  const timeline = width > 0 && model.start > 0 ? layoutTimeline(model, base, width, until, range) : undefined;

  useEffect(() => {
    const element = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!timeline || !context || !canvas.current) return;
    const ratio = devicePixelRatio || 1;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = Math.round(timeline.height * ratio);
    context.scale(ratio, ratio);
    boxes.current = timeline.draw(context, themeColors(canvas.current));
  }, [version, width, range, until]);

  const showTooltip = (event: MouseEvent) => {
    const hit = boxes.current.findLast(({ x, y, width: w, height: h }) => event.offsetX >= x && event.offsetX <= x + w && event.offsetY >= y && event.offsetY <= y + h);
    setTooltip(hit?.tooltip() ?? "");
  };
  const turns = model.turns.filter((turn) => turn.agent === undefined).length;
  const summary = [plural(turns, "turn"), plural(model.tools.length, "tool call"), plural(model.agents.size, "subagent"), plural(model.compactions.length, "compaction")].join(", ");
  return (
    <section class="timeline">
      <h3>
        Timeline <span class="tooltip">{tooltip || summary}</span>
        <span class="ranges" role="group" aria-label="Range">
          {ranges.map(([name, size]) => <button type="button" class="toggle" aria-pressed={range === size} onClick={() => setRange(size)}>{name}</button>)}
        </span>
      </h3>
      <div class="canvas">
        <canvas ref={canvas} role="img" aria-label={`Timeline: ${summary}`} style={{ width: `${width}px`, height: `${timeline?.height ?? 60}px` }} onMouseMove={showTooltip} onClick={showTooltip} onMouseLeave={() => setTooltip("")} />
      </div>
    </section>
  );
}
