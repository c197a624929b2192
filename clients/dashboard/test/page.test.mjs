// The dashboard in a real browser with a real daemon: content, filters, navigation.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { click } from "./browser.mjs";
import { test, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, exampleSessions, registerProcess, waitForExamples } from "./fixtures.mjs";

const whole_timeline = "Timeline: 2 turns, 23 tool calls, 1 subagent, 1 compaction"; // of the long example session

withBrowser("the page", (env) => {
  test("a session is shown working, with its tool, waiting and done; its page shows everything, and the whole record of an entry", async () => {
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await page.getByText("No agent sessions").waitFor();
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api");
    const agent = registerProcess(env.daemon.root, one, "/home/ada/api");
    env.cleanups.push(agent.stop);
    one.addPrompt("Fix the lamp");
    agent.setStatus("busy");
    const row = page.locator("#sessions .row");
    await row.locator(".status", { hasText: "working" }).waitFor();
    await row.locator(".title", { hasText: "Fix the lamp" }).waitFor();  // the registry may be read before the transcript
    const call = one.startTool("Bash", { command: "make lamp" });
    await row.locator(".tool", { hasText: "make lamp" }).waitFor();
    agent.setStatus("waiting", "permission prompt");
    await page.locator(".group[data-waiting]", { hasText: "Needs you" }).waitFor();
    await row.locator(".status", { hasText: "permission" }).waitFor();
    await row.locator(".command", { hasText: "make lamp" }).waitFor();
    await waitForTitle(page, "(1) earshot");
    one.finishTool(call, "x".repeat(9000)).setTodos(["Lamp", "completed"], ["Horn", "pending"]);
    agent.setStatus("busy");
    await row.locator(".todos", { hasText: "1/2" }).waitFor();
    one.finishTurn("The lamp is lit.");
    agent.setStatus("idle");
    await row.locator(".status", { hasText: "done" }).waitFor();
    await row.locator(".message", { hasText: "The lamp is lit." }).waitFor();
    await waitForTitle(page, "earshot: 1 unseen");

    await page.keyboard.press("j");
    await page.locator("#sessions .row .title:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".entry", { hasText: "The lamp is lit." }).waitFor();
    assert.match(page.url(), new RegExp(`session=${one.session}`));
    const tool = page.locator("details.call", { hasText: "make lamp" });
    await click(tool.locator("summary"));
    await tool.getByText("The beginning of 8.8 KiB").waitFor();
    await click(tool.getByRole("button", { name: "raw result" }));
    await page.locator("dialog .record", { hasText: "x".repeat(9000) }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await row.waitFor();
    await waitForCount(page, ".row[data-unseen]", 0); // its page was open
    await waitForTitle(page, "earshot");
    one.addPrompt("And the horn").finishTurn("It sounds.");
    await page.locator(".row[data-unseen] .message", { hasText: "It sounds." }).waitFor();
    await page.getByRole("button", { name: "1 unseen" }).waitFor();
    await page.reload();
    await waitForCount(page, ".row[data-unseen]", 1);
    assert.deepEqual(errors, []);
  });

  test("the overview: waiting sessions are cards, then groups of rows; each has an accessible name", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForExamples(page);
    const cards = page.locator("#sessions .card");
    assert.deepEqual(await page.locator(".group h2").allTextContents(), ["Needs you", "/home/ada/harbour-web", "/home/ada/infra", "/home/ada/lighthouse-api"]);
    assert.match(await page.locator(".group .sums").first().innerText(), /^1 working · ~\$\d\.\d\d for these 2$/);
    assert.equal(await page.locator("#host, .host, .offline").count(), 0); // only with several hosts
    // The longest wait is first.
    assert.deepEqual(await cards.locator(".status").allTextContents(), ["Question", "Permission"]);
    assert.equal(await cards.first().locator(".question > p").innerText(), "Which source should the tide table use?");
    assert.deepEqual(await cards.first().locator(".question li").allInnerTexts(), ["Hydrographic office official", "A CSV of ours offline"]);
    const second = cards.nth(1);
    assert.equal(await second.locator(".command").innerText(), "make soak HOURS=1");
    assert.equal(await second.locator(".purpose").innerText(), "Run the soak test");
    assert.match(await second.locator(".age").innerText(), /^waiting \d+(s|m\d\ds)$/);
    assert.equal((await second.locator(".todos").textContent()).trim(), "2/4");
    assert.equal((await second.locator(".context").textContent()).trim(), "20%");
    assert.match(await second.locator(".cost").textContent(), /^~\$\d\.\d\d$/);
    const working = page.locator("#sessions .row", { hasText: "Make the chart zoom" });
    assert.match(await working.locator(".tool").innerText(), /^Bash\s+npx playwright test chart.spec.ts --project=phone\s+(\d+s|\d+m\d\ds)$/);
    assert.equal((await working.locator(".todos").textContent()).trim(), "2/3");
    assert.match(await working.locator(".age").innerText(), /^\d+m$/);
    await page.getByRole("link", { name: /^needs you, permission\. Good\. Now make the clock injectable.*in \/home\/ada\/lighthouse-api\. approve Bash: make soak/ }).waitFor();
    await page.getByRole("link", { name: /^working\. Make the chart zoom.*in \/home\/ada\/harbour-web\. Bash npx playwright.*2 of 3 to-do items completed.*47\.3k tokens in the context, 23 % of it/ }).waitFor();
    assert.equal(await page.getByRole("list", { name: "Sessions" }).count(), 1);
    assert.deepEqual(await page.locator("#rows > li").first().evaluate((li) => [li.ariaPosInSet, li.ariaSetSize]), ["1", "9"]);
    // Durations are updated.
    const time = working.locator(".tool time");
    const before = await time.textContent();
    await page.waitForFunction((old) => document.querySelector("#rows .tool time").textContent !== old, before);
  });

  test("the details of a row: model, turn, branch, and the context since its beginning", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForExamples(page);
    const row = page.locator("#sessions .row", { hasText: "Upgrade the staging" });
    assert.equal(await page.locator(".details").count(), 0); // on demand
    await row.locator(".title").focus();
    await page.keyboard.press("x");
    await waitForCount(page, ".details", 1);
    const facts = await row.locator(".details dl div").allInnerTexts();
    assert.deepEqual(facts.map((fact) => fact.replace(/\s+/, " ")), ["Model opus-5-5", "Turn 1", "Branch main", "Program Claude Code 2.1.330", "Context 71.3k of 200k", `Written ${(await row.locator(".details dd").nth(5).innerText())}`]);
    assert.match(await row.locator(".times").getAttribute("title"), /^waited for you \d+s, worked \d+m, idle \d+s$/);
    // The sparkline includes the time before the page was opened: the context grew, and shrank with the compaction.
    await page.waitForFunction(() => document.querySelector(".spark .line")?.getAttribute("d").split("L").length > 6);
    const heights = await row.locator(".spark .line").evaluate((line) => line.getAttribute("d").slice(1).split("L").map((point) => -Number(point.split(",")[1])));
    const top = heights.indexOf(Math.max(...heights));
    assert.ok(heights[0] < heights[top] && heights[top + 1] < heights[top] && top > 2, heights.join(" "));
    await click(row.getByRole("button", { name: "Details" })); // does not open the session
    await waitForCount(page, ".details", 0);
    assert.equal(new URL(page.url()).search, "");
  });

  test("fault 158: what is touched is 24 px high and wide on a phone, also on a session's page and in the history", async () => {
    const { long } = env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage({ viewport: { width: 320, height: 800 }, isMobile: true, hasTouch: true });
    const smaller = () => page.evaluate(() => [...document.querySelectorAll("a, button, select, input, summary")].map((element) => [element, element.getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 0 && height > 0 && (width < 24 || height < 24)).map(([element, { width, height }]) => `${element.outerHTML.slice(0, 80)} ${width} x ${height}`));
    await waitForExamples(page);
    assert.deepEqual(await smaller(), []);
    await page.goto(`http://127.0.0.1:${env.daemon.port}/?session=${long.session}&host=testhost`);
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    assert.deepEqual(await smaller(), []);
    await page.goto(`http://127.0.0.1:${env.daemon.port}/?view=history`);
    await page.locator(".past").first().waitFor();
    assert.deepEqual(await smaller(), []);
  });

  test("fault 158: with forced colours gauges and marks of states have the system's colours", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage({ forcedColors: "active" });
    await waitForExamples(page);
    const colours = await page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "CanvasText";
      const text = getComputedStyle(probe).color;
      const gauge = getComputedStyle(document.querySelector(".row progress"));
      return { gauge: gauge.borderTopColor === text && gauge.borderTopWidth === "1px", mark: getComputedStyle(document.querySelector(".row .status[data-state=working]"), "::before").backgroundColor === text,
        wait: getComputedStyle(document.querySelector(".card .status[data-state=waiting]")).outlineStyle };
    });
    assert.deepEqual(colours, { gauge: true, mark: true, wait: "solid" });
    // The mark of what is unseen, too.
    const [mark, highlight] = await page.locator("#rows .row[data-phase=done]").first().evaluate((row) => {
      row.dataset.unseen = "";
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "Highlight";
      return [getComputedStyle(row.querySelector(".status"), "::before").backgroundColor, getComputedStyle(probe).color];
    });
    assert.equal(mark, highlight);
  });

  test("fault 161: while nothing works or waits, groups and rows are by latest activity, and only ended sessions are folded", async () => {
    const finished = (cwd, minutes, prompt) => new ScriptedSession(env.daemon.root, cwd).at(minutes).addPrompt(prompt).finishTurn("Done.");
    const agents = [["/home/ada/bay", 300, "Paint the buoy"], ["/home/ada/api", 200, "Oldest of two"], ["/home/ada/api", 100, "Latest of two"], ["/home/ada/zoo", 20, "Feed the seals"]]
      .map(([cwd, minutes, prompt]) => registerProcess(env.daemon.root, finished(cwd, minutes, prompt), cwd));
    for (const agent of agents) agent.setStatus("idle");
    env.cleanups.push(...agents.map((agent) => agent.stop));
    const gone = registerProcess(env.daemon.root, finished("/home/ada/gone", 10, "Has ended"), "/home/ada/gone");
    gone.setStatus("idle");
    const busy = registerProcess(env.daemon.root, new ScriptedSession(env.daemon.root, "/home/ada/den").at(1).addPrompt("Dig"), "/home/ada/den");
    env.cleanups.push(busy.stop, gone.stop);
    busy.setStatus("busy");
    await env.daemon.start();
    const { page } = await env.openPage();
    await page.locator(".row[data-phase=working] .title", { hasText: "Dig" }).waitFor();
    await page.locator(".quiet-line", { hasText: "3 ended or quiet" }).waitFor(); // while one works
    busy.stop();
    gone.stop();
    await page.locator(".quiet-line", { hasText: "2 ended" }).waitFor();
    await waitForCount(page, "#sessions .row", 4);
    assert.deepEqual(await page.locator("#rows :is(.group h2, .row .title)").allInnerTexts(),
      ["/home/ada/zoo", "Feed the seals", "/home/ada/api", "Latest of two", "Oldest of two", "/home/ada/bay", "Paint the buoy"]);
  });

  test("sessions that ended or went quiet are folded; filters, groups and order are part of the address", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForExamples(page);
    await click(page.locator(".quiet-line"));
    await waitForCount(page, "#sessions .row", 11);
    assert.match(page.url(), /\?quiet=1$/);
    await page.reload();
    await waitForCount(page, "#sessions .row", 11);
    await click(page.getByRole("button", { name: "4 ended or quiet", expanded: true }));
    await waitForCount(page, "#sessions .row", 7);
    assert.equal(new URL(page.url()).search, "");

    await page.keyboard.press("/");
    await page.keyboard.type("runbook"); // a search also finds quiet ones
    await waitForCount(page, "#sessions .row", 1);
    assert.match(page.url(), /\?q=runbook$/);
    await page.reload();
    await waitForCount(page, "#sessions .row", 1);
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await waitForCount(page, "#sessions .row", 7);
    await click(page.getByRole("button", { name: "2 need you" }));
    await waitForCount(page, "#sessions .row", 2);
    assert.match(page.url(), /state=waiting/);
    await page.goBack();
    await waitForCount(page, "#sessions .row", 7);
    await click(page.locator(".group a", { hasText: "infra" }));
    await waitForCount(page, "#sessions .row", 1);
    assert.equal(new URL(page.url()).searchParams.get("project"), "/home/ada/infra");
    await click(page.getByRole("button", { name: "/home/ada/infra ✕" }));
    await waitForCount(page, "#sessions .row", 7);

    const titles = () => page.locator("#rows .title").allTextContents();
    await page.getByLabel("Group").selectOption("none");
    await waitForCount(page, "#rows .group", 0);
    await page.locator("#rows .project", { hasText: "infra" }).waitFor(); // each row names its project
    await page.getByLabel("Sort").selectOption("cost");
    await page.waitForFunction(() => document.querySelector("#rows .title").textContent.startsWith("Upgrade the staging"));
    const costs = (await page.locator("#rows .cost").allTextContents()).map((text) => Number(text.replace(/[~$]/g, "")));
    assert.deepEqual(costs, [...costs].sort((a, b) => b - a));
    assert.equal(new URL(page.url()).search, "?group=none&sort=cost");
    await page.reload();
    await page.waitForFunction(() => document.querySelector("#rows .title")?.textContent.startsWith("Upgrade the staging"));
    await page.getByLabel("Sort").selectOption("context");
    await page.waitForFunction(() => document.querySelector("#rows .title").textContent.startsWith("Why does the radio beacon"));
    await page.getByLabel("Sort").selectOption("name");
    await page.waitForFunction(() => document.querySelector("#rows .title").textContent.startsWith("Make the chart"));
    assert.deepEqual(await titles(), (await titles()).sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)));
    await page.getByLabel("Sort").selectOption("activity");
    await page.waitForFunction(() => document.querySelector("#rows .title").textContent.startsWith("Upgrade the staging"));
    await page.getByLabel("Sort").selectOption("need");
    await page.getByLabel("Group").selectOption("program");
    await page.locator("#rows .group h2", { hasText: "Claude Code" }).waitFor();
    assert.equal(new URL(page.url()).search, "?group=program");
    await page.goto(`${new URL(page.url()).origin}/?group=colour&sort=shape`); // unknown choices are the default
    await waitForExamples(page);

    await page.keyboard.press("/");
    await page.keyboard.type("matches nothing");
    await page.getByText("No session matches the filters.").waitFor();
    await click(page.getByRole("button", { name: "Show all 11" }));
    await waitForCount(page, "#sessions .row", 7);
  });

  test("keyboard navigation: j and k, n, x, Enter, /, ?, g and G, Escape; inputs and selects keep their keys", async () => {
    const sessions = env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForExamples(page);
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    const title = (text) => page.waitForFunction((wanted) => document.activeElement.textContent.startsWith(wanted), text);
    await page.keyboard.press("j");
    await title("Add a tide table");
    await page.keyboard.press("j");
    await title("Good. Now make");
    await page.keyboard.press("j"); // skips the group header
    await title("Make the chart zoom");
    await page.keyboard.press("n");
    await title("Add a tide table");
    await page.keyboard.press("n");
    await title("Good. Now make");
    await page.keyboard.press("?");
    const keys = await page.locator("dialog kbd").allTextContents();
    for (const key of ["j, k", "Enter", "n", "x", "c", "p", "s", "g, G", "/", "Esc", "?"]) assert.ok(keys.includes(key), `${key} is not listed`);
    await page.keyboard.press("j"); // ignored while a dialog is open
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.match(await focused(), /^Good\. Now make/);

    await page.keyboard.press("/");
    await page.keyboard.type("jknxcps?gG/");
    assert.equal(await page.locator("#search").inputValue(), "jknxcps?gG/");
    assert.equal(await page.locator("dialog, .details").count(), 0);
    await page.keyboard.press("Escape");
    await waitForExamples(page);
    await page.locator("#sort").focus();
    await page.keyboard.press("n"); // selects by letter
    await page.waitForFunction(() => document.activeElement.id === "sort" && location.search !== "?sort=n");
    assert.equal(await page.evaluate(() => document.activeElement.id), "sort");
    await page.locator("#sort").selectOption("need");

    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("n");
    await page.keyboard.press("n");
    await title("Good. Now make");
    await page.keyboard.press("Enter");
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    await page.getByRole("img", { name: whole_timeline }).waitFor(); // else it would grow after the key
    await page.keyboard.press("G");
    await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
    sessions.long.append(sessions.long.reply("A new message.", null));
    await page.locator(".entry", { hasText: "A new message." }).waitFor();
    await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2); // stays at the end
    await page.keyboard.press("g");
    await page.waitForFunction(() => scrollY === 0);
    await page.keyboard.press("j");
    await page.locator(".entry [data-item]:focus").waitFor();
    await page.keyboard.press("Escape");
    await waitForCount(page, "#sessions .row", 7);
  });

  test("the session page: header, timeline, conversation, to-do list, files, context chart", async () => {
    const sessions = env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await click(page.locator("#sessions .card .title", { hasText: "Good. Now make" }));
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    const timeline = page.getByRole("img", { name: whole_timeline });
    await timeline.waitFor();
    await page.locator(".request", { hasText: "approve Bash" }).waitFor();
    assert.match(await page.locator(".facts").textContent(), /^waiting: permission.*\/home\/ada\/lighthouse-apimaintesthostClaude Codeopus-5-5turn 2/);
    assert.equal(await page.locator(".request").textContent(), "approve Bash: make soak HOURS=1");
    // Tooltips: turns, calls, the subagent's calls, pauses.
    const box = await timeline.boundingBox();
    await page.evaluate(() => {
      globalThis.tooltips = new Set();
      new MutationObserver(() => tooltips.add(document.querySelector(".tooltip").textContent)).observe(document.querySelector(".tooltip"), { childList: true, characterData: true, subtree: true });
    });
    for (let y = 6; y < box.height - 22; y += 17) {
      await page.mouse.move(box.x + 2, box.y + y);
      await page.mouse.move(box.x + box.width - 4, box.y + y, { steps: 40 });
    }
    const tooltips = await page.evaluate(() => [...globalThis.tooltips]);
    for (const wanted of [/^Turn 1 · completed/, /^Turn 2 · open/, /^Bash make test · ok · 1m/, /^Agent List every timer · ok · 1m48s/, /^Read src\/signal\/lamp\.cpp · ok/, /^Bash make soak HOURS=1 · running/, /^no activity for 3\dm/]) {
      assert.ok(tooltips.some((tooltip) => wanted.test(tooltip)), `${wanted} is not among ${tooltips.join("; ")}`);
    }
    const painted = await timeline.evaluate((canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
    assert.ok(painted > 6, `${painted} colours`);
    const entries = page.locator(".entries > .entry");
    assert.ok(await entries.locator("[data-agent]").or(page.locator(".entry[data-agent]")).count() >= 5); // the subagent's entries
    await page.locator(".entry.notice", { hasText: "context compacted, 155,000 tokens before" }).waitFor();
    assert.deepEqual(await page.locator(".todo li").allTextContents(), ["completed: Find where the interval is set", "completed: Fix the override", "in_progress: Test with a fake clock", "pending: Notify the keepers"]);
    assert.match(await page.locator(".files li").first().textContent(), /^test\/beacon_test\.cpp\+1 −1$/);
    assert.match(await page.getByRole("img", { name: "Tokens in the context" }).getAttribute("aria-label"), /^Tokens in the context over time: 41\.3k tokens now, 148k at most, of 200k; 1 compaction$/);
    await click(page.getByRole("button", { name: "Subagents" }));
    await waitForCount(page, ".entry[data-agent]", 0);
    await page.locator("details.call", { hasText: "make soak" }).locator(".duration.running").waitFor();
    sessions.long.append(sessions.long.reply("The next step.", null));
    await page.locator(".entry", { hasText: "The next step." }).waitFor();
    assert.deepEqual(errors, []);
  });

  test("the session page: search, a rewritten transcript, a removed transcript", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("the old prompt");
    one.runTool("Bash", { command: "make old" }, 1).finishTurn("old answer");
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await click(page.locator("#sessions .row"));
    await page.locator(".entry", { hasText: "old answer" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("make");
    await waitForCount(page, ".entry", 1);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    await page.locator(".entry", { hasText: "old answer" }).waitFor();
    one.rewrite(one.prompt("the new prompt"));
    await page.locator(".entry", { hasText: "the new prompt" }).waitFor();
    assert.equal(await page.getByText("old answer").count(), 0);
    one.append(one.reply("a new answer"));
    await page.locator(".entry", { hasText: "a new answer" }).waitFor();
    rmSync(one.path);
    await page.getByText("This session does not exist").waitFor();
    assert.deepEqual(errors, []);
  });
});
