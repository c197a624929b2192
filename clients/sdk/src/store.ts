// Current state of the sessions of one subscription. `session` and `status` frames replace it; events update it in between.
import { RingBuffer, SampledSeries } from "./buffers.js";
import { contextTokens, isEvent, splitPlace } from "./frames.js";
import type { EarshotEvent, Frame, SessionFrame, Stream } from "./protocol.js";
import { reduce, withStatus, type StreamTotal } from "./reduce.js";

export interface SessionState {
  /** Unique across hosts. */
  readonly key: string;
  /** The last frame, updated by the events since. Every change creates a new object. */
  frame: SessionFrame;
  /** The newest `events_max` events in order of arrival. */
  readonly events: RingBuffer<EarshotEvent>;
  /** Tokens in the context over time, since the store knows the session. */
  readonly context: SampledSeries;
  readonly streams: Set<Stream>;
}

export interface StoreOptions {
  /** Events kept per session; older ones are dropped. Default 5,000. */
  events_max?: number;
  /** Sessions kept; above it, the session with the oldest activity is removed. Default 10,000. */
  sessions_max?: number;
  /** Samples kept in each session's `context`; above it, the resolution is halved. Default 64. */
  context_samples_max?: number;
}

/** `page`: a page of the snapshot is complete; `snapshot`: all of it. */
export type StoreChange = { kind: "updated" | "removed"; session: SessionState } | { kind: "page" } | { kind: "snapshot" };

export const sessionKey = (host: string, session: string) => `${host}\n${session}`;

export class SessionStore {
  readonly sessions = new Map<string, SessionState>();
  private snapshot: Set<string> | undefined; // keys in the snapshot that is being received
  private readonly restarted = new Set<Stream>(); // reset on this connection: no `session` frame includes their events yet
  private readonly by_stream = new Map<Stream, SessionState>();
  private readonly totals = new Map<Stream, StreamTotal>();
  private readonly listeners = new Set<(change: StoreChange) => void>();

  constructor(private readonly options: StoreOptions = {}) {}

  /** Calls `listener` synchronously on each change. Returns a function that removes it. */
  onChange(listener: (change: StoreChange) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** True if this connection has sent the session. Others are known from an earlier one, until the snapshot is complete. */
  isSent(key: string): boolean {
    return !this.snapshot || this.snapshot.has(key);
  }

  /** Applies the next frame of one subscription. `replayed`: session frames already include the event, so it is only added to `events`. */
  apply(frame: Frame, replayed = false): void {
    if (isEvent(frame)) return this.applyEvent(frame, replayed);
    switch (frame.type) {
      case "welcome":
        this.snapshot = new Set();
        this.restarted.clear();
        return;
      case "session": return this.applySession(frame, replayed);
      case "page": return this.notify({ kind: "page" });
      case "ready": return this.completeSnapshot();
      case "status": {
        const state = this.sessions.get(sessionKey(frame.host, frame.session));
        if (!state) return;
        const { type: _, host: __, session: ___, program, project, title, ...status } = frame;
        state.frame = { ...(program && { program }), ...(project && { project }), ...state.frame, ...(title && { title }), ...withStatus(state.frame, status) };
        return this.notify({ kind: "updated", session: state });
      }
      case "reset": return this.resetStream(frame.stream, frame.id !== undefined && frame.reason === "unknown");
      case "stream.renamed": return this.renameStream(frame.from, frame.to);
      case "stream.removed": return this.resetStream(frame.stream, true);
    }
  }

  /** Replaces a session's `context` by values read from its history. */
  setContextHistory(key: string, tokens: Iterable<number>): void {
    const state = this.sessions.get(key);
    if (!state) return;
    state.context.clear();
    for (const count of tokens) addContextSample(state, count);
    addContextSample(state, state.frame.usage.context);
    state.frame = { ...state.frame };
    this.notify({ kind: "updated", session: state });
  }

  private notify(change: StoreChange): void {
    for (const listener of this.listeners) listener(change);
  }

  private applySession(frame: SessionFrame, replayed: boolean): void {
    const key = sessionKey(frame.host, frame.session);
    this.snapshot?.add(key);
    let state = this.sessions.get(key);
    if (state) state.frame = frame;
    else state = this.add(key, frame);
    for (const place of frame.cursors) this.addStream(state, splitPlace(place)[0]);
    if (!replayed) addContextSample(state, frame.usage.context); // the replayed events contain it, in order
    this.notify({ kind: "updated", session: state });
  }

  private addStream(state: SessionState, stream: Stream): void {
    state.streams.add(stream);
    this.by_stream.set(stream, state);
  }

  private add(key: string, frame: SessionFrame): SessionState {
    const { events_max = 5_000, context_samples_max = 64, sessions_max = 10_000 } = this.options;
    const state: SessionState = { key, frame, events: new RingBuffer(events_max), context: new SampledSeries(context_samples_max), streams: new Set() };
    this.sessions.set(key, state);
    if (this.sessions.size > sessions_max) this.removeLeastRecent(key);
    return state;
  }

  private removeLeastRecent(except: string): void {
    let oldest: SessionState | undefined;
    for (const state of this.sessions.values()) {
      if (state.key !== except && (!oldest || (state.frame.last_activity ?? "") < (oldest.frame.last_activity ?? ""))) oldest = state;
    }
    if (oldest) this.remove(oldest);
  }

  private remove(state: SessionState): void {
    this.sessions.delete(state.key);
    for (const stream of state.streams) {
      this.by_stream.delete(stream);
      this.totals.delete(stream);
    }
    this.notify({ kind: "removed", session: state });
  }

  /** Removes the sessions that the snapshot did not contain. */
  private completeSnapshot(): void {
    if (this.snapshot) {
      for (const state of [...this.sessions.values()]) if (!this.snapshot.has(state.key)) this.remove(state);
    }
    this.snapshot = undefined;
    this.notify({ kind: "snapshot" });
  }

  /** Its events go on under another name. */
  private renameStream(from: Stream, to: Stream): void {
    const state = this.by_stream.get(from);
    const total = this.totals.get(from);
    if (total && !this.totals.has(to)) this.totals.set(to, total);
    this.totals.delete(from);
    if (this.restarted.delete(from)) this.restarted.add(to);
    if (!state) return;
    for (const event of state.events.list()) if (event.stream === from) event.stream = to;
    this.addStream(state, to);
    state.streams.delete(from);
    this.by_stream.delete(from);
    this.notify({ kind: "updated", session: state });
  }

  private resetStream(stream: Stream, removed: boolean): void {
    const state = this.by_stream.get(stream);
    this.totals.delete(stream);
    this.restarted.add(stream);
    if (!state) return;
    state.events.filter((event) => event.stream !== stream);
    if (removed) {
      state.streams.delete(stream);
      this.by_stream.delete(stream);
      if (state.streams.size === 0) return this.remove(state);
    } else if (state.streams.size === 1) {
      // Its events from the first one, or a session frame, follow.
      state.frame = emptyFrame(state.frame.host, state.frame.session, state.frame.directory, state.frame.status);
      state.context.clear();
    }
    this.notify({ kind: "updated", session: state });
  }

  private applyEvent(event: EarshotEvent, replayed: boolean): void {
    const key = sessionKey(event.host, event.session);
    const state = this.sessions.get(key) ?? this.add(key, emptyFrame(event.host, event.session, event.stream.split("/")[1] ?? ""));
    this.addStream(state, event.stream);
    if (state.events.limit > 0) state.events.push(event);
    if (!replayed || this.restarted.has(event.stream)) state.frame = reduce(state.frame, event, this.totals, state.streams.size === 1);
    if (event.type === "usage.updated") {
      const cost_usd = event.cost_usd ?? this.totals.get(event.stream)?.cost_usd;
      this.totals.set(event.stream, { ...event.total, ...(cost_usd !== undefined && { cost_usd }) });
      addContextSample(state, contextTokens(event));
    }
    this.notify({ kind: "updated", session: state });
  }
}

function addContextSample(state: SessionState, tokens: number | undefined): void {
  if (tokens !== undefined && tokens !== state.context.last) state.context.push(tokens);
}

/** The frame of a session before anything but its name is known. */
function emptyFrame(host: string, session: string, directory: string, status: SessionFrame["status"] = { state: "unknown", source: "transcript" }): SessionFrame {
  return {
    type: "session", host, session, cursors: [], directory, status, turn: { number: 0, open: false }, tools: [], todos: [], agents: [],
    usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
  };
}
