// The overview receives the sessions by page: it is complete at the end, and its figures are right before.
import assert from "node:assert/strict";
import { test, waitForCount, withBrowser } from "./harness.mjs";
import { ScriptedSession } from "./fixtures.mjs";

const working = 700; // more than a page
const finished = 600;
const late_ms_max = 300_000;

/** Holds the page's requests for further pages back while `isHeld`, and notes what was sent. */
function intercept() {
  const held = { isHeld: true, requests: [], sent: new Set(), pages: 0 };
  held.prepare = (page) => page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    held.close = () => socket.close({ code: 4000, reason: "the test's" });
    server.onMessage((text) => {
      const frame = JSON.parse(text);
      if (frame.type === "session") held.sent.add(frame.session);
      if (frame.type === "page") held.pages++;
      socket.send(text);
    });
    socket.onMessage((text) => {
      if (JSON.parse(text).type !== "next_page" || !held.isHeld) return server.send(text);
      held.requests.push(() => server.send(text));
    });
  });
  held.release = () => held.requests.splice(0).forEach((send) => send());
  return held;
}

withBrowser("pages", (env) => {
  test(`${working + finished} sessions arrive by page: the first ones are shown at once, the figures are those of all, and the list ends complete`, async (t) => {
    const cost = { input_tokens: 1000, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
    const all = Array.from({ length: working + finished }, (_, n) => {
      const one = new ScriptedSession(env.daemon.root, `/home/ada/project-${n % 40}`);
      one.usage = cost;
      one.addPrompt(n === working + 7 ? "the needle" : `task ${n}`);
      return n < working ? one : one.finishTurn("done");
    });
    await env.daemon.start();
    const held = intercept();
    const { page, errors } = await env.openPage({}, undefined, held.prepare);
    const figure = (count) => page.locator(".figure[data-state=working] b", { hasText: new RegExp(`^${count.toLocaleString("en")}$`) }).waitFor({ timeout: late_ms_max });
    await page.locator(".loading").waitFor({ timeout: late_ms_max });
    assert.equal(held.pages, 1);
    assert.ok(held.sent.size < working, "the first page has a part of the sessions");
    await figure(working);
    const used = await page.locator(".used").textContent();
    assert.match(used, /600k tokens today/);
    await page.waitForFunction(() => document.querySelectorAll("#sessions .row").length > 10);

    // A search is not answered by "none" before all have arrived.
    await page.keyboard.press("/");
    await page.keyboard.type("needle");
    await page.locator(".empty .loading").waitFor();
    assert.equal(await page.getByText("No session matches").count(), 0);
    await page.keyboard.press("Escape");
    await page.locator("#search").fill("");

    // A session that has not arrived changes: it is shown, and the next page has figures without it.
    const changed = all.slice(0, working).find(({ session }) => !held.sent.has(session));
    changed.append(changed.reply("done, out of turn"));
    while (!held.sent.has(changed.session)) await new Promise((resolve) => setTimeout(resolve, 20));
    held.release();
    await figure(working - 1);
    held.isHeld = false;
    held.release();
    await page.waitForFunction(() => document.querySelectorAll(".loading").length === 0, undefined, { timeout: late_ms_max });
    await figure(working - 1);
    assert.equal(held.sent.size, working + finished);
    assert.match(await page.locator(".used").textContent(), /601k tokens today/);
    t.diagnostic(`${held.pages} pages`);
    assert.ok(held.pages >= 3);
    await page.locator("#search").fill("needle");
    await waitForCount(page, "#sessions .row", 1);
    assert.deepEqual(errors, []);
  });

  test("a page that is opened again after a lost connection counts no session twice", async () => {
    const all = Array.from({ length: 600 }, (_, n) => new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt(n === 599 ? "the needle" : `task ${n}`));
    await env.daemon.start();
    const held = intercept();
    held.isHeld = false;
    const { page } = await env.openPage({}, undefined, held.prepare);
    const figure = page.locator(".figure[data-state=working] b", { hasText: /^600$/ });
    await page.waitForFunction(() => document.querySelectorAll(".loading").length === 0 && document.querySelectorAll("#sessions .row").length > 10, undefined, { timeout: late_ms_max });
    await figure.waitFor();
    held.isHeld = true;
    held.sent.clear();
    await held.close();
    await page.locator(".loading").waitFor({ timeout: late_ms_max });
    await figure.waitFor();
    const later = all.filter(({ session }) => !held.sent.has(session));
    assert.ok(later.length > 0);
    held.isHeld = false;
    held.release();
    await page.waitForFunction(() => document.querySelectorAll(".loading").length === 0, undefined, { timeout: late_ms_max });
    await figure.waitFor();
    await page.locator("#search").fill("needle");
    await waitForCount(page, "#sessions .row", 1);
  });
});
