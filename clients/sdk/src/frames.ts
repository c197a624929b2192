// Helpers for reading frames.
import type { Cursor, EarshotEvent, Frame, Place, SessionFrame, Stream, Truncated, UsageUpdated } from "./protocol.js";

/** True for events; false for `session`, `status` and the other frames, and for frames of unknown type without a cursor. */
export function isEvent(frame: Frame): frame is EarshotEvent {
  return "cursor" in frame && typeof frame.cursor === "string";
}

/** True if the text has the syntax of a cursor. Its parts have no meaning for a client. */
export function isCursor(text: string): boolean {
  return /^\d+\.\d+\.[0-9a-f]{16}$/.test(text) && !text.endsWith("\n");
}

/** Splits `<stream>:<cursor>` at the last colon. */
export function splitPlace(place: Place): [Stream, Cursor] {
  const colon = place.lastIndexOf(":");
  return [place.slice(0, colon), place.slice(colon + 1)];
}

const escapeKey = (key: string | number) => String(key).replaceAll("~", "~0").replaceAll("/", "~1");

/**
 * Returns the size in bytes of the whole text if the frame contains only its beginning, else `undefined`:
 * `truncatedBytes(event, "output")`, `truncatedBytes(event, "input", "command")`, `truncatedBytes(session, "todos", 0, "content")`.
 */
export function truncatedBytes(frame: object, ...path: Array<string | number>): number | undefined {
  return truncatedTexts(frame)[path.map(escapeKey).join("/")];
}

/** Returns the frame's `truncated`, or an empty object. */
export function truncatedTexts(frame: { truncated?: Truncated } | object): Truncated {
  return ("truncated" in frame && frame.truncated) || {};
}

/** True if a hub receives no heartbeat of the session's host. `status.since` is the time of the last one; the session's real status is unknown. */
export const isOffline = (session: Pick<SessionFrame, "status">) => session.status.state === "unknown" && session.status.reason === "host_offline";

/** Returns the number of tokens in the context after a message of the main agent; `undefined` for subagents, and for events that do not record it. */
export function contextTokens(event: UsageUpdated): number | undefined {
  if (event.agent !== undefined) return undefined;
  return event.context_tokens ?? ((event.input ?? 0) + (event.cache_read ?? 0) + (event.cache_write ?? 0) || undefined);
}

const time_kinds = { waiting: "waited_ms", working: "worked_ms", idle: "idle_ms", ended: undefined, unknown: undefined } as const;

/** The member of `times` that counts the time in this state; `undefined` for states that are not counted. */
export const timeKind = (state: string) => time_kinds[state as keyof typeof time_kinds];

/** Names the wait of a session that waits: the same as long as it waits for the same answer, whatever else becomes known of it. */
export const waitOf = ({ status }: SessionFrame): string => status.request ?? `${status.reason ?? ""} ${status.since ?? ""}`;

/**
 * Returns how long a session waited for the user, worked and was idle until `at` (ms since 1970): `times` and the time in the present state.
 * `undefined` if the daemon does not state it.
 */
export function sessionTimes({ times, status, clock_offset_ms = 0 }: Pick<SessionFrame, "times" | "status" | "clock_offset_ms">, at: number): SessionFrame["times"] {
  const kind = timeKind(status.state);
  const since = Date.parse(status.since ?? "") + clock_offset_ms;
  if (!times || !kind || Number.isNaN(since)) return times;
  const present_ms = Math.max(0, at - since);
  const { turn } = times;
  return { ...times, [kind]: times[kind] + present_ms, turn: kind === "idle_ms" ? turn : { ...turn, [kind]: turn[kind] + present_ms } };
}

/**
 * Returns what a session used in the day of the daemon's time zone that contains `at` (ms since 1970), as of its last frame; `undefined` if it used nothing then, or
 * if the daemon does not state it.
 */
export function usageOfDay({ day }: Pick<SessionFrame, "day">, at: number): SessionFrame["day"] {
  return day && Date.parse(day.since) <= at && at < Date.parse(day.until) ? day : undefined;
}

/** A limit of an account, as a session of this host and program states it. */
export type AccountLimit = NonNullable<SessionFrame["limits"]>[number] & Pick<SessionFrame, "host" | "program">;

/**
 * Returns the limits of the accounts that these sessions use, in the order of host, program and limit: of each the newest statement. Windows whose period
 * ended before `at` (ms since 1970) are left out: how much of them is used is no longer known.
 */
export function accountLimits(sessions: Iterable<SessionFrame>, at: number): AccountLimit[] {
  const newest = new Map<string, AccountLimit>();
  for (const { host, program, limits } of sessions) {
    for (const limit of limits ?? []) {
      const key = [host, program, limit.limit].join("\n");
      const known = newest.get(key);
      if (!known || (limit.time ?? "") > (known.time ?? "")) newest.set(key, { ...limit, host, ...(program !== undefined && { program }) });
    }
  }
  const sorted = [...newest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, limit]) => limit);
  const valid = sorted.map((limit) => ({ ...limit, windows: limit.windows.filter(({ resets_at }) => resets_at === undefined || Date.parse(resets_at) > at) }));
  return valid.filter(({ windows }) => windows.length > 0);
}

/** Matches like the daemon's filters: `*` is any number of characters, `?` is one, everything else is literal and case-sensitive. */
export function matchesPattern(pattern: string, text: string): boolean {
  const wanted = [...pattern];
  const given = [...text];
  let at = 0;
  let star = -1;
  let star_end = 0; // end of the text that the last star matches so far
  for (let n = 0; n < given.length; ) {
    if (at < wanted.length && wanted[at] === "*") {
      star = at++;
      star_end = n;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === given[n])) {
      at++;
      n++;
    } else if (star >= 0) {
      at = star + 1;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (wanted[at] === "*") at++;
  return at === wanted.length;
}
