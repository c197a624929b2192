// A subscription with its own connection, which reconnects and resumes. One connection each, because an event that matches two
// subscriptions of a connection is sent once and does not name them, and because a slow consumer must not delay others.
import { Backoff, type BackoffOptions } from "./backoff.js";
import type { Cursor, ErrorFrame, Frame, JsonValue, Page, Place, Stream, Subscribe, Welcome } from "./protocol.js";
import { FrameQueue } from "./queue.js";
import { RecordRequests } from "./record_requests.js";
import { StreamResumer, type ResumeRequest } from "./resumer.js";
import type { Connect, Socket } from "./socket.js";

export interface SubscribeOptions {
  filter?: NonNullable<Subscribe["filter"]>;
  /** `state`: `session` frames only, at most four a second per session. Default `events`. */
  deliver?: "events" | "state";
  /** With `deliver: "state"`: the sessions are sent by page, of at most this many (1–1,000). Only the first page is sent unasked: see `nextPage()`. */
  page?: number;
  /** Include sessions that are not live. */
  all?: boolean;
  /** What the daemon sends after this client fell behind: new `session` frames, or the missed events from the transcripts. */
  on_lag?: "snapshot" | "catch_up";
  /** Resume from these places, as returned by `places()` of an earlier subscription. */
  after?: Place[];
  /** Start with all events at or after this time. */
  since?: string | Date;
  /** Start with all events of the selected sessions, from the beginning of their transcripts. */
  history?: boolean;
  view?: "full" | "meta";
  /** Frames buffered for `for await`. When the buffer is full, reading from the connection pauses; in a browser the connection is closed and resumed later. */
  queue_frames_max?: number;
}

export type ConnectionState =
  | { state: "connecting" }
  | { state: "catching_up"; left_out: number } // left_out: streams that exceed the size of a subscribe message; they continue with their next event
  | { state: "live" }
  | { state: "retrying"; at: number; tries: number; code: number; reason: string } // `at`: milliseconds, as Date.now()
  | { state: "paused" } // the consumer is behind; reconnects when the buffer is half empty
  | { state: "unauthorized"; reason: string } // needs a valid token, or a sign-in for `authorize`, then retry()
  | { state: "failed"; error: ErrorFrame } // the daemon rejected the request
  | { state: "closed" };

export interface SubscriptionHandlers {
  frame?(frame: Frame): void;
  state?(state: ConnectionState): void;
}

/** A browser's answer to a challenge of the daemon, see "Signing in" of the protocol. */
export interface SignIn {
  browser: string;
  nonce: string;
  signature: string;
}

/** The client cannot sign in, and will not be able to without the user. */
export class SignInError extends Error {}

export interface SubscriptionContext {
  connect: (token: string, view: "full" | "meta" | undefined) => Connect;
  /** A token, or the answer to a challenge. */
  credential: () => string | SignIn | Promise<string | SignIn>;
  client: string;
  backoff: BackoffOptions;
  silence_ms_max: number;
  closed: (subscription: Subscription) => void;
}

/** What is not a JSON object becomes an error frame: the connection goes on, and no exception leaves the socket's handler. */
function parseFrame(text: string): Frame {
  try {
    const frame: unknown = JSON.parse(text);
    if (typeof frame === "object" && frame !== null) return frame as Frame;
  } catch {
    // below
  }
  return { type: "error", code: "bad_message", message: "the daemon sent a frame that is not a JSON object", retry: false };
}

const queue_frames_max = 20_000;
const subscription_id = "a";

export class Subscription implements AsyncIterable<Frame> {
  private current: ConnectionState = { state: "connecting" };
  private socket: Socket | undefined;
  private retry_timer: ReturnType<typeof setTimeout> | undefined;
  private silence_timer: ReturnType<typeof setTimeout> | undefined;
  private last_frame_ms = 0;
  private tries = 0;
  private rejected: string | SignIn | undefined; // the credential
  private rejected_reason = "";
  private had_snapshot = false; // reconnects resume from here on
  private frame_is_replayed = false;
  private last_page: Page | undefined; // of this connection
  private awaits_page = false;
  private readonly received: StreamResumer;
  private readonly handled: StreamResumer; // behind `received` by what is in the queue
  private readonly requests = new WeakMap<Frame, ResumeRequest>(); // by the `welcome` frame that they answered
  private readonly queue: FrameQueue<Frame> | undefined;
  private readonly backoff: Backoff;
  private readonly records = new RecordRequests((message) => this.send(message));

  /** Frames are passed to `handlers.frame` as they arrive or, without it, buffered for `for await`. */
  constructor(
    private readonly context: SubscriptionContext,
    private readonly options: SubscribeOptions,
    private readonly handlers: SubscriptionHandlers,
  ) {
    this.received = new StreamResumer(options.after);
    this.handled = new StreamResumer(options.after);
    this.backoff = new Backoff(context.backoff);
    if (!handlers.frame) {
      this.queue = new FrameQueue<Frame>({
        capacity: options.queue_frames_max ?? queue_frames_max,
        on_full: () => this.pause(),
        on_drained: () => this.resume(),
        on_handled: (frame) => this.markHandled(frame),
      });
    }
    void this.open();
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** True while the frame passed to `handlers.frame` is history: `session` frames already include it. */
  get isReplayed(): boolean {
    return this.frame_is_replayed;
  }

  /** Position of the last handled frame in each stream. Pass it to `after` to continue there, also in another process. */
  places(): Place[] {
    return this.handled.places();
  }

  /** Reads the whole record behind an event. The request survives reconnects; it rejects with `ReadError` if the daemon refuses it or on `close`. */
  read(stream: Stream, cursor: Cursor): Promise<JsonValue> {
    return this.records.request(stream, cursor);
  }

  /**
   * What the sessions that were not sent yet add to figures of all, as of the last page. All 0: every session was sent. `undefined`: this
   * connection has received no page, as with a daemon that does not send pages.
   */
  get rest(): Page["rest"] | undefined {
    return this.last_page?.rest;
  }

  /** True while a page that was requested arrives: sessions of it are also in `rest`. */
  get isPageArriving(): boolean {
    return this.awaits_page;
  }

  /** Requests the next page. Returns false if there is none, or if one was requested already. */
  nextPage(): boolean {
    const next = this.last_page?.next;
    if (next === undefined || !this.socket) return false;
    this.last_page = { ...this.last_page!, next: undefined };
    this.awaits_page = true;
    this.send({ type: "next_page", id: subscription_id, next });
    return true;
  }

  /** Connects now instead of after the delay, and after `unauthorized` and `failed`. */
  retry(): void {
    if (["retrying", "unauthorized", "failed"].includes(this.current.state)) {
      this.rejected = undefined;
      this.backoff.reset();
      void this.open();
    }
  }

  close(): void {
    if (this.current.state === "closed") return;
    clearTimeout(this.retry_timer);
    this.disconnect();
    this.records.close("the subscription was closed");
    this.setState({ state: "closed" });
    this.queue?.close();
    this.context.closed(this);
  }

  [Symbol.asyncIterator](): AsyncIterator<Frame> {
    if (!this.queue) throw new Error("subscribe() has a frame handler: omit it to iterate");
    const queue = this.queue;
    return {
      next: () => queue.next(),
      return: () => {
        this.close();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  private setState(state: ConnectionState): void {
    if (state.state === "live" && this.current.state === "live") return;
    this.current = state;
    this.handlers.state?.(state);
  }

  private async open(): Promise<void> {
    clearTimeout(this.retry_timer);
    if (this.queue?.isFull) return this.setState({ state: "paused" });
    this.setState({ state: "connecting" });
    let what = "cannot authenticate";
    try {
      const credential = await this.context.credential();
      if (this.current.state !== "connecting" || this.socket) return;
      if (credential !== "" && credential === this.rejected) return this.setState({ state: "unauthorized", reason: this.rejected_reason });
      what = "cannot connect";
      this.socket = this.connect(credential);
    } catch (error) {
      if (this.current.state === "connecting" && error instanceof SignInError) return this.setState({ state: "unauthorized", reason: error.message });
      if (this.current.state === "connecting") this.retryLater(0, `${what}: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    this.watchSilence();
  }

  private connect(credential: string | SignIn): Socket {
    const { view } = this.options;
    const token = typeof credential === "string" ? credential : "";
    const proof = typeof credential === "string" ? { token } : { sign_in: credential };
    const socket: Socket = this.context.connect(token, view)({
      opened: () => {
        if (!socket.authorized) this.send({ type: "hello", ...proof, client: this.context.client, ...(view && { view }) });
      },
      message: (text) => this.socket === socket && this.receive(parseFrame(text)),
      closed: (code, reason, status) => this.socket === socket && this.lost(code, reason, status, credential),
    });
    return socket;
  }

  private send(message: object): void {
    this.socket?.send(JSON.stringify(message));
  }

  /** Closes the connection without a state change. */
  private disconnect(): void {
    const socket = this.socket;
    this.forgetSocket();
    socket?.close();
  }

  private forgetSocket(): void {
    this.socket = undefined;
    this.last_page = undefined;
    this.awaits_page = false;
    clearTimeout(this.silence_timer);
    this.records.disconnected();
  }

  /** Reconnects after `silence_ms_max` without a frame: the daemon sends a heartbeat every 30 s. */
  private watchSilence(): void {
    const max = this.context.silence_ms_max;
    this.last_frame_ms = Date.now();
    const check = () => {
      const silent_ms = Date.now() - this.last_frame_ms;
      if (silent_ms < max) return void (this.silence_timer = setTimeout(check, max - silent_ms));
      this.disconnect();
      this.retryLater(0, `no frame for ${Math.round(silent_ms / 1000)} s`);
    };
    clearTimeout(this.silence_timer);
    this.silence_timer = setTimeout(check, max);
  }

  private lost(code: number, reason: string, status: number | undefined, credential: string | SignIn): void {
    this.forgetSocket();
    if (code === 4501 || status === 401) {
      // The token may have been rotated since it was read, or the challenge have expired: try again, once.
      const first = this.rejected === undefined;
      this.rejected = credential;
      this.rejected_reason = reason || "the token is not valid";
      if (first && credential !== "") return void this.open();
      return this.setState({ state: "unauthorized", reason: this.rejected_reason });
    }
    const permanent = [1002, 1007, 1009].includes(code) || (code >= 4500 && code < 5000) || status === 400 || status === 403;
    if (permanent) {
      return this.fail({ type: "error", code: "bad_message", message: `the daemon closed the connection: ${reason || status || code}`, retry: false });
    }
    this.retryLater(code, status ? `HTTP ${status}` : reason);
  }

  private retryLater(code: number, reason: string): void {
    const delay = this.backoff.next();
    this.tries++;
    this.retry_timer = setTimeout(() => void this.open(), delay);
    this.setState({ state: "retrying", at: Date.now() + delay, tries: this.tries, code, reason });
  }

  private fail(error: ErrorFrame): void {
    this.disconnect();
    this.setState({ state: "failed", error });
  }

  private receive(frame: Frame): void {
    this.last_frame_ms = Date.now();
    if (frame.type === "welcome") this.subscribe(frame);
    else if (frame.type === "record") return this.records.receive(frame);
    else if (frame.type === "error" && (this.records.fail(frame) || this.handleError(frame))) return;
    this.frame_is_replayed = this.received.isReplayed(frame);
    this.received.handle(frame);
    if (frame.type === "page") this.last_page = frame;
    if (frame.type === "page" || frame.type === "ready") this.awaits_page = false;
    if (this.handlers.frame) {
      this.handlers.frame(frame);
      this.markHandled(frame);
    } else {
      this.queue?.push(frame);
    }
    const complete = frame.type === "bookmark" && frame.complete;
    if (frame.type === "ready") {
      this.had_snapshot = true;
      this.tries = 0;
      this.backoff.reset();
    }
    if ((frame.type === "ready" || frame.type === "page" || complete) && this.socket && !this.received.isReplaying) this.setState({ state: "live" });
  }

  /** The consumer has finished with the frame, possibly long after it was received. */
  private markHandled(frame: Frame): void {
    if (frame.type === "welcome") this.handled.connected(this.requests.get(frame));
    this.handled.handle(frame);
  }

  /** Returns true if the error ended the connection. */
  private handleError(frame: ErrorFrame): boolean {
    if (frame.code === "bad_cursor" || frame.id !== subscription_id) return false;
    if (frame.retry || frame.code === "bad_page") { // a new connection gets a new snapshot
      this.disconnect();
      this.retryLater(0, frame.message);
    } else {
      this.fail(frame);
    }
    return true;
  }

  private subscribe(welcome: Welcome): void {
    const { filter, deliver, page, all, on_lag, since, history } = this.options;
    this.rejected = undefined;
    this.socket?.limitFrames?.(welcome.limits.outbound_bytes);
    const resumes = deliver !== "state" && (this.had_snapshot || this.received.size > 0 || history || since !== undefined);
    let request: ResumeRequest | undefined;
    if (resumes) {
      const { request: resume, left_out } = this.received.request(welcome.limits.frame_bytes);
      request = resume;
      this.requests.set(welcome, resume);
      this.setState({ state: "catching_up", left_out });
    }
    this.received.connected(request);
    this.send({
      type: "subscribe", id: subscription_id, ...(filter && { filter }), ...(deliver && { deliver }), ...(page !== undefined && { page }), ...(all && { all }), ...(on_lag && { on_lag }),
      ...(resumes && since !== undefined && { since: since instanceof Date ? since.toISOString() : since }), ...request,
    });
    this.awaits_page = page !== undefined;
    this.records.connected();
  }

  private pause(): void {
    if (this.socket?.pause) {
      clearTimeout(this.silence_timer);
      return this.socket.pause();
    }
    this.disconnect();
    clearTimeout(this.retry_timer);
    this.setState({ state: "paused" });
  }

  private resume(): void {
    if (this.current.state === "paused") return void this.open();
    if (!this.socket?.resume) return;
    this.watchSilence();
    this.socket.resume();
  }
}
