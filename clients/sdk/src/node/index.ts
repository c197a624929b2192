// For Node: finds the local daemon through its state directory and reads the token. No dependencies.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { Earshot, type EarshotOptions } from "../client.js";
import type { Connect, Socket } from "../socket.js";
import { nodeSocket } from "./websocket.js";

export * from "../index.js";
export { nodeSocket, type NodeSocketOptions } from "./websocket.js";

/** Directory with the daemon's address, socket path and token: `$XDG_STATE_HOME/earshot` if that is absolute, else `~/.local/state/earshot`. */
export function stateDirectory({ XDG_STATE_HOME = "" }: NodeJS.ProcessEnv = process.env): string {
  return join(isAbsolute(XDG_STATE_HOME) ? XDG_STATE_HOME : join(homedir(), ".local/state"), "earshot");
}

/** Whether the process that `lock` names has ended: then `address` is a leftover, and another program may listen there. */
function hasEnded(lock: string): boolean {
  const pid = Number.parseInt(lock, 10);
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

export interface LocalOptions extends Omit<EarshotOptions, "connect"> {
  /** State directory, as the daemon's `--state`. */
  state?: string;
  /** `false`: use TCP even if the daemon has a Unix socket. */
  socket?: boolean;
}

/**
 * Connects to this user's daemon on this machine. Address, token and socket path are read again for each attempt: the daemon may
 * restart on another port, or start after the client.
 */
export function local(options: LocalOptions = {}): Earshot {
  const { state = stateDirectory(), socket = true, url, token, ...rest } = options;
  const readState = (name: string) => readFileSync(join(state, name), "utf8").trim();
  const unix = () => {
    if (!socket || url || !existsSync(join(state, "socket"))) return undefined;
    const path = readState("socket");
    return existsSync(path) ? path : undefined;
  };
  return new Earshot({
    ...rest,
    token: token ?? (() => (unix() || !existsSync(join(state, "token")) ? "" : readState("token"))),
    connect: (bearer, view): Connect => (handlers) => {
      const path = unix();
      let address = url;
      if (!address && !path) {
        const unreachable = (why: string): Socket => {
          setImmediate(() => handlers.closed(1006, `${why}: start earshotd`));
          return { send() {}, close() {} };
        };
        try {
          address = readState("address");
        } catch {
          return unreachable(`no daemon address in ${state}`);
        }
        if (existsSync(join(state, "lock")) && hasEnded(readState("lock"))) return unreachable(`the daemon that wrote ${join(state, "address")} has ended`);
      }
      const target = (address ?? "ws://localhost/v1/ws") + (view ? `?view=${view}` : "");
      return nodeSocket({ url: target, ...(bearer && { token: bearer }), ...(path && { socketPath: path }) })(handlers);
    },
  });
}
