// One session from its first line on: a subscription of its own, for as long as its page is open.
import { signal, type Signal } from "@preact/signals";
import { SessionStore, type Frame, type JsonValue, type SessionFrame } from "../../sdk/src/index.js";
import { earshot, sessionLive } from "./connection.js";
import { beat } from "./beat.js";
import { SessionModel } from "./model.js";
import { exactly } from "./route.js";

const missing_ms = 400; // a session that is not told of in this time after `live` is not there

export interface OpenSession {
  frame: Signal<SessionFrame | undefined>;
  model: SessionModel;
  /** Grows whenever the model did. */
  version: Signal<number>;
  missing: Signal<boolean>;
  read(stream: string, cursor: string): Promise<JsonValue>;
  close(): void;
}

export function openSession(session: string, host: string): OpenSession {
  const frame = signal<SessionFrame | undefined>(undefined);
  const version = signal(0);
  const missing = signal(false);
  const store = new SessionStore({ events_max: 0 });
  const opened = { frame, version, missing, model: new SessionModel() } as OpenSession;
  const { soon, stop } = beat(() => {
    frame.value = [...store.sessions.values()][0]?.now;
    if (frame.value) missing.value = false;
    else if (subscription.state.state === "live") missing.value = true; // its last transcript went
    version.value++;
  });
  const take = (got: Frame) => {
    // A stream that is told anew: all of them are, of this session. Its other streams' events come again only from the daemon, so ask.
    if ((got.type === "reset" || got.type === "stream.removed") && store.sessions.size > 0) restart();
    else if ("cursor" in got && typeof got.cursor === "string") opened.model.take(got);
    soon();
  };
  const filter = { session: [exactly(session)], ...(host && { host: [exactly(host)] }) };
  const start = () => earshot.watch({ filter, history: true, all: true, on_lag: "catch_up" }, store, {
    frame: take,
    state: (state) => {
      sessionLive.value = state;
      if (state.state === "live") setTimeout(() => (missing.value = store.sessions.size === 0), missing_ms);
    },
  }).subscription;
  let subscription = start();
  const restart = () => {
    const old = subscription;
    queueMicrotask(() => {
      old.close();
      opened.model = new SessionModel();
      subscription = start();
    });
  };
  opened.read = (stream, cursor) => subscription.read(stream, cursor);
  opened.close = () => {
    stop();
    subscription.close();
    sessionLive.value = undefined;
  };
  return opened;
}
