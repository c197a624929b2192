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

/** Returns the number of tokens in the context according to a message of the main agent; `undefined` for subagents and cost-only events. */
export function contextTokens(event: UsageUpdated): number | undefined {
  return event.agent !== undefined || event.input === undefined ? undefined : event.input + (event.cache_read ?? 0) + (event.cache_write ?? 0);
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
