// State of the connection in one line, and what the user can do about it.
import { laggedUntil, ready, retry, sessionConnection, connection, type PageState } from "./connection.js";
import { wallClock } from "./format.js";

interface StatusText {
  text: string;
  kind: "live" | "wait" | "trouble";
  help?: string;
  command?: string; // for a terminal
  retry?: boolean;
}

const sign_in_help = "Run this in a terminal on the machine that earshot runs on, and open the link that it prints:";

const texts: { [S in PageState["state"]]: (state: Extract<PageState, { state: S }>) => StatusText } = {
  connecting: () => ({ text: ready.value ? "Reconnecting…" : "Connecting…", kind: "wait" }),
  catching_up: () => ({ text: "Catching up…", kind: "wait" }),
  live: () => ({ text: "Live.", kind: "live" }),
  paused: () => ({ text: "This page is behind. Catching up…", kind: "wait" }),
  retrying: ({ at, code, tries }) => {
    const seconds = Math.max(0, Math.ceil((at - wallClock.value) / 1000));
    const reason = code === 1001 ? "The daemon was stopped." : tries < 2 ? "The connection was lost." : "The daemon does not respond.";
    return { text: `${reason} Retrying in ${seconds} s.`, kind: "trouble", help: "The sessions below may be out of date. If the daemon does not return:", command: "earshot doctor", retry: true };
  },
  unauthorized: () => ({ text: "The token is no longer valid.", kind: "trouble", help: sign_in_help, command: "earshot open" }),
  signed_out: () => ({ text: "Not signed in.", kind: "trouble", help: sign_in_help, command: "earshot open" }),
  used: () => ({ text: "This link was already used, or is older than a minute.", kind: "trouble", help: sign_in_help, command: "earshot open" }),
  unreachable: () => ({ text: "The daemon did not respond.", kind: "trouble", help: "To diagnose the problem, run:", command: "earshot doctor" }),
  failed: ({ error }) => ({ text: `The daemon rejected the request: ${error.message}`, kind: "trouble", retry: true }),
  closed: () => ({ text: "Closed.", kind: "trouble" }),
};

function statusText(): StatusText {
  const status = texts[connection.value.state](connection.value as never);
  if (status.kind !== "live") return status;
  if (laggedUntil.value > wallClock.value) return { text: "Live. This page fell behind and skipped some events.", kind: "wait" };
  const session = sessionConnection.value;
  return session && session.state !== "live" ? texts[session.state](session as never) : status;
}

/** One line. A component of its own, because it is rendered every second. */
export function ConnectionStatus() {
  const { text, kind } = statusText();
  return <p id="state" role="status" data-kind={kind}>{text}</p>;
}

export function ConnectionHelp({ place }: { place: "advice" | "empty" }) {
  const { help, command, retry: can_retry } = statusText();
  if (!help && !can_retry) return null;
  return (
    <div id="help" class={place}>
      {help ? <p>{help}</p> : null}
      {command ? <pre><code>{command}</code></pre> : null}
      {can_retry ? <button type="button" onClick={retry}>Try now</button> : null}
    </div>
  );
}
