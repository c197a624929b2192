// Cards of waiting sessions and their actions, snoozed ones, figures, and what the page says about itself: icon, live region, stale content.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { click } from "./browser.mjs";
import { assertFitsWidth, editFrames, test, violations, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { Rollout, ScriptedSession, registerProcess } from "./fixtures.mjs";
import { color_schemes, screens } from "./screenshots.mjs";

const cwd = "/home/ada/api";
const minute_ms = 60_000;

/** Runs before the page's own script: records what is copied. */
function recordCopies() {
  globalThis.copies = [];
  Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => void copies.push(text) } });
}

/** Longer than a card shows. */
const plan = `# Move the horn\n\n${Array.from({ length: 20 }, (_, n) => `${n + 1}. step ${n + 1}`).join("\n")}`;

withBrowser("waiting sessions", (env) => {
  const card = (page, title) => page.locator(".card", { has: page.locator(".title", { hasText: title }) });
  const copies = (page) => page.evaluate(() => globalThis.copies);
  /** A session with a live process that waits for permission to call the tool. */
  function waitFor(title, tool, input, { folder = cwd, since_ms } = {}) {
    const session = new ScriptedSession(env.daemon.root, folder).addPrompt(title);
    session.startTool(tool, input);
    const agent = registerProcess(env.daemon.root, session, folder);
    env.cleanups.push(agent.stop);
    agent.setStatus("waiting", "permission prompt", since_ms);
    return { session, agent };
  }
  const ask = (title, questions) => {
    const session = new ScriptedSession(env.daemon.root, cwd).addPrompt(title);
    session.startTool("AskUserQuestion", { questions });
    return session;
  };

  test("a card shows in full what is asked: command, change, URL, questions with options, plan", async () => {
    const command = `for f in $(seq 1 90); do echo "line $f of a long command" >> /tmp/log; done # ${"x".repeat(900)} the end`;
    waitFor("A command", "Bash", { command, description: "Write a log" });
    waitFor("A change", "Edit", { file_path: `${cwd}/src/horn.cpp`, old_string: "interval = 20;\nlamp();", new_string: "interval = 30;\nlamp();" });
    waitFor("A page", "WebFetch", { url: "https://tides.example/table?harbour=1", prompt: "Read it" });
    waitFor("Several changes", "MultiEdit", { file_path: `${cwd}/a.cpp`, edits: [{ old_string: "a();", new_string: "b();" }, { old_string: "c();", new_string: Array.from({ length: 9 }, (_, n) => `d(${n});`).join("\n") }] });
    waitFor("A patch", "apply_patch", { input: `*** Begin Patch\n*** Update File: b.cpp\n@@\n e();\n-f();\n+g();\n*** End Patch` });
    ask("Questions", [{ question: "Which source?", options: [{ label: "Office", description: "official" }, { label: "A CSV" }] }, { question: "From when on?", options: [] }]);
    const planned = new ScriptedSession(env.daemon.root, cwd).addPrompt("A plan");
    planned.startTool("ExitPlanMode", { plan });
    await env.daemon.start();
    const { page, errors } = await env.openPage({ viewport: { width: 1440, height: 900 } });
    await waitForCount(page, ".card", 7);

    const long = card(page, "A command");
    assert.match(await long.locator(".command").innerText(), /^for f in \$\(seq 1 90\)/);
    assert.equal(await long.locator(".purpose").innerText(), "Write a log");
    await click(long.getByRole("button", { name: "Show all of it" })); // the frame has the first 512 bytes
    await long.locator(".command", { hasText: "the end" }).waitFor();
    assert.equal(await long.locator(".command").innerText(), command);
    await long.locator(".link").waitFor({ state: "detached" });

    const linesOf = async (title) => (await card(page, title).locator(".change > *").allInnerTexts()).map((line) => line.trimEnd());
    const several = card(page, "Several changes");
    assert.deepEqual((await linesOf("Several changes")).slice(0, 4), ["− a();", "+ b();", "− c();", "+ d(0);"]);
    await several.getByText("3 more lines").waitFor();
    await click(several.getByRole("button", { name: "Show all of it" }));
    await page.waitForFunction(() => [...document.querySelectorAll(".change")].some((change) => change.querySelectorAll("ins").length === 10));
    assert.equal(await several.locator(".link").count(), 0);
    assert.deepEqual(await linesOf("A patch"), ["  *** Update File: b.cpp", "  @@", "  e();", "− f();", "+ g();"]);
    const change = card(page, "A change");
    assert.equal(await change.locator(".path").innerText(), `Edit ${cwd}/src/horn.cpp`);
    assert.deepEqual((await change.locator(".change :is(del, ins)").allInnerTexts()).map((line) => line.trim()), ["− interval = 20;", "− lamp();", "+ interval = 30;", "+ lamp();"]);
    assert.equal(await card(page, "A page").locator(".path").innerText(), "WebFetch https://tides.example/table?harbour=1");
    assert.equal(await card(page, "A page").locator("a[href*=tides]").count(), 0); // untrusted: not a link

    const questions = card(page, "Questions");
    assert.deepEqual(await questions.locator(".question > p").allInnerTexts(), ["Which source?", "From when on?"]);
    assert.deepEqual(await questions.locator(".question li").allInnerTexts(), ["Office official", "A CSV"]);
    assert.match(await questions.locator(".status").innerText(), /^question$/i);
    assert.match(await card(page, "A plan").locator(".plan").innerText(), /^# Move the horn\n+1\. step 1\n2\. step 2\n[^]*12\. step 12\n+\d+ more lines$/);
    await click(card(page, "A plan").getByRole("button", { name: "Show all of it" }));
    await card(page, "A plan").getByText(/more lines?$/).waitFor({ state: "detached" });
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("the commands to resume and the path are copied, by button and by key; each program has its own", async () => {
    waitFor("Fix the lamp", "Bash", { command: "make" }, { folder: "/home/ada/it's here" });
    const codex = new Rollout(`${env.daemon.home}/codex`, "/home/ada/horn").addPrompt("Add a tide table");
    codex.startTool("request_user_input", { questions: [{ id: "q", question: "Which source?", options: [{ label: "Office" }] }] });
    new ScriptedSession(env.daemon.root, cwd).addPrompt("Paint the wall").finishTurn("Painted.");
    await env.daemon.start("--root", `codex:codex=${env.daemon.home}/codex`);
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(recordCopies));
    await waitForCount(page, ".card", 2);
    const claude = card(page, "Fix the lamp");
    await click(claude.getByRole("button", { name: "Copy resume command" }));
    await claude.getByRole("button", { name: "Copied" }).waitFor();
    const session = new URL(await claude.locator(".title").evaluate((link) => link.href)).searchParams.get("session");
    assert.deepEqual(await copies(page), [`cd '/home/ada/it'\\''s here' && claude --resume ${session}`]);
    await click(claude.getByRole("button", { name: "Copy path" }));
    await card(page, "Add a tide table").locator(".title").focus();
    await page.keyboard.press("c");
    await page.keyboard.press("p");
    await page.waitForFunction(() => copies.length === 4);
    assert.deepEqual((await copies(page)).slice(1), ["/home/ada/it's here", `cd /home/ada/horn && codex resume ${codex.session}`, "/home/ada/horn"]);
    await page.locator("#rows .title", { hasText: "Paint the wall" }).focus(); // a row, which has no buttons
    await page.evaluate(() => {
      globalThis.said = new Set(); // both disappear after a while
      new MutationObserver(() => {
        for (const element of document.querySelectorAll(".copied-note, [aria-live=polite]")) said.add(`${element.className} ${element.textContent}`);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await page.keyboard.press("p");
    await page.waitForFunction(() => said.has("copied-note Copied: path") && said.has("visually-hidden Copied: path"));
    assert.equal((await copies(page)).at(-1), cwd);
    await page.locator(".copied-note").waitFor({ state: "detached" });
    assert.deepEqual(errors, []);
  });

  test("what a terminal would not take as it is shown is not copied", async () => {
    waitFor("A path with a line feed", "Bash", { command: "make" }, { folder: "/home/ada/x\n; rm -rf ~" });
    waitFor("A path with an escape", "Bash", { command: "make" }, { folder: "/home/ada/\u001b[2J" });
    waitFor("A path with an override", "Bash", { command: "make" }, { folder: "/home/ada/\u202egpj" });
    await env.daemon.start();
    const { page } = await env.openPage();
    await waitForCount(page, ".card", 3);
    await waitForCount(page, ".card .asked .command", 3);
    assert.equal(await page.locator(".card [data-action=resume], .card [data-action=path]").count(), 0);
    assert.equal(await page.locator(".card [data-action=snooze]").count(), 3);
  });

  test("a daemon that names no command for the program leaves its button out", async () => {
    waitFor("Fix the lamp", "Bash", { command: "make" });
    await env.daemon.start();
    const { page } = await env.openPage({}, undefined, (fresh) => editFrames(fresh, (frame) => {
      if (frame.type === "welcome") delete frame.resume;
    }));
    await card(page, "Fix the lamp").getByRole("button", { name: "Copy path" }).waitFor();
    assert.equal(await page.locator("[data-action=resume]").count(), 0);
  });

  test("a snoozed wait is not counted, returns after its time or with the next request, and survives a reload", async () => {
    const lamp = waitFor("Fix the lamp", "Bash", { command: "make lamp" });
    waitFor("Fix the horn", "Bash", { command: "make horn" });
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await page.clock.install();
    await page.reload();
    await waitForCount(page, ".card", 2);
    const title = (wanted) => waitForTitle(page, wanted);
    const icon = (wanted) => page.waitForFunction((href) => document.querySelector("link[rel=icon]").getAttribute("href") === href, wanted);
    await title("(2) earshot");
    await icon("/icon.svg?count=2");
    await click(card(page, "Fix the lamp").getByRole("button", { name: "Snooze" }));
    await click(page.getByRole("button", { name: "1 hour" }));
    await waitForCount(page, ".card", 1);
    await title("(1) earshot");
    await icon("/icon.svg?count=1");
    await page.getByRole("button", { name: "1 needs you +1 snoozed" }).waitFor();
    await page.getByRole("searchbox").fill("nothing has this");
    await page.getByText("No session matches the filters.").waitFor();
    await page.getByRole("searchbox").fill("");
    await waitForCount(page, ".card", 1);
    await click(page.getByRole("button", { name: "1 snoozed", exact: true }));
    await page.locator(".snoozed li", { hasText: "Fix the lamp" }).getByText(/^for (59m|1h)$/).waitFor();

    await page.reload();
    await page.getByRole("button", { name: "1 needs you +1 snoozed" }).waitFor();
    await page.clock.fastForward(61 * minute_ms);
    await waitForCount(page, ".card", 2);
    await page.locator("[aria-live=polite]", { hasText: /^Fix the lamp needs you: .*2 sessions need you$/ }).waitFor({ state: "attached" }); // announced again
    await title("(2) earshot");

    await card(page, "Fix the lamp").locator(".title").focus(); // by keyboard
    await page.keyboard.press("s");
    await page.waitForFunction(() => document.activeElement.textContent === "10 min");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.activeElement.textContent.startsWith("Fix the lamp"));
    await page.keyboard.press("s");
    await page.waitForFunction(() => document.activeElement.textContent === "10 min");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter"); // until it changes
    await waitForCount(page, ".card", 1);
    await page.clock.fastForward(48 * 60 * minute_ms);
    await waitForCount(page, ".card", 1);
    lamp.agent.setStatus("busy");
    await page.locator("#rows .row", { hasText: "Fix the lamp" }).waitFor();
    lamp.agent.setStatus("waiting", "permission prompt");
    await waitForCount(page, ".card", 2);

    await click(card(page, "Fix the horn").getByRole("button", { name: "Snooze" }));
    await click(page.getByRole("button", { name: "10 min" }));
    await waitForCount(page, ".card", 1);
    await click(page.getByRole("button", { name: "1 snoozed", exact: true }));
    await click(page.getByRole("button", { name: "Show now" }));
    await waitForCount(page, ".card", 2);
    assert.equal(await page.evaluate(() => JSON.parse(localStorage.getItem("earshot snoozed")).length), 1); // of the lamp's earlier wait, until it is pruned
    assert.deepEqual(errors, []);
  });

  test("the live region says politely how many sessions need the user; the icon is the daemon's", async () => {
    const { agent } = waitFor("Fix the lamp", "Bash", { command: "make" });
    agent.setStatus("busy");
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await page.locator("#rows .row[data-phase=working]", { hasText: "Fix the lamp" }).waitFor();
    const region = page.locator("[aria-live=polite]");
    assert.equal(await region.textContent(), "");
    assert.equal(await page.locator("[aria-live=assertive]").count(), 0);
    agent.setStatus("waiting", "permission prompt");
    await page.locator("[aria-live=polite]", { hasText: /^Fix the lamp needs you: .*\. 1 session needs you$/ }).waitFor({ state: "attached" });
    const svg = await page.evaluate(async () => (await fetch(document.querySelector("link[rel=icon]").href)).text());
    assert.match(svg, /^<svg[^]*>1<\/text><\/svg>$/);
    agent.setStatus("busy");
    await page.locator("[aria-live=polite]", { hasText: /^No session needs you$/ }).waitFor({ state: "attached" });
    assert.equal(await page.locator("link[rel=icon]").getAttribute("href"), "/icon.svg");
    assert.deepEqual(errors, []);
  });

  test("a tone is played for a new wait only where the user chose it, also after a reload", async () => {
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(() => {
      globalThis.tones = 0;
      const { start } = OscillatorNode.prototype;
      OscillatorNode.prototype.start = function (...times) {
        globalThis.tones++;
        return start.apply(this, times);
      };
    }));
    const tones = () => page.evaluate(() => globalThis.tones);
    const announced = (text) => page.locator("[aria-live=polite]", { hasText: text }).waitFor({ state: "attached" });
    const sound = page.getByRole("button", { name: "Sound" });
    await env.waitForState(page, "Live.");
    assert.equal(await sound.getAttribute("aria-pressed"), "false");
    waitFor("Fix the lamp", "Bash", { command: "make" });
    await announced("Fix the lamp needs you");
    assert.equal(await tones(), 0);
    await click(sound);
    await page.locator("button[aria-pressed=true]", { hasText: "Sound" }).waitFor();
    waitFor("Fix the horn", "Bash", { command: "make" });
    await announced("Fix the horn needs you");
    assert.equal(await tones(), 1);
    await page.reload();
    await waitForCount(page, ".card", 2);
    assert.equal(await sound.getAttribute("aria-pressed"), "true");
    assert.equal(await tones(), 0); // the waits of the first snapshot are not new
    await click(sound);
    waitFor("Fix the radio", "Bash", { command: "make" });
    await announced("Fix the radio needs you");
    assert.equal(await tones(), 0);
    assert.deepEqual(errors, []);
  });

  test("a title is not cut beside empty space, with and without a tool, to-do items and a message", async () => {
    const title = "Upgrade the staging database to 16 and keep a way back for a week";
    const add = (more) => more(new ScriptedSession(env.daemon.root, cwd).addPrompt(title));
    add((session) => session.startTool("Bash", { command: "npx playwright test chart.spec.ts --project=phone --reporter=line" }));
    add((session) => session.addMessage(0, "The dump is complete; the upgrade plan has four steps.").startTool("Read", { file_path: `${cwd}/a` }));
    add((session) => session.setTodos(["Measure", "completed"], ["Mend", "pending"]).startTool("Bash", { command: "make" }));
    add((session) => session.finishTurn("Done."));
    add((session) => session);
    await env.daemon.start();
    const { page, errors } = await env.openPage({ viewport: { width: 900, height: 900 } });
    await waitForCount(page, "#rows .row", 5);
    await waitForCount(page, "#rows .row .tool b", 3);
    await page.locator("#rows .row .todos progress").waitFor();
    for (const width of [730, 800, 900, 1000, 1280, 1300, 1301, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const gaps = await page.evaluate(() => [...document.querySelectorAll("#rows .row")].flatMap((row) => {
        const shown = row.querySelector(".title");
        if (shown.scrollWidth <= shown.clientWidth) return [];
        const { right, top, bottom } = shown.getBoundingClientRect();
        const next = [...row.children].filter((one) => one !== shown && one.textContent !== "").map((one) => one.getBoundingClientRect()).filter((box) => box.left >= right - 1 && box.top < bottom && box.bottom > top);
        return [Math.min(...next.map(({ left }) => left)) - right];
      }));
      assert.ok(gaps.every((gap) => gap <= 60), `${width} px: ${gaps.map(Math.round).join(", ")} px are empty beside a title that is cut`);
      if (width >= 900 && width <= 1300) assert.ok(gaps.length <= 1, `${width} px: ${gaps.length} titles are cut, not only the one beside to-do items`);
    }
    assert.deepEqual(errors, []);
  });

  test("of many waits the longest are cards, the others rows", async () => {
    for (let n = 0; n < 15; n++) new ScriptedSession(env.daemon.root, cwd).at(20 - n).addPrompt(`Wait ${n}`).startTool("AskUserQuestion", { questions: [{ question: `Question ${n}?` }] });
    await env.daemon.start();
    const { page } = await env.openPage();
    await page.getByRole("button", { name: "15 need you" }).waitFor();
    await waitForCount(page, ".card", 12);
    await page.locator(".group[data-waiting]", { hasText: "the longest 12 of 15 waits" }).waitFor();
    assert.deepEqual(await page.locator("#rows .group h2").allTextContents(), ["More that need you"]);
    assert.deepEqual(await page.locator("#rows .row .title").allTextContents(), ["Wait 12", "Wait 13", "Wait 14"]);
    await page.locator("#rows .message", { hasText: "Question 14?" }).waitFor();
  });

  test("when nothing arrives for 75 s the page says so within that time, and marks what is stale", async () => {
    waitFor("Fix the lamp", "Bash", { command: "make" });
    new ScriptedSession(env.daemon.root, cwd).addPrompt("Fix the horn").startTool("Bash", { command: "make horn" });
    await env.daemon.start();
    let deaf = false;
    const { page } = await env.openPage({}, undefined, async (fresh) => {
      await fresh.clock.install();
      await fresh.routeWebSocket(/\/v1\/ws/, (socket) => {
        if (deaf) return; // accepted, and silent
        socket.connectToServer().onMessage((text) => !deaf && socket.send(text));
      });
    });
    await waitForCount(page, ".card", 1);
    await env.waitForState(page, "Live.");
    assert.equal(await page.locator("[data-stale]").count(), 0);
    deaf = true;
    await page.clock.runFor(76_000);
    await page.locator("main[data-stale]").waitFor();
    await page.locator(".summary[data-stale]").waitFor();
    await page.locator(".stale-note", { hasText: /^Not live: as of \d.*\. Times stand still\.$/ }).waitFor();
    const age = await page.locator(".card .age time").textContent();
    await page.clock.runFor(3_000);
    assert.equal(await page.locator(".card .age time").textContent(), age);
    assert.deepEqual(await violations(page), []);
    deaf = false;
    await page.clock.runFor(80_000); // the next attempt is silent, too, until it is given up
    await page.locator("main[data-stale]").waitFor({ state: "detached" });
    await page.waitForFunction((old) => document.querySelector(".card .age time").textContent !== old, age);
  });

  test("the figures: today's cost and tokens are the day's of the daemon, and a limit's reset on another day has its date", async () => {
    const [one, other, old] = ["lamp", "horn", "pump"].map((part) => new ScriptedSession(env.daemon.root, cwd).addPrompt(`Fix the ${part}`).finishTurn("ok"));
    const noon = new Date(2026, 10, 25, 12).getTime();
    const midnight = (days, hours = 0) => iso(new Date(2026, 10, 25 + days, hours).getTime());
    const iso = (ms) => new Date(ms).toISOString();
    const tokens = { input: 1000, output: 500, cache_read: 8000, cache_write: 500 };
    const frames = new Map();
    const status = { state: "idle", source: "registry", since: iso(noon - minute_ms) };
    const set = (session, day, more = {}) => frames.set(session.session, { usage: { ...tokens, input: 900_000, cost_usd: 90, cost_source: "recorded" }, status, day: { since: midnight(0), until: midnight(1), ...tokens, ...day }, ...more });
    const tomorrow = noon + 20 * 60 * minute_ms;
    set(one, { cost_usd: 2, cost_source: "recorded" }, { limits: [{ time: iso(noon), limit: "claude", windows: [{ name: "five_hour", used_percent: 40, window_minutes: 300, resets_at: iso(noon + 90 * minute_ms) }, { name: "seven_day", used_percent: 90, window_minutes: 10_080, resets_at: iso(tomorrow) }] }] });
    set(other, { cost_usd: 1.5, cost_source: "recorded" });
    set(old, { since: midnight(-1), until: midnight(0), cost_usd: 50, cost_source: "recorded" }); // nothing since yesterday
    await env.daemon.start();
    const { page, errors } = await env.openPage({ locale: "en-US" }, undefined, async (fresh) => {
      await fresh.clock.install({ time: noon });
      await editFrames(fresh, (frame) => (frame.type === "session" ? { ...frame, ...frames.get(frame.session) } : undefined));
    });
    const used = page.locator(".used");
    await page.locator(".used", { hasText: "$3.50" }).waitFor();
    assert.match(await used.innerText(), /^\$3\.50\s+20\.0k tokens today$/);
    assert.equal(await used.getAttribute("title"), "What 2 sessions used since midnight: 20,000 tokens, cached ones included; 1,000 of them written.");
    const windows = await page.locator(".limits .window").allInnerTexts();
    assert.match(windows[0], /40% of 5h, resets 1:30\sPM$/);
    assert.match(windows[1], /90% of 7d, resets Thu, Nov 26, 8:00\sAM$/);

    set(other, { since: midnight(0, 2), until: midnight(1, 2), partial: true });
    other.append(other.reply("One more message.", null));
    await page.locator(".used", { hasText: "$2.00" }).waitFor();
    assert.match(await used.innerText(), /^\$2\.00\s+20\.0k tokens today\s*·?\s*since 2:00\sAM, 1 without a known cost, 1 with a part of earlier days$/);
    assert.match(await used.getAttribute("title"), /since 2:00:00\sAM, midnight of the daemon's time zone: .*Copilot CLI before 1\.0\.102/);

    await page.clock.fastForward(15 * 60 * minute_ms); // after both days
    await used.waitFor({ state: "detached" });
    assert.deepEqual(errors, []);
  });

  test("what a session used before midnight is not today's", async () => {
    const midnight = new Date().setHours(0, 0, 0, 0);
    const session = new ScriptedSession(env.daemon.root, cwd, () => midnight - minute_ms).addPrompt("Fix the lamp");
    session.setContext(9_000, 1_000).runTool("Bash", { command: "make lamp" }, 1, "ok");
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.clock.install({ time: midnight + 12 * 60 * minute_ms }));
    await page.locator("#rows .row", { hasText: "Fix the lamp" }).waitFor();
    assert.equal(await page.locator(".used").count(), 0);
    session.clock = () => new Date(midnight + 1);
    session.setContext(9_000, 2_000).runTool("Bash", { command: "make horn" }, 1, "ok");
    await page.locator(".used").waitFor();
    const [, written] = /(\d[\d,]*) of them written/.exec(await page.locator(".used").getAttribute("title"));
    assert.equal(written, "2,000");
    assert.deepEqual(errors, []);
  });

  test("hostile text in a card is only text", async () => {
    const script = `<img src=x onerror="document.title='taken'"><svg onload="document.title='taken'"><script>document.title='taken'</script>`;
    const bidi = "safe\u202egpj.exe";
    waitFor(`Title ${script}`, "Bash", { command: `echo ${bidi} \u001b[31mred ${"W".repeat(1 << 20)}`, description: script });
    waitFor("A link", "WebFetch", { url: "javascript:document.title='taken'", prompt: script });
    ask("A question", [{ question: `${script} ${bidi}`, options: [{ label: script, description: "javascript:alert(1)" }] }]);
    new ScriptedSession(env.daemon.root, cwd).addPrompt("A plan").startTool("ExitPlanMode", { plan: `${script}\n[click](javascript:alert(1))` });
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(() => {
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
    }));
    await waitForCount(page, ".card", 4);
    await page.locator(".card .purpose", { hasText: script }).waitFor();
    await page.locator(".question p", { hasText: `${script} safe‹U+202E›gpj.exe` }).waitFor();
    await page.locator(".question li b", { hasText: script }).waitFor();
    await page.locator(".plan", { hasText: "[click](javascript:alert(1))" }).waitFor();
    await page.locator(".path code", { hasText: "javascript:document.title" }).waitFor();
    await page.locator(".command", { hasText: "echo safe‹U+202E›gpj.exe ␛[31mred WWW" }).waitFor();
    assert.equal(await page.locator(".card :is(img, svg, script, iframe)").count(), 0);
    assert.deepEqual(await page.locator(".card a").evaluateAll((all) => [...new Set(all.map((link) => new URL(link.href).protocol))]), ["http:"]);
    await click(card(page, "Title").getByRole("button", { name: "Show all of it" }));
    await waitForCount(page, ".card .command", 1);
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await assertFitsWidth(page, `the cards at ${width} pixels`);
    }
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await waitForTitle(page, "(4) earshot");
    assert.deepEqual(errors, []);
  });

  for (const [screen, size] of Object.entries(screens)) {
    test(`axe reports nothing with cards, open choices, a snoozed session and details: ${screen}`, async () => {
      waitFor("A change", "Edit", { file_path: `${cwd}/src/horn.cpp`, old_string: "interval = 20;", new_string: "interval = 30;" });
      waitFor("A command", "Bash", { command: "make soak HOURS=1", description: "Run the soak test" });
      ask("Questions", [{ question: "Which source?", options: [{ label: "Office", description: "official" }, { label: "A CSV" }] }]);
      new ScriptedSession(env.daemon.root, cwd).addPrompt("A plan").startTool("ExitPlanMode", { plan });
      new ScriptedSession(env.daemon.root, cwd).setContext(190_000).addPrompt("Fix the lamp").startTool("Bash", { command: "make" });
      await env.daemon.start();
      const { page } = await env.openPage(size);
      await waitForCount(page, ".card", 4);
      await click(card(page, "Questions").getByRole("button", { name: "Snooze" }));
      await click(page.getByRole("button", { name: "10 min" }));
      await click(page.getByRole("button", { name: "1 snoozed", exact: true }));
      await click(card(page, "A command").getByRole("button", { name: "Snooze" }));
      await click(page.getByRole("button", { name: "Details" }));
      await page.locator(".details").waitFor();
      for (const colorScheme of color_schemes) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        assert.deepEqual(await violations(page), [], colorScheme);
        await assertFitsWidth(page, colorScheme);
      }
      const moving = await page.evaluate(() => document.getAnimations().length);
      assert.equal(moving, 0); // reduced motion
    });
  }
});

test("durations, ages, counts and prices are those of the command line: tests/unit/base/displayed.json", async () => {
  const { build } = await import("vite");
  const entry = new URL("../src/quantities.ts", import.meta.url).pathname;
  const { output } = [await build({ configFile: false, logLevel: "error", build: { write: false, minify: false, lib: { entry, formats: ["es"] } } })].flat()[0];
  const { cost, duration, running, span, tokens } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
  const { times, counts, prices } = JSON.parse(readFileSync(new URL("../../../tests/unit/base/displayed.json", import.meta.url), "utf8"));
  assert.ok(times.length > 10 && counts.length > 8);
  for (const row of times) {
    assert.equal(duration(row.ms), row.duration, `duration of ${row.ms} ms`);
    assert.equal(span(row.ms), row.age, `age of ${row.ms} ms`);
  }
  for (const row of counts) assert.equal(tokens(row.count), row.text, `count of ${row.count}`);
  for (const row of prices) assert.equal(cost(row.usd), row.text, `price of ${row.usd}`);
  assert.deepEqual([cost(1.2, true), cost(0.007, true)], ["~$1.20", "~<$0.01"]);
  assert.deepEqual([running(59_999), running(60_000), running(3_599_999)], ["59s", "1m00s", "59m59s"]); // whole seconds, rounded down
});
