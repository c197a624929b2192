// State of the connection in one line, and what the user can do about it.
import { laggedUntil, ready, retry, sessionConnection, sessions, connection, type PageState } from "./connection.js";
import { wallClock } from "./format.js";
import { SignInForm } from "./SignInForm.js";
import { is_temporary } from "./signin.js";

interface StatusText {
  text: string;
  kind: "live" | "wait" | "trouble";
  help?: string;
  command?: string; // for a terminal
  retry?: boolean;
  signs_in?: boolean; // a one-time code helps
}

const sign_in_help = "Run this in a terminal on the machine that earshot runs on, and open the link that it prints, or paste it below. It is valid once, for a minute:";

const signInText = (text: string, help = sign_in_help): StatusText => ({ text, kind: "trouble", help, command: "earshot open", signs_in: true });

const texts: { [S in PageState["state"]]: (state: Extract<PageState, { state: S }>) => StatusText } = {
  connecting: () => ({ text: ready.value ? "Reconnecting…" : "Connecting…", kind: "wait" }),
  catching_up: () => ({ text: "Catching up…", kind: "wait" }),
  live: () => ({ text: "Live.", kind: "live" }),
  paused: () => ({ text: "This page is behind. Catching up…", kind: "wait" }),
  retrying: ({ at, code, tries }) => {
    const seconds = Math.max(0, Math.ceil((at - wallClock.value) / 1000));
    const reason = code === 1001 ? "The daemon was stopped." : tries < 2 ? "The connection was lost." : "The daemon does not respond.";
    return { text: `${reason} Retrying in ${seconds} s.`, kind: "trouble", help: `${sessions.value.length > 0 ? "The sessions below may be out of date. " : ""}If the daemon does not return:`, command: "earshot doctor", retry: true };
  },
  unauthorized: () => signInText("This browser was signed out."),
  refused: () => ({ ...signInText("This browser was signed out."), retry: true }),
  signed_out: () => signInText("Not signed in."),
  code_used: () => signInText("This link was already used."),
  code_expired: () => signInText("This link is older than a minute."),
  code_unknown: () => signInText("This link is not of the daemon that runs now."),
  code_malformed: () => signInText("This is not a link of earshot open."),
  other_daemon: () => ({ ...signInText("This is another daemon than the one that this browser signed in to.", `It has another state directory, or another program uses its port. If you know why, sign in anew. ${sign_in_help}`), retry: true }),
  impostor: () => ({ ...signInText("What answers here did not prove that it is your daemon.", "Another program may use its port: see earshot doctor. Nothing was sent to it that it could use. To sign in again:"), retry: true }),
  limit: () => signInText("Too many browsers are signed in.", "List them, and revoke those that are not needed: earshot browsers. Then sign in again:"),
  wrong_origin: () => ({ text: "Browsers cannot sign in at this address.", kind: "trouble", help: "Open the page at the address that this prints:", command: "earshot open" }),
  unsupported: () => ({ text: "This browser cannot sign in here.", kind: "trouble", help: "It has no WebCrypto, or not at this address. Use a current browser, and the address that this prints:", command: "earshot open" }),
  unreachable: () => ({ text: "The daemon did not respond.", kind: "trouble", help: "To diagnose the problem, run:", command: "earshot doctor" }),
  failed: ({ error }) => ({ text: `The daemon rejected the request: ${error.message}`, kind: "trouble", retry: true }),
  closed: () => ({ text: "Closed.", kind: "trouble" }),
};

function statusText(): StatusText {
  const status = texts[connection.value.state](connection.value as never);
  if (status.kind !== "live") return status;
  if (laggedUntil.value > wallClock.value) return { text: "Live. This page fell behind and skipped some events.", kind: "wait" };
  const session = sessionConnection.value;
  if (session && session.state !== "live") return texts[session.state](session as never);
  return is_temporary ? { ...status, text: "Live. Signed in for this tab only: another tab or a reload needs a new link." } : status;
}

/** One line. A component of its own, because it is rendered every second. */
export function ConnectionStatus() {
  const { text, kind } = statusText();
  return <p id="state" role="status" data-kind={kind}>{text}</p>;
}

export function ConnectionHelp({ place }: { place: "advice" | "empty" }) {
  const { help, command, retry: can_retry, signs_in } = statusText();
  if (!help && !can_retry) return null;
  return (
    <div id="help" class={place}>
      {help ? <p>{help}</p> : null}
      {command ? <pre><code>{command}</code></pre> : null}
      {signs_in ? <SignInForm /> : null}
      {can_retry ? <button type="button" onClick={retry}>Try now</button> : null}
    </div>
  );
}
