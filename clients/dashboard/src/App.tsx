import { announcement } from "./attention.js";
import { Help } from "./Help.js";
import { Overview } from "./Overview.js";
import { openHost, openSession } from "./route.js";
import { SessionPage } from "./SessionPage.js";
import { Top } from "./Top.js";

export function App() {
  const session = openSession.value;
  return (
    <>
      <Top />
      <main>{session ? <SessionPage key={session + openHost.value} session={session} host={openHost.value} /> : <Overview />}</main>
      <p class="unseen" aria-live="assertive">{announcement.value}</p>
      <Help />
    </>
  );
}
