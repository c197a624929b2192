// The door: where the daemon is, and who asks.
import type { BackoffOptions } from "./backoff.js";
import { platformSocket, type Connect } from "./socket.js";
import { SessionStore } from "./store.js";
import { Subscription, type SubscribeOptions, type SubscriptionHandlers } from "./subscription.js";

export interface EarshotOptions {
  /** Such as `ws://127.0.0.1:7717/v1/ws`. */
  url?: string;
  /** Asked again when the one it gave is no longer good. An empty one: none is needed, as on a Unix socket. */
  token?: string | (() => string | Promise<string>);
  /** Another way to connect; by default the platform's WebSocket, to `url`. */
  connect?: (token: string, view: "full" | "meta" | undefined) => Connect;
  /** Who is calling, for the daemon's log: `lamp/1.0`. */
  client?: string;
  backoff?: BackoffOptions;
}

export class Earshot {
  private readonly subscriptions = new Set<Subscription>();

  constructor(private readonly options: EarshotOptions) {
    if (!options.connect && !options.url) throw new Error("where is the daemon? give `url`, such as ws://127.0.0.1:7717/v1/ws");
  }

  /** As many as you like, each with its own filter; each comes back by itself until it is closed. */
  subscribe(options: SubscribeOptions = {}, handlers: SubscriptionHandlers = {}): Subscription {
    const { url, token, connect, client, backoff } = this.options;
    const subscription = new Subscription(
      {
        connect: connect ?? (() => platformSocket(url!)),
        token: () => (typeof token === "function" ? token() : (token ?? "")),
        client: client ?? "sdk/0.1.0",
        backoff: backoff ?? {},
        ended: (ended) => this.subscriptions.delete(ended),
      },
      options,
      handlers,
    );
    this.subscriptions.add(subscription);
    return subscription;
  }

  /** A subscription that keeps a store up to date. */
  watch(options: SubscribeOptions = {}, store = new SessionStore(), handlers: SubscriptionHandlers = {}): { store: SessionStore; subscription: Subscription } {
    const subscription: Subscription = this.subscribe(options, {
      ...handlers,
      frame: (frame) => {
        store.take(frame, subscription.state.state === "catching_up");
        handlers.frame?.(frame);
      },
    });
    return { store, subscription };
  }

  close(): void {
    for (const subscription of [...this.subscriptions]) subscription.close();
  }
}
