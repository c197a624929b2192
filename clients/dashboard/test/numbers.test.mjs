// Context, cost, times and limits, which the daemon states in session frames. The frames are changed on their way to the page, so that the numbers are known.
import assert from "node:assert/strict";
import { click } from "./browser.mjs";
import { assertFitsWidth, editFrames, test, violations, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, piSession } from "./fixtures.mjs";

const minute_ms = 60_000;
const cwd = "/home/ada/api";
const ago = (minutes) => new Date(Date.now() - minutes * minute_ms).toISOString();
const times = (waited, worked, idle, turn_waited = 0, turn_worked = 0) => ({ waited_ms: waited * minute_ms, worked_ms: worked * minute_ms, idle_ms: idle * minute_ms, turn: { waited_ms: turn_waited * minute_ms, worked_ms: turn_worked * minute_ms } });
const window_ = (name, used_percent, window_minutes, resets_in_minutes) => ({ name, used_percent, window_minutes, ...(resets_in_minutes && { resets_at: ago(-resets_in_minutes) }) });
const row = (page, title) => page.locator(".row", { has: page.locator(".title", { hasText: title }) });

withBrowser("numbers", (env) => {
  /** Opens the page; `numbers` maps a session's id to the members that replace those of its frames. */
  async function openWith(numbers, options) {
    await env.daemon.start();
    return env.openPage(options, undefined, (page) => editFrames(page, (frame) => {
      if (frame.type !== "session") return undefined;
      const { usage, ...more } = numbers.get(frame.session) ?? {};
      const { times: _, limits: __, unseen: ___, clock_offset_ms: ____, ...rest } = frame;
      const { context_window, cost_usd, cost_source, ...counted } = frame.usage;
      return { ...rest, ...more, usage: { ...counted, ...usage } };
    }));
  }
  const session = (title, minutes = 0, now = Date.now) => new ScriptedSession(env.daemon.root, cwd, now).at(minutes).addPrompt(title);

  test("a row shows how full the context is, what the session has cost, and how long it waited, worked and was idle", async () => {
    const full = session("A full one").finishTurn("ok");
    const recorded = session("A recorded one").finishTurn("ok");
    const small = session("A small one").finishTurn("ok");
    const unknown = session("An unknown one").finishTurn("ok");
    const ended = { state: "ended", source: "process", since: ago(5) };
    const { page, errors } = await openWith(new Map([
      [full.session, { status: ended, usage: { context: 160_001, context_window: 200_000, cost_usd: 4.7312, cost_source: "estimated" }, times: times(12, 40, 62) }],
      [recorded.session, { status: ended, usage: { context: 160_000, context_window: 200_000, cost_usd: 1234.5, cost_source: "recorded" }, times: times(0, 40, 60) }],
      [small.session, { status: ended, usage: { context: 900, context_window: 200_000, cost_usd: 0.004, cost_source: "mixed" } }],
      [unknown.session, { status: ended, usage: { context: 41_300 } }],
    ]), { viewport: { width: 1440, height: 900 } });
    await waitForCount(page, "#sessions .row", 4);

    const cell = (title, name) => row(page, title).locator(`.${name}`);
    assert.equal((await cell("A full one", "context").innerText()).trim(), "80%");
    assert.equal(await cell("A full one", "context").getAttribute("data-high"), "");
    assert.equal(await cell("A full one", "context").locator("progress").getAttribute("value"), "160001");
    assert.equal(await cell("A full one", "context").getAttribute("title"), "160,001 of 200,000 tokens in the context");
    assert.equal(await cell("A recorded one", "context").getAttribute("data-high"), null); // not above 80 %
    assert.equal((await cell("A small one", "context").innerText()).trim(), "0%");
    assert.match(await cell("An unknown one", "context").innerText(), /^41\.3k\s+ctx$/);
    assert.equal(await cell("An unknown one", "context").locator("progress").count(), 0);

    assert.equal(await cell("A full one", "cost").innerText(), "~$4.73");
    assert.equal(await cell("A full one", "cost").getAttribute("title"), "$4.7312, estimated from a table of prices; subagents included");
    assert.equal(await cell("A recorded one", "cost").innerText(), "$1,234.50");
    assert.match(await cell("A recorded one", "cost").getAttribute("title"), /as the agent program recorded it/);
    assert.equal(await cell("A small one", "cost").innerText(), "~<$0.01");
    assert.match(await cell("A small one", "cost").getAttribute("title"), /^\$0\.0040, partly recorded, partly estimated/);
    assert.equal(await cell("An unknown one", "cost").innerText(), "");

    for (const title of ["A full one", "A recorded one", "An unknown one"]) await click(row(page, title).getByRole("button", { name: "Details" }));
    assert.equal(await row(page, "A full one").locator(".details dl div", { hasText: "Context" }).locator("dd").innerText(), "160k of 200k");
    assert.equal(await cell("A full one", "times").innerText(), "12m waited");
    assert.equal(await cell("A full one", "times").getAttribute("title"), "waited for you 12m, worked 40m, idle 1h");
    assert.equal(await cell("A recorded one", "times").innerText(), "40m worked");
    const parts = await cell("A recorded one", "times").locator("rect").evaluateAll((all) => all.map((one) => [one.getAttribute("class"), Number(one.getAttribute("width"))]));
    assert.deepEqual(parts, [["idle", 60], ["worked", 24], ["waited", 0]]);
    assert.equal(await cell("An unknown one", "times").locator("svg").count(), 0);

    const name = await cell("A full one", "title").getAttribute("aria-label");
    assert.match(name, /160k tokens in the context, 80 % of it\. cost about \$4\.73\. waited for you 12m, worked 40m, idle 1h\./);
    assert.ok(!/cost|waited/.test(await cell("An unknown one", "title").getAttribute("aria-label")));
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("the header of a session's page shows its numbers, and the time of the present state runs", async () => {
    const one = session("Fix the lamp", 30).finishTurn("ok").at(8).addPrompt("And the horn");
    one.startTool("Bash", { command: "make horn" });
    const status = { state: "waiting", reason: "permission", source: "registry", since: ago(2) };
    const limits = [{ time: ago(1), limit: "claude", windows: [window_("five_hour", 42.5, 300, 95)] }];
    const { page, errors } = await openWith(new Map([[one.session, { status, limits, usage: { context: 171_300, context_window: 200_000, cost_usd: 4.7312, cost_source: "mixed" }, times: times(12, 40, 62, 3, 10) }]]));
    await click(page.locator(".card .title"));
    const gauge = (kind) => page.locator(`.gauges [data-kind=${kind}]`);
    await gauge("context").waitFor();
    assert.match(await gauge("context").innerText(), /^Context\s+85%\s+171k of 200k tokens$/);
    assert.equal(await gauge("context").getAttribute("data-high"), "");
    assert.match(await gauge("cost").innerText(), /^Cost\s+~\$4\.73\s+partly estimated$/);
    const waited = /^Waited for you\s+(\d+)m(\d\d)s\s+this turn (\d+)m(\d\d)s$/.exec(await gauge("waited").innerText()).slice(1).map(Number);
    const [waited_s, turn_s] = [waited[0] * 60 + waited[1], waited[2] * 60 + waited[3]];
    assert.ok(waited_s >= 14 * 60 && waited_s <= 12 * 60 + (Date.now() - Date.parse(status.since)) / 1000, `waited ${waited_s} s`);
    assert.equal(waited_s - turn_s, 9 * 60);
    assert.equal(await gauge("waited").getAttribute("data-present"), "");
    assert.match(await gauge("worked").innerText(), /^Worked\s+40m00s\s+this turn 10m00s$/);
    assert.match(await gauge("idle").innerText(), /^Idle\s+1h02m$/);
    assert.match(await gauge("limits").innerText(), /^Limits\s+42% of 5h, resets .+$/);
    const before = await gauge("waited").innerText();
    await page.waitForFunction((old) => document.querySelector(".gauges [data-kind=waited]").innerText !== old, before);
    assert.match(await gauge("worked").innerText(), /40m00s/);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("the estimates of an open session are those of the daemon's newest frame", async () => {
    const one = session("Fix the lamp");
    const numbers = new Map([[one.session, { usage: { cost_usd: 1, cost_source: "estimated" } }]]);
    const { page } = await openWith(numbers);
    await click(row(page, "Fix the lamp"));
    await page.locator(".gauges", { hasText: "~$1.00" }).waitFor();
    numbers.set(one.session, { usage: { cost_usd: 2, cost_source: "estimated" } });
    one.append(one.reply("One more message.", null)); // no event states an estimate
    await page.locator(".gauges", { hasText: "~$2.00" }).waitFor();
  });

  test("the recorded wait of a turn is shown with the turn", async () => {
    const start_ms = Date.now();
    const one = session("Fix the lamp", 10, () => start_ms);
    await env.daemon.start();
    const { page } = await env.openPage({}, undefined, (fresh) => editFrames(fresh, (frame) => (frame.type === "turn.finished" ? { ...frame, waited_ms: 552_000 } : frame)));
    await click(row(page, "Fix the lamp"));
    await page.locator(".entry.begin", { hasText: "Turn 1" }).waitFor();
    assert.equal(await page.locator(".entry.begin .waited").count(), 0);
    one.at(0).finishTurn("The lamp is lit.");
    await page.locator(".entry.begin", { hasText: "waited 9m12s for you" }).waitFor();
    await page.locator(".timeline .cursor").hover({ position: { x: 30, y: 8 } }); // waits until it is stable
    await page.locator(".tooltip", { hasText: /^Turn 1 · completed · 10m.*, waited 9m12s for you/ }).waitFor();
  });

  test("the header shows the newest limits of each program, with the time of their reset", async () => {
    const old = session("An older statement").finishTurn("ok");
    const newer = session("A newer statement").finishTurn("ok");
    const pi = piSession(`${env.daemon.home}/pi`, cwd, "A session of Pi", "ok");
    const script = `<img src=x onerror="document.title='taken'">`;
    const numbers = new Map([
      [old.session, { limits: [{ time: ago(9), limit: "claude", windows: [window_("five_hour", 10, 300, 95), window_("seven_day", 20, 10_080, 2880)] }] }],
      [newer.session, { limits: [{ time: ago(1), limit: "claude", windows: [window_("five_hour", 42.5, 300, 95), window_("seven_day", 88, 10_080, 2880)] }] }],
      [pi, { limits: [{ time: ago(1), limit: script, plan: script, windows: [{ name: script, used_percent: 5 }] }] }],
    ]);
    const start = env.daemon.start.bind(env.daemon);
    env.daemon.start = () => start("--root", `pi:pi=${env.daemon.home}/pi`);
    const { page, errors } = await openWith(numbers);
    await waitForCount(page, "#sessions .row", 3);
    await waitForCount(page, ".top .limits li", 2);
    const claude = page.locator(".top .limits li").first();
    assert.match(await claude.innerText(), /^Claude\s*42% of 5h, resets .+\s*88% of 7d, resets .+$/);
    assert.deepEqual(await claude.locator(".window").evaluateAll((all) => all.map((one) => [one.dataset.high, one.querySelector("progress").dataset.high])), [[undefined, undefined], ["", ""]]);
    await page.locator(".top .limits li", { hasText: `5% of ${script}` }).waitFor(); // untrusted text
    assert.equal(await page.locator("img").count(), 0);
    await waitForTitle(page, "earshot");
    await click(row(page, "An older statement"));
    await page.locator(".gauges .limits", { hasText: "42% of 5h" }).waitFor(); // the account's, not the session's own
    await waitForCount(page, ".gauges .limits li", 1);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("of many accounts the fullest are shown", async () => {
    const one = session("Fix the lamp").finishTurn("ok");
    const limits = Array.from({ length: 40 }, (_, n) => ({ time: ago(1), limit: `claude-${n}`, windows: [window_("five_hour", n * 2, 300, 95)] }));
    const { page } = await openWith(new Map([[one.session, { limits }]]));
    await waitForCount(page, ".top .limits li", 7);
    const shown = await page.locator(".top .limits li").allInnerTexts();
    assert.match(shown[0], /78% of 5h/);
    assert.match(shown[5], /68% of 5h/);
    assert.equal(shown[6], "34 more, less used");
    assert.deepEqual(await violations(page), []);
  });

  test("times of a host whose clock is wrong are corrected", async () => {
    const one = session("Fix the lamp");
    one.startTool("Bash", { command: "make" });
    const status = { state: "waiting", reason: "permission", source: "registry", since: ago(65) };
    const { page } = await openWith(new Map([[one.session, { status, clock_offset_ms: 60 * minute_ms, times: times(0, 0, 0) }]]));
    const minutes = async (name, pattern) => Number(pattern.exec(await row(page, "Fix the lamp").locator(name).innerText())[1]);
    for (const shown of [await minutes(".age", /^waiting (\d+)m\d\ds$/)]) {
      assert.ok(shown >= 5 && shown * minute_ms <= Date.now() - Date.parse(status.since) - 60 * minute_ms, `${shown} m`);
    }
  });

  test("large numbers fit on each screen", async () => {
    const one = session("Upgrade the staging database to 16 and keep a way back, and then report to everybody").finishTurn("ok");
    const limits = [{ time: ago(1), limit: "claude", windows: [window_("five_hour", 100, 300, 95), window_("seven_day", 100, 10_080, 2880)] }];
    const usage = { context: 999_999, context_window: 1_000_000, cost_usd: 123_456, cost_source: "estimated" };
    const { page } = await openWith(new Map([[one.session, { limits, usage, times: times(100_000, 200_000, 300_000, 50_000, 60_000), unseen: true }]]));
    const fit = async (name) => {
      for (const width of [1440, 1100, 800, 390]) {
        await page.setViewportSize({ width, height: 844 });
        await assertFitsWidth(page, `${name} at ${width} pixels`);
        assert.deepEqual(await violations(page), [], `${name} at ${width} pixels`);
        const cells = page.locator(".row :is(.context, .cost, .age, .times)");
        const cut = await cells.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.className}: ${one.textContent}`));
        assert.deepEqual(cut, [], `${name} at ${width} pixels`);
      }
    };
    await row(page, "Upgrade the staging").waitFor();
    await fit("the overview");
    await click(row(page, "Upgrade the staging").locator(".title"));
    await page.locator(".gauges [data-kind=limits]").waitFor();
    await fit("the session page");
  });
});
