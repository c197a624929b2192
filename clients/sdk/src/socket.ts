// What a subscription needs of a WebSocket: a browser's has it, and node/websocket.ts for Node, which has none before 22.

export const subprotocol = "earshot.v1";

export interface SocketHandlers {
  opened(): void;
  message(text: string): void;
  /** Once, and nothing after it. `status`: of the HTTP answer that refused the upgrade, where that can be known. */
  closed(code: number, reason: string, status?: number): void;
}

export interface Socket {
  send(text: string): void;
  close(): void;
  /** Stop and go on reading: so that the one who writes feels it. A browser's socket cannot. */
  pause?(): void;
  resume?(): void;
  /** The token went with the request, so no `hello` is needed for it. */
  readonly authorised?: boolean;
}

export type Connect = (handlers: SocketHandlers) => Socket;

/** The platform's own WebSocket: browsers, Node 22, Deno, Bun. */
export function platformSocket(url: string): Connect {
  return (handlers) => {
    const socket = new WebSocket(url, subprotocol);
    socket.onopen = () => handlers.opened();
    socket.onmessage = ({ data }) => handlers.message(String(data));
    socket.onclose = ({ code, reason }) => handlers.closed(code, reason);
    socket.onerror = () => {}; // a close follows, always
    return { send: (text) => socket.send(text), close: () => socket.close(1000) };
  };
}
