// Layout and drawing of a session's timeline: turns are bands, tool calls are bars in lanes, each subagent has its own lanes below,
// compactions are dashed lines, and the time axis is at the bottom. Long pauses are cut out of the axis.
import { clock, duration, hourMinute } from "./format.js";
import type { SessionModel, ToolCall, Turn } from "./model.js";
import { inputSummary } from "./SessionParts.js";

const head_px = 22; // the turns' labels
const lane_px = 14;
const gap_px = 3;
const agent_px = 18; // a subagent's label
const axis_px = 20; // time labels
const lane_count_max = 6; // of the main agent; half as many per subagent
const agents_max = 12; // the newest
const turns_max = 200; // the newest
const label_px_min = 36; // narrower bars have no label

/** Area of the canvas with a tooltip. */
export interface Box { x: number; y: number; width: number; height: number; tooltip: () => string }

export interface Colors { text: string; muted: string; line: string; raised: string; accent: string; onAccent: string; bar: string; bad: string; ground: string }

export interface TimelineLayout { height: number; draw: (context: CanvasRenderingContext2D, colors: Colors) => Box[] }

type Interval = { start: number; end?: number };
type Bars = Array<{ bar: ToolCall; lane: number }>;
interface SubagentLanes { name: string; start: number; end: number; bars: Bars }

const laneCount = (bars: Bars) => Math.max(1, ...bars.map(({ lane }) => lane + 1));

function subagentLanes(model: SessionModel, tools: ToolCall[], until: number, isVisible: (item: Interval) => boolean): SubagentLanes[] {
  const groups = new Map<string, ToolCall[]>();
  for (const [key, agent] of model.agents) if (isVisible(agent)) groups.set(key, []);
  for (const tool of tools) {
    if (tool.agent === undefined) continue;
    const group = groups.get(tool.agent);
    if (group) group.push(tool);
    else groups.set(tool.agent, [tool]);
  }
  return [...groups].slice(-agents_max).map(([key, own]) => {
    const agent = model.agents.get(key);
    return {
      name: agent?.name ?? key, bars: assignLanes(own, until, lane_count_max / 2),
      start: Math.min(agent?.start ?? Infinity, ...own.map((tool) => tool.start)), end: Math.max(agent?.end ?? 0, ...own.map((tool) => tool.end ?? until), 0) || until,
    };
  });
}

/** Part of the axis without a break. */
interface Segment { from: number; to: number; x: number; width: number }

/** Maps times to pixels. Long pauses are cut out: a session may be idle for days between two turns. */
interface TimeAxis {
  x(at: number): number;
  segments: Segment[];
  breaks: Array<{ x: number; from: number; to: number }>;
}

const break_px = 18;
const segment_ms_min = 1000;

/** `active`: the times of activity. A pause of more than `pause_ms` becomes a break. */
function timeAxis(active: Array<[number, number]>, width: number, pause_ms: number): TimeAxis {
  const sorted = [...active].sort((a, b) => a[0] - b[0]);
  const ranges: Array<[number, number]> = [];
  for (const [from, to] of sorted) {
    const last = ranges.at(-1);
    if (last && from - last[1] <= pause_ms) last[1] = Math.max(last[1], to);
    else ranges.push([from, to]);
  }
  const length = ([from, to]: [number, number]) => Math.max(to - from, segment_ms_min);
  const total = Math.max(1, ranges.reduce((sum, range) => sum + length(range), 0));
  const px_per_ms = Math.max(1, width - break_px * Math.max(0, ranges.length - 1)) / total;
  const segments: Segment[] = [];
  const breaks: TimeAxis["breaks"] = [];
  let x = 0;
  ranges.forEach((range, n) => {
    const [from, to] = range;
    segments.push({ from, to, x, width: length(range) * px_per_ms });
    x += length(range) * px_per_ms;
    const next = ranges[n + 1];
    if (!next) return;
    breaks.push({ x: x + break_px / 2, from: to, to: next[0] });
    x += break_px;
  });
  return {
    segments,
    breaks,
    x(at) {
      let low = 0;
      let high = segments.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (segments[middle]!.from <= at) low = middle;
        else high = middle - 1;
      }
      const segment = segments[low];
      return segment ? segment.x + Math.max(0, Math.min(at, segment.to) - segment.from) * px_per_ms : 0;
    },
  };
}

const minute_ms = 60_000;
const tick_steps_ms = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * minute_ms);
const tick_px_min = 90;

/** Positions of time labels: the start of each segment, and whole minutes or hours of the local time. */
function ticks(segments: readonly Segment[], width: number): Array<{ at: number; x: number }> {
  const out: Array<{ at: number; x: number }> = [];
  let next_x = 0;
  const add = (at: number, x: number) => {
    if (x < next_x || x > width - 40) return;
    out.push({ at, x });
    next_x = x + tick_px_min;
  };
  for (const segment of segments) {
    add(segment.from, segment.x);
    const length = Math.max(1, segment.to - segment.from);
    const step = tick_steps_ms.find((ms) => (ms / length) * segment.width >= tick_px_min);
    if (step === undefined || segment.width < tick_px_min) continue;
    const shift = new Date(segment.from).getTimezoneOffset() * minute_ms;
    for (let at = Math.ceil((segment.from - shift) / step) * step + shift; at < segment.to; at += step) add(at, segment.x + ((at - segment.from) / length) * segment.width);
  }
  return out;
}

/** Assigns overlapping bars to different lanes, at most `lane_count`. */
function assignLanes(bars: readonly ToolCall[], now: number, lane_count: number): Bars {
  const lane_ends: number[] = [];
  return bars.map((bar) => {
    let lane = lane_ends.findIndex((end) => end <= bar.start);
    if (lane < 0) lane = Math.min(lane_ends.length, lane_count - 1);
    lane_ends[lane] = Math.max(lane_ends[lane] ?? 0, bar.end ?? now);
    return { bar, lane };
  });
}

/** `range_ms`: the length of the end of the session to show; 0: all. `base`: the project directory, removed from paths. */
export function layoutTimeline(model: SessionModel, base: string, width: number, until: number, range_ms: number): TimelineLayout {
  const from = range_ms ? until - range_ms : 0;
  const inRange = (item: Interval) => item.start > 0 && (item.end ?? until) >= from;
  const turns = model.turns.filter((turn) => inRange(turn) && turn.agent === undefined).slice(-turns_max);
  const first = Math.max(from, turns[0]?.start ?? model.start);
  const isVisible = (item: Interval) => inRange(item) && (item.end ?? until) >= first;
  const tools = model.tools.filter(isVisible);
  const clamp = (at: number) => Math.min(Math.max(at, first), until);
  const active: Array<[number, number]> = tools.map((tool) => [clamp(tool.start), clamp(tool.end ?? until)]);
  for (const { at } of model.entries) if (at >= first && at <= until) active.push([at, at]);
  for (const { start, end } of turns) active.push([clamp(start), clamp(start)], [clamp(end ?? until), clamp(end ?? until)]);
  const total = active.reduce((sum, [a, b]) => sum + Math.min(b - a, 600_000), 0);
  const axis = timeAxis(active, width - 2, Math.max(90_000, total * 0.15));
  const main = assignLanes(tools.filter((tool) => tool.agent === undefined), until, lane_count_max);
  const subagents = subagentLanes(model, tools, until, isVisible);
  const lane_step = lane_px + gap_px;
  const main_height = head_px + laneCount(main) * lane_step + gap_px;
  const band_height = main_height + subagents.reduce((sum, { bars }) => sum + agent_px + laneCount(bars) * lane_step + gap_px, 0);
  const height = band_height + axis_px;

  const draw = (context: CanvasRenderingContext2D, colors: Colors) => {
    const boxes: Box[] = [];
    context.clearRect(0, 0, width, height);
    context.textBaseline = "middle";
    const fill = (color: string, x: number, y: number, w: number, h: number) => {
      context.fillStyle = color;
      context.fillRect(x, y, w, h);
    };
    const write = (text: string, px: number, color: string, x: number, y: number, max_width: number) => {
      context.save();
      context.beginPath();
      context.rect(x, y - 10, Math.max(0, max_width), 20);
      context.clip();
      context.font = `${px}px system-ui, sans-serif`;
      context.fillStyle = color;
      context.fillText(text, x, y + 0.5);
      context.restore();
    };
    const lane_ends = new Map<number, number>(); // by y: bars that would cover each other are drawn once
    const drawBar = (tool: ToolCall, y: number) => {
      const x = axis.x(clamp(tool.start));
      const size = Math.max(2, axis.x(clamp(tool.end ?? until)) - x - 1);
      if (x + size < (lane_ends.get(y) ?? -1) + 1 && tool.outcome === "ok") return;
      lane_ends.set(y, x + size);
      const failed = tool.outcome !== undefined && tool.outcome !== "ok";
      fill(tool.end === undefined ? colors.accent : failed ? colors.bad : colors.bar, x, y, size, lane_px);
      if (size >= label_px_min) write(`${tool.tool} ${inputSummary(tool.input, base)}`, 10, tool.end === undefined ? colors.onAccent : failed ? colors.ground : colors.text, x + 4, y + lane_px / 2, size - 6);
      boxes.push({ x, y, width: size, height: lane_px, tooltip: () => `${tool.tool} ${inputSummary(tool.input, base)} · ${tool.outcome ?? "running"} · ${duration((tool.end ?? until) - tool.start)} · ${clock(tool.start)}` });
    };
    const drawTurn = (turn: Turn) => {
      const x = axis.x(clamp(turn.start));
      const size = Math.max(2, axis.x(clamp(turn.end ?? until)) - x);
      fill(colors.raised, x, 0, size, band_height);
      fill(colors.line, x, 0, 1, band_height);
      if (size > 20) write(`${turn.number}  ${turn.prompt.slice(0, 300).replaceAll(/\s+/g, " ")}`, 11, colors.muted, x + 6, head_px / 2, size - 10);
      boxes.push({ x, y: 0, width: size, height: head_px, tooltip: () => `Turn ${turn.number} · ${turn.outcome ?? "open"} · ${duration((turn.end ?? until) - turn.start)}${turn.waited_ms ? `, waited ${duration(turn.waited_ms)} for you` : ""} · ${clock(turn.start)}: ${turn.prompt.slice(0, 200)}` });
    };

    turns.forEach(drawTurn);
    for (const { x, from: a, to: b } of axis.breaks) {
      fill(colors.ground, x - 7, 0, 14, band_height);
      write("⋯", 11, colors.muted, x - 5, head_px / 2, 14);
      boxes.push({ x: x - 9, y: 0, width: 18, height: band_height, tooltip: () => `no activity for ${duration(b - a)}` });
    }
    for (const { bar: tool, lane } of main) drawBar(tool, head_px + lane * lane_step);
    let y = main_height;
    for (const { name, start, end, bars } of subagents) {
      const x = axis.x(clamp(start));
      fill(colors.line, x, y + 2, Math.max(2, axis.x(clamp(end)) - x), agent_px + laneCount(bars) * lane_step - 2);
      const left = Math.max(4, Math.min(x + 4, width - 120));
      write(`↳ ${name}`, 11, colors.muted, left, y + agent_px / 2 + 1, width - left - 4);
      y += agent_px;
      for (const { bar: tool, lane } of bars) drawBar(tool, y + lane * lane_step);
      y += laneCount(bars) * lane_step + gap_px;
    }
    for (const { at, text } of model.compactions) {
      if (at < first) continue;
      const x = Math.round(axis.x(at));
      for (let dash = head_px - 4; dash < band_height; dash += 6) fill(colors.text, x, dash, 1, 3);
      boxes.push({ x: x - 4, y: 0, width: 9, height: band_height, tooltip: () => `${text} · ${clock(at)}` });
    }
    for (const { at, x } of ticks(axis.segments, width)) {
      fill(colors.line, Math.round(x), band_height, 1, 4);
      write(hourMinute(at), 10, colors.muted, Math.min(x + 3, width - 50), band_height + axis_px / 2 + 1, 60);
    }
    return boxes;
  };
  return { height, draw };
}
