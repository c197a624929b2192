// One subscription: a connection of its own that comes back by itself and goes on where it was. A connection each, since an event
// that two subscriptions of one connection match is sent once and does not say whose it is; and so a slow one holds up no other.
import { Backoff, type BackoffOptions } from "./backoff.js";
import { Cursors, beginning, splitPlace } from "./cursors.js";
import type { Cursor, ErrorFrame, Frame, JsonValue, Place, SessionFrame, Stream, Subscribe, Welcome } from "./protocol.js";
import { Queue } from "./queue.js";
import { Reads } from "./reads.js";
import type { Connect, Socket } from "./socket.js";

export interface SubscribeOptions {
  filter?: NonNullable<Subscribe["filter"]>;
  /** `state`: `session` frames only, the newest wins. Default: `events`. */
  deliver?: "events" | "state";
  /** Also sessions that are not live. */
  all?: boolean;
  /** What a subscription that falls behind gets: fresh `session` frames, or what it missed, from the files. */
  on_lag?: "snapshot" | "catch_up";
  /** Go on from here: what `places()` of an earlier subscription said. */
  after?: Place[];
  /** Begin with everything that the transcripts of the chosen sessions tell, from their first lines on. */
  history?: boolean;
  view?: "full" | "meta";
  /** Frames that wait for `for await`. When they are more the connection is not read on, or, in a browser, is ended and resumed later. */
  queue_frames_max?: number;
}

export type ConnectionState =
  | { state: "connecting" }
  | { state: "catching_up"; left_out: number } // streams that were too many to go on with: they are told from now on
  | { state: "live" }
  | { state: "retrying"; at: number; tries: number; code: number; reason: string } // `at` as Date.now() tells it
  | { state: "held" } // the consumer is behind: comes back when it is not
  | { state: "unauthorised"; reason: string } // no token that is good: get one, then retry()
  | { state: "failed"; error: ErrorFrame } // asked for something that cannot be had
  | { state: "closed" };

export interface SubscriptionHandlers {
  frame?(frame: Frame): void;
  state?(state: ConnectionState): void;
}

export interface Wiring {
  connect: (token: string, view: "full" | "meta" | undefined) => Connect;
  token: () => string | Promise<string>;
  client: string;
  backoff: BackoffOptions;
  ended: (subscription: Subscription) => void;
}

const queue_frames_max = 20_000;
const after_entries_max = 20_000; // the daemon's limit; and what a message may hold is told by `welcome`
const message_spare_bytes = 4096; // for what is in a subscribe message beside `after`
const bytes = new TextEncoder();

const id = "a";
const look_id = "look";

export class Subscription implements AsyncIterable<Frame> {
  private current: ConnectionState = { state: "connecting" };
  private socket: Socket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private tries = 0;
  private refused: string | undefined; // the token that was not good
  private limit_bytes = 1 << 20;
  private looking = false;
  private seen = new Set<Stream>(); // what the look told of, and what was known before
  private resuming = false; // the snapshot is still coming
  private late = false; // it told of a stream that the look did not
  private started = false; // a snapshot was complete: from now on nothing may be missed
  private readonly received: Cursors;
  private readonly done: Cursors;
  private readonly queue: Queue<Frame> | undefined;
  private readonly backoff: Backoff;
  private mark: Stream[] | undefined; // the next frame that is handed over is the first one after this was asked for
  private readonly marks = new WeakMap<Frame, Stream[]>();
  private readonly reads = new Reads((message) => this.socket?.send(JSON.stringify(message)));

  /** With `handlers.frame` frames are handed to it as they come; else `for await` takes them. */
  constructor(
    private readonly wiring: Wiring,
    private readonly options: SubscribeOptions,
    private readonly handlers: SubscriptionHandlers,
  ) {
    this.received = new Cursors(options.after);
    this.done = new Cursors(options.after);
    this.backoff = new Backoff(wiring.backoff);
    if (!handlers.frame) {
      this.queue = new Queue<Frame>({
        high: options.queue_frames_max ?? queue_frames_max,
        full: () => this.hold(),
        drained: () => this.goOn(),
        taken: (frame) => this.handled(frame),
      });
    }
    void this.open();
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** How far frames were handled: hand it to `after` to go on there, in another process too. */
  places(): Place[] {
    return this.done.places();
  }

  /** The whole record behind an event. Survives reconnects; rejects when the daemon says no, or at `close`. */
  read(stream: Stream, cursor: Cursor): Promise<JsonValue> {
    return this.reads.ask(stream, cursor);
  }

  /** Now, not when the pause is over; also after `unauthorised` and `failed`. */
  retry(): void {
    if (["retrying", "unauthorised", "failed"].includes(this.current.state)) {
      this.refused = undefined;
      this.backoff.reset();
      void this.open();
    }
  }

  close(): void {
    if (this.current.state === "closed") return;
    clearTimeout(this.timer);
    this.drop();
    this.reads.end("the subscription was closed");
    this.be({ state: "closed" });
    this.queue?.end();
    this.wiring.ended(this);
  }

  [Symbol.asyncIterator](): AsyncIterator<Frame> {
    if (!this.queue) throw new Error("frames go to the handler that subscribe() was given: leave it out to iterate");
    const queue = this.queue;
    return {
      next: () => queue.next(),
      return: () => {
        this.close();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  private be(state: ConnectionState): void {
    this.current = state;
    this.handlers.state?.(state);
  }

  private async open(): Promise<void> {
    clearTimeout(this.timer);
    this.be({ state: "connecting" });
    const token = await this.wiring.token();
    if (this.current.state !== "connecting" || this.socket) return;
    if (token !== "" && token === this.refused) return this.be({ state: "unauthorised", reason: "the token is not good" });
    const socket: Socket = this.wiring.connect(token, this.options.view)({
      opened: () => {
        const view = this.options.view;
        if (!socket.authorised) this.send({ type: "hello", token, client: this.wiring.client, ...(view && { view }) });
      },
      message: (text) => this.socket === socket && this.take(JSON.parse(text) as Frame),
      closed: (code, reason, status) => this.socket === socket && this.lost(code, reason, status, token),
    });
    this.socket = socket;
  }

  private send(message: object): void {
    this.socket?.send(JSON.stringify(message));
  }

  /** Ends the connection without a word to anybody. */
  private drop(): void {
    const socket = this.socket;
    this.socket = undefined;
    this.reads.lost();
    socket?.close();
  }

  private lost(code: number, reason: string, status: number | undefined, token: string): void {
    this.socket = undefined;
    this.reads.lost();
    if (code === 4501 || status === 401) {
      // The token may have been changed since it was read: read it once more, once.
      const again = this.refused === undefined;
      this.refused = token;
      if (again && token !== "") return void this.open();
      return this.be({ state: "unauthorised", reason: reason || "the token is not good" });
    }
    const hopeless = [1002, 1007, 1009].includes(code) || (code >= 4500 && code < 5000) || status === 400 || status === 403;
    if (hopeless) {
      return this.fail({ type: "error", code: "bad_message", message: `the daemon ended the connection: ${reason || status || code}`, retry: false });
    }
    this.later(code, status ? `HTTP ${status}` : reason);
  }

  private later(code: number, reason: string): void {
    const pause = this.backoff.next();
    this.tries++;
    this.timer = setTimeout(() => void this.open(), pause);
    this.be({ state: "retrying", at: Date.now() + pause, tries: this.tries, code, reason });
  }

  private fail(error: ErrorFrame): void {
    this.drop();
    this.be({ state: "failed", error });
  }

  private take(frame: Frame): void {
    if (this.looking && frame.type !== "error") {
      if (frame.type === "session") this.see(frame);
      if (frame.type === "ready" && frame.id === look_id) this.resume();
      return; // what still comes of a subscription that was given up comes again
    }
    switch (frame.type) {
      case "welcome": this.begin(frame); break;
      case "record": return this.reads.record(frame);
      case "error": if (this.reads.error(frame) || this.refusedRequest(frame)) return; break;
      case "session": this.notice(frame); break;
      case "ready": if (this.late) return this.look(); this.ready(); break;
      case "bookmark": if (frame.id === undefined && this.received.catchingUp) return; break; // it may be ahead of what still comes
    }
    this.received.handled(frame);
    if (this.mark) this.marks.set(frame, this.mark);
    this.mark = undefined;
    if (this.handlers.frame) {
      this.handlers.frame(frame);
      this.handled(frame);
    } else {
      this.queue?.push(frame);
    }
    if (frame.type === "bookmark" && frame.complete) {
      this.received.complete();
      this.be({ state: "live" });
    }
  }

  /** The consumer is done with it, maybe long after it came. */
  private handled(frame: Frame): void {
    const mark = this.marks.get(frame);
    if (mark) this.done.await(mark);
    this.done.handled(frame);
    if (frame.type === "bookmark" && frame.complete) this.done.complete();
  }

  private refusedRequest(frame: ErrorFrame): boolean {
    if (frame.code === "bad_cursor" || (frame.id !== id && frame.id !== look_id)) return false;
    if (!frame.retry) {
      this.fail(frame);
      return true;
    }
    this.drop();
    this.later(0, frame.message);
    return true;
  }

  private begin(welcome: Welcome): void {
    this.limit_bytes = welcome.limits.frame_bytes;
    this.refused = undefined;
    const wants = this.options.deliver !== "state";
    if (wants && (this.started || this.received.size > 0 || this.options.history)) {
      this.resuming = false;
      this.look();
    } else {
      this.looking = false;
      this.subscribe();
    }
    this.reads.again();
  }

  /** First a look at what there is: streams that were born while nobody listened are then asked for from their first line. */
  private look(): void {
    if (this.resuming) this.send({ type: "unsubscribe", id });
    this.looking = true;
    this.resuming = this.late = false;
    this.seen.clear();
    const { type: _, ...filter } = this.options.filter ?? {};
    this.send({ type: "subscribe", id: look_id, filter, deliver: "state", all: this.options.all ?? false });
  }

  /** A stream that came between the look and the snapshot: it is asked for from its first line, too, by another look. */
  private notice(frame: SessionFrame): void {
    if (!this.resuming) return;
    const late = frame.cursors.map((place) => splitPlace(place)[0]).filter((stream) => !this.seen.has(stream));
    if (late.length === 0) return;
    this.late = true;
    this.received.await(late);
    this.mark = [...(this.mark ?? []), ...late];
  }

  private see(frame: SessionFrame): void {
    for (const place of frame.cursors) this.seen.add(splitPlace(place)[0]);
  }

  private subscribe(after?: Place[]): void {
    const { filter, deliver, all, on_lag } = this.options;
    this.send({ type: "subscribe", id, ...(filter && { filter }), ...(deliver && { deliver }), ...(all && { all }), ...(on_lag && { on_lag }), ...(after && { after }) });
  }

  private resume(): void {
    this.looking = false;
    this.send({ type: "unsubscribe", id: look_id });
    const known = this.received.places();
    const fresh = [...this.seen].filter((stream) => !this.received.has(stream)).map((stream) => `${stream}:${beginning}`);
    const after: Place[] = [];
    let size = message_spare_bytes;
    for (const place of [...known, ...fresh]) {
      size += bytes.encode(JSON.stringify(place)).length + 1;
      if (size > this.limit_bytes || after.length === after_entries_max) break;
      after.push(place);
    }
    const streams = after.map((place) => splitPlace(place)[0]);
    for (const place of known) this.seen.add(splitPlace(place)[0]);
    this.resuming = true;
    this.received.complete();
    this.received.await(streams);
    this.mark = streams;
    this.be({ state: "catching_up", left_out: known.length + fresh.length - after.length });
    this.subscribe(after.length > 0 ? after : undefined);
  }

  private ready(): void {
    this.started = true;
    this.resuming = false;
    this.tries = 0;
    this.backoff.reset();
    if (!this.received.catchingUp) this.be({ state: "live" });
  }

  private hold(): void {
    if (this.socket?.pause) return this.socket.pause();
    this.drop();
    clearTimeout(this.timer);
    this.be({ state: "held" });
  }

  private goOn(): void {
    if (this.current.state === "held") void this.open();
    else this.socket?.resume?.();
  }
}
