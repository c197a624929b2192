// What sessions are like now, put together from frames: `session` and `status` frames are the truth, events move it on between them.
import { splitPlace } from "./cursors.js";
import type { EarshotEvent, Frame, SessionFrame, Stream, Tokens } from "./protocol.js";
import { contextOf, reduce } from "./reduce.js";
import { Ring } from "./ring.js";
import { Samples } from "./samples.js";

export interface SessionState {
  /** Unique among all hosts. */
  readonly key: string;
  /** The newest frame, with what events have changed since. Another object after each change: safe to compare. */
  now: SessionFrame;
  /** Events as they came, the newest `events_max` of them. */
  readonly events: Ring<EarshotEvent>;
  /** How large its context was, since it was first told of here. */
  readonly context: Samples;
  readonly streams: Set<Stream>;
}

export interface StoreOptions {
  /** Of each session; older ones are forgotten. 0: none are kept. Default 5,000. */
  events_max?: number;
  /** Beyond, whoever was quiet for longest is forgotten. Default 10,000. */
  sessions_max?: number;
  /** Of each session's `context`; beyond, it is kept less finely. Default 64. */
  context_samples_max?: number;
}

export type StoreChange = { kind: "changed" | "gone"; session: SessionState } | { kind: "snapshot" };

export const sessionKey = (host: string, session: string) => `${host}\n${session}`;

export class SessionStore {
  readonly sessions = new Map<string, SessionState>();
  /** The frames of a snapshot are still coming. */
  private fresh: Set<string> | undefined;
  /** Streams that began anew since the connection did: their events are not in a `session` frame yet. */
  private readonly anew = new Set<Stream>();
  private readonly byStream = new Map<Stream, SessionState>();
  private readonly totals = new Map<Stream, Tokens>();
  private readonly listeners = new Set<(change: StoreChange) => void>();

  constructor(private readonly options: StoreOptions = {}) {}

  /** Called at each change, at once; returns how to stop that. */
  onChange(listener: (change: StoreChange) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Hand it every frame of one subscription, in order. `missed`: the subscription is catching up; `session` frames have its events
   * already, so that only history grows.
   */
  take(frame: Frame, missed = false): void {
    switch (frame.type) {
      case "welcome":
        this.fresh = new Set();
        this.anew.clear();
        return;
      case "session": return this.session(frame, missed);
      case "ready": return this.ready();
      case "status": {
        const state = this.sessions.get(sessionKey(frame.host, frame.session));
        if (!state) return;
        const { type: _, host: __, session: ___, ...status } = frame;
        state.now = { ...state.now, status };
        return this.tell({ kind: "changed", session: state });
      }
      case "reset": return this.reset(frame.stream, frame.id !== undefined && frame.reason === "unknown");
      case "stream.removed": return this.reset(frame.stream, true);
      case "bookmark": case "lagged": case "record": case "error": return;
      default: return this.event(frame, missed);
    }
  }

  /** What its context was from the beginning on, from whoever read that: the store itself knows only what it was told. */
  recall(key: string, sizes: Iterable<number>): void {
    const state = this.sessions.get(key);
    if (!state) return;
    state.context.clear();
    for (const size of sizes) sample(state, size);
    sample(state, state.now.usage.context);
    state.now = { ...state.now };
    this.tell({ kind: "changed", session: state });
  }

  private tell(change: StoreChange): void {
    for (const listener of this.listeners) listener(change);
  }

  private session(frame: SessionFrame, missed: boolean): void {
    const key = sessionKey(frame.host, frame.session);
    this.fresh?.add(key);
    let state = this.sessions.get(key);
    if (state) state.now = frame;
    else state = this.add(key, frame);
    for (const place of frame.cursors) this.join(state, splitPlace(place)[0]);
    if (!missed) sample(state, frame.usage.context); // else the events that follow tell it, in their order
    this.tell({ kind: "changed", session: state });
  }

  private join(state: SessionState, stream: Stream): void {
    state.streams.add(stream);
    this.byStream.set(stream, state);
  }

  private add(key: string, now: SessionFrame): SessionState {
    const state: SessionState = { key, now, events: new Ring(this.options.events_max ?? 5_000), context: new Samples(this.options.context_samples_max ?? 64), streams: new Set() };
    this.sessions.set(key, state);
    if (this.sessions.size > (this.options.sessions_max ?? 10_000)) this.forgetQuietest(key);
    return state;
  }

  private forgetQuietest(but: string): void {
    let quietest: SessionState | undefined;
    for (const one of this.sessions.values()) {
      if (one.key !== but && (!quietest || (one.now.last_activity ?? "") < (quietest.now.last_activity ?? ""))) quietest = one;
    }
    if (quietest) this.forget(quietest);
  }

  private forget(state: SessionState): void {
    this.sessions.delete(state.key);
    for (const stream of state.streams) {
      this.byStream.delete(stream);
      this.totals.delete(stream);
    }
    this.tell({ kind: "gone", session: state });
  }

  /** What the snapshot did not tell of is not there any more. */
  private ready(): void {
    if (this.fresh) {
      for (const state of [...this.sessions.values()]) if (!this.fresh.has(state.key)) this.forget(state);
    }
    this.fresh = undefined;
    this.tell({ kind: "snapshot" });
  }

  private reset(stream: Stream, gone: boolean): void {
    const state = this.byStream.get(stream);
    this.totals.delete(stream);
    this.anew.add(stream);
    if (!state) return;
    state.events.keep((event) => event.stream !== stream);
    if (gone) {
      state.streams.delete(stream);
      this.byStream.delete(stream);
      if (state.streams.size === 0) return this.forget(state);
    } else if (state.streams.size === 1) {
      // Told anew: from its first line, or with a session frame that comes next.
      state.now = blank(state.now.host, state.now.session, state.now.directory, state.now.status);
      state.context.clear();
    }
    this.tell({ kind: "changed", session: state });
  }

  private event(event: EarshotEvent, missed: boolean): void {
    if (typeof event.cursor !== "string") return; // from a later daemon, and no event
    const key = sessionKey(event.host, event.session);
    const state = this.sessions.get(key) ?? this.add(key, blank(event.host, event.session, event.stream.split("/")[1] ?? ""));
    this.join(state, event.stream);
    if (state.events.limit > 0) state.events.push(event);
    if (!missed || this.anew.has(event.stream)) state.now = reduce(state.now, event, this.totals, state.streams.size === 1);
    if (event.type === "usage.updated") {
      this.totals.set(event.stream, event.total);
      sample(state, contextOf(event));
    }
    this.tell({ kind: "changed", session: state });
  }
}

function sample(state: SessionState, size: number | undefined): void {
  if (size !== undefined && size !== state.context.last) state.context.push(size);
}

/** Of a session of which nothing is known but its name. */
function blank(host: string, session: string, directory: string, status: SessionFrame["status"] = { state: "unknown", source: "transcript" }): SessionFrame {
  return {
    type: "session", host, session, cursors: [], directory, status, turn: { number: 0, open: false }, tools: [], todos: [], agents: [],
    usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
  };
}
