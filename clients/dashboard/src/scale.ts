// Time to pixels. Where nothing happened for long the axis is broken: a session may rest for days between two turns.

export interface Scale {
  x(at: number): number;
  breaks: Array<{ x: number; from: number; to: number }>;
}

const break_px = 18;

/** `spans`: when something happened. A pause of more than `pause_ms` is drawn as a break. */
export function scale(spans: Array<[number, number]>, width: number, pause_ms: number): Scale {
  const sorted = [...spans].sort((a, b) => a[0] - b[0]);
  const parts: Array<[number, number]> = [];
  for (const [from, to] of sorted) {
    const last = parts.at(-1);
    if (last && from - last[1] <= pause_ms) last[1] = Math.max(last[1], to);
    else parts.push([from, to]);
  }
  const total = Math.max(1, parts.reduce((sum, [from, to]) => sum + Math.max(to - from, 1000), 0));
  const room = Math.max(1, width - break_px * Math.max(0, parts.length - 1));
  const per = room / total;
  const starts: number[] = [];
  const breaks: Scale["breaks"] = [];
  let x = 0;
  parts.forEach(([from, to], n) => {
    starts.push(x);
    x += Math.max(to - from, 1000) * per;
    const next = parts[n + 1];
    if (!next) return;
    breaks.push({ x: x + break_px / 2, from: to, to: next[0] });
    x += break_px;
  });
  return {
    breaks,
    x(at) {
      let low = 0;
      let high = parts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (parts[middle]![0] <= at) low = middle;
        else high = middle - 1;
      }
      const part = parts[low];
      return part ? starts[low]! + Math.max(0, Math.min(at, part[1]) - part[0]) * per : 0;
    },
  };
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
