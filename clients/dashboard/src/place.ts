// A place in a session: an event's stream and cursor, as the address and links name it.
export interface Place { stream: string; cursor: string }

/** `<stream>@<cursor>`; a cursor contains neither `@` nor `:`. */
export const placeText = ({ stream, cursor }: Place) => `${stream}@${cursor}`;

/** Reads `<stream>@<cursor>`, or `<stream>:<cursor>` as in a subscription's `after`. */
export function parsePlace(text: string): Place | undefined {
  const at = Math.max(text.lastIndexOf("@"), text.lastIndexOf(":"));
  const place = { stream: text.slice(0, at), cursor: text.slice(at + 1) };
  return at > 0 && place.cursor ? place : undefined;
}

export const samePlace = (a: Place, b: Place) => a.cursor === b.cursor && a.stream === b.stream;
