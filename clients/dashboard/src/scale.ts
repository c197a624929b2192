// Time to pixels. Where nothing happened for long the axis is broken: a session may rest for days between two turns.

/** A stretch of time without a break. */
export interface Part { from: number; to: number; x: number; width: number }

export interface Scale {
  x(at: number): number;
  parts: Part[];
  breaks: Array<{ x: number; from: number; to: number }>;
}

const break_px = 18;
const stretch_ms_min = 1000;

/** `spans`: when something happened. A pause of more than `pause_ms` is drawn as a break. */
export function scale(spans: Array<[number, number]>, width: number, pause_ms: number): Scale {
  const sorted = [...spans].sort((a, b) => a[0] - b[0]);
  const stretches: Array<[number, number]> = [];
  for (const [from, to] of sorted) {
    const last = stretches.at(-1);
    if (last && from - last[1] <= pause_ms) last[1] = Math.max(last[1], to);
    else stretches.push([from, to]);
  }
  const long = ([from, to]: [number, number]) => Math.max(to - from, stretch_ms_min);
  const total = Math.max(1, stretches.reduce((sum, one) => sum + long(one), 0));
  const per = Math.max(1, width - break_px * Math.max(0, stretches.length - 1)) / total;
  const parts: Part[] = [];
  const breaks: Scale["breaks"] = [];
  let x = 0;
  stretches.forEach((one, n) => {
    const [from, to] = one;
    parts.push({ from, to, x, width: long(one) * per });
    x += long(one) * per;
    const next = stretches[n + 1];
    if (!next) return;
    breaks.push({ x: x + break_px / 2, from: to, to: next[0] });
    x += break_px;
  });
  return {
    parts,
    breaks,
    x(at) {
      let low = 0;
      let high = parts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (parts[middle]!.from <= at) low = middle;
        else high = middle - 1;
      }
      const part = parts[low];
      return part ? part.x + Math.max(0, Math.min(at, part.to) - part.from) * per : 0;
    },
  };
}

const minute = 60_000;
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((many) => many * minute);
const tick_px_min = 90;

/** Where to write the time: at whole minutes or hours of the local clock, and where a stretch begins. */
export function ticks(parts: readonly Part[], width: number): Array<{ at: number; x: number }> {
  const out: Array<{ at: number; x: number }> = [];
  let free = 0;
  const add = (at: number, x: number) => {
    if (x < free || x > width - 40) return;
    out.push({ at, x });
    free = x + tick_px_min;
  };
  for (const part of parts) {
    add(part.from, part.x);
    const length = Math.max(1, part.to - part.from);
    const step = steps.find((one) => (one / length) * part.width >= tick_px_min);
    if (step === undefined || part.width < tick_px_min) continue;
    const shift = new Date(part.from).getTimezoneOffset() * minute;
    for (let at = Math.ceil((part.from - shift) / step) * step + shift; at < part.to; at += step) add(at, part.x + ((at - part.from) / length) * part.width);
  }
  return out;
}

/** Bars that overlap go to different lanes; as few as it takes, at most `lanes_max`. */
export function lanes<T extends { start: number; end?: number }>(bars: readonly T[], now: number, lanes_max: number): Array<{ bar: T; lane: number }> {
  const free: number[] = [];
  return bars.map((bar) => {
    let lane = free.findIndex((until) => until <= bar.start);
    if (lane < 0) lane = Math.min(free.length, lanes_max - 1);
    free[lane] = Math.max(free[lane] ?? 0, bar.end ?? now);
    return { bar, lane };
  });
}
