// The dashboard in a real browser with a real daemon: content, filters, navigation.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { withBrowser, waitForCount } from "./harness.mjs";
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
    await row.locator(".message", { hasText: "make lamp" }).waitFor();
    assert.equal(await page.title(), "(1) earshot");
    one.finishTool(call, "x".repeat(9000)).setTodos(["Lamp", "completed"], ["Horn", "pending"]);
    agent.setStatus("busy");
    await row.locator(".todos", { hasText: "1/2" }).waitFor();
    one.finishTurn("The lamp is lit.");
    agent.setStatus("idle");
    await row.locator(".status", { hasText: "done" }).waitFor();
    await row.locator(".message", { hasText: "The lamp is lit." }).waitFor();
    await page.waitForFunction(() => document.title === "earshot: 1 unseen");

    await page.keyboard.press("j");
    await page.locator("#sessions .row .title:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".entry", { hasText: "The lamp is lit." }).waitFor();
    assert.match(page.url(), new RegExp(`session=${one.session}`));
    const tool = page.locator("details.call", { hasText: "make lamp" });
    await tool.locator("summary").click();
    await tool.getByText("The beginning of 8.8 KiB").waitFor();
    await tool.getByRole("button", { name: "raw result" }).click();
    await page.locator("dialog .record", { hasText: "x".repeat(9000) }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await row.waitFor();
    await waitForCount(page, ".row[data-unseen]", 0); // its page was open
    assert.equal(await page.title(), "earshot");
    one.addPrompt("And the horn").finishTurn("It sounds.");
    await page.locator(".row[data-unseen] .message", { hasText: "It sounds." }).waitFor();
    await page.getByRole("button", { name: "unseen 1" }).waitFor();
    await page.reload();
    await waitForCount(page, ".row[data-unseen]", 1);
    assert.deepEqual(errors, []);
  });

  test("the overview: waiting sessions first, groups, columns, and an accessible name for each row", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    const rows = page.locator("#sessions .row");
    await waitForExamples(page);
    const phases = await rows.evaluateAll((all) => all.map((row) => row.dataset.phase));
    assert.deepEqual(phases.slice(0, 2), ["waiting", "waiting"]);
    assert.ok(!phases.slice(2).includes("waiting"));
    assert.deepEqual(await page.locator(".group h2").allTextContents(), ["Needs you", "/home/ada/harbour-web", "/home/ada/infra", "/home/ada/lighthouse-api", "/home/ada/notes"]);
    assert.equal(await page.locator("#host, .host, .offline").count(), 0); // only with several hosts
    // The longest wait is first. Each shows the reason, the project, the request and the duration.
    assert.deepEqual(await rows.locator(".status").evaluateAll((all) => all.slice(0, 2).map((one) => one.textContent)), ["question", "permission"]);
    const second = rows.nth(1);
    assert.equal(await second.locator(".message").textContent(), "lighthouse-apiapprove Bash: make soak HOURS=1");
    assert.match(await second.locator(".tool").textContent(), /^Bash make soak HOURS=1\s?\d+ m \d\d s$/);
    assert.equal((await second.locator(".todos").textContent()).trim(), "2/4");
    assert.equal((await second.locator(".context").textContent()).trim(), "20%");
    assert.equal(await second.locator(".size").textContent(), "41.3k of 200k");
    assert.match(await second.locator(".cost").textContent(), /^~\$\d\.\d\d$/);
    assert.match(await second.locator(".times").textContent(), /^\d+ [smh] (waited|worked)$/);
    assert.match(await second.locator(".times").getAttribute("title"), /^waited for you \d+ [smh], worked \d+ [mh], idle \d+ [mh]$/);
    assert.match(await second.locator(".written").textContent(), /^\d+\.\dk out$/);
    assert.equal(await second.locator(".turn").textContent(), "turn 2");
    assert.equal(await second.locator(".model").textContent(), "opus-5-5");
    // The sparkline includes the time before the page was opened: the context grew, and shrank with the compaction.
    await page.waitForFunction(() => document.querySelectorAll(".row")[1].querySelector(".spark .line").getAttribute("d").split("L").length > 10);
    const heights = await second.locator(".spark .line").evaluate((line) => line.getAttribute("d").slice(1).split("L").map((point) => -Number(point.split(",")[1])));
    const top = heights.indexOf(Math.max(...heights));
    assert.ok(heights[0] < heights[top] && heights[top + 1] < heights[top] && top > 2, heights.join(" "));
    const named = page.getByRole("link", { name: /^needs you, permission\. Good\. Now make the clock injectable.*in \/home\/ada\/lighthouse-api\. Bash make soak.*2 of 4 to-do items completed.*approve Bash/ });
    assert.equal(await named.count(), 1);
    assert.equal(await page.getByRole("list", { name: "Sessions" }).count(), 1);
    assert.deepEqual(await page.locator("#sessions > li").first().evaluate((li) => [li.ariaPosInSet, li.ariaSetSize]), ["1", "16"]);
    // Durations are updated.
    const time = second.locator(".tool time");
    const before = await time.textContent();
    await page.waitForFunction((old) => document.querySelectorAll(".row")[1].querySelector(".tool time").textContent !== old, before);
  });

  test("filters are part of the address: search, state and project survive a reload", async () => {
    env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForExamples(page);
    await page.keyboard.press("/");
    await page.keyboard.type("tide");
    await waitForCount(page, "#sessions .row", 1);
    assert.match(page.url(), /\?q=tide$/);
    await page.reload();
    await waitForCount(page, "#sessions .row", 1);
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^needs you/ }).click();
    await waitForCount(page, "#sessions .row", 2);
    assert.match(page.url(), /state=waiting/);
    await page.goBack();
    await waitForCount(page, "#sessions .row", 11);
    await page.locator(".group a", { hasText: "infra" }).click();
    await waitForCount(page, "#sessions .row", 3);
    assert.equal(new URL(page.url()).searchParams.get("project"), "/home/ada/infra");
    await page.getByRole("button", { name: "/home/ada/infra ✕" }).click();
    await waitForCount(page, "#sessions .row", 11);
    await page.keyboard.press("/");
    await page.keyboard.type("matches nothing");
    await page.getByText("No session matches the filters.").waitFor();
    await page.getByRole("button", { name: "Show all 11" }).click();
    await waitForCount(page, "#sessions .row", 11);
  });

  test("keyboard navigation: j and k, Enter, /, ?, g and G, Escape", async () => {
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
    await page.keyboard.press("k");
    await title("Good. Now make");
    await page.keyboard.press("?");
    await page.locator("dialog", { hasText: "next, previous" }).waitFor();
    await page.keyboard.press("j"); // ignored while a dialog is open
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.match(await focused(), /^Good\. Now make/);
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
    await waitForCount(page, "#sessions .row", 11);
  });

  test("the session page: header, timeline, conversation, to-do list, files, context chart", async () => {
    const sessions = env.use(exampleSessions(env.daemon.root));
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await page.locator("#sessions .row .title", { hasText: "Good. Now make" }).click();
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
    for (const wanted of [/^Turn 1 · completed/, /^Turn 2 · open/, /^Bash make test · ok · 1 m/, /^Agent List every timer · ok · 1 m 48 s/, /^Read src\/signal\/lamp\.cpp · ok/, /^Bash make soak HOURS=1 · running/, /^no activity for 3\d m/]) {
      assert.ok(tooltips.some((tooltip) => wanted.test(tooltip)), `${wanted} is not among ${tooltips.join("; ")}`);
    }
    const painted = await timeline.evaluate((canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
    assert.ok(painted > 6, `${painted} colours`);
    const entries = page.locator(".entries > .entry");
    assert.ok(await entries.locator("[data-agent]").or(page.locator(".entry[data-agent]")).count() >= 5); // the subagent's entries
    await page.locator(".entry.notice", { hasText: "context compacted, 155,000 tokens before" }).waitFor();
    assert.deepEqual(await page.locator(".todo li").allTextContents(), ["completed: Find where the interval is set", "completed: Fix the override", "in_progress: Test with a fake clock", "pending: Notify the keepers"]);
    assert.match(await page.locator(".files li").first().textContent(), /^test\/beacon_test\.cpp1 changed$/);
    assert.match(await page.locator(".chart").getAttribute("aria-label"), /^Tokens in the context over time: 41\.3k now, 148k at most/);
    await page.getByRole("button", { name: "Subagents" }).click();
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
    await page.locator("#sessions .row").click();
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
