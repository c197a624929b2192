// The WebSocket interface that a subscription uses: implemented by the platform's WebSocket and, for Node, by node/websocket.ts.

export const subprotocol = "earshot.v1";

export interface SocketHandlers {
  opened(): void;
  message(text: string): void;
  /** Called once, last. `status`: of the HTTP response that refused the upgrade, where it is available. */
  closed(code: number, reason: string, status?: number): void;
}

export interface Socket {
  send(text: string): void;
  close(): void;
  /** Stops and restarts reading, which applies backpressure to the daemon. Not available in browsers. */
  pause?(): void;
  resume?(): void;
  /** Sets the size of the largest frame that the daemon may send. */
  limitFrames?(bytes: number): void;
  /** The request itself was authenticated: no `hello` is needed. */
  readonly authorized?: boolean;
}

export type Connect = (handlers: SocketHandlers) => Socket;

/** The WebSocket of browsers, Node 22, Deno and Bun. */
export function platformSocket(url: string): Connect {
  return (handlers) => {
    const socket = new WebSocket(url, subprotocol);
    socket.onopen = () => handlers.opened();
    socket.onmessage = ({ data }) => handlers.message(String(data));
    socket.onclose = ({ code, reason }) => handlers.closed(code, reason);
    socket.onerror = () => {}; // always followed by a close event
    return { send: (text) => socket.send(text), close: () => socket.close(1000) };
  };
}
