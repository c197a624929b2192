// The open session: a subscription to its whole history, for as long as its page is open.
import { signal, type Signal } from "@preact/signals";
import { SessionStore, isEvent, type Frame, type JsonValue, type SessionFrame } from "../../sdk/src/index.js";
import { earshot, sessionConnection, throttle } from "./connection.js";
import { SessionModel } from "./model.js";
import { parsePlace } from "./place.js";
import { exactPattern } from "./route.js";

const missing_ms = 400; // without a frame for this long after `live`, the session does not exist

export interface OpenSession {
  frame: Signal<SessionFrame | undefined>;
  model: SessionModel;
  /** Incremented when the page is to show what has changed. */
  version: Signal<number>;
  missing: Signal<boolean>;
  /** The whole history has arrived. */
  loaded: Signal<boolean>;
  read(stream: string, cursor: string): Promise<JsonValue>;
  close(): void;
}

/** `at`: the place that the page opens at, if it has one. */
export function openSession(session: string, host: string, at = ""): OpenSession {
  const frame = signal<SessionFrame | undefined>(undefined);
  const version = signal(0);
  const missing = signal(false);
  const store = new SessionStore({ events_max: 0 });
  const newModel = () => {
    const model = new SessionModel();
    const place = parsePlace(at);
    if (place) model.target = { place };
    return model;
  };
  const loaded = signal(false);
  const opened = { frame, version, missing, loaded, model: newModel() } as OpenSession;
  const { schedule, cancel } = throttle(() => {
    frame.value = [...store.sessions.values()][0]?.frame;
    if (frame.value) missing.value = false;
    else if (subscription.state.state === "live") missing.value = true; // its last transcript was removed
    version.value++;
  });
  const handleFrame = (received: Frame) => {
    // The model cannot remove a single stream: rebuild it from the events of all streams.
    if ((received.type === "reset" || received.type === "stream.removed") && store.sessions.size > 0) restart();
    else if (received.type === "stream.renamed") opened.model.renameStream(received.from, received.to);
    else if (isEvent(received)) opened.model.apply(received);
    if (received.type === "status" || received.type === "session") opened.model.observe(received.type === "status" ? received : received.status);
    schedule();
  };
  const filter = { session: [exactPattern(session)], ...(host && { host: [exactPattern(host)] }) };
  const start = () => earshot.watch({ filter, history: true, all: true, on_lag: "catch_up" }, store, {
    frame: handleFrame,
    state: (state) => {
      sessionConnection.value = state;
      loaded.value = state.state === "live";
      if (loaded.value) setTimeout(() => (missing.value = store.sessions.size === 0), missing_ms);
    },
  }).subscription;
  let subscription = start();
  const restart = () => {
    const old = subscription;
    queueMicrotask(() => {
      old.close();
      opened.model = newModel();
      subscription = start();
    });
  };
  opened.read = (stream, cursor) => subscription.read(stream, cursor);
  opened.close = () => {
    cancel();
    subscription.close();
    sessionConnection.value = undefined;
  };
  return opened;
}
