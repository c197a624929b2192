// Layout and drawing of a session's timeline: turns are bands, tool calls are bars in lanes, coloured by their kind of work and their outcome; each subagent
// has its own lanes below. Waits for the user are bars in a lane of their own, compactions dashed lines, queued prompts and failures of the API marks above
// the lanes. The time axis is at the bottom; long pauses are cut out of it.
import type { EarshotEvent } from "../../sdk/src/index.js";
import { clock, duration, hourMinute, running } from "./format.js";
import type { Mark, SessionModel, ToolCall, Turn } from "./model.js";
import { inputSummary } from "./toolInput.js";
import { toolKind, type ToolKind } from "./toolKind.js";

const head_px = 22; // the turns' labels
const wait_px = 8; // the lane of waits for the user
const mark_px = 8; // of a queued prompt or a failure
const lane_px = 14;
const gap_px = 3;
const agent_px = 18; // a subagent's label
const axis_px = 20; // time labels
const lane_count_max = 6; // of the main agent; half as many per subagent
const agents_max = 12; // the newest
const turns_max = 200; // the newest
const label_px_min = 36; // narrower bars have no label

/** Area of the timeline with a tooltip; a click leads to what it stands for. */
export interface Box { x: number; y: number; width: number; height: number; tooltip: () => string; tool?: ToolCall; turn?: Turn; event?: EarshotEvent }

export type Colors = Record<"text" | "muted" | "line" | "raised" | "accent" | "ground" | "bad" | "badText" | "running" | "runningText" | "wait" | ToolKind, string>;

/** What is used of a canvas: timelineSvg.ts has it, too. */
export type Pen = Pick<CanvasRenderingContext2D, "beginPath" | "clearRect" | "clip" | "fill" | "fillRect" | "fillText" | "lineTo" | "moveTo" | "restore" | "save" | "strokeRect" | "translate">
  & { rect(x: number, y: number, width: number, height: number): void; roundRect(x: number, y: number, width: number, height: number, radius: number): void }
  & { fillStyle: unknown; strokeStyle: unknown; font: string; globalAlpha: number; lineWidth: number; textBaseline: CanvasTextBaseline };

export interface TimelineLayout {
  /** Of the whole timeline: the window's width times the zoom. */
  width: number;
  height: number;
  boxes: Box[];
  /** Draws the part from `left` on, of the window's width. */
  draw(context: Pen, colors: Colors, left: number, selected: ToolCall | undefined): void;
}

/** A call in one line: its name, input, outcome, duration and time. */
export const toolText = (tool: ToolCall, base: string, until: number) =>
  `${tool.tool} ${inputSummary(tool.input, base)} · ${tool.outcome ?? "running"} · ${lasted(tool, until)} · ${clock(tool.start)}`;

type Interval = { start: number; end?: number };

const lasted = ({ start, end }: Interval, until: number) => (end === undefined ? running(until - start) : duration(end - start));
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

/** `window_px`: the visible width; `zoom`: 1 shows everything. `base`: the project directory, removed from paths. */
export function layoutTimeline(model: SessionModel, base: string, window_px: number, until: number, zoom: number): TimelineLayout {
  const width = window_px * zoom;
  const turns = model.turns.filter((turn) => turn.start > 0 && turn.agent === undefined).slice(-turns_max);
  const first = turns[0]?.start ?? model.start;
  const isVisible = (item: Interval) => item.start > 0 && (item.end ?? until) >= first;
  const tools = model.tools.filter(isVisible);
  const waits = model.waits.filter(isVisible);
  const clamp = (at: number) => Math.min(Math.max(at, first), until);
  const active: Array<[number, number]> = [...tools, ...waits].map((item) => [clamp(item.start), clamp(item.end ?? until)]);
  for (const { at } of model.entries) if (at >= first && at <= until) active.push([at, at]);
  for (const { start, end } of turns) active.push([clamp(start), clamp(start)], [clamp(end ?? until), clamp(end ?? until)]);
  const total = active.reduce((sum, [a, b]) => sum + Math.min(b - a, 600_000), 0);
  const axis = timeAxis(active, width - 2, Math.max(90_000, total * 0.15));
  const main = assignLanes(tools.filter((tool) => tool.agent === undefined), until, lane_count_max);
  const subagents = subagentLanes(model, tools, until, isVisible);
  const lane_step = lane_px + gap_px;
  const lanes_y = head_px + (waits.length > 0 ? wait_px + gap_px : 0);
  const main_height = lanes_y + laneCount(main) * lane_step + gap_px;
  const band_height = main_height + subagents.reduce((sum, { bars }) => sum + agent_px + laneCount(bars) * lane_step + gap_px, 0);
  const height = band_height + axis_px;
  const xOf = (at: number) => axis.x(clamp(at));

  const boxes: Box[] = [];
  const turn_boxes = turns.map((turn): Box & { turn: Turn } => ({
    turn, x: xOf(turn.start), y: 0, width: Math.max(2, xOf(turn.end ?? until) - xOf(turn.start)), height: head_px,
    tooltip: () => `Turn ${turn.number} · ${turn.outcome ?? "open"} · ${lasted(turn, until)}${turn.waited_ms ? `, waited ${duration(turn.waited_ms)} for you` : ""} · ${clock(turn.start)}: ${turn.prompt.slice(0, 200)}`,
  }));
  boxes.push(...turn_boxes);
  for (const { x, from, to } of axis.breaks) boxes.push({ x: x - 9, y: 0, width: 18, height: band_height, tooltip: () => `no activity for ${duration(to - from)}` });
  const wait_boxes = waits.map((wait): Box => ({
    x: xOf(wait.start), y: head_px, width: Math.max(3, xOf(wait.end ?? until) - xOf(wait.start)), height: wait_px,
    tooltip: () => `waiting for you${wait.reason ? `: ${wait.reason}` : ""} · ${lasted(wait, until)} · ${clock(wait.start)}`,
  }));
  boxes.push(...wait_boxes);
  const lane_ends = new Map<number, number>(); // by y: bars that would cover each other are drawn once
  const bar_boxes: Array<Box & { tool: ToolCall }> = [];
  const addBar = (tool: ToolCall, y: number) => {
    const x = xOf(tool.start);
    const size = Math.max(2, xOf(tool.end ?? until) - x - 1);
    if (x + size < (lane_ends.get(y) ?? -1) + 1 && tool.outcome === "ok") return;
    lane_ends.set(y, x + size);
    bar_boxes.push({ tool, x, y, width: size, height: lane_px, tooltip: () => toolText(tool, base, until) });
  };
  for (const { bar, lane } of main) addBar(bar, lanes_y + lane * lane_step);
  let y = main_height;
  const agent_boxes = subagents.map(({ name, start, end, bars }) => {
    const box = { name, x: xOf(start), y: y + 2, width: Math.max(2, xOf(end) - xOf(start)), height: agent_px + laneCount(bars) * lane_step - 2, lanes: y + agent_px };
    for (const { bar, lane } of bars) addBar(bar, box.lanes + lane * lane_step);
    y += agent_px + laneCount(bars) * lane_step + gap_px;
    return box;
  });
  boxes.push(...bar_boxes);
  const markBoxes = (marks: Mark[], kind: "compaction" | "queued" | "failure") => marks.filter(({ at }) => at >= first).map(({ at, text, event }) => {
    const x = Math.round(xOf(at));
    return { kind, event, x: x - 4, y: kind === "compaction" ? 0 : head_px - mark_px - 1, width: 9, height: kind === "compaction" ? band_height : mark_px + 2, tooltip: () => `${text.slice(0, 300)} · ${clock(at)}` };
  });
  const mark_boxes = [...markBoxes(model.compactions, "compaction"), ...markBoxes(model.queued, "queued"), ...markBoxes(model.failures, "failure")];
  boxes.push(...mark_boxes);

  const draw = (context: Pen, colors: Colors, left: number, selected: ToolCall | undefined) => {
    context.clearRect(0, 0, window_px, height);
    context.save();
    context.translate(-left, 0);
    context.textBaseline = "middle";
    const isOnScreen = (box: { x: number; width: number }) => box.x + box.width >= left && box.x <= left + window_px;
    const fill = (color: string, x: number, y: number, w: number, h: number) => {
      context.fillStyle = color;
      context.fillRect(x, y, w, h);
    };
    const round = (color: string, x: number, y: number, w: number, h: number) => {
      if (w < 6) return fill(color, x, y, w, h);
      context.fillStyle = color;
      context.beginPath();
      context.roundRect(x, y, w, h, 2);
      context.fill();
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
    /** Keeps a label on screen while its box is. */
    const labelX = (box: { x: number; width: number }, inset: number) => Math.max(box.x, left) + inset;

    for (const box of turn_boxes.filter(isOnScreen)) {
      fill(colors.raised, box.x, 0, box.width, band_height);
      fill(colors.line, box.x, 0, 1, band_height);
      const x = labelX(box, 6);
      if (box.width > 20) write(`${box.turn.number}  ${box.turn.prompt.slice(0, 300).replaceAll(/\s+/g, " ")}`, 11, colors.muted, x, head_px / 2, box.x + box.width - x - 4);
    }
    for (const { x } of axis.breaks) {
      fill(colors.ground, x - 7, 0, 14, band_height);
      write("⋯", 11, colors.muted, x - 5, head_px / 2, 14);
    }
    for (const box of agent_boxes.filter(isOnScreen)) {
      fill(colors.line, box.x, box.y, box.width, box.height);
      const x = Math.max(4, Math.min(labelX(box, 4), left + window_px - 120));
      write(`↳ ${box.name}`, 11, colors.muted, x, box.y + agent_px / 2 - 1, left + window_px - x - 4);
    }
    for (const box of wait_boxes.filter(isOnScreen)) {
      context.globalAlpha = 0.14;
      fill(colors.wait, box.x, head_px, box.width, band_height - head_px);
      context.globalAlpha = 1;
      round(colors.wait, box.x, box.y, box.width, box.height);
    }
    for (const box of bar_boxes.filter(isOnScreen)) {
      const { tool } = box;
      const failed = tool.outcome !== undefined && tool.outcome !== "ok";
      round(tool.end === undefined ? colors.running : failed ? colors.bad : colors[toolKind(tool.tool)], box.x, box.y, box.width, box.height);
      const x = labelX(box, 4);
      if (box.width >= label_px_min) write(`${tool.tool} ${inputSummary(tool.input, base)}`, 10, tool.end === undefined ? colors.runningText : failed ? colors.badText : colors.text, x, box.y + lane_px / 2, box.x + box.width - x - 2);
      if (tool !== selected) continue;
      context.strokeStyle = colors.accent;
      context.lineWidth = 2;
      context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
    }
    for (const box of mark_boxes.filter(isOnScreen)) {
      const x = box.x + 4;
      if (box.kind === "compaction") {
        for (let dash = head_px - 4; dash < band_height; dash += 6) fill(colors.text, x, dash, 1, 3);
        continue;
      }
      context.fillStyle = box.kind === "failure" ? colors.bad : colors.accent;
      context.beginPath(); // a failure points up, a queued prompt down
      const [base_y, tip_y] = box.kind === "failure" ? [head_px - 1, head_px - mark_px] : [head_px - mark_px, head_px - 1];
      context.moveTo(x - 4.5, base_y);
      context.lineTo(x + 4.5, base_y);
      context.lineTo(x, tip_y);
      context.fill();
    }
    for (const { at, x } of ticks(axis.segments, width)) {
      if (x + 60 < left || x > left + window_px) continue;
      fill(colors.line, Math.round(x), band_height, 1, 4);
      write(hourMinute(at), 10, colors.muted, Math.min(x + 3, left + window_px - 50), band_height + axis_px / 2 + 1, 60);
    }
    context.restore();
  };
  return { width, height, boxes, draw };
}
