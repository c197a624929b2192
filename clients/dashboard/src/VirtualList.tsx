// A list that renders only the items near the window. `height` must agree with the CSS.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

const overscan_px = 400;

interface Props<T> {
  items: readonly T[];
  height: (item: T) => number;
  /** What `height` depends on besides the item. */
  heights?: readonly unknown[];
  keyOf: (item: T) => string;
  label: string;
  id: string;
  children: (item: T, position: number) => ComponentChildren;
  /** Receives a function that renders an item and scrolls to it. */
  reveal?: (show: (index: number) => void) => void;
}

export function VirtualList<T>(props: Props<T>) {
  const { items, height } = props;
  const list = useRef<HTMLUListElement>(null);
  const [view, setView] = useState({ top: 0, bottom: 2000 });
  const offsets = useMemo(() => {
    const sums = new Float64Array(items.length + 1);
    for (let n = 0; n < items.length; n++) sums[n + 1] = sums[n]! + height(items[n]!);
    return sums;
  }, [items, ...(props.heights ?? [height])]);

  const measure = () => {
    const box = list.current?.getBoundingClientRect();
    if (!box) return;
    const top = Math.floor((-box.top - overscan_px) / 200) * 200; // in steps, so that few scroll events cause a render
    const bottom = top + innerHeight + 2 * overscan_px + 200;
    setView((old) => (old.top === top && old.bottom === bottom ? old : { top, bottom }));
  };
  useLayoutEffect(measure, [items.length]);
  useEffect(() => {
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);

  props.reveal?.((index) => {
    const box = list.current!.getBoundingClientRect();
    const header = document.querySelector("header.top"); // on a phone only its first line stays
    const margin = header?.getBoundingClientRect().height || header?.firstElementChild?.getBoundingClientRect().height || 0;
    const top = box.top + offsets[index]!;
    if (top < margin + 40) scrollBy(0, top - margin - 40);
    else if (top + 80 > innerHeight) scrollBy(0, top + 80 - innerHeight);
    measure();
  });

  let first = 0;
  while (first < items.length && offsets[first + 1]! < view.top) first++;
  let last = first;
  while (last < items.length && offsets[last]! < view.bottom) last++;
  return (
    <ul ref={list} id={props.id} aria-label={props.label} style={{ paddingTop: `${offsets[first]!}px`, paddingBottom: `${offsets[items.length]! - offsets[last]!}px` }}>
      {items.slice(first, last).map((item, n) => <li key={props.keyOf(item)} aria-posinset={first + n + 1} aria-setsize={items.length} style={{ height: `${height(item)}px` }}>{props.children(item, first + n)}</li>)}
    </ul>
  );
}
