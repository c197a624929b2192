// What agents do, as it happens: for browsers and Node. The contract is protocol/README.md.
export * from "./protocol.js";
export { Earshot, type EarshotOptions } from "./client.js";
export { Subscription, type ConnectionState, type SubscribeOptions, type SubscriptionHandlers } from "./subscription.js";
export { ReadError } from "./reads.js";
export { Backoff, type BackoffOptions } from "./backoff.js";
export { Cursors, isCursor, splitPlace } from "./cursors.js";
export { platformSocket, subprotocol, type Connect, type Socket, type SocketHandlers } from "./socket.js";
export { SessionStore, sessionKey, type SessionState, type StoreChange, type StoreOptions } from "./store.js";
export { contextOf, isAway } from "./reduce.js";
export { Samples } from "./samples.js";
export { isCut, matches, whole } from "./text.js";
