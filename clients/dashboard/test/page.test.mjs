// The dashboard in a real browser, on a real daemon: what it shows, and how one moves about in it.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { house, many } from "./house.mjs";
import { Scripted, morning, registry } from "./scene.mjs";

house("the page", (house) => {
  test("a session shows each stage: at work, a tool in hand, waiting, done; then in full, with the whole record behind an entry", async () => {
    await house.place.start();
    const { page, complaints } = await house.visit();
    await page.getByText("No agent has been at work").waitFor();
    const one = new Scripted(house.place.root, "/home/ada/api");
    const agent = registry(house.place.root, one, "/home/ada/api");
    house.ended.push(agent.end);
    one.asks("Mend the lamp");
    agent.says("busy");
    const row = page.locator("#sessions .row");
    await row.locator(".status", { hasText: "working" }).waitFor();
    await row.locator(".title", { hasText: "Mend the lamp" }).waitFor();  // the registry may be read before the transcript
    const call = one.begins("Bash", { command: "make lamp" });
    await row.locator(".tool", { hasText: "make lamp" }).waitFor();
    agent.says("waiting", "permission prompt");
    await page.locator(".group[data-waiting]", { hasText: "Needs you" }).waitFor();
    await row.locator(".status", { hasText: "permission" }).waitFor();
    await row.locator(".said", { hasText: "make lamp" }).waitFor();
    assert.equal(await page.title(), "(1) earshot");
    one.ends(call, "x".repeat(9000)).todo(["Lamp", "completed"], ["Horn", "pending"]);
    agent.says("busy");
    await row.locator(".todos", { hasText: "1/2" }).waitFor();
    one.answers("The lamp is lit.");
    agent.says("idle");
    await row.locator(".status", { hasText: "done" }).waitFor();
    await row.locator(".said", { hasText: "The lamp is lit." }).waitFor();
    assert.equal(await page.title(), "earshot");

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
    assert.deepEqual(complaints, []);
  });

  test("a morning at a glance: who needs somebody comes first, groups, columns, and a sentence for screen readers", async () => {
    house.scene(morning(house.place.root));
    await house.place.start();
    const { page } = await house.visit();
    const rows = page.locator("#sessions .row");
    await rows.first().waitFor();
    const phases = await rows.evaluateAll((all) => all.map((row) => row.dataset.phase));
    assert.deepEqual(phases.slice(0, 2), ["waiting", "waiting"]);
    assert.ok(!phases.slice(2).includes("waiting"));
    assert.deepEqual(await page.locator(".group h2").allTextContents(), ["Needs you", "/home/ada/harbour-web", "/home/ada/infra", "/home/ada/lighthouse-api", "/home/ada/notes"]);
    assert.equal(await page.locator("#host, .whose, .away").count(), 0); // one host is no team
    // Who waits for longest is first; each says what for, in which project, what exactly, and for how long.
    assert.deepEqual(await rows.locator(".status").evaluateAll((all) => all.slice(0, 2).map((one) => one.textContent)), ["question", "permission"]);
    const second = rows.nth(1);
    assert.equal(await second.locator(".said").textContent(), "lighthouse-apiapprove Bash: make soak HOURS=1");
    assert.match(await second.locator(".tool").textContent(), /^Bash make soak HOURS=1\s?\d+ m \d\d s$/);
    assert.equal((await second.locator(".todos").textContent()).trim(), "2/4");
    assert.equal(await second.locator(".context").textContent(), "41.3k ctx");
    assert.match(await second.locator(".written").textContent(), /^\d+\.\dk out$/);
    assert.equal(await second.locator(".turn").textContent(), "turn 2");
    assert.equal(await second.locator(".model").textContent(), "opus-5-5");
    // The course of the context, also of what went before the page was opened: it rose, and fell when it was compacted.
    await page.waitForFunction(() => document.querySelectorAll(".row")[1].querySelector(".spark .line").getAttribute("d").split("L").length > 10);
    const heights = await second.locator(".spark .line").evaluate((line) => line.getAttribute("d").slice(1).split("L").map((point) => -Number(point.split(",")[1])));
    const top = heights.indexOf(Math.max(...heights));
    assert.ok(heights[0] < heights[top] && heights[top + 1] < heights[top] && top > 2, heights.join(" "));
    const named = page.getByRole("link", { name: /^needs you, permission\. Good\. Now make the clock injectable.*in \/home\/ada\/lighthouse-api\. Bash make soak.*2 of 4 things to do are done.*approve Bash/ });
    assert.equal(await named.count(), 1);
    assert.equal(await page.getByRole("list", { name: "Sessions" }).count(), 1);
    assert.deepEqual(await page.locator("#sessions > li").first().evaluate((li) => [li.ariaPosInSet, li.ariaSetSize]), ["1", "16"]);
    // Times tick by themselves.
    const time = second.locator(".tool time");
    const was = await time.textContent();
    await page.waitForFunction((old) => document.querySelectorAll(".row")[1].querySelector(".tool time").textContent !== old, was);
  });

  test("filters are in the address: search, states, projects, and what a reload shows", async () => {
    house.scene(morning(house.place.root));
    await house.place.start();
    const { page } = await house.visit();
    await page.locator("#sessions .row").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("tide");
    await many(page, "#sessions .row", 1);
    assert.match(page.url(), /\?q=tide$/);
    await page.reload();
    await many(page, "#sessions .row", 1);
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^needs you/ }).click();
    await many(page, "#sessions .row", 2);
    assert.match(page.url(), /state=waiting/);
    await page.goBack();
    await many(page, "#sessions .row", 11);
    await page.locator(".group a", { hasText: "infra" }).click();
    await many(page, "#sessions .row", 3);
    assert.equal(new URL(page.url()).searchParams.get("project"), "/home/ada/infra");
    await page.getByRole("button", { name: "/home/ada/infra ✕" }).click();
    await many(page, "#sessions .row", 11);
    await page.keyboard.press("/");
    await page.keyboard.type("nobody says this");
    await page.getByText("Nothing fits what is asked for.").waitFor();
    await page.getByRole("button", { name: "Show all 11" }).click();
    await many(page, "#sessions .row", 11);
  });

  test("the keyboard alone: j and k, Enter, /, ?, g and G, Escape", async () => {
    const scene = house.scene(morning(house.place.root));
    await house.place.start();
    const { page } = await house.visit();
    await page.locator("#sessions .row").first().waitFor();
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    const title = (text) => page.waitForFunction((wanted) => document.activeElement.textContent.startsWith(wanted), text);
    await page.keyboard.press("j");
    await title("Add a tide table");
    await page.keyboard.press("j");
    await title("Good. Now make");
    await page.keyboard.press("j"); // over the head of the next group
    await title("Make the chart zoom");
    await page.keyboard.press("k");
    await title("Good. Now make");
    await page.keyboard.press("?");
    await page.locator("dialog", { hasText: "next, previous" }).waitFor();
    await page.keyboard.press("j"); // not while a dialog is open
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.match(await focused(), /^Good\. Now make/);
    await page.keyboard.press("Enter");
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    await page.keyboard.press("G");
    await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
    scene.big.append(scene.big.says("Something new comes.", null));
    await page.locator(".entry", { hasText: "Something new comes." }).waitFor();
    await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2); // it stays at the end
    await page.keyboard.press("g");
    await page.waitForFunction(() => scrollY === 0);
    await page.keyboard.press("j");
    await page.locator(".entry [data-item]:focus").waitFor();
    await page.keyboard.press("Escape");
    await many(page, "#sessions .row", 11);
  });

  test("a session's page: head, timeline, conversation, todo list, files, the context's course", async () => {
    const scene = house.scene(morning(house.place.root));
    await house.place.start();
    const { page, complaints } = await house.visit();
    await page.locator("#sessions .row .title", { hasText: "Good. Now make" }).click();
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    assert.match(await page.locator(".facts").textContent(), /^waiting: permission.*\/home\/ada\/lighthouse-apimaintesthostopus-5-5turn 2/);
    assert.equal(await page.locator(".asks").textContent(), "approve Bash: make soak HOURS=1");
    const timeline = page.getByRole("img", { name: "Timeline: 2 turns, 23 tool calls, 1 subagent, 1 compaction" });
    await timeline.waitFor();
    // What is pointed at is told: over the whole picture there are turns, calls, the subagent's, and the compaction.
    const box = await timeline.boundingBox();
    await page.evaluate(() => {
      globalThis.told = new Set();
      new MutationObserver(() => told.add(document.querySelector(".says").textContent)).observe(document.querySelector(".says"), { childList: true, characterData: true, subtree: true });
    });
    for (let y = 6; y < box.height - 22; y += 17) {
      await page.mouse.move(box.x + 2, box.y + y);
      await page.mouse.move(box.x + box.width - 4, box.y + y, { steps: 40 });
    }
    const told = await page.evaluate(() => [...globalThis.told]);
    for (const wanted of [/^Turn 1 · completed/, /^Turn 2 · open/, /^Bash make test · ok · 1 m/, /^Agent List every timer · ok · 1 m 48 s/, /^Read src\/signal\/lamp\.cpp · ok/, /^Bash make soak HOURS=1 · running/, /^nothing for 3\d m/]) {
      assert.ok(told.some((one) => wanted.test(one)), `${wanted} is not among ${told.join("; ")}`);
    }
    const painted = await timeline.evaluate((canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
    assert.ok(painted > 6, `${painted} colours`);
    const entries = page.locator(".entries > .entry");
    assert.ok(await entries.locator("[data-agent]").or(page.locator(".entry[data-agent]")).count() >= 5); // the subagent's, nested
    await page.locator(".entry.mark", { hasText: "context compacted, 155,000 tokens before" }).waitFor();
    assert.deepEqual(await page.locator(".todo li").allTextContents(), ["completed: Find where the interval is set", "completed: Fix the override", "in_progress: Test with a fake clock", "pending: Tell the keepers"]);
    assert.match(await page.locator(".files li").first().textContent(), /^test\/beacon_test\.cpp1 changed$/);
    assert.match(await page.locator(".chart").getAttribute("aria-label"), /^Tokens in the context over time: 41\.3k now, 148k at most/);
    await page.getByRole("button", { name: "Subagents" }).click();
    await many(page, ".entry[data-agent]", 0);
    await page.locator("details.call", { hasText: "make soak" }).locator(".took.running").waitFor();
    scene.big.append(scene.big.says("And on it goes.", null));
    await page.locator(".entry", { hasText: "And on it goes." }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test("a session's page: a search, a transcript that is written anew, and one that goes", async () => {
    const one = new Scripted(house.place.root, "/home/ada/api").asks("the old prompt");
    one.uses("Bash", { command: "make old" }, 1).answers("old answer");
    await house.place.start();
    const { page, complaints } = await house.visit();
    await page.locator("#sessions .row").click();
    await page.locator(".entry", { hasText: "old answer" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("make");
    await many(page, ".entry", 1);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    await page.locator(".entry", { hasText: "old answer" }).waitFor();
    one.rewrite(one.prompt("the new prompt"));
    await page.locator(".entry", { hasText: "the new prompt" }).waitFor();
    assert.equal(await page.getByText("old answer").count(), 0);
    one.append(one.says("a new answer"));
    await page.locator(".entry", { hasText: "a new answer" }).waitFor();
    rmSync(one.path);
    await page.getByText("There is no such session here").waitFor();
    assert.deepEqual(complaints, []);
  });
});
