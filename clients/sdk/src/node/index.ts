// For Node: finds the daemon by its state directory, reads the token, and needs no package for WebSocket.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Earshot, type EarshotOptions } from "../client.js";
import type { Connect } from "../socket.js";
import { nodeSocket } from "./websocket.js";

export * from "../index.js";
export { nodeSocket, type NodeSocketOptions } from "./websocket.js";

/** Where the daemon writes what a client wants: `$XDG_STATE_HOME/earshot`, else `~/.local/state/earshot`. */
export function stateDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment.XDG_STATE_HOME || join(homedir(), ".local/state"), "earshot");
}

export interface LocalOptions extends Omit<EarshotOptions, "connect"> {
  /** The daemon's `--state`. */
  state?: string;
  /** `false`: TCP even where there is a Unix socket. */
  socket?: boolean;
}

/**
 * The daemon of this user on this machine. Address, token and socket are read anew at each try, so that a daemon that comes back
 * elsewhere is found; until there is one, it is tried again.
 */
export function local(options: LocalOptions = {}): Earshot {
  const { state = stateDirectory(), socket = true, url, token, ...rest } = options;
  const kept = (name: string) => readFileSync(join(state, name), "utf8").trim();
  const unix = () => {
    if (!socket || url || !existsSync(join(state, "socket"))) return undefined;
    const path = kept("socket");
    return existsSync(path) ? path : undefined;
  };
  return new Earshot({
    ...rest,
    token: token ?? (() => (unix() || !existsSync(join(state, "token")) ? "" : kept("token"))),
    connect: (given, view): Connect => (handlers) => {
      const path = unix();
      let address = url;
      if (!address && !path) {
        try {
          address = kept("address");
        } catch {
          setImmediate(() => handlers.closed(1006, `no daemon has written its address into ${state}`));
          return { send() {}, close() {} };
        }
      }
      const asked = (address ?? "ws://localhost/v1/ws") + (view ? `?view=${view}` : "");
      return nodeSocket({ url: asked, ...(given && { token: given }), ...(path && { socketPath: path }) })(handlers);
    },
  });
}
