// Public API for browsers and Node. protocol/README.md documents the frames.
export * from "./protocol.js";
export { Earshot, type EarshotOptions } from "./client.js";
export { SignInError, Subscription, type ConnectionState, type SignIn, type SubscribeOptions, type SubscriptionHandlers } from "./subscription.js";
export { ReadError } from "./record_requests.js";
export { Backoff, type BackoffOptions } from "./backoff.js";
export { StreamResumer, type ResumeRequest } from "./resumer.js";
export { accountLimits, contextTokens, isCursor, isEvent, isOffline, matchesPattern, sessionTimes, splitPlace, truncatedBytes, truncatedTexts, usageOfDay, waitOf, type AccountLimit } from "./frames.js";
export { platformSocket, subprotocol, type Connect, type Socket, type SocketHandlers } from "./socket.js";
export { SessionStore, sessionKey, type SessionState, type StoreChange, type StoreOptions } from "./store.js";
export { RingBuffer, SampledSeries } from "./buffers.js";
