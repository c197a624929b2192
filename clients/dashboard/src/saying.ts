// What the page says about its connection: honest, and with what can be done about it.
import { laggedUntil, ready, sessionLive, state, type PageState } from "./connection.js";
import { now } from "./format.js";

export interface Saying {
  text: string;
  kind: "live" | "wait" | "trouble";
  help?: string;
  code?: string; // to be typed into a terminal
  retry?: boolean;
}

const open = "Run this in a terminal on the machine that earshot runs on, and open the link that it prints:";

const sayings: { [S in PageState["state"]]: (state: Extract<PageState, { state: S }>) => Saying } = {
  connecting: () => ({ text: ready.value ? "Reconnecting…" : "Connecting…", kind: "wait" }),
  catching_up: () => ({ text: "Catching up…", kind: "wait" }),
  live: () => ({ text: "Live.", kind: "live" }),
  held: () => ({ text: "This page is behind: catching up…", kind: "wait" }),
  retrying: ({ at, code, tries }) => {
    const seconds = Math.max(0, Math.ceil((at - now.value) / 1000));
    const why = code === 1001 ? "The daemon was stopped and is gone." : tries < 2 ? "The connection was lost." : "The daemon is gone.";
    return { text: `${why} Trying again in ${seconds} s.`, kind: "trouble", help: "What is listed may have changed since. If the daemon does not come back:", code: "earshot doctor", retry: true };
  },
  unauthorised: () => ({ text: "The token is not good any more.", kind: "trouble", help: open, code: "earshot open" }),
  signed_out: () => ({ text: "Not signed in.", kind: "trouble", help: open, code: "earshot open" }),
  used: () => ({ text: "This link was used already, or is older than a minute.", kind: "trouble", help: open, code: "earshot open" }),
  unreachable: () => ({ text: "The daemon is gone: it did not answer.", kind: "trouble", help: "See what troubles it:", code: "earshot doctor" }),
  failed: ({ error }) => ({ text: `The daemon says: ${error.message}`, kind: "trouble", retry: true }),
  closed: () => ({ text: "Closed.", kind: "trouble" }),
};

export function saying(): Saying {
  const one = sayings[state.value.state](state.value as never);
  if (one.kind !== "live") return one;
  if (laggedUntil.value > now.value) return { text: "Live. This page fell behind and skipped some of what happened.", kind: "wait" };
  if (sessionLive.value && sessionLive.value.state !== "live") return sayings[sessionLive.value.state](sessionLive.value as never);
  return one;
}
