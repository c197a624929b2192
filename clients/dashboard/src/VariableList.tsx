// A list whose items have unknown heights, scrolled with the page: only the items near the window are rendered. Heights are measured once an item is
// rendered; what the user sees stays in its place when an estimate above it turns out wrong.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const overscan_px = 900;
const step_px = 300; // few scroll events cause a render
const whole_count_max = 60; // a list of so few items is rendered whole, so that the browser's own search finds everything
const reveal_tries_max = 8; // each measures more of the items on the way
const edge_px = 90; // below the page's header

export interface ListHandle<T> {
  /** Renders the item, scrolls to it and calls `then` with its element. */
  reveal(item: T, then?: (element: HTMLElement) => void): void;
}

interface Props<T extends object> {
  items: readonly T[];
  estimate: (item: T) => number;
  keyOf: (item: T) => string;
  /** Render everything, for printing and saving. */
  whole: boolean;
  handle: (handle: ListHandle<T>) => void;
  children: (item: T, position: number) => ComponentChildren;
}

export function VariableList<T extends object>({ items, estimate, keyOf, whole, handle, children }: Props<T>) {
  const list = useRef<HTMLOListElement>(null);
  const heights = useRef(new WeakMap<T, number>());
  const anchor = useRef<{ element: Element; y: number } | undefined>(undefined); // in the document: a scroll does not change it
  const wanted = useRef<{ item: T; tries: number; then: ((element: HTMLElement) => void) | undefined } | undefined>(undefined);
  const [view, setView] = useState({ top: 0, bottom: 2 * overscan_px });
  const is_whole = whole || items.length <= whole_count_max;

  const offsets = new Float64Array(items.length + 1);
  for (let n = 0; n < items.length; n++) offsets[n + 1] = offsets[n]! + (heights.current.get(items[n]!) ?? estimate(items[n]!));
  /** The first item that ends below `y`. */
  const indexAt = (y: number) => {
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle + 1]! > y) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const first = is_whole ? 0 : Math.min(indexAt(view.top), Math.max(0, items.length - 1));
  const last = is_whole ? items.length : Math.min(items.length, indexAt(view.bottom) + 1);

  const elements = () => [...(list.current?.children ?? [])].filter((element): element is HTMLElement => element instanceof HTMLElement && !element.classList.contains("spacer"));
  const holdAnchor = () => {
    const element = elements().find((item) => item.getBoundingClientRect().bottom > edge_px);
    anchor.current = element && { element, y: element.getBoundingClientRect().top + scrollY };
  };
  const updateView = () => {
    const box = list.current?.getBoundingClientRect();
    if (!box) return;
    const top = Math.floor((-box.top - overscan_px) / step_px) * step_px;
    const bottom = top + innerHeight + 2 * overscan_px + step_px;
    setView((old) => (old.top === top && old.bottom === bottom ? old : { top, bottom }));
  };
  /** Reads the heights of the rendered items and corrects the space for the others and the scroll position. */
  const measure = () => {
    if (!list.current) return;
    let change = 0;
    elements().forEach((element, n) => {
      const item = items[first + n];
      if (!item) return;
      const height = element.getBoundingClientRect().height;
      const before = heights.current.get(item) ?? estimate(item);
      if (Math.abs(height - before) > 0.5) change += height - before;
      heights.current.set(item, height);
    });
    const goal = wanted.current;
    if (goal) {
      const element = elements()[items.indexOf(goal.item) - first];
      if (!element) return;
      const top = element.getBoundingClientRect().top;
      const room = Math.max(edge_px, Math.min(innerHeight / 4, innerHeight - element.getBoundingClientRect().height));
      if (goal.tries < reveal_tries_max && Math.abs(top - room) > 2) {
        goal.tries++;
        scrollBy(0, top - room);
        requestAnimationFrame(() => (updateView(), measure()));
        return;
      }
      wanted.current = undefined;
      holdAnchor();
      goal.then?.(element);
      return;
    }
    const held = anchor.current;
    if (held?.element.isConnected && scrollY > 0) {
      const moved = held.element.getBoundingClientRect().top + scrollY - held.y;
      if (Math.abs(moved) > 1) scrollBy(0, moved);
    }
    holdAnchor();
    if (change !== 0) updateView();
  };

  useLayoutEffect(measure);
  const current = useRef({ measure, updateView, holdAnchor });
  current.current = { measure, updateView, holdAnchor };
  useEffect(() => {
    const onScroll = () => {
      if (!wanted.current) current.current.holdAnchor();
      current.current.updateView();
    };
    const sizes = new ResizeObserver(() => current.current.measure());
    sizes.observe(list.current!);
    sizes.observe(document.body); // what is above the list may grow, too
    addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", onScroll);
    onScroll();
    return () => {
      sizes.disconnect();
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onScroll);
    };
  }, []);
  useEffect(updateView, [items.length]);

  handle({
    reveal(item, then) {
      const index = items.indexOf(item);
      const box = list.current?.getBoundingClientRect();
      if (index < 0 || !box) return;
      wanted.current = { item, tries: 0, then };
      scrollBy(0, box.top + offsets[index]! - innerHeight / 4);
      updateView();
      requestAnimationFrame(() => current.current.measure());
    },
  });

  return (
    <ol ref={list} class="entries">
      {first > 0 ? <li key="above" class="spacer" aria-hidden="true" style={{ height: `${offsets[first]!}px` }} /> : null}
      {items.slice(first, last).map((item, n) => <li key={keyOf(item)} aria-posinset={first + n + 1} aria-setsize={items.length}>{children(item, first + n)}</li>)}
      {last < items.length ? <li key="below" class="spacer" aria-hidden="true" style={{ height: `${offsets[items.length]! - offsets[last]!}px` }} /> : null}
    </ol>
  );
}
