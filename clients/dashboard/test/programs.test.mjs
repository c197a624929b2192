// Sessions of several agent programs: marks, filter, context, limits, plans, subagents.
import assert from "node:assert/strict";
import { click } from "./browser.mjs";
import { assertFitsWidth, test, violations, waitForCount, withBrowser } from "./harness.mjs";
import { Rollout, ScriptedSession, otherPrograms } from "./fixtures.mjs";

withBrowser("agent programs", (env) => {
  test("each session has its program's mark, the overview can be filtered by it and shows the account's limits", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp").finishTurn("The lamp is lit.");
    const { args } = otherPrograms(env.daemon.home);
    await env.daemon.start(...args);
    const { page, errors } = await env.openPage();
    await waitForCount(page, "#sessions .row", 3);
    const row = (title) => page.locator(".row", { has: page.locator(".title", { hasText: title }) });
    await row("Do it.").locator(".tool", { hasText: "make -C lamp soak" }).waitFor();
    assert.equal(await row("Do it.").locator(".program").innerText(), "Codex");
    assert.equal(await row("Fix the lamp").locator(".program").innerText(), "Claude");
    assert.equal(await row("mention the fuse").locator(".program").innerText(), "Pi");
    assert.equal((await row("Do it.").locator(".context").innerText()).trim(), "25%");
    assert.match(await row("mention the fuse").locator(".context").innerText(), /^4.1k\s+ctx$/);  // its size is not known
    const name = await row("Do it.").locator(".title").getAttribute("aria-label");
    assert.match(name, /^working\. Codex Do it\.\. .*64.6k tokens in the context, 25 % of it/);

    const limits = page.locator(".top .limits li");
    assert.match(await limits.innerText(), /^Codex\s*31% of 5h, resets .+\s*66% of 7d, resets .+$/);
    assert.equal(await limits.locator("progress").first().getAttribute("value"), "31");

    const options = page.locator("#program option");
    assert.deepEqual(await options.allInnerTexts(), ["All programs", "Claude Code (1)", "Codex CLI (1)", "Pi (1)"]);
    await page.locator("#program").selectOption("pi");
    await waitForCount(page, "#sessions .row", 1);
    assert.match(page.url(), /program=pi/);
    await row("mention the fuse").waitFor();
    assert.deepEqual(await page.locator(".chip.small").allInnerTexts(), ["done 1"]);
    await waitForCount(page, ".top .limits li", 0);  // those of Pi's account are not known
    await page.locator("#search").fill("codex");
    await click(page.getByRole("button", { name: "Show all 3" }));
    await waitForCount(page, "#sessions .row", 3);
    await page.locator("#search").fill("codex cli");
    await waitForCount(page, "#sessions .row", 1);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("the page of a session of Codex shows sandbox, context, limits, plan, subagent and files", async () => {
    const { codex, subagent, args } = otherPrograms(env.daemon.home);
    await env.daemon.start(...args);
    const { page, errors } = await env.openPage();
    await click(page.locator(".row .title", { hasText: "Do it." }));
    await page.locator(".head h2 .program", { hasText: "Codex" }).waitFor();
    const facts = page.locator(".facts");
    for (const fact of ["Codex CLI", "on-request", "workspace-write"]) await facts.locator("span", { hasText: fact }).first().waitFor();
    const plan = page.locator(".entry[data-kind=plan]");
    assert.match(await plan.locator(".byline").innerText(), /^Agent\s*plan/);
    assert.deepEqual(await plan.locator(".markdown li").allInnerTexts(), ["Watch the current of the first bulb", "Switch within 200 ms", "Report the change to the keepers"]);
    const message = page.locator(".entry[data-kind=agent]");
    assert.match(await message.locator(".byline").innerText(), /^Another agent/);
    assert.equal(await message.locator(".markdown").innerText(), "Both bulbs share one fuse.");
    await page.locator(".entry[data-agent] details.call", { hasText: "cat wiring.md" }).waitFor();
    await page.locator("aside h3", { hasText: "64.6k tokens now" }).waitFor();
    const context = page.locator(".gauges [data-kind=context]", { hasText: "64.6k of 258k tokens" });
    await context.waitFor();
    assert.match(await context.innerText(), /25%/);
    await page.locator(".gauges .limits .window", { hasText: "31% of 5h" }).waitFor();

    // A statement of a subagent's stream is the newest one of the account.
    subagent.minutes = 0;
    subagent.addUsage(9_000, [92, 70]);
    await page.locator(".gauges .limits .window[data-high]", { hasText: "92% of 5h" }).waitFor();
    assert.equal(await context.count(), 1);  // the main agent's

    codex.minutes = 0;
    codex.append("event_msg", { type: "task_complete", turn_id: codex.turn, last_agent_message: null, error: { message: "The limit is reached.", codex_error_info: "usage_limit_exceeded" } });
    await page.locator(".entry.notice", { hasText: "the API failed (usage_limit_exceeded): The limit is reached." }).waitFor();
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("a running subagent of Codex is one agent, with its current tool", async () => {
    const root = `${env.daemon.home}/codex`;
    const codex = new Rollout(root, "/home/ada/api").addPrompt("Let one look");
    await env.daemon.start("--root", `codex:codex=${root}`);
    const { page } = await env.openPage();
    const row = page.locator("#sessions .row");
    const call = codex.startTool("spawn_agent", { task_name: "looker", message: "look" }, "collaboration");
    const subagent = new Rollout(root, "/home/ada/api", { parent: codex, agent_type: "explorer" });
    codex.item({ type: "SubAgentActivity", id: call, kind: "started", agent_thread_id: subagent.id, agent_path: "/root/looker" });
    subagent.addPrompt("look").startTool("exec_command", { cmd: "ls lamps" });
    await row.locator(".tool", { hasText: "ls lamps" }).waitFor();
    codex.addUsage(12_000);
    await row.locator(".context", { hasText: "4%" }).waitFor(); // both transcripts were read
    assert.equal(await row.locator(".tool .agents").innerText(), "1 agent");
    assert.match(await row.locator(".tool").innerText(), /ls lamps/);
    assert.equal(await row.count(), 1);
  });

  test("a turn that failed is not shown as done", async () => {
    const root = `${env.daemon.home}/codex`;
    const codex = new Rollout(root, "/home/ada/api").addPrompt("Add a tide table");
    await env.daemon.start("--root", `codex:codex=${root}`);
    const { page } = await env.openPage();
    codex.append("event_msg", { type: "task_complete", turn_id: codex.turn, last_agent_message: null, error: { message: "The limit is reached.", codex_error_info: "usage_limit_exceeded" } });
    const row = page.locator("#sessions .row");
    await page.locator("#sessions .row[data-phase=idle] .status", { hasText: "failed" }).waitFor();
    codex.addPrompt("Again").finishTurn("It is added.");
    await page.locator("#sessions .row[data-phase=done] .status", { hasText: /^done$/ }).waitFor();
    assert.equal(await row.count(), 1);
  });

  test("on a phone the overview and the page of a session of Codex fit", async () => {
    const { codex, args } = otherPrograms(env.daemon.home);
    await env.daemon.start(...args);
    const { page } = await env.openPage({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    await waitForCount(page, "#sessions .row", 2);
    await page.locator(".top .limits").waitFor();
    await assertFitsWidth(page, "the overview");
    await page.goto(`http://127.0.0.1:${env.daemon.port}/?session=${codex.session}&host=testhost`);
    await page.locator(".entry[data-kind=plan]").waitFor();
    await assertFitsWidth(page, "the session page");
  });

  test("with Claude Code alone there is neither a mark nor a filter", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp").finishTurn("The lamp is lit.");
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForCount(page, "#sessions .row", 1);
    for (const absent of [".program", "#program", ".limits"]) assert.equal(await page.locator(absent).count(), 0);
  });

  test("a session that starts to wait is announced with its program", async () => {
    const root = `${env.daemon.home}/codex`;
    const codex = new Rollout(root, "/home/ada/api").addPrompt("Add a tide table");
    await env.daemon.start("--root", `codex:codex=${root}`);
    const { page } = await env.openPage();
    await waitForCount(page, "#sessions .row", 1);
    codex.startTool("request_user_input", { questions: [{ id: "q", question: "Which source?" }] });
    await page.locator("[aria-live=polite]", { hasText: "Codex · Add a tide table needs you" }).waitFor({ state: "attached" });
  });
});
