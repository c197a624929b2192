import "./style.css";
import "./overview.css";
import "./session.css";
import { render } from "preact";
import { connect } from "./connection.js";
import { HelpDialog } from "./Dialog.js";
import "./keyboard.js";
import { announcement } from "./notifications.js";
import { Overview } from "./Overview.js";
import { openHost, openSession } from "./route.js";
import { SessionPage } from "./SessionPage.js";
import { Top } from "./Top.js";

function App() {
  const session = openSession.value;
  return (
    <>
      <Top />
      <main>{session ? <SessionPage key={session + openHost.value} session={session} host={openHost.value} /> : <Overview />}</main>
      <p class="visually-hidden" aria-live="polite">{announcement.value}</p>
      <HelpDialog />
    </>
  );
}

const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
void connect();
