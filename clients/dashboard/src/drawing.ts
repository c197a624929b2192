// How a session's timeline is laid out and drawn: turns as bands, tools as bars on lanes, each subagent in lanes of its own below,
// compactions as marks, the time below. Where nothing happened for long the axis is broken.
import { clock, hourMinute, span } from "./format.js";
import type { SessionModel, ToolCall, Turn } from "./model.js";
import { lanes, scale, ticks } from "./scale.js";
import { gist } from "./Tool.js";

const head_px = 22; // the turns' names
const lane_px = 14;
const gap_px = 3;
const agent_px = 18; // a subagent's name
const foot_px = 20; // the time
const lanes_max = 6; // of the main chain; of each agent half of it
const agents_max = 12; // the newest
const turns_max = 200; // the newest; what came before is not drawn
const label_px_min = 36; // a bar that is narrower has no name on it

/** Something on the canvas that can be pointed at. */
export interface Box { x: number; y: number; width: number; height: number; says: () => string }

export interface Colours { text: string; muted: string; line: string; raised: string; accent: string; onAccent: string; bar: string; bad: string; ground: string }

export interface Drawing { height: number; draw: (context: CanvasRenderingContext2D, paint: Colours) => Box[] }

type Span = { start: number; end?: number };
type Bars = Array<{ bar: ToolCall; lane: number }>;
interface Nested { name: string; start: number; end: number; bars: Bars }

const rows = (bars: Bars) => Math.max(1, ...bars.map(({ lane }) => lane + 1));

function nestedOf(model: SessionModel, tools: ToolCall[], until: number, visible: (one: Span) => boolean): Nested[] {
  const groups = new Map<string, ToolCall[]>();
  for (const [key, agent] of model.agents) if (visible(agent)) groups.set(key, []);
  for (const tool of tools) {
    if (tool.agent === undefined) continue;
    const group = groups.get(tool.agent);
    if (group) group.push(tool);
    else groups.set(tool.agent, [tool]);
  }
  return [...groups].slice(-agents_max).map(([key, own]) => {
    const agent = model.agents.get(key);
    return {
      name: agent?.name ?? key, bars: lanes(own, until, lanes_max / 2),
      start: Math.min(agent?.start ?? Infinity, ...own.map((tool) => tool.start)), end: Math.max(agent?.end ?? 0, ...own.map((tool) => tool.end ?? until), 0) || until,
    };
  });
}

/** `range_ms`: so much of the end; 0: all of it. `base`: the project, whose paths are told without it. */
export function layout(model: SessionModel, base: string, width: number, until: number, range_ms: number): Drawing {
  const from = range_ms ? until - range_ms : 0;
  const inside = (one: Span) => one.start > 0 && (one.end ?? until) >= from;
  const turns = model.turns.filter((turn) => inside(turn) && turn.agent === undefined).slice(-turns_max);
  const first = Math.max(from, turns[0]?.start ?? model.start);
  const visible = (one: Span) => inside(one) && (one.end ?? until) >= first;
  const tools = model.tools.filter(visible);
  const within = (at: number) => Math.min(Math.max(at, first), until);
  const busy: Array<[number, number]> = tools.map((one) => [within(one.start), within(one.end ?? until)]);
  for (const { at } of model.entries) if (at >= first && at <= until) busy.push([at, at]);
  for (const { start, end } of turns) busy.push([within(start), within(start)], [within(end ?? until), within(end ?? until)]);
  const total = busy.reduce((sum, [a, b]) => sum + Math.min(b - a, 600_000), 0);
  const axis = scale(busy, width - 2, Math.max(90_000, total * 0.15));
  const main = lanes(tools.filter((tool) => tool.agent === undefined), until, lanes_max);
  const nested = nestedOf(model, tools, until, visible);
  const step = lane_px + gap_px;
  const mainHeight = head_px + rows(main) * step + gap_px;
  const bandHeight = mainHeight + nested.reduce((sum, { bars }) => sum + agent_px + rows(bars) * step + gap_px, 0);
  const height = bandHeight + foot_px;

  const draw = (context: CanvasRenderingContext2D, paint: Colours) => {
    const boxes: Box[] = [];
    context.clearRect(0, 0, width, height);
    context.textBaseline = "middle";
    const fill = (colour: string, x: number, y: number, w: number, h: number) => {
      context.fillStyle = colour;
      context.fillRect(x, y, w, h);
    };
    const write = (text: string, px: number, colour: string, x: number, y: number, room: number) => {
      context.save();
      context.beginPath();
      context.rect(x, y - 10, Math.max(0, room), 20);
      context.clip();
      context.font = `${px}px system-ui, sans-serif`;
      context.fillStyle = colour;
      context.fillText(text, x, y + 0.5);
      context.restore();
    };
    const drawn = new Map<number, number>(); // how far each lane is: of bars that would lie upon another one is enough
    const bar = (tool: ToolCall, y: number) => {
      const x = axis.x(within(tool.start));
      const size = Math.max(2, axis.x(within(tool.end ?? until)) - x - 1);
      if (x + size < (drawn.get(y) ?? -1) + 1 && tool.outcome === "ok") return;
      drawn.set(y, x + size);
      const bad = tool.outcome !== undefined && tool.outcome !== "ok";
      fill(tool.end === undefined ? paint.accent : bad ? paint.bad : paint.bar, x, y, size, lane_px);
      if (size >= label_px_min) write(`${tool.tool} ${gist(tool.input, base)}`, 10, tool.end === undefined ? paint.onAccent : bad ? paint.ground : paint.text, x + 4, y + lane_px / 2, size - 6);
      boxes.push({ x, y, width: size, height: lane_px, says: () => `${tool.tool} ${gist(tool.input, base)} · ${tool.outcome ?? "running"} · ${span((tool.end ?? until) - tool.start)} · ${clock(tool.start)}` });
    };
    const band = (turn: Turn) => {
      const x = axis.x(within(turn.start));
      const size = Math.max(2, axis.x(within(turn.end ?? until)) - x);
      fill(paint.raised, x, 0, size, bandHeight);
      fill(paint.line, x, 0, 1, bandHeight);
      if (size > 20) write(`${turn.number}  ${turn.prompt.slice(0, 300).replaceAll(/\s+/g, " ")}`, 11, paint.muted, x + 6, head_px / 2, size - 10);
      boxes.push({ x, y: 0, width: size, height: head_px, says: () => `Turn ${turn.number} · ${turn.outcome ?? "open"} · ${span((turn.end ?? until) - turn.start)} · ${clock(turn.start)}: ${turn.prompt.slice(0, 200)}` });
    };

    turns.forEach(band);
    for (const { x, from: a, to: b } of axis.breaks) {
      fill(paint.ground, x - 7, 0, 14, bandHeight);
      write("⋯", 11, paint.muted, x - 5, head_px / 2, 14);
      boxes.push({ x: x - 9, y: 0, width: 18, height: bandHeight, says: () => `nothing for ${span(b - a)}` });
    }
    for (const { bar: tool, lane } of main) bar(tool, head_px + lane * step);
    let y = mainHeight;
    for (const { name, start, end, bars } of nested) {
      const x = axis.x(within(start));
      fill(paint.line, x, y + 2, Math.max(2, axis.x(within(end)) - x), agent_px + rows(bars) * step - 2);
      const left = Math.max(4, Math.min(x + 4, width - 120));
      write(`↳ ${name}`, 11, paint.muted, left, y + agent_px / 2 + 1, width - left - 4);
      y += agent_px;
      for (const { bar: tool, lane } of bars) bar(tool, y + lane * step);
      y += rows(bars) * step + gap_px;
    }
    for (const { at, text } of model.compactions) {
      if (at < first) continue;
      const x = Math.round(axis.x(at));
      for (let dash = head_px - 4; dash < bandHeight; dash += 6) fill(paint.text, x, dash, 1, 3);
      boxes.push({ x: x - 4, y: 0, width: 9, height: bandHeight, says: () => `${text} · ${clock(at)}` });
    }
    for (const { at, x } of ticks(axis.parts, width)) {
      fill(paint.line, Math.round(x), bandHeight, 1, 4);
      write(hourMinute(at), 10, paint.muted, Math.min(x + 3, width - 50), bandHeight + foot_px / 2 + 1, 60);
    }
    return boxes;
  };
  return { height, draw };
}
