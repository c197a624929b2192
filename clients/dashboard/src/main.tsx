import "./style.css";
import "./overview.css";
import "./session.css";
import "./history.css";
import "./forced.css";
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { connect, connection, isRevoked, lastFrameAt } from "./connection.js";
import { HelpDialog } from "./Dialog.js";
import { clock, stale } from "./format.js";
import { History } from "./History.js";
import "./keyboard.js";
import { announcement } from "./notifications.js";
import { Overview } from "./Overview.js";
import { openHost, openSession, openView } from "./route.js";
import { Top } from "./Top.js";

const idle_ms = 1500; // after the page has loaded

type SessionPage = typeof import("./SessionPage.js").SessionPage;
const sessionPage = signal<SessionPage | "failed" | undefined>(undefined);
let loading: Promise<void> | undefined;

/** The session's page is a part of its own: the overview is complete without it. */
function loadSessionPage() {
  loading ??= import("./SessionPage.js").then(
    (part) => void (sessionPage.value = part.SessionPage),
    () => {
      sessionPage.value = "failed"; // the daemon is away, or was replaced by another version
      loading = undefined;
    },
  );
}

function Session({ session, host }: { session: string; host: string }) {
  const live = connection.value.state === "live";
  useEffect(loadSessionPage, [live]); // again once the daemon is back
  const Page = sessionPage.value;
  if (!Page) return <p class="empty" role="status">Loading…</p>;
  if (Page === "failed") return <div class="empty"><p>This part of the page could not be loaded.</p><button type="button" onClick={() => location.reload()}>Reload</button></div>;
  return <Page session={session} host={host} />;
}

function App() {
  const session = openSession.value;
  return (
    <>
      <Top />
      <main data-stale={stale.value ? "" : undefined}>
        {stale.value ? <p class="stale-note">Not live: as of {clock(lastFrameAt.value)}. Times stand still.</p> : null}
        {isRevoked.value ? <Overview /> : session ? <Session key={session + openHost.value} session={session} host={openHost.value} /> : openView.value === "history" ? <History /> : <Overview />}
      </main>
      <p class="visually-hidden" aria-live="polite">{announcement.value}</p>
      <HelpDialog />
    </>
  );
}

const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
void connect();
addEventListener("load", () => setTimeout(loadSessionPage, idle_ms)); // before the first click
