// Position in each stream, and what to ask for after a reconnect. Used for received frames and for frames that the consumer has handled.
import { isEvent, splitPlace } from "./frames.js";
import type { Cursor, Frame, Place, Stream, Subscribe } from "./protocol.js";

const after_entries_max = 20_000; // the daemon's limit
const message_spare_bytes = 4096; // the rest of a subscribe message
const encoder = new TextEncoder();

export type ResumeRequest = Pick<Subscribe, "after" | "new_streams">;

/**
 * Events and bookmarks set the position of their stream. A `session` frame does too, unless the daemon is still sending events of that
 * stream which the frame already includes: those are replayed from the transcript after the frame.
 */
export class StreamResumer {
  private readonly cursors = new Map<Stream, Cursor>();
  private readonly replays = new Map<Stream, Cursor>(); // streams being replayed: the cursor of their newest session frame
  private readonly restarted = new Set<Stream>(); // reset in this replay: continue from their session frame
  private replaying = false; // until the `bookmark` with `complete`
  private resumes = false; // `after` was sent: a replay follows even if the snapshot is empty
  private new_streams = false; // streams first mentioned by a session frame are replayed

  constructor(places: Iterable<Place> = []) {
    for (const place of places) this.cursors.set(...splitPlace(place));
  }

  get size(): number {
    return this.cursors.size;
  }

  /** True while the daemon sends missed events, before the `bookmark` with `complete`. */
  get isReplaying(): boolean {
    return this.replaying;
  }

  /** True if `session` frames already include this frame's content. */
  isReplayed(frame: Frame): boolean {
    return this.replaying || (isEvent(frame) && this.replays.has(frame.stream));
  }

  /** Value for `after`. */
  places(): Place[] {
    return [...this.cursors].map(([stream, cursor]) => `${stream}:${cursor}`);
  }

  /**
   * Returns what a resuming subscription asks for. `left_out` streams exceed `frame_bytes` or the daemon's limit: these, and new streams
   * then too, continue with their next event instead.
   */
  request(frame_bytes: number): { request: ResumeRequest; left_out: number } {
    const after: Place[] = [];
    let size = message_spare_bytes;
    for (const place of this.places()) {
      size += encoder.encode(JSON.stringify(place)).length + 1;
      if (size > frame_bytes || after.length === after_entries_max) break;
      after.push(place);
    }
    const left_out = this.cursors.size - after.length;
    const request: ResumeRequest = { ...(after.length > 0 && { after }), ...(left_out === 0 && { new_streams: "beginning" }) };
    return { request, left_out };
  }

  /** A connection was opened. `request`: what it asks for, if it resumes. */
  connected(request: ResumeRequest | undefined): void {
    this.replays.clear();
    this.restarted.clear();
    this.replaying = request !== undefined;
    this.resumes = request?.after !== undefined;
    this.new_streams = request?.new_streams === "beginning";
  }

  handle(frame: Frame): void {
    if (isEvent(frame)) {
      this.cursors.set(frame.stream, frame.cursor);
      if (!this.replaying && this.replays.get(frame.stream) === frame.cursor) this.replays.delete(frame.stream);
      return;
    }
    switch (frame.type) {
      case "session":
        for (const place of frame.cursors) {
          const [stream, cursor] = splitPlace(place);
          if (this.isBehindSession(stream)) this.replays.set(stream, cursor);
          else this.cursors.set(stream, cursor);
        }
        return;
      case "ready":
        if (!this.resumes && this.replays.size === 0) this.complete();
        return;
      case "bookmark":
        if (frame.id === undefined && this.replaying) return; // may be ahead of events that are still to be replayed
        if (frame.complete) this.complete();
        for (const place of frame.cursors) {
          const [stream, cursor] = splitPlace(place);
          this.cursors.set(stream, cursor);
          if (!this.replaying) this.replays.delete(stream);
        }
        return;
      case "reset":
        this.replays.delete(frame.stream);
        // Without an id the stream is sent from its first event; with an id a session frame follows.
        if (frame.id === undefined) this.cursors.set(frame.stream, "");
        else {
          this.cursors.delete(frame.stream);
          this.restarted.add(frame.stream);
        }
        return;
      case "stream.renamed":
        for (const places of [this.cursors, this.replays]) {
          const cursor = places.get(frame.from);
          if (cursor !== undefined && !places.has(frame.to)) places.set(frame.to, cursor);
          places.delete(frame.from);
        }
        return;
      case "stream.removed":
        this.replays.delete(frame.stream);
        this.cursors.delete(frame.stream);
        return;
    }
  }

  private isBehindSession(stream: Stream): boolean {
    if (this.restarted.has(stream)) return false;
    return this.replaying || this.replays.has(stream) || (this.new_streams && !this.cursors.has(stream));
  }

  /** Streams without any event in the replay are where their session frame says. */
  private complete(): void {
    for (const [stream, cursor] of this.replays) if (!this.cursors.has(stream)) this.cursors.set(stream, cursor);
    this.replays.clear();
    this.restarted.clear();
    this.replaying = false;
  }
}
