// The timeline as a canvas, since a session may have thousands of calls. All of it stands in the conversation too, as text.
import { useEffect, useRef, useState } from "preact/hooks";
import { count, now } from "./format.js";
import type { SessionModel } from "./model.js";
import { layout, type Box, type Colours } from "./drawing.js";

const ranges = [["all", 0], ["last hour", 3_600_000], ["last 10 min", 600_000]] as const;

function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const one = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: one("text"), muted: one("muted"), line: one("line"), raised: one("raised"), accent: one("accent"), onAccent: one("on-accent"), bar: one("bar"), bad: one("bad"),
    ground: one("ground"),
  };
}

export function Timeline({ model, base, version, open }: { model: SessionModel; base: string; version: number; open: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useRef<Box[]>([]);
  const [width, setWidth] = useState(0);
  const [range, setRange] = useState(0);
  const [says, setSays] = useState("");
  const until = Math.max(model.end, open ? now.value : 0);
  const drawing = width > 0 && model.start > 0 ? layout(model, base, width, until, range) : undefined;

  useEffect(() => {
    const element = canvas.current!.parentElement!;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!drawing || !context || !canvas.current) return;
    const ratio = devicePixelRatio || 1;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = Math.round(drawing.height * ratio);
    context.scale(ratio, ratio);
    boxes.current = drawing.draw(context, colours(canvas.current));
  }, [version, width, range, until]);

  const point = (event: MouseEvent) => {
    const hit = boxes.current.findLast(({ x, y, width: w, height: h }) => event.offsetX >= x && event.offsetX <= x + w && event.offsetY >= y && event.offsetY <= y + h);
    setSays(hit?.says() ?? "");
  };
  const turns = model.turns.filter((turn) => turn.agent === undefined).length;
  const summary = [count(turns, "turn"), count(model.tools.length, "tool call"), count(model.agents.size, "subagent"), count(model.compactions.length, "compaction")].join(", ");
  return (
    <section class="timeline">
      <h3>
        Timeline <span class="says">{says || summary}</span>
        <span class="ranges" role="group" aria-label="How much of it">
          {ranges.map(([name, size]) => <button type="button" class="toggle" aria-pressed={range === size} onClick={() => setRange(size)}>{name}</button>)}
        </span>
      </h3>
      <div class="canvas">
        <canvas ref={canvas} role="img" aria-label={`Timeline: ${summary}`} style={{ width: `${width}px`, height: `${drawing?.height ?? 60}px` }} onMouseMove={point} onClick={point} onMouseLeave={() => setSays("")} />
      </div>
    </section>
  );
}
