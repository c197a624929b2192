// Much may happen between two looks at the page: it is drawn anew at a calm pace, and more slowly where drawing takes long.

const pause_ms_min = 100;
const pause_ms_max = 1000;
const share = 4; // drawing may take one part in so many of the time

/** Returns what to call when something changed; `draw` follows soon, once for all that changed until then. */
export function beat(draw: () => void): { soon: () => void; stop: () => void } {
  let timer = 0;
  let pause = pause_ms_min;
  const now = () => {
    timer = 0;
    const begin = performance.now();
    draw();
    requestAnimationFrame(() => setTimeout(() => (pause = Math.min(pause_ms_max, Math.max(pause_ms_min, share * (performance.now() - begin))))));
  };
  return { soon: () => void (timer ||= window.setTimeout(now, pause)), stop: () => clearTimeout(timer) };
}
