// The history view: all sessions by day, the search in their text, and the way from a result to its place in the session.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { assertFitsWidth, test, violations, waitForCount, withBrowser } from "./harness.mjs";
import { click, waitForIndex } from "./browser.mjs";
import { ScriptedSession } from "./fixtures.mjs";

const day_minutes = 1440;
const script = `<img src=x onerror="document.title='taken'"><mark>no</mark>`;

/** A copy of a session without a process, whose file is days old: the daemon has not read it. Returns its id. */
function coldCopy(session, days = 5) {
  const id = randomUUID();
  const path = join(dirname(session.path), `${id}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, readFileSync(session.path, "utf8").replaceAll(session.session, id));
  const then = Date.now() / 1000 - days * 86_400;
  utimesSync(path, then, then);
  return id;
}

withBrowser("the history", (env) => {
  const search = (page) => page.getByRole("searchbox", { name: "Search the text of all sessions" });

  async function startWithIndex() {
    await env.daemon.start();
    await waitForIndex(env.daemon);
  }

  test("old sessions are listed by day and project, page by page, and a filter is part of the address", async () => {
    for (let n = 0; n < 3; n++) new ScriptedSession(env.daemon.root, "/home/ada/web").at(n * day_minutes).addPrompt(`Paint wall ${n}`).finishTurn("Painted.");
    const template = new ScriptedSession(env.daemon.root, "/home/ada/api").at(9 * day_minutes).addPrompt("Mend the lamp").finishTurn("Mended.");
    for (let n = 0; n < 120; n++) coldCopy(template, 9);
    await startWithIndex();
    const { page, errors } = await env.openPage();
    await click(page.getByRole("link", { name: "History" }));
    await waitForCount(page, ".past", 100); // a page
    await click(page.getByRole("button", { name: "Show more" }));
    await waitForCount(page, ".past", 124);
    assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    assert.equal(await page.locator(".history section").count(), 4);
    assert.match(await page.locator(".past .title").first().textContent(), /Paint wall 0/);
    await page.getByLabel("Project").selectOption("/home/ada/web");
    await waitForCount(page, ".past", 3);
    assert.match(page.url(), /view=history/);
    const day = await page.evaluate((ago) => {
      const then = new Date(Date.now() - ago);
      return `${then.getFullYear()}-${String(then.getMonth() + 1).padStart(2, "0")}-${String(then.getDate()).padStart(2, "0")}`;
    }, day_minutes * 60_000);
    await page.getByLabel("Day").fill(day);
    await waitForCount(page, ".past", 1);
    await page.locator(".past", { hasText: "Paint wall 1" }).waitFor();
    await page.reload();
    await waitForCount(page, ".past", 1);
    assert.equal(await page.locator(".past .facts").evaluate((facts) => getComputedStyle(facts).marginTop), "0px"); // not those of a session's page
    await click(page.getByRole("button", { name: "All days and projects" }));
    await waitForCount(page, ".past", 100);
    assert.deepEqual(await violations(page), []);
    await page.setViewportSize({ width: 360, height: 700 });
    await assertFitsWidth(page, "the history");
    assert.deepEqual(errors, []);
  });

  test("a search marks what it found, and a click opens the session, which is not live, at the place", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").at(4 * day_minutes);
    for (let n = 0; n < 300; n++) one.addPrompt(n === 7 ? "Repair the flaky scheduler" : `Question ${n}`).finishTurn(`Answer ${n}`);
    const cold = coldCopy(one);
    one.addPrompt("Unrelated").finishTurn("Yes.");
    await startWithIndex();
    const { page, errors } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    await page.keyboard.press("h");
    await search(page).waitFor();
    await page.waitForFunction(() => document.activeElement?.id === "search");
    await page.keyboard.type("flaky sched/h"); // keys belong to the field
    await page.getByText("Nothing was found.").waitFor();
    await search(page).fill("flaky sched");
    await waitForCount(page, ".found", 2);
    assert.deepEqual(await page.locator(".found mark").allTextContents(), ["flaky", "scheduler", "flaky", "scheduler"]);
    assert.match(page.url(), /find=flaky/);
    await page.getByLabel("Kind").selectOption("answer");
    await page.getByText("Nothing was found.").waitFor();
    await page.getByLabel("Kind").selectOption("prompt");
    await waitForCount(page, ".found", 2);
    const link = page.locator(`.found a[href*="${cold}"]`);
    await link.focus();
    await page.keyboard.press("Enter");
    const place = page.locator(".entry[data-at]", { hasText: "Repair the flaky scheduler" });
    await place.waitFor();
    await page.waitForFunction(() => {
      const box = document.querySelector(".entry[data-at]").getBoundingClientRect();
      return box.top > 0 && box.bottom < innerHeight;
    });
    assert.match(page.url(), new RegExp(`session=${cold}`));
    await page.reload(); // the address has the place
    await place.waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("Question 9");
    await page.locator(".conversation .note", { hasText: /^\d+ of \d+ entries$/ }).waitFor();
    await page.keyboard.press("Escape"); // clears the conversation's search, not the one behind
    await page.locator(".conversation .note", { hasText: /entries$/ }).waitFor({ state: "detached" });
    assert.match(page.url(), /find=flaky/);
    await page.goBack(); // one entry of the browser's history
    await waitForCount(page, ".found", 2);
    assert.doesNotMatch(page.url(), /session=/);
    await click(page.locator(`.found a[href*="${cold}"]`));
    await place.waitFor();
    await page.goBack();
    await waitForCount(page, ".found", 2);
    await click(page.locator(`.found a[href*="${cold}"]`));
    await place.waitFor();
    await page.keyboard.press("Escape");
    await waitForCount(page, ".found", 2);
    await page.keyboard.press("/");
    await page.waitForFunction(() => document.activeElement?.id === "search");
    await page.keyboard.press("Escape");
    await page.locator(".past:not(.found)").first().waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#sessions .row").first().waitFor();
    assert.doesNotMatch(page.url(), /view|find|at=/);
    assert.deepEqual(errors, []);
  });

  test("a history that the daemon refuses is loaded once it is answered", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Hello").finishTurn("Hi.");
    await startWithIndex();
    const { page, errors } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    let refused = 0;
    await page.route(/\/v1\/history/, (route) => (++refused <= 2 ? route.fulfill({ status: 503, body: "the index is not available at the moment: retry later" }) : route.continue()));
    await page.keyboard.press("h");
    await page.getByRole("alert").getByText("not available at the moment").waitFor();
    await waitForCount(page, ".past", 1);
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.ok(refused > 2);
    assert.deepEqual(errors.filter((text) => !text.includes("503")), []);
  });

  test("a page that is loaded while the index is being built is not dropped, and all pages are loaded again until it is built", async () => {
    const template = new ScriptedSession(env.daemon.root, "/home/ada/api").at(9 * day_minutes).addPrompt("Mend the lamp").finishTurn("Mended.");
    for (let n = 0; n < 150; n++) coldCopy(template, 9);
    await startWithIndex();
    const { page, errors } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    let building = true;
    await page.route(/\/v1\/history/, async (route) => {
      if (route.request().url().includes("after=")) await setTimeout(4500); // longer than the page waits until it loads again
      const response = await route.fetch();
      const body = await response.json();
      await route.fulfill({ response, json: { ...body, index: { ...body.index, building } } });
    });
    await page.keyboard.press("h");
    await waitForCount(page, ".past", 100);
    await click(page.getByRole("button", { name: "Show more" }));
    await waitForCount(page, ".past", 151);
    await page.getByRole("status").getByText("being built").waitFor();
    building = false;
    await page.getByRole("status").getByText("being built").waitFor({ state: "detached" });
    assert.equal(await page.locator(".past").count(), 151);
    assert.deepEqual(errors, []);
  });

  test("after a restart of the daemon all pages are loaded again, also if it refuses at first", async () => {
    const template = new ScriptedSession(env.daemon.root, "/home/ada/api").at(9 * day_minutes).addPrompt("Mend the lamp").finishTurn("Mended.");
    for (let n = 0; n < 150; n++) coldCopy(template, 9);
    await startWithIndex();
    const { page } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    await page.keyboard.press("h");
    await waitForCount(page, ".past", 100);
    await click(page.getByRole("button", { name: "Show more" }));
    await waitForCount(page, ".past", 151);
    let refused = 0;
    await page.route(/\/v1\/history/, (route) => (++refused <= 2 ? route.fulfill({ status: 503, body: "the index is not available at the moment: retry later" }) : route.continue()));
    await env.daemon.stop();
    coldCopy(template, 9);
    await env.daemon.start();
    await waitForCount(page, ".past", 152);
    assert.ok(refused > 2);
  });

  test("the way back from a session leads to the same pages, scrolled as before, with the same entry focused", async () => {
    const template = new ScriptedSession(env.daemon.root, "/home/ada/api").at(9 * day_minutes).addPrompt("Mend the lamp").finishTurn("Mended.");
    for (let n = 0; n < 250; n++) coldCopy(template, 9);
    await startWithIndex();
    const { page, errors } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    const before = await page.evaluate(() => history.length);
    await page.keyboard.press("h");
    await waitForCount(page, ".past", 100);
    await page.waitForFunction(() => document.activeElement?.id === "search");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("h"); // shown already
    await page.waitForFunction(() => document.activeElement?.id === "search");
    assert.equal(await page.evaluate(() => history.length), before + 1);
    let requests = 0;
    page.on("request", (request) => void (requests += /\/v1\/(history|search)/.test(request.url())));
    const leaveAndReturn = async (count, number, goBack) => {
      const entry = page.locator(".past .title").nth(number);
      await entry.scrollIntoViewIfNeeded();
      const id = await entry.getAttribute("data-item");
      const scrolled = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(scrollY)))));
      assert.ok(scrolled > 0);
      const made = requests;
      await entry.focus();
      await page.keyboard.press("Enter");
      await page.locator(".session .head").waitFor();
      await goBack();
      await waitForCount(page, ".past", count);
      await page.waitForFunction((wanted) => scrollY === wanted, scrolled);
      await page.waitForFunction((wanted) => document.activeElement?.dataset.item === wanted, id);
      assert.equal(requests, made);
    };
    await click(page.getByRole("button", { name: "Show more" }));
    await waitForCount(page, ".past", 200);
    await leaveAndReturn(200, 170, () => page.goBack());
    await leaveAndReturn(200, 120, () => page.keyboard.press("Escape"));
    await leaveAndReturn(200, 150, () => click(page.getByRole("link", { name: "← History" })));
    await search(page).fill("lamp");
    await waitForCount(page, ".found", 50);
    await click(page.getByRole("button", { name: "Show more" }));
    await waitForCount(page, ".found", 100);
    await leaveAndReturn(100, 80, () => page.goBack());
    await page.keyboard.press("h");
    await page.keyboard.press("Escape"); // clears the search
    await page.keyboard.press("Escape");
    await page.locator("#sessions .row").first().waitFor();
    const made = requests;
    await page.keyboard.press("h"); // not the way back: loaded again
    await waitForCount(page, ".past", 100);
    assert.ok(requests > made);
    assert.deepEqual(errors, []);
  });

  test("a session has the title of the overview, and an estimated cost is marked", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Mend the lamp").finishTurn("Mended.");
    one.addPrompt("Then paint the door").finishTurn("Painted.");
    await startWithIndex();
    const { page } = await env.openPage();
    const row = page.locator("#sessions .row .title");
    await row.waitFor();
    const title = await row.textContent();
    const [response] = await Promise.all([page.waitForResponse(/\/v1\/history/), page.keyboard.press("h")]);
    const { sessions: [session] } = await response.json();
    const past = page.locator(".past .title");
    await past.waitFor();
    assert.equal(await past.textContent(), title);
    assert.equal(session.title, title);
    assert.equal(session.cost_source, "estimated");
    await page.locator(".past .facts", { hasText: /~\$|<\$/ }).waitFor();
  });

  test("hostile text is shown as text in results and in the list", async () => {
    const hostile = `needle ${script} \u202egpj.exe \u001b[31mred\u009b2J "needle" ${"x".repeat(20_000)}`;
    const one = new ScriptedSession(env.daemon.root, "/home/ada/<b>api").addPrompt(hostile);
    one.runTool("Bash", { command: `needle ${script}` }, 1, "ok");
    one.finishTurn(`needle ${"\ud83d\ude42".repeat(50)} needle \u202ex`);
    await startWithIndex();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(() => {
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
    }));
    await page.locator("#sessions .row").first().waitFor(); // the page handles keys
    await page.keyboard.press("h");
    await page.locator(".past .title", { hasText: script.slice(0, 40) }).waitFor();
    await search(page).fill("needle");
    await waitForCount(page, ".found", 3);
    await page.locator(".found .snippet", { hasText: "‹U+202E›gpj.exe" }).waitFor();
    assert.deepEqual([...new Set(await page.locator(".found mark").allTextContents())], ["needle"]); // also behind characters of two units
    assert.equal(await page.locator(".history img, .history b > *, .snippet > :not(mark):not(.kind), mark > *").count(), 0);
    assert.match(await page.title(), /^earshot/);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await assertFitsWidth(page, "the results");
    assert.doesNotMatch(await page.locator(".history").innerHTML(), /[\u202e\u009b\u001b]/);
    await search(page).fill(`"unclosed -( * OR`);
    await page.getByText("Nothing was found.").waitFor();
    await search(page).fill("-only");
    await page.getByRole("alert").getByText("only excludes").waitFor();
    assert.deepEqual(errors.filter((error) => !/400/.test(error)), []);
  });

  test("without a connection the history is marked, and a search says that it was not made", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Mend the lamp").finishTurn("Mended.");
    await startWithIndex();
    const { page } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor();
    await page.keyboard.press("h");
    await page.locator(".past").waitFor();
    assert.equal(await page.locator(".past .host").count(), 0); // not a team
    await click(page.locator(".past .title")); // its part of the page is loaded now
    await page.locator(".session .head").waitFor();
    await page.goBack();
    await page.locator(".past").waitFor();
    await env.daemon.stop();
    await page.locator("main[data-stale] > .stale-note").waitFor();
    await waitForCount(page, ".past", 1); // what was loaded stays
    await search(page).fill("horn");
    await page.getByText("Not searched: no connection.").waitFor();
    assert.equal(await page.locator(".past").count(), 0);
    await search(page).fill("");
    await waitForCount(page, ".past", 1);
    await click(page.locator(".past .title"));
    await page.locator("main[data-stale] > .session").waitFor();
    await page.locator(".stale-note").waitFor();
  });

  test("without an index the page says how to turn it on", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Hello").finishTurn("Hi.");
    await env.daemon.start("--no-search");
    const { page } = await env.openPage();
    await page.locator("#sessions .row").first().waitFor(); // the page handles keys
    await page.keyboard.press("h");
    await page.getByRole("alert").getByText("search is off").waitFor();
  });
});
