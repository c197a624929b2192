// Entry point: the daemon's address, the credentials and the subscriptions.
import type { BackoffOptions } from "./backoff.js";
import { platformSocket, type Connect } from "./socket.js";
import { SessionStore } from "./store.js";
import { Subscription, type SignIn, type SubscribeOptions, type SubscriptionHandlers } from "./subscription.js";

export interface EarshotOptions {
  /** For example `ws://127.0.0.1:7717/v1/ws`. */
  url?: string;
  /** Called for each connection attempt; if it throws or rejects, the attempt is repeated later. Empty: not needed, as on a Unix socket. */
  token?: string | (() => string | Promise<string>);
  /** Instead of a token: called for each connection attempt, returns a browser's answer to a new challenge. If it throws `SignInError` the subscription becomes `unauthorized`. */
  authorize?: () => Promise<SignIn>;
  /** Replaces the platform's WebSocket to `url`. */
  connect?: (token: string, view: "full" | "meta" | undefined) => Connect;
  /** Name and version of the program for the daemon's log: `lamp/1.0`. */
  client?: string;
  backoff?: BackoffOptions;
  /** Reconnect after this long without a frame. Default 75,000; the daemon sends a heartbeat every 30 s. */
  silence_ms_max?: number;
}

const silence_ms_max = 75_000;
const runsInNode = () => (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined; // also Deno and Bun

export class Earshot {
  private readonly subscriptions = new Set<Subscription>();

  constructor(private readonly options: EarshotOptions) {
    const { connect, url, token } = options;
    if (!connect && !url) throw new Error("no address: set `url`, for example ws://127.0.0.1:7717/v1/ws");
    // A page is served by the daemon it connects to; any other program would send the token to whatever listens on the port.
    if (!connect && token && url!.startsWith("ws:") && runsInNode()) throw new Error("in Node, use local() of @earshot/sdk/node: it verifies the daemon before it sends the token");
  }

  /** Opens a subscription, which reconnects until it is closed. */
  subscribe(options: SubscribeOptions = {}, handlers: SubscriptionHandlers = {}): Subscription {
    const { url, token, authorize, connect, client, backoff } = this.options;
    const subscription = new Subscription(
      {
        connect: connect ?? (() => platformSocket(url!)),
        credential: authorize ?? (() => (typeof token === "function" ? token() : (token ?? ""))),
        client: client ?? "sdk/0.1.0",
        backoff: backoff ?? {},
        silence_ms_max: this.options.silence_ms_max ?? silence_ms_max,
        closed: (closed) => this.subscriptions.delete(closed),
      },
      options,
      handlers,
    );
    this.subscriptions.add(subscription);
    return subscription;
  }

  /** Opens a subscription that updates a store. */
  watch(options: SubscribeOptions = {}, store = new SessionStore(), handlers: SubscriptionHandlers = {}): { store: SessionStore; subscription: Subscription } {
    const subscription: Subscription = this.subscribe(options, {
      ...handlers,
      frame: (frame) => {
        store.apply(frame, subscription.isReplayed);
        handlers.frame?.(frame);
      },
    });
    return { store, subscription };
  }

  /** Connects all subscriptions now that wait, or were unauthorized. */
  retry(): void {
    for (const subscription of this.subscriptions) subscription.retry();
  }

  /** Closes all subscriptions. */
  close(): void {
    for (const subscription of [...this.subscriptions]) subscription.close();
  }
}
