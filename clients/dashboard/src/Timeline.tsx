// Turns as bands, tools as bars on lanes, each subagent in lanes of its own below, compactions as marks. A canvas: a session may have
// thousands of calls. All of it stands in the conversation too, as text.
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, now, span } from "./format.js";
import type { SessionModel, ToolCall, Turn } from "./model.js";
import { lanes, scale } from "./scale.js";
import { gist } from "./Tool.js";

const lane_px = 11;
const gap_px = 3;
const head_px = 22;
const agent_px = 15;
const lanes_max = 6; // of the main chain; of each agent half of it
const agents_max = 12; // the newest
const turns_max = 200; // the newest; what came before is not drawn
const ranges = [["all", 0], ["last hour", 3_600_000], ["last 10 min", 600_000]] as const;

interface Box { x: number; y: number; width: number; height: number; says: string }

interface Colours { text: string; muted: string; faint: string; band: string; accent: string; bar: string }

function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const one = (name: string) => style.getPropertyValue(name).trim();
  return { text: one("--text"), muted: one("--muted"), faint: one("--line"), band: one("--raised"), accent: one("--accent"), bar: one("--bar") };
}

interface Drawing { height: number; draw: (context: CanvasRenderingContext2D, paint: Colours) => Box[] }

function layout(model: SessionModel, width: number, until: number, range_ms: number): Drawing {
  const from = range_ms ? until - range_ms : 0;
  const inside = (one: { start: number; end?: number }) => one.start > 0 && (one.end ?? until) >= from;
  const turns = model.turns.filter((turn) => inside(turn) && turn.agent === undefined).slice(-turns_max);
  const first = Math.max(from, turns[0]?.start ?? model.start);
  const visible = (one: { start: number; end?: number }) => inside(one) && (one.end ?? until) >= first;
  const tools = model.tools.filter(visible);
  const spans: Array<[number, number]> = [...turns, ...tools].map((one) => [Math.max(one.start, first), Math.min(one.end ?? until, until)]);
  const total = spans.reduce((sum, [a, b]) => sum + Math.min(b - a, 600_000), 0);
  const axis = scale(spans, width - 2, Math.max(60_000, total * 0.1));
  const main = lanes(tools.filter((tool) => tool.agent === undefined), until, lanes_max);
  const mainLanes = Math.max(1, ...main.map(({ lane }) => lane + 1));
  const groups = new Map<string, ToolCall[]>();
  for (const tool of tools) {
    if (tool.agent === undefined) continue;
    const group = groups.get(tool.agent);
    if (group) group.push(tool);
    else groups.set(tool.agent, [tool]);
  }
  const nested = [...groups].slice(-agents_max).map(([agent, own]) => ({ agent, bars: lanes(own, until, lanes_max / 2) }));
  const laneHeight = lane_px + gap_px;
  const mainHeight = head_px + mainLanes * laneHeight + gap_px;
  const height = mainHeight + nested.reduce((sum, { bars }) => sum + agent_px + Math.max(1, ...bars.map(({ lane }) => lane + 1)) * laneHeight, 0) + 4;

  const draw = (context: CanvasRenderingContext2D, paint: Colours) => {
    const boxes: Box[] = [];
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const bar = (tool: ToolCall, y: number) => {
      const x = axis.x(Math.max(tool.start, first));
      const size = Math.max(2, axis.x(Math.min(tool.end ?? until, until)) - x);
      const bad = tool.outcome !== undefined && tool.outcome !== "ok";
      context.fillStyle = tool.end === undefined ? paint.accent : bad ? paint.text : paint.bar;
      context.fillRect(x, y, size, lane_px);
      const label = size > 40 ? `${tool.tool} ${gist(tool.input)}` : "";
      if (label) {
        context.save();
        context.beginPath();
        context.rect(x, y, size - 3, lane_px);
        context.clip();
        context.fillStyle = bad || tool.end === undefined ? paint.band : paint.text;
        context.font = "9px system-ui, sans-serif";
        context.fillText(label, x + 3, y + lane_px / 2 + 0.5);
        context.restore();
      }
      boxes.push({ x, y, width: size, height: lane_px, says: `${tool.tool} ${gist(tool.input)} · ${tool.outcome ?? "running"} · ${span((tool.end ?? until) - tool.start)} · ${clock(tool.start)}` });
    };
    const band = (turn: Turn) => {
      const x = axis.x(Math.max(turn.start, first));
      const size = Math.max(2, axis.x(turn.end ?? until) - x);
      context.fillStyle = paint.band;
      context.fillRect(x, 0, size, height);
      context.fillStyle = paint.faint;
      context.fillRect(x, 0, 1, height);
      if (size > 22) {
        context.save();
        context.beginPath();
        context.rect(x, 0, size - 4, head_px);
        context.clip();
        context.fillStyle = paint.muted;
        context.fillText(`${turn.number}  ${turn.prompt.replaceAll(/\s+/g, " ").slice(0, 200)}`, x + 6, head_px / 2);
        context.restore();
      }
      boxes.push({ x, y: 0, width: size, height: head_px, says: `Turn ${turn.number} · ${turn.outcome ?? "open"} · ${span((turn.end ?? until) - turn.start)} · ${clock(turn.start)}: ${turn.prompt.slice(0, 200)}` });
    };
    turns.forEach(band);
    for (const { bar: tool, lane } of main) bar(tool, head_px + lane * laneHeight);
    let y = mainHeight;
    for (const { agent, bars } of nested) {
      context.fillStyle = paint.muted;
      context.fillText(`↳ ${model.agents.get(agent)?.name ?? agent}`, Math.max(0, Math.min(axis.x(bars[0]!.bar.start), width - 160)), y + agent_px / 2);
      for (const { bar: tool, lane } of bars) bar(tool, y + agent_px + lane * laneHeight);
      y += agent_px + Math.max(1, ...bars.map(({ lane }) => lane + 1)) * laneHeight;
    }
    for (const { at, text } of model.compactions) {
      if (at < first) continue;
      const x = axis.x(at);
      context.fillStyle = paint.text;
      for (let dash = 0; dash < height; dash += 6) context.fillRect(x, dash, 1, 3);
      boxes.push({ x: x - 4, y: 0, width: 8, height, says: `${text} · ${clock(at)}` });
    }
    for (const { x, from: a, to: b } of axis.breaks) {
      context.fillStyle = paint.muted;
      context.fillText("⋯", x - 5, head_px / 2);
      boxes.push({ x: x - 9, y: 0, width: 18, height, says: `nothing for ${span(b - a)}` });
    }
    return boxes;
  };
  return { height, draw };
}

export function Timeline({ model, version, open }: { model: SessionModel; version: number; open: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useRef<Box[]>([]);
  const [width, setWidth] = useState(0);
  const [range, setRange] = useState(0);
  const [says, setSays] = useState("");
  const until = Math.max(model.end, open ? now.value : 0);
  const drawing = width > 0 && model.start > 0 ? layout(model, width, until, range) : undefined;

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

  const hover = (event: MouseEvent) => {
    const hit = boxes.current.findLast(({ x, y, width: w, height: h }) => event.offsetX >= x && event.offsetX <= x + w && event.offsetY >= y && event.offsetY <= y + h);
    setSays(hit?.says ?? "");
  };
  const summary = `${model.turns.filter((turn) => turn.agent === undefined).length} turns, ${model.tools.length} tool calls, ${model.agents.size} subagents, ${model.compactions.length} compactions`;
  return (
    <section class="timeline">
      <h3>
        Timeline <span class="says">{says || summary}</span>
        <span class="ranges" role="group" aria-label="How much of it">
          {ranges.map(([name, size]) => <button type="button" class="toggle" aria-pressed={range === size} onClick={() => setRange(size)}>{name}</button>)}
        </span>
      </h3>
      <div class="canvas">
        <canvas ref={canvas} role="img" aria-label={`Timeline: ${summary}`} style={{ width: `${width}px`, height: `${drawing?.height ?? 60}px` }} onMouseMove={hover} onMouseLeave={() => setSays("")} />
      </div>
    </section>
  );
}
