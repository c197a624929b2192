// What the charts show, as numbers.
import type { Turn } from "./model.js";

export interface ContextPoint { at: number; context: number }

/** At most two points per pixel: the largest and the last one. */
export function contextSteps(points: readonly ContextPoint[], width_px: number): ContextPoint[] {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || points.length <= width_px) return [...points];
  const out: ContextPoint[] = [];
  let pixel = -1;
  let largest: ContextPoint = first;
  let newest: ContextPoint = first;
  const flush = () => {
    out.push(largest);
    if (newest !== largest) out.push(newest.at >= largest.at ? newest : { ...newest, at: largest.at });
  };
  for (const point of points) {
    const at = Math.floor(((point.at - first.at) / Math.max(1, last.at - first.at)) * (width_px - 1));
    if (at !== pixel && pixel >= 0) flush();
    if (at !== pixel) [pixel, largest] = [at, point];
    if (point.context > largest.context) largest = point;
    newest = point;
  }
  flush();
  return out;
}

export interface TurnCost { turn: Turn; usd: number }

/** Cost of the main agent's turns: recorded where the transcript records it, else each turn's share of `total_usd` by its tokens. */
export function costByTurn(turns: readonly Turn[], total_usd: number | undefined, source: string | undefined): { costs: TurnCost[]; source: "recorded" | "estimated" } {
  const main = turns.filter((turn) => turn.agent === undefined && (turn.weight > 0 || turn.cost_usd !== undefined));
  if (main.length > 0 && (source ?? "recorded") === "recorded" && main.every((turn) => turn.cost_usd !== undefined)) return { costs: main.map((turn) => ({ turn, usd: turn.cost_usd! })), source: "recorded" };
  const weights = main.reduce((sum, { weight }) => sum + weight, 0);
  if (total_usd === undefined || weights === 0) return { costs: [], source: "estimated" };
  return { costs: main.map((turn) => ({ turn, usd: (total_usd * turn.weight) / weights })), source: "estimated" };
}
