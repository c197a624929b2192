// All sessions and the search in their text, from the daemon's index over HTTP.
import type { SessionFrame } from "../../sdk/src/index.js";
import { HttpError, fetchJson } from "./http.js";
import { escapeControls } from "./sanitize.js";

type Usage = SessionFrame["usage"];

export interface IndexState { building: boolean; indexed?: number; total?: number }

export interface PastSession {
  session: string;
  host?: string;
  project?: string;
  program?: string;
  model?: string;
  title?: string;
  first_time?: string;
  last_time?: string;
  prompts: number;
  tools: number;
  usage: Pick<Usage, "input" | "output" | "cache_read" | "cache_write">;
  cost_usd?: number;
  cost_source?: NonNullable<Usage["cost_source"]>;
}

export interface Result {
  stream: string;
  cursor: string;
  session?: string;
  host?: string;
  project?: string;
  program?: string;
  title?: string;
  time?: string;
  kind: string;
  snippet: { text: string; matches: Array<[number, number]>; cut_before?: true; cut_after?: true };
}

export interface Page {
  sessions?: PastSession[];
  results?: Result[];
  projects?: Array<{ project: string; sessions: number }>;
  next?: string;
  incomplete?: true;
  index: IndexState;
}

export interface Wanted { find: string; project: string; host: string; day: string; kind: string }

const day_ms = 86_400_000;

/** Local midnight of `2026-11-24`, and of the day after it; `undefined` if it is no day. */
export function dayBounds(day: string): [string, string] | undefined {
  const begin = new Date(`${day}T00:00:00`);
  if (Number.isNaN(begin.getTime())) return undefined;
  const end = new Date(begin.getTime() + day_ms * 1.5); // a day may have 25 hours
  end.setHours(0, 0, 0, 0);
  return [begin.toISOString(), end.toISOString()];
}

/** One page; `after`: the `next` of the one before. Throws an error with a text for users. */
export function load({ find, project, host, day, kind }: Wanted, exactPattern: (name: string) => string, after = ""): Promise<Page> {
  const parameters = new URLSearchParams();
  if (find) parameters.set("q", find);
  if (project) parameters.set("project", exactPattern(project));
  if (host) parameters.set("host", exactPattern(host));
  const bounds = day ? dayBounds(day) : undefined;
  if (bounds) {
    parameters.set("since", bounds[0]);
    parameters.set("until", bounds[1]);
  }
  if (find && kind) parameters.set("kind", kind);
  if (after) parameters.set("after", after);
  return fetchJson<Page>(`/v1/${find ? "search" : "history"}?${parameters}`).catch((error: Error) => {
    throw error instanceof TypeError ? new Error("The daemon did not respond.") : error;
  });
}

/** The index is not open yet, or too many requests wait: the same request succeeds later. */
export const isRefusedForNow = (error: Error) => error instanceof HttpError && (error.status === 429 || error.status === 503);

export interface Piece { text: string; is_match: boolean }

/** The snippet split at its matches. Positions count code points. Control characters become visible after the split. */
export function pieces({ text, matches }: Result["snippet"]): Piece[] {
  const characters = [...text];
  const found: Piece[] = [];
  let at = 0;
  const add = (end: number, is_match: boolean) => {
    if (end > at) found.push({ text: escapeControls(characters.slice(at, end).join("")), is_match });
    at = Math.max(at, end);
  };
  for (const [begin, size] of matches) {
    add(begin, false);
    add(begin + size, true);
  }
  add(characters.length, false);
  return found;
}

/** The items in order, grouped by the local day of their time. */
export function byDay<Item>(items: readonly Item[], timeOf: (item: Item) => string | undefined): Array<{ day: string; items: Item[] }> {
  const format = new Intl.DateTimeFormat([], { weekday: "long", year: "numeric", month: "long", day: "numeric" });
  const groups: Array<{ day: string; items: Item[] }> = [];
  for (const item of items) {
    const time = Date.parse(timeOf(item) ?? "");
    const day = Number.isNaN(time) ? "Unknown day" : format.format(time);
    if (groups.at(-1)?.day !== day) groups.push({ day, items: [] });
    groups.at(-1)!.items.push(item);
  }
  return groups;
}
