// The timeline is drawn on a canvas, since a session may have thousands of calls. The conversation contains the same as text. A slider over it makes it
// usable by keyboard and with a screen reader: its values are the tool calls.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now, plural } from "./format.js";
import type { Entry, SessionModel, ToolCall } from "./model.js";
import { layoutTimeline, toolText, type Box, type Colors } from "./timelineLayout.js";
import { timelineSvg } from "./timelineSvg.js";

const zoom_max = 400;
const zoom_step = 1.6; // of a key or button
const wheel_zoom = 0.0022; // per pixel of the wheel
const click_px = 5; // a pointer that moves less clicks

const color_names: Record<keyof Colors, string> = {
  text: "text", muted: "muted", line: "line", raised: "raised", accent: "accent", ground: "ground", bad: "tool-bad", badText: "tool-bad-text", running: "tool-running", runningText: "tool-running-text",
  wait: "wait", edit: "tool-edit", command: "tool-command", read: "tool-read", agent: "tool-agent", other: "tool-other",
};

/** Draws a timeline's canvas as SVG, in the colours of the reader's scheme. */
export const svgOf = new WeakMap<HTMLCanvasElement, () => SVGElement | undefined>();

function themeColors(element: Element): Colors {
  const style = getComputedStyle(element);
  return Object.fromEntries(Object.entries(color_names).map(([key, name]) => [key, style.getPropertyValue(`--${name}`).trim()])) as Colors;
}

const hitAt = (boxes: readonly Box[], x: number, y: number) => boxes.findLast((box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y <= box.y + box.height);

const legend = [["edit", "edits"], ["command", "commands"], ["read", "reads"], ["agent", "agents"], ["other", "other tools"], ["bad", "failed"], ["running", "running"], ["wait", "waiting for you"]] as const;
const color_media = [matchMedia("(prefers-color-scheme: dark)"), matchMedia("print")]; // each has colours of its own

interface Props { model: SessionModel; base: string; changes: number; open: boolean; show: (entry: Entry) => void }

export function Timeline({ model, base, open, show }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const slider = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState(1);
  const [left, setLeft] = useState(0);
  const [selected, setSelected] = useState<ToolCall | undefined>(undefined);
  const [tooltip, setTooltip] = useState("");
  const until = Math.max(model.end, open ? now.value : 0);
  const timeline = useMemo(() => (width > 0 && model.start > 0 ? layoutTimeline(model, base, width, until, zoom) : undefined), [model, model.changes, width, zoom, until, base]);
  const latest = useRef({ timeline, zoom, left, width });
  latest.current = { timeline, zoom, left, width };

  const clampLeft = (at: number, for_zoom: number) => Math.max(0, Math.min(at, width * (for_zoom - 1)));
  /** Keeps what is at `x` of the window in its place. */
  const zoomTo = (next: number, x: number) => {
    const state = latest.current;
    const to = Math.max(1, Math.min(zoom_max, next));
    const at = Math.max(0, Math.min(((state.left + x) / state.zoom) * to - x, state.width * (to - 1)));
    Object.assign(latest.current, { zoom: to, left: at }); // several events may arrive before a render
    setZoom(to);
    setLeft(at);
  };

  useEffect(() => {
    const element = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    svgOf.set(canvas.current!, () => {
      const { timeline: drawn, width: size, left: from } = latest.current;
      return drawn && timelineSvg(size, drawn.height, color_names, (pen, colors) => drawn.draw(pen, colors, from, undefined));
    });
    const redraw = () => paint.current(); // at once: paper does not wait for a render
    for (const media of color_media) media.addEventListener("change", redraw);
    return () => {
      observer.disconnect();
      for (const media of color_media) media.removeEventListener("change", redraw);
    };
  }, []);
  const paint = useRef(() => {});
  paint.current = () => {
    const context = canvas.current?.getContext("2d");
    if (!timeline || !context || !canvas.current) return;
    const ratio = devicePixelRatio || 1;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = Math.round(timeline.height * ratio);
    context.scale(ratio, ratio);
    timeline.draw(context, themeColors(canvas.current), left, selected);
  };
  useEffect(() => paint.current(), [timeline, left, selected]);

  // A listener of its own, since the page must not scroll: Preact's are passive.
  useEffect(() => {
    const onWheel = (event: WheelEvent) => {
      const state = latest.current;
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (sideways ? state.zoom === 1 : state.zoom === 1 && event.deltaY > 0) return; // nothing to do here: the page scrolls
      event.preventDefault();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const delta = (sideways ? event.deltaX || event.deltaY : event.deltaY) * unit;
      if (!sideways) return zoomTo(state.zoom * Math.exp(-delta * wheel_zoom * (event.ctrlKey ? 5 : 1)), event.offsetX);
      state.left = Math.max(0, Math.min(state.left + delta, state.width * (state.zoom - 1)));
      setLeft(state.left);
    };
    const element = slider.current!;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  // One pointer drags, two zoom, and one that does not move clicks.
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const gesture = useRef({ moved: 0 });
  const position = (event: PointerEvent) => {
    const box = slider.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    if (pointers.current.size === 0) gesture.current.moved = 0;
    pointers.current.set(event.pointerId, position(event));
    slider.current!.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    const to = position(event);
    const from = pointers.current.get(event.pointerId);
    if (!from) return setTooltip(hitAt(timeline?.boxes ?? [], to.x + left, to.y)?.tooltip() ?? "");
    gesture.current.moved += Math.hypot(to.x - from.x, to.y - from.y);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, to);
    if (other) {
      const [before, after] = [Math.abs(from.x - other.x), Math.abs(to.x - other.x)];
      if (before > 10 && after > 10) zoomTo(latest.current.zoom * (after / before), (to.x + other.x) / 2);
    } else if (gesture.current.moved > click_px) {
      const state = latest.current;
      state.left = Math.max(0, Math.min(state.left + from.x - to.x, state.width * (state.zoom - 1)));
      setLeft(state.left);
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const at = pointers.current.get(event.pointerId);
    const is_click = at && pointers.current.size === 1 && gesture.current.moved <= click_px && event.type === "pointerup";
    pointers.current.delete(event.pointerId);
    if (!is_click) return;
    const hit = hitAt(timeline?.boxes ?? [], at.x + left, at.y);
    if (!hit) return;
    if (hit.tool) setSelected(hit.tool);
    setTooltip(hit.tooltip());
    const entry = model.entries.find((one) => (hit.tool && one.kind === "tool" && one.tool === hit.tool) || (hit.turn && one.kind === "turn" && one.turn === hit.turn) || (hit.event && one.event === hit.event));
    if (entry) show(entry);
  };

  const tools = useMemo(() => model.tools.filter((tool) => tool.start > 0).sort((a, b) => a.start - b.start), [model, model.changes]);
  const index = selected ? tools.indexOf(selected) : -1;
  const select = (to: number) => {
    const tool = tools[Math.max(0, Math.min(tools.length - 1, to))];
    if (!tool) return;
    setSelected(tool);
    setTooltip(toolText(tool, base, until));
    const box = timeline?.boxes.find((one) => one.tool === tool);
    if (box && (box.x < left || box.x + Math.min(box.width, 40) > left + width)) setLeft(clampLeft(box.x - width / 3, zoom));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      ArrowRight: () => select(index + 1), ArrowDown: () => select(index + 1), ArrowLeft: () => select(index < 0 ? tools.length - 1 : index - 1), ArrowUp: () => select(index < 0 ? tools.length - 1 : index - 1),
      Home: () => select(0), End: () => select(tools.length - 1), PageDown: () => select(index + 10), PageUp: () => select(index - 10),
      "+": () => zoomTo(zoom * zoom_step, width / 2), "=": () => zoomTo(zoom * zoom_step, width / 2), "-": () => zoomTo(zoom / zoom_step, width / 2), "0": () => zoomTo(1, 0),
      Enter: () => {
        const entry = selected && model.entries.find((one) => one.kind === "tool" && one.tool === selected);
        if (entry) show(entry);
      },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const turns = model.turns.filter((turn) => turn.agent === undefined).length;
  const failed = model.tools.filter((tool) => tool.outcome !== undefined && tool.outcome !== "ok").length;
  const counted = [plural(turns, "turn"), plural(model.tools.length, "tool call"), plural(model.agents.size, "subagent"), plural(model.compactions.length, "compaction")];
  const more = [failed && `${failed.toLocaleString()} failed`, model.waits.length && plural(model.waits.length, "wait"), model.queued.length && plural(model.queued.length, "queued prompt"), model.failures.length && plural(model.failures.length, "API error")].filter((text): text is string => Boolean(text));
  const summary = [...counted, ...more].join(", ");
  return (
    <section class="timeline">
      <h3>
        Timeline <span class="tooltip">{tooltip || summary}</span>
        <span class="ranges" role="group" aria-label="Zoom">
          <button type="button" class="toggle" aria-label="Zoom out" disabled={zoom <= 1} onClick={() => zoomTo(zoom / zoom_step, width / 2)}>−</button>
          <button type="button" class="toggle" aria-label="Zoom in" disabled={zoom >= zoom_max} onClick={() => zoomTo(zoom * zoom_step, width / 2)}>+</button>
          <button type="button" class="toggle" aria-label="Fit: show the whole session" disabled={zoom <= 1} onClick={() => zoomTo(1, 0)}>Fit</button>
        </span>
      </h3>
      <div class="canvas">
        <canvas ref={canvas} role="img" aria-label={`Timeline: ${summary}`} style={{ width: `${width}px`, height: `${timeline?.height ?? 60}px` }} />
        <div
          ref={slider} class="cursor" role="slider" tabIndex={0} aria-label="Tool calls" aria-orientation="horizontal" aria-valuemin={0} aria-valuemax={tools.length} aria-valuenow={index + 1}
          aria-valuetext={selected ? `${index + 1} of ${tools.length}: ${toolText(selected, base, until)}` : `${tools.length} tool calls. Arrow keys step through them, Enter shows one in the conversation, plus and minus zoom.`}
          title="" onKeyDown={onKeyDown} onPointerDown={onPointerDown} onPointerMove={onPointerMove} onPointerUp={onPointerUp} onPointerCancel={onPointerUp} onPointerLeave={() => setTooltip("")} data-zoomed={zoom > 1 ? "" : undefined}
        />
      </div>
      <ul class="legend" aria-hidden="true">{legend.map(([kind, text]) => <li data-kind={kind}>{text}</li>)}</ul>
    </section>
  );
}
