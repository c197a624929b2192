// How far each stream has been handled: all that a consumer keeps to go on where it was.
import type { Cursor, Frame, Place, Stream } from "./protocol.js";

/** Is this text a cursor, as far as its looks go? Its parts mean nothing to a client. */
export function isCursor(text: string): boolean {
  return /^\d+\.\d+\.[0-9a-f]{16}$/.test(text) && !text.endsWith("\n");
}

/** `<stream>:<cursor>`, split at the last colon. */
export function splitPlace(place: Place): [Stream, Cursor] {
  const colon = place.lastIndexOf(":");
  return [place.slice(0, colon), place.slice(colon + 1)];
}

/** The beginning of a stream. */
export const beginning = "";

/**
 * The places of the streams that one subscription tells of. While it catches up with what it missed, a `session` frame is ahead
 * of the events that still come, so it moves only streams that are not being caught up.
 */
export class Cursors {
  private readonly at = new Map<Stream, Cursor>();
  private readonly awaited = new Set<Stream>();

  constructor(places: Iterable<Place> = []) {
    for (const place of places) this.at.set(...splitPlace(place));
  }

  get size(): number {
    return this.at.size;
  }

  has(stream: Stream): boolean {
    return this.at.has(stream);
  }

  /** For `after`; and to be kept by whoever wants to go on in another process. */
  places(): Place[] {
    return [...this.at].map(([stream, cursor]) => `${stream}:${cursor}`);
  }

  /** These are being caught up until `complete`; those that are not known yet, from their first line on. */
  await(streams: Iterable<Stream>): void {
    for (const stream of streams) {
      this.awaited.add(stream);
      if (!this.at.has(stream)) this.at.set(stream, beginning);
    }
  }

  get catchingUp(): boolean {
    return this.awaited.size > 0;
  }

  complete(): void {
    this.awaited.clear();
  }

  /** A frame was handed to the consumer. */
  handled(frame: Frame): void {
    if ("cursor" in frame && frame.cursor !== undefined) {
      this.at.set(frame.stream, frame.cursor);
      return;
    }
    switch (frame.type) {
      case "session":
        for (const place of frame.cursors) {
          const [stream, cursor] = splitPlace(place);
          if (!this.awaited.has(stream)) this.at.set(stream, cursor);
        }
        return;
      case "bookmark":
        for (const place of frame.cursors) this.at.set(...splitPlace(place));
        return;
      case "reset":
        this.awaited.delete(frame.stream);
        // Without an id every event follows from the first line on; with one, the session frame says where the stream is now.
        if (frame.id === undefined) this.at.set(frame.stream, beginning);
        else this.at.delete(frame.stream);
        return;
      case "stream.removed":
        this.awaited.delete(frame.stream);
        this.at.delete(frame.stream);
        return;
    }
  }
}
