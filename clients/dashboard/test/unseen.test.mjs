// Turns that finished while the user looked elsewhere: marks, counts, and how the page reports that they were seen.
import assert from "node:assert/strict";
import { click } from "./browser.mjs";
import { editFrames, test, violations, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { until } from "../../sdk/dist/test/harness.js";
import { ScriptedSession } from "./fixtures.mjs";

const cwd = "/home/ada/api";
const row = (page, title) => page.locator(".row", { has: page.locator(".title", { hasText: title }) });

/** Hides the page, or shows it again, as another tab would. */
const setVisible = (page, visible) => page.evaluate((state) => {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, visible ? "visible" : "hidden");

/** A change without a new turn: the daemon sends the session's frame again. */
const rename = (transcript, customTitle) => transcript.append(JSON.stringify({ type: "custom-title", customTitle, sessionId: transcript.session }) + "\n");

withBrowser("unseen turns", (env) => {
  /** Opens the page. The sessions in `unseen` are unseen; `requests` are the requests to /v1/seen, which are answered with `status`. */
  async function openWith(unseen, { status = 204, path } = {}) {
    const requests = [];
    await env.daemon.start();
    const opened = await env.openPage({ viewport: { width: 1440, height: 900 } }, undefined, async (page) => {
      await editFrames(page, (frame) => {
        if (frame.type !== "session") return undefined;
        const { unseen: _, ...rest } = frame;
        return { ...rest, ...(unseen.has(frame.session) && !frame.turn.open && { unseen: true }) }; // as the daemon: never of an open turn
      });
      await page.route("**/v1/seen", (route) => {
        const request = route.request();
        requests.push({ method: request.method(), headers: request.headers(), body: request.postDataJSON() });
        return route.fulfill({ status });
      });
    });
    if (path) await opened.page.goto(`http://127.0.0.1:${env.daemon.port}${path}`);
    return { ...opened, requests };
  }
  const session = (title) => new ScriptedSession(env.daemon.root, cwd).addPrompt(title);

  test("rows are marked and counted in the header and in the title; the count filters", async () => {
    const [one, two] = [session("Fix the lamp").finishTurn("The lamp is lit."), session("Fix the horn").finishTurn("It sounds.")];
    session("Fix the radio").finishTurn("It plays.");
    const { page, errors } = await openWith(new Set([one.session, two.session]));
    await waitForCount(page, "#sessions .row", 3);
    await waitForCount(page, ".row[data-unseen]", 2);
    await waitForTitle(page, "earshot: 2 unseen");
    assert.match(await row(page, "Fix the lamp").locator(".title").getAttribute("aria-label"), /^done, unseen\. Fix the lamp\./);
    assert.match(await row(page, "Fix the radio").locator(".title").getAttribute("aria-label"), /^done\. Fix the radio\./);
    assert.equal(await row(page, "Fix the lamp").locator(".status").getAttribute("title"), "Finished since you last looked");
    const [mark, plain] = await page.evaluate(() => ["[data-unseen]", ":not([data-unseen])"].map((which) => getComputedStyle(document.querySelector(`.row${which} .status`), "::before").borderRadius));
    assert.deepEqual([mark, plain], ["50%", "0px"]);
    assert.deepEqual(await violations(page), []);
    await click(page.getByRole("button", { name: "2 unseen" }));
    await waitForCount(page, "#sessions .row", 2);
    assert.match(page.url(), /state=unseen/);
    await page.reload();
    await waitForCount(page, "#sessions .row", 2);
    assert.deepEqual(errors, []);
  });

  test("an open and visible page reports each finished turn once, as this browser", async () => {
    const one = session("Fix the lamp").finishTurn("The lamp is lit.");
    const other = session("Fix the horn").finishTurn("It sounds.");
    const unseen = new Set([one.session, other.session]);
    const { page, errors, requests } = await openWith(unseen);
    await waitForCount(page, ".row[data-unseen]", 2);
    assert.deepEqual(requests, []); // the overview does not show what the agent wrote
    await click(row(page, "Fix the lamp"));
    await page.locator(".entry", { hasText: "The lamp is lit." }).waitFor();
    await waitForTitle(page, "earshot: 1 unseen"); // the one on the screen does not count
    assert.match(await page.locator(".back").innerText(), /1 unseen$/);
    await until("the report", () => requests.length > 0);
    assert.deepEqual(requests.map(({ method, headers, body }) => [method, headers["content-type"], body]), [["POST", "application/json", { session: one.session }]]);
    assert.match(requests[0].headers.authorization, /^Earshot [0-9a-f]{16}\.[0-9a-f]{112}\.[0-9a-f]{128}$/);

    rename(one, "Lamp"); // the daemon still states that it is unseen
    await page.locator(".head h2", { hasText: "Lamp" }).waitFor();
    assert.equal(requests.length, 1);
    one.addPrompt("Again").finishTurn("Still lit.");
    await page.locator(".entry", { hasText: "Still lit." }).waitFor();
    await until("the second report", () => requests.length > 1);
    assert.deepEqual(requests[1].body, { session: one.session });
    unseen.delete(one.session);
    rename(one, "Lamp and lens");
    await page.locator(".head h2", { hasText: "Lamp and lens" }).waitFor();
    await click(page.getByText("← All sessions"));
    await waitForCount(page, ".row[data-unseen]", 1);
    assert.equal(requests.length, 2);
    assert.deepEqual(errors, []);
  });

  test("a hidden page reports nothing until it is visible", async () => {
    const one = session("Fix the lamp");
    const unseen = new Set();
    const { page, requests } = await openWith(unseen);
    await click(row(page, "Fix the lamp"));
    await page.locator(".entry", { hasText: "Fix the lamp" }).waitFor();
    await setVisible(page, false);
    unseen.add(one.session);
    one.finishTurn("The lamp is lit.");
    await page.locator(".entry", { hasText: "The lamp is lit." }).waitFor();
    await waitForTitle(page, "earshot: 1 unseen");
    assert.deepEqual(requests, []);
    await setVisible(page, true);
    await waitForTitle(page, "earshot");
    await until("the report", () => requests.length > 0);
    assert.equal(requests.length, 1);
  });

  test("a daemon that does not know what was seen is not asked, nor a refusal repeated", async () => {
    const one = session("Fix the lamp").finishTurn("The lamp is lit.");
    const unseen = new Set();
    const { page, requests } = await openWith(unseen, { status: 404 });
    await click(row(page, "Fix the lamp"));
    one.addPrompt("Again").finishTurn("Still lit.");
    await page.locator(".entry", { hasText: "Still lit." }).waitFor();
    await page.locator(".facts", { hasText: "turn 2" }).waitFor();
    assert.deepEqual(requests, []);
    unseen.add(one.session);
    rename(one, "Lamp");
    await until("the report", () => requests.length > 0);
    rename(one, "Lamp and lens");
    await page.locator(".head h2", { hasText: "Lamp and lens" }).waitFor();
    assert.equal(requests.length, 1);
  });
});
