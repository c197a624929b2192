// The page's connection status, and its notifications.
import assert from "node:assert/strict";
import { Transcript } from "../../sdk/dist/test/harness.js";
import { click, post, signIn } from "./browser.mjs";
import { test, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, registerProcess } from "./fixtures.mjs";

/** Runs before the page's own script: records notifications and tones instead of playing them. */
function recordNotifications() {
  globalThis.calls = [];
  globalThis.page_hidden = false;
  globalThis.Notification = class {
    static requestPermission() {
      calls.push("asked");
      return Promise.resolve(globalThis.forbidden ? "denied" : "granted");
    }
    constructor(title, { body }) {
      calls.push(`${title}: ${body}`);
    }
  };
  globalThis.AudioContext = class {
    currentTime = 0;
    destination = {};
    createGain() {
      return { gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} }, connect: () => {} };
    }
    createOscillator() {
      return { frequency: {}, connect: (to) => to, start: () => calls.push("tone"), stop() {} };
    }
  };
  Object.defineProperty(document, "visibilityState", { get: () => (page_hidden ? "hidden" : "visible") });
}

/** Records the connection states that the page shows from now on in `window.states`: a busy machine may see none of the short ones. */
function recordStates(page) {
  return page.evaluate(() => {
    const state = document.getElementById("state");
    window.states = [state.textContent];
    new MutationObserver(() => window.states.push(state.textContent)).observe(state, { childList: true, characterData: true, subtree: true });
  });
}

withBrowser("connection and notifications", (env) => {
  test("while the daemon is stopped the page shows a countdown; then it connects without a new sign-in", async () => {
    const transcript = new Transcript(env.daemon.root);
    transcript.append(transcript.prompt("before"));
    await env.daemon.start();
    const { page } = await env.openPage();
    await env.waitForState(page, "Live.");
    await recordStates(page);
    await env.daemon.stop();
    await page.waitForFunction(() => window.states.some((text) => /^The daemon was stopped\. Retrying in \d+ s\.$/.test(text)));
    await page.locator("#help", { hasText: "The sessions below may be out of date" }).waitFor();
    await page.locator("#sessions .title", { hasText: "before" }).waitFor(); // sessions stay visible
    await env.waitForState(page, /^The daemon does not respond\. Retrying in [1-9]\d* s\.$/);
    const before = await page.locator("#state").textContent();
    await page.waitForFunction((old) => document.getElementById("state").textContent !== old, before); // the countdown
    const other = new Transcript(env.daemon.root, "/home/ada/buoy");
    other.append(other.prompt("created meanwhile"));
    await env.daemon.start();
    const try_now = page.getByRole("button", { name: "Try now" });
    if (await try_now.isVisible()) await try_now.click({ timeout: 1000 }).catch(() => {}); // it may have reconnected already
    await env.waitForState(page, "Live.");
    await page.locator("#sessions .title", { hasText: "created meanwhile" }).waitFor();
  });

  // Fault 87.
  test("a lost connection is replaced, each time with the answer to a new challenge", async () => {
    await env.daemon.start();
    const sockets = [];
    const hellos = [];
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.routeWebSocket(/\/v1\/ws/, (socket) => {
      sockets.push(socket);
      const server = socket.connectToServer();
      server.onMessage((text) => socket.send(text));
      socket.onMessage((text) => {
        if (JSON.parse(text).type === "hello") hellos.push(JSON.parse(text));
        server.send(text);
      });
    }));
    await env.waitForState(page, "Live.");
    await recordStates(page);
    await sockets[0].close({ code: 4408 });
    await page.waitForFunction(() => window.states.some((text) => text.startsWith("The connection was lost.")));
    await env.waitForState(page, "Live.");
    assert.equal(sockets.length, 2);
    assert.deepEqual(hellos.map((hello) => Object.keys(hello)), Array.from({ length: 2 }, () => ["type", "sign_in", "client"]));
    assert.equal(hellos[0].sign_in.browser, hellos[1].sign_in.browser);
    assert.notEqual(hellos[0].sign_in.nonce, hellos[1].sign_in.nonce);
  });

  test("the page's header is rendered before the daemon answers", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.routeWebSocket(/\/v1\/ws/, () => {})); // never answers
    await env.waitForState(page, "Connecting…");
    await page.getByRole("link", { name: "earshot" }).waitFor();
    await click(page.getByRole("button", { name: "Keys" }));
    await page.locator("dialog .keys").waitFor();
  });

  test("without a sign-in, with a used link and after a token rotation the page explains how to sign in", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, `http://127.0.0.1:${env.daemon.port}/`);
    await env.waitForState(page, "Not signed in");
    await page.locator("#help code", { hasText: "earshot open" }).waitFor();
    const first = await env.openPage();
    await env.waitForState(first.page, "Live.");
    const second = await env.openPage({}, first.url);
    await env.waitForState(second.page, "already used");
    await second.page.locator("#help code", { hasText: "earshot open" }).waitFor();
    assert.equal(new URL(second.page.url()).hash, "");
    assert.equal((await post(env.daemon, "/v1/token/rotate")).status, 200);
    await env.waitForState(first.page, "This browser was signed out.");
    await first.page.locator("#help code", { hasText: "earshot open" }).waitFor();
    await signIn(first.page, env.daemon);
    await env.waitForState(first.page, "Live.");
  });

  test("a code that cannot be exchanged because the daemon does not respond is not reported as used", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.route("**/v1/browsers/register", (route) => route.abort()));
    await env.waitForState(page, "The daemon did not respond.");
    await page.locator("#help code", { hasText: "earshot doctor" }).waitFor();
  });

  test("without sessions the page explains what to do", async () => {
    await env.daemon.start();
    const { page } = await env.openPage();
    await page.getByText("No agent sessions in the last 24 hours.").waitFor();
    await page.locator(".empty code", { hasText: "earshotd --demo" }).waitFor();
    assert.equal(await page.getByRole("searchbox").count(), 0); // nothing to search
    await env.daemon.stop();
    await page.locator("#help p", { hasText: /^If the daemon does not return:$/ }).waitFor(); // no session is below
    await env.daemon.start();
    await page.getByText("No agent sessions in the last 24 hours.").waitFor();
    const transcript = new Transcript(env.daemon.root);
    transcript.append(transcript.prompt("the first"));
    await page.locator("#sessions .title", { hasText: "the first" }).waitFor();
  });

  test("the page reports that it fell behind, and a rejected request with the daemon's message", async () => {
    const transcript = new Transcript(env.daemon.root);
    transcript.append(transcript.prompt("hello"));
    await env.daemon.start();
    let page_socket;
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.routeWebSocket(/\/v1\/ws/, (socket) => {
      page_socket ??= socket;
      const server = socket.connectToServer();
      server.onMessage((text) => socket.send(text));
      socket.onMessage((text) => server.send(text));
    }));
    await env.waitForState(page, "Live.");
    await page.locator("#sessions .title", { hasText: "hello" }).waitFor();
    await recordStates(page);
    page_socket.send(JSON.stringify({ type: "lagged", id: "a" }));
    await page.waitForFunction(() => window.states.some((text) => text.includes("This page fell behind and skipped some events.")));
    page_socket.send(JSON.stringify({ type: "error", id: "a", code: "limit", message: "too many subscriptions", retry: false }));
    await env.waitForState(page, "The daemon rejected the request: too many subscriptions");
    await click(page.getByRole("button", { name: "Try now" }));
    await env.waitForState(page, "Live.");
  });

  test("notifications and sound are off by default; the title and the live region always announce a wait", async () => {
    const session = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp");
    const agent = registerProcess(env.daemon.root, session, "/home/ada/api");
    env.cleanups.push(agent.stop);
    agent.setStatus("busy");
    await env.daemon.start();
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(recordNotifications));
    const calls = () => page.evaluate(() => globalThis.calls);
    const title = (wanted) => waitForTitle(page, wanted);
    const notify = page.getByRole("button", { name: "Notify" });
    const sound = page.getByRole("button", { name: "Sound" });
    await page.locator(".row .status", { hasText: "working" }).waitFor();
    assert.deepEqual([await notify.getAttribute("aria-pressed"), await sound.getAttribute("aria-pressed")], ["false", "false"]);
    await page.evaluate(() => (globalThis.page_hidden = true));
    agent.setStatus("waiting", "permission prompt");
    await title("(1) earshot");
    await page.locator("[aria-live=polite]", { hasText: "Fix the lamp needs you" }).waitFor({ state: "attached" });
    assert.deepEqual(await calls(), []);
    agent.setStatus("busy");
    await title("earshot");

    await page.evaluate(() => (globalThis.forbidden = true));
    await click(notify);
    await page.getByRole("button", { name: "Notify: blocked", pressed: false }).waitFor();
    await page.evaluate(() => {
      globalThis.forbidden = false;
      globalThis.calls.length = 0;
    });
    await click(notify);
    await click(sound);
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 2);
    assert.deepEqual(await calls(), ["asked"]);
    agent.setStatus("waiting", "permission prompt");
    await page.waitForFunction(() => globalThis.calls.length === 3);
    const [, ...got] = await calls();
    assert.ok(got.includes("tone") && got.some((call) => call.startsWith("Fix the lamp needs you: ")), got.join("; "));
    agent.setStatus("busy");
    await title("earshot");
    await page.evaluate(() => (globalThis.page_hidden = false)); // no notification while the page is visible
    agent.setStatus("waiting", "permission prompt");
    await page.waitForFunction(() => globalThis.calls.length === 4);
    assert.equal((await calls())[3], "tone");

    const long = new ScriptedSession(env.daemon.root, "/home/ada/horn").at(1).addPrompt("Repair the horn");
    const short = new ScriptedSession(env.daemon.root, "/home/ada/bell").addPrompt("Ring the bell");
    await waitForCount(page, ".row, .card", 3);
    await page.evaluate(() => (globalThis.page_hidden = true));
    short.finishTurn("It rings."); // was waited for
    long.at(0).finishTurn("It sounds.");
    await page.waitForFunction(() => globalThis.calls.length === 6);
    assert.deepEqual((await calls()).slice(4).sort(), ["Repair the horn is done: Repair the horn", "tone"]);

    await page.reload(); // neither existing waits nor results are announced again, and the settings are kept
    await title("(1) earshot: 2 unseen");
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 2);
    assert.deepEqual(await calls(), []);
    await click(sound);
    await click(notify);
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 0);
  });

  test("fault 158: a notification that the browser refuses, as on Android, is reported, and further ones are off", async () => {
    const session = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp");
    const agent = registerProcess(env.daemon.root, session, "/home/ada/api");
    env.cleanups.push(agent.stop);
    agent.setStatus("busy");
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, async (fresh) => {
      await fresh.addInitScript(recordNotifications);
      await fresh.addInitScript(() => {
        const { requestPermission } = globalThis.Notification;
        globalThis.Notification = class {
          static requestPermission = requestPermission;
          constructor() {
            throw new TypeError("Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.");
          }
        };
      });
    });
    await page.locator(".row .status", { hasText: "working" }).waitFor();
    await click(page.getByRole("button", { name: "Notify" }));
    await page.getByRole("button", { name: "Notify", pressed: true }).waitFor();
    await page.evaluate(() => (globalThis.page_hidden = true));
    agent.setStatus("waiting", "permission prompt");
    await page.locator("[aria-live=polite]", { hasText: "Fix the lamp needs you" }).waitFor({ state: "attached" });
    const refused = page.getByRole("button", { name: "Notify: refused", pressed: false });
    await refused.waitFor();
    assert.match(await refused.getAttribute("title"), /shows no notifications of a page: use earshot-notify/);
    assert.deepEqual(errors, []);
  });

  test("a session's page that could not be loaded appears once the daemon is back", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp").finishTurn("Lit.");
    await env.daemon.start();
    let requests = 0;
    let resolve;
    const twice = new Promise((done) => (resolve = done)); // for the click, and while the page has nothing to do
    const { page } = await env.openPage({}, undefined, (fresh) => fresh.route("**/session.js", (route) => {
      if (++requests === 2) resolve();
      return route.abort();
    }));
    await click(page.locator("#sessions .row"));
    await twice;
    await page.getByText("could not be loaded").waitFor();
    await env.daemon.stop();
    await env.waitForState(page, "Retrying in");
    await page.unroute("**/session.js");
    await env.daemon.start();
    await page.locator(".entry", { hasText: "Lit." }).waitFor();
  });
});
