// The session page: Markdown, code, diffs, terminals, pictures, whole texts, timeline, charts, files, copying, printing, saving, places.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { click } from "./browser.mjs";
import { assertFitsWidth, test, violations, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, writeModels } from "./fixtures.mjs";
import { richSession } from "./session_fixture.mjs";

/** Reads the events of a call from the daemon until one of the type. */
async function eventsOf(daemon, call, last_type) {
  const stop = new AbortController();
  const response = await fetch(`http://127.0.0.1:${daemon.port}/v1/events?since=2000-01-01T00:00:00Z&type=tool.*`, { headers: { Authorization: `Bearer ${daemon.token}` }, signal: stop.signal });
  const found = [];
  let rest = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split("\n");
    rest = lines.pop();
    found.push(...lines.filter((line) => line.includes(`"call":"${call}"`)).map((line) => JSON.parse(line)));
    if (found.some(({ type }) => type === last_type)) break;
  }
  stop.abort();
  return found;
}

async function unfold(call) {
  if (!(await call.evaluate((details) => details.open))) await click(call.locator("summary").first());
  await call.locator(".folded").first().waitFor();
}

withBrowser("the session page", (env) => {
  /** Opens the page of a session. */
  async function open(one, { at, options, prepare } = {}) {
    await env.daemon.start();
    const { page, errors } = await env.openPage(options, undefined, prepare);
    const url = `http://127.0.0.1:${env.daemon.port}/?session=${one.session}&host=testhost${at ? `&at=${encodeURIComponent(at)}` : ""}`;
    await page.goto(url);
    await page.locator(".entry").first().waitFor();
    return { page, errors, url };
  }
  const openRich = (options) => {
    writeModels(env.daemon.home);
    return open(richSession(env.daemon.root), options);
  };

  test("answers are shown as Markdown, and code is coloured by a part that is loaded for it", async () => {
    const { page, errors } = await openRich();
    const markdown = page.locator(".markdown", { hasText: "What I found" });
    await markdown.locator("h4", { hasText: "What I found" }).waitFor();
    assert.equal(await markdown.locator("strong").innerText(), "real time");
    assert.deepEqual(await markdown.locator("thead th").allInnerTexts(), ["timer", "interval", "sleeps", "injectable"]);
    assert.equal(await markdown.locator("tbody tr").count(), 3);
    assert.equal(await markdown.locator("ol > li").count(), 3);
    assert.equal(await markdown.locator("blockquote a").getAttribute("href"), "https://tickets.example/LH-204");
    assert.equal(await markdown.locator("blockquote a").getAttribute("rel"), "noopener noreferrer");
    assert.equal(await markdown.locator("blockquote a").getAttribute("target"), "_blank");
    await markdown.locator(".code [data-scope=keyword]", { hasText: "while" }).waitFor();
    assert.match(await markdown.locator(".code pre").innerText(), /^\/\/ Advances all timers that are due, in their order\.\nvoid FakeClock::advance/);
    const parts = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname).filter((path) => path.endsWith(".js")));
    assert.deepEqual(parts.sort(), ["/app.js", "/highlight.js", "/session.js"]);
    assert.deepEqual(errors, []);
  });

  test("edits are diffs with changed words, and with line numbers from the result's record", async () => {
    const { page, errors } = await openRich();
    const edit = page.locator("details.call", { hasText: "src/horn.cpp" }).first();
    await edit.locator(".diff [data-numbers]").waitFor(); // unfolded without a click, and read from the record
    const lines = await edit.locator(".line").evaluateAll((all) => all.map((line) => `${[...line.querySelectorAll(".number")].map((number) => number.textContent).join(",")} ${line.dataset.kind ?? ""} ${line.querySelector(".content").textContent}`));
    assert.deepEqual(lines.slice(2, 6), ["40,40    while (on_) {", "41, removed     std::this_thread::sleep_for(interval_s);", ",41 added     clock_.sleep_for(interval_s);", "42,42      sound();"]);
    assert.deepEqual(await edit.locator("mark").allInnerTexts(), ["std::this_thread::", "clock_."]);
    await edit.locator(".lines[data-coloured]").waitFor(); // by the language of the file
    assert.ok((await edit.locator(".line [data-scope=keyword]").allInnerTexts()).includes("while"));
    assert.match(await edit.locator("summary .counts").innerText(), /^\+2\s−1$/);
    assert.match(await edit.locator("summary").innerText(), /ok/);
    const multi = page.locator("details.call", { hasText: "MultiEdit" });
    assert.equal(await multi.locator(".line[data-kind=added]").count(), 2);
    const write = page.locator("details.call", { hasText: "src/fake_clock.hpp" }).first();
    assert.equal(await write.locator(".line[data-kind=added]").count(), 12);
    assert.deepEqual(errors, []);
  });

  test("a command and its output are a terminal: colours, the last state of a progress line, the outcome by word and colour", async () => {
    const { page, errors } = await openRich();
    const failed = page.locator("details.call[data-outcome=error]");
    assert.equal(await failed.locator("summary .outcome").innerText(), "error");
    assert.notEqual(await failed.locator("summary .outcome").evaluate((element) => getComputedStyle(element).color), await page.locator("details.call[data-outcome=ok] summary .outcome").first().evaluate((element) => getComputedStyle(element).color));
    await unfold(failed);
    assert.equal(await failed.locator(".terminal .command").innerText(), "make -j8 test 2>&1 | tail -40");
    const lines = await failed.locator(".terminal .screen > div").allTextContents(); // not their innerText: lines out of sight have none
    assert.deepEqual(lines.slice(0, 2), ["[build] 3 targets", "100% done"]);
    const colours = await failed.locator(".terminal .screen span[style]").evaluateAll((spans) => Object.fromEntries(spans.map((span) => [span.textContent, span.style.color])));
    assert.ok(colours["[  FAILED  ]"] && colours["[  PASSED  ]"] && colours["[  FAILED  ]"] !== colours["[  PASSED  ]"]);
    const denied = page.locator("details.call[data-outcome=denied]");
    assert.equal(await denied.locator("summary .outcome").innerText(), "denied");
    assert.deepEqual(errors, []);
  });

  test("pictures are read from the record and drawn without loading an image", async () => {
    const { page, errors } = await openRich();
    const picture = page.locator("canvas.picture");
    await picture.waitFor();
    await page.waitForFunction(() => {
      const canvas = document.querySelector("canvas.picture");
      return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 50;
    });
    assert.equal(await page.locator("img").count(), 0);
    await page.locator("figcaption", { hasText: "420 × 160" }).waitFor();
    await click(page.locator(".picture-button"));
    await page.locator("dialog canvas.picture").waitFor();
    await page.keyboard.press("Escape");
    await waitForCount(page, "dialog", 0);
    assert.deepEqual(errors, []);
  });

  test("texts that the daemon has cut are read whole on request", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Print much");
    const output = Array.from({ length: 900 }, (_, n) => `line ${n} of the log`).join("\n");
    one.runTool("Bash", { command: "cat log" }, 1, output).runTool("Edit", { file_path: "/home/ada/api/a.txt", old_string: "old\n".repeat(3000), new_string: `new\n${"old\n".repeat(2999)}the very end\n` }, 1);
    one.finishTurn(`${"A paragraph. ".repeat(600)}\n\n**The end.**`);
    const { page, errors } = await open(one);
    const call = page.locator("details.call", { hasText: "cat log" });
    await unfold(call);
    await click(call.getByRole("button", { name: "Show all" }));
    await call.locator(".screen", { hasText: "line 899 of the log" }).waitFor();
    await click(call.getByRole("button", { name: /earlier lines$/ }));
    await call.locator(".screen", { hasText: "line 0 of the log" }).waitFor();
    await click(page.locator(".entry[data-role=assistant]").getByRole("button", { name: "Show all" }));
    await page.locator(".markdown strong", { hasText: "The end." }).waitFor();
    const edit = page.locator("details.call", { hasText: "a.txt" });
    await edit.locator(".counts").first().waitFor();
    await click(edit.getByRole("button", { name: "Show all" }));
    await edit.locator(".line[data-kind=added]", { hasText: "the very end" }).waitFor();
    assert.deepEqual(await edit.locator(".line[data-kind]").evaluateAll((lines) => lines.map((line) => line.dataset.kind).sort()), ["added", "added", "removed"]);
    assert.deepEqual(errors, []);
  });

  test("the timeline shows waits, queued prompts and failures; wheel and keys zoom, a click and Enter lead to the call", async () => {
    const { page, errors } = await openRich();
    const timeline = page.getByRole("img", { name: /^Timeline: 3 turns, 12 tool calls, 0 subagents, 1 compaction, 2 failed, 1 wait, 1 queued prompt, 1 API error$/ });
    await timeline.waitFor();
    const slider = page.getByRole("slider", { name: "Tool calls" });
    const value = () => slider.getAttribute("aria-valuetext");
    await slider.focus();
    await page.keyboard.press("Home");
    assert.match(await value(), /^1 of 12: Grep sleep_for\|steady_clock · ok · 5\.0s/);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await value(), /^3 of 12: AskUserQuestion.* · ok · 11m00s/);
    await page.keyboard.press("ArrowLeft");
    assert.match(await value(), /^2 of 12: Read/);
    await page.keyboard.press("End");
    assert.match(await value(), /^12 of 12: Bash make soak HOURS=24 · running/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await page.locator(".entry[data-at] details.call[open][data-outcome=denied]").waitFor();
    await page.waitForFunction(() => {
      const box = document.querySelector(".entry[data-at]").getBoundingClientRect();
      return box.top > 0 && box.bottom < innerHeight;
    });
    // The wheel zooms at the pointer; without zoom, a turn that would zoom out scrolls the page.
    await page.evaluate(() => scrollTo(0, 0));
    const box = await slider.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    const fit = page.getByRole("button", { name: "Fit: show the whole session" });
    assert.ok(await fit.isDisabled());
    await page.mouse.wheel(0, -400);
    await page.waitForFunction(() => document.querySelector(".cursor[data-zoomed]"));
    assert.equal(await page.evaluate(() => scrollY), 0);
    await click(fit);
    await page.waitForFunction(() => !document.querySelector(".cursor[data-zoomed]"));
    await page.keyboard.press("Tab");
    await slider.focus();
    await page.keyboard.press("+");
    await page.waitForFunction(() => document.querySelector(".cursor[data-zoomed]"));
    await page.keyboard.press("0");
    await page.waitForFunction(() => !document.querySelector(".cursor[data-zoomed]"));
    // Tooltips say what the marks are; the wait has a lane and a colour of its own.
    await page.evaluate(() => {
      globalThis.tooltips = new Set();
      new MutationObserver(() => tooltips.add(document.querySelector(".tooltip").textContent)).observe(document.querySelector(".tooltip"), { childList: true, characterData: true, subtree: true });
    });
    for (const y of [17, 26, 40]) {
      await page.mouse.move(box.x + 2, box.y + y);
      await page.mouse.move(box.x + box.width - 4, box.y + y, { steps: 160 });
    }
    const tooltips = await page.evaluate(() => [...globalThis.tooltips]);
    for (const wanted of [/^waiting for you: question · 11m00s/, /^queued: Also update docs/, /^the API failed with 529/, /^context compacted/, /^Bash make -j8 test.* · error/]) assert.ok(tooltips.some((tooltip) => wanted.test(tooltip)), `${wanted} is not among ${tooltips.join("; ")}`);
    const wait_pixel = await timeline.evaluate((canvas) => {
      const at = canvas.width / canvas.clientWidth;
      return [...canvas.getContext("2d").getImageData(canvas.width * 0.3, 26 * at, 1, 1).data];
    });
    const [red, green, blue] = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--wait").trim().match(/\w\w/g).map((digits) => parseInt(digits, 16)));
    assert.deepEqual(wait_pixel, [red, green, blue, 255]);
    // A click on a bar leads to its call.
    await page.mouse.click(box.x + box.width - 30, box.y + 40);
    await page.locator(".entry[data-at] details.call", { hasText: "make soak" }).waitFor();
    assert.deepEqual(errors, []);
  });

  test("two fingers zoom the timeline", async () => {
    const { page } = await openRich({ options: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } });
    const slider = page.getByRole("slider", { name: "Tool calls" });
    await slider.scrollIntoViewIfNeeded();
    await page.waitForFunction(() => document.querySelector(".canvas canvas").height > 70);
    const box = await slider.boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const devtools = await page.context().newCDPSession(page);
    const touch = (type, distance) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x: x - distance, y, id: 1 }, { x: x + distance, y, id: 2 }] });
    await touch("touchStart", 20);
    for (const distance of [40, 70, 100, 130]) await touch("touchMove", distance);
    await touch("touchEnd");
    await page.waitForFunction(() => document.querySelector(".cursor[data-zoomed]"));
    await touch("touchStart", 130);
    for (const distance of [100, 70, 40, 15]) await touch("touchMove", distance);
    await touch("touchEnd");
    await page.waitForFunction(() => document.querySelector(".cursor:not([data-zoomed])"));
  });

  test("charts: the context against its window, the cost by turn, the time; files with their lines, and a click leads to the edit", async () => {
    const { page, errors } = await openRich();
    const context = page.getByRole("img", { name: /^Tokens in the context over time: 58\.\dk tokens now, 66\.\dk at most, of 200k; 1 compaction$/ });
    await context.waitFor();
    assert.equal(await context.locator(".compaction").count(), 1);
    assert.equal(await context.locator("path.window").count(), 1);
    const cost = page.getByRole("img", { name: /^Cost by turn, shares of the estimated total/ });
    assert.equal(await cost.locator(".turn-cost").count(), 3);
    await page.getByRole("img", { name: /^working .*, waiting for you 11m00s, idle/ }).waitFor();
    assert.ok((await page.locator(".turn-cost .cost-bar").first().boundingBox()).height > 1, "the cost of a turn has a bar");
    const file = (name) => page.locator(".files li", { hasText: name });
    assert.match(await file("horn.cpp").innerText(), /\+2\s−1/);
    assert.match(await file("fake_clock.hpp").innerText(), /\+12\s−0/);
    assert.match(await file("src/clock.hpp").innerText(), /1 read/);
    await click(file("beacon_test.cpp").locator("button"));
    await page.locator(".entry[data-at] details.call", { hasText: "test/beacon_test.cpp" }).waitFor();
    await page.waitForFunction(() => document.querySelector(".entry[data-at]").getBoundingClientRect().top > 0);
    await click(page.locator(".turn-cost .hit").nth(1));
    await page.locator(".entry.begin[data-at]", { hasText: "Good. Now the docs" }).waitFor();
    assert.deepEqual(errors, []);
  });

  test("prompt, answer, command, output, link and resume command can be copied", async () => {
    const one = richSession(env.daemon.root);
    const { page, errors } = await open(one);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = async (button) => {
      await click(button);
      await button.and(page.locator("[data-result=Copied]")).or(page.locator(".copy[data-result=Copied]")).first().waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    assert.equal(await copied(page.getByRole("button", { name: "Copy resume command" })), `cd /home/ada/lighthouse-api && claude --resume ${one.session}`);
    const turn = page.locator(".entry.begin").first();
    await turn.hover();
    assert.match(await copied(turn.getByRole("button", { name: "Copy prompt" })), /^The soak test takes an hour/);
    const answer = page.locator(".entry[data-role=assistant]", { hasText: "What I found" });
    await answer.hover();
    assert.match(await copied(answer.getByRole("button", { name: "Copy text" })), /^## What I found\n\nThe soak test sleeps in \*\*real time\*\*/);
    assert.match(await copied(answer.getByRole("button", { name: "Copy code" })), /^\/\/ Advances all timers/);
    const failed = page.locator("details.call[data-outcome=error]");
    await unfold(failed);
    assert.equal(await copied(failed.getByRole("button", { name: "Copy command" })), "make -j8 test 2>&1 | tail -40");
    assert.match(await copied(failed.getByRole("button", { name: "Copy output" })), /FAILED/);
    const link = await copied(failed.getByRole("button", { name: "Copy link" }));
    await page.goto(link);
    await page.locator(".entry[data-at] details.call[data-outcome=error][open]").waitFor();
    assert.deepEqual(errors, []);
  });

  test("the address can name a place: the page opens there, also for a tool's result and in a long session", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Count");
    const lines = [];
    for (let n = 0; n < 3000; n++) lines.push(one.toolCall(`toolu_${n}`, "Bash", { command: `echo ${n}` }), one.toolResult(`toolu_${n}`, `said ${n}`));
    one.append(...lines);
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    const wanted = await eventsOf(env.daemon, "toolu_1234", "tool.finished");
    assert.deepEqual(wanted.map(({ type }) => type), ["tool.invoked", "tool.finished"]);
    for (const [n, { stream, cursor }] of wanted.entries()) {
      await page.goto(`http://127.0.0.1:${env.daemon.port}/?session=${one.session}&host=testhost&at=${encodeURIComponent(`${stream}${n === 0 ? "@" : ":"}${cursor}`)}`);
      const entry = page.locator(".entry[data-at]");
      await entry.locator("details.call[open]", { hasText: "echo 1234" }).waitFor();
      await page.waitForFunction(() => {
        const box = document.querySelector(".entry[data-at]").getBoundingClientRect();
        return box.top > 0 && box.bottom < innerHeight;
      });
      assert.ok(await page.locator(".entry").count() < 400);
      assert.equal(await page.evaluate(() => document.activeElement.closest(".entry")?.hasAttribute("data-at")), true);
    }
    // A place that does not exist is said to be missing; its record may still be read.
    await page.goto(`http://127.0.0.1:${env.daemon.port}/?session=${one.session}&host=testhost&at=${encodeURIComponent(`${wanted[0].stream}@9.9.0000000000000000`)}`);
    await page.locator(".place-missing").waitFor();
    await click(page.getByRole("button", { name: "Dismiss" }));
    await waitForCount(page, ".place-missing", 0);
    assert.doesNotMatch(page.url(), /at=/);
    assert.deepEqual(errors, []);
  });

  test("a long session: few entries are rendered, and what is read stays in its place while it grows", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Write");
    const lines = [];
    for (let n = 0; n < 4000; n++) lines.push(one.record("assistant", { id: `msg_${n}`, type: "message", role: "assistant", model: "claude-opus-5-5", content: [{ type: "text", text: `**Entry ${n}** ${"with some words ".repeat(n % 23)}\n\n- a\n- b` }], stop_reason: null }));
    one.append(...lines);
    const { page, errors } = await open(one);
    await page.waitForFunction(() => document.querySelector(".entries li:not(.spacer)").ariaSetSize === "4001");
    await page.mouse.move(400, 600);
    const topEntry = () => page.evaluate(() => [...document.querySelectorAll(".entry")].map((entry) => [entry.querySelector("strong")?.textContent, entry.getBoundingClientRect().top]).find(([name, top]) => name && top > 100));
    const restingEntry = async () => { // entries that come into view are measured in later frames
      for (let last = "";;) {
        const entry = await topEntry();
        if (String(entry) === last) return entry;
        last = String(entry);
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(resolve)))));
      }
    };
    let before = -1;
    for (let n = 0; n < 12; n++) { // to the middle, without gaps
      await page.evaluate(() => scrollBy(0, 9000));
      await page.waitForFunction(() => [...document.querySelectorAll(".entry")].some((entry) => entry.getBoundingClientRect().top > 60 && entry.getBoundingClientRect().top < innerHeight));
      const number = Number((await topEntry())[0].slice(6));
      assert.ok(number > before);
      before = number;
      assert.ok(await page.locator(".entry").count() < 150);
    }
    const place = await restingEntry();
    one.append(one.reply("One more.", null));
    await page.waitForFunction(() => document.querySelector(".entries li:not(.spacer)").ariaSetSize === "4002");
    const after = await restingEntry();
    assert.equal(after[0], place[0]);
    assert.ok(Math.abs(after[1] - place[1]) < 3, `${place} became ${after}`);
    await page.evaluate(() => (document.querySelector(".entries").parentElement.style.paddingTop = "60px")); // as a line above that wraps
    const moved = await restingEntry();
    assert.ok(moved[0] === place[0] && Math.abs(moved[1] - place[1]) < 3, `${place} became ${moved}`);
    await page.keyboard.press("G");
    await page.locator(".entry", { hasText: "One more." }).waitFor();
    await page.waitForFunction(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
    assert.deepEqual(errors, []);
  });

  test("printing renders everything, in light colours and without buttons", async () => {
    const { page, errors } = await openRich({ options: { colorScheme: "dark" }, prepare: (fresh) => fresh.addInitScript(() => {
      globalThis.print = () => (globalThis.printed = { entries: document.querySelectorAll(".entry").length, terminals: document.querySelectorAll(".terminal").length });
    }) });
    await page.locator(".diff").first().waitFor();
    await page.keyboard.press("Control+p");
    await page.waitForFunction(() => globalThis.printed);
    const printed = await page.evaluate(() => globalThis.printed);
    assert.ok(printed.terminals >= 4, JSON.stringify(printed)); // commands are unfolded
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    const colours = () => page.evaluate(() => {
      const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.selectorText === ":root");
      const used = getComputedStyle(document.documentElement);
      return Object.fromEntries(rules.flatMap((rule) => [...rule.style]).filter((name) => name.startsWith("--")).map((name) => [name, used.getPropertyValue(name)]));
    });
    const of_dark = await colours();
    await page.emulateMedia({ media: "print", colorScheme: "light" });
    const of_light = await colours();
    assert.ok(Object.keys(of_light).length > 30);
    assert.deepEqual(of_dark, of_light); // each colour is replaced
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const backgrounds = await page.getByRole("img", { name: /^Timeline/ }).evaluate((canvas) => [...canvas.getContext("2d").getImageData(3, 30, 1, 1).data]);
    assert.ok(backgrounds[0] > 200, `the timeline is drawn in ${backgrounds}`); // again, in the colours of paper
    for (const hidden of [".top", ".page-actions", ".conversation input", ".cursor"]) assert.ok(!(await page.locator(hidden).first().isVisible()), hidden);
    assert.deepEqual(errors, []);
  });

  test("the page is saved as one static file: no script, a policy of its own, everything rendered, hostile text as text", async () => {
    const hostile = `<img src=x onerror="document.title='taken'"></style><script>document.title='taken'</script>`;
    const one = richSession(env.daemon.root);
    one.append(one.reply(`${hostile}\n\n[a link](javascript:alert(1)) and [another](https://a.example/"onclick="x)`, null));
    one.runTool("Bash", { command: `echo '${hostile}'` }, 1, hostile);
    const { page, errors } = await open(one);
    await page.locator("canvas.picture").waitFor();
    await page.locator(".code [data-scope]").first().waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), click(page.getByRole("button", { name: "Save HTML" }))]);
    assert.equal(download.suggestedFilename(), `earshot-${one.session}.html`);
    const path = await download.path();
    const html = readFileSync(path, "utf8");
    assert.match(html, /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:;/);
    const { page: saved } = await env.openPage({}, "about:blank");
    const requests = [];
    saved.on("request", (request) => requests.push(request.url().slice(0, 60)));
    await saved.setContent(html);
    assert.equal(await saved.locator("script, iframe, object, embed, form, button:not(.files button), input, canvas, [onerror], [onclick], [onload]").count(), 0);
    assert.equal(await saved.locator(".page-actions, .actions").count(), 0);
    assert.notEqual(await saved.title(), "taken");
    assert.ok((await saved.locator("body").innerText()).includes(hostile));
    for (const content of [".markdown table", ".diff .line[data-kind=added] mark", ".terminal .screen span[style]", ".code [data-scope=keyword]", "img[src^='data:image/png']", ".chart svg .line", ".files"]) assert.ok(await saved.locator(content).count() > 0, content);
    assert.deepEqual(await saved.locator("a[href]").evaluateAll((all) => [...new Set(all.map((link) => new URL(link.href).protocol))]), ["https:"]);
    assert.ok(await saved.locator("details.call[open] .terminal").count() >= 4);
    assert.deepEqual(requests.filter((url) => !url.startsWith("data:") && url !== "about:blank"), []);
    assert.equal(await saved.locator("svg.timeline-image[role=img][aria-label^='Timeline: ']").count(), 1);
    const timeline = saved.locator("svg.timeline-image");
    assert.ok(await timeline.locator("text", { hasText: "make soak" }).count() > 0);
    const colors = () => timeline.locator("rect").evaluateAll((all) => [...new Set(all.map((rect) => getComputedStyle(rect).fill))]);
    const light = await colors();
    assert.ok(light.length >= 5, light.join()); // kinds of work, turns, lines
    await saved.emulateMedia({ colorScheme: "dark" });
    const dark = await colors();
    assert.equal(dark.length, light.length);
    assert.deepEqual(dark.filter((color) => light.includes(color)), []);
    assert.deepEqual(await violations(saved), []);
    assert.notEqual(await saved.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.deepEqual(errors, []);
  });

  test("hostile Markdown: HTML, links, pictures and bombs", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Answer");
    const say = (text) => one.append(one.reply(text, null));
    say(`<b>bold</b> <img src="https://evil.example/x.png" onerror="document.title='taken'">\n\n<div onclick="x"><form action="https://evil.example">\n<input name=a></form></div>\n\n<!-- comment --> <svg onload="document.title='taken'"/>`);
    say("[js](javascript:alert(1)) [data](data:text/html,<script>1</script>) [rel](/v1/token) [proto](//evil.example) [file](file:///etc/passwd) ![pixel](https://evil.example/pixel.png) ![js](javascript:alert(1)) <https://fine.example/> <javascript:alert(1)> https://auto.example/x");
    say("> ".repeat(1500) + "deep quotes");
    say("- ".repeat(1500) + "deep lists");
    say(`${"*a **b ".repeat(500)}emphasis`);
    say(`${"[".repeat(4000)}brackets`);
    say(`|${"a|".repeat(900)}\n|${"-|".repeat(900)}\n|${"b|".repeat(100)}`);
    say(`| a | b |\n|---|---|\n${"| x | y |\n".repeat(440)}`);
    say("\u202eevil\u202c and `code \u202e here`\n\n```html\n<script>document.title='taken'</script>\n```");
    one.finishTurn("The end.");
    const { page, errors } = await open(one, { prepare: (fresh) => fresh.addInitScript(() => {
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.sample}`));
    }) });
    const requested = [];
    page.on("request", (request) => requested.push(request.url()));
    await page.locator(".entry", { hasText: "The end." }).waitFor();
    await waitForTitle(page, "earshot");
    assert.equal(await page.locator(".entries :is(img, form, input, script, style, iframe, svg)").count(), 0);
    const links = await page.locator(".entries .markdown a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links, ["https://evil.example/pixel.png", "https://fine.example/", "https://auto.example/x"]);
    await page.locator(".entries", { hasText: `<img src="https://evil.example/x.png" onerror=` }).waitFor();
    await page.locator(".code pre", { hasText: "<script>document.title='taken'</script>" }).waitFor();
    assert.equal(await page.getByText("too large to be shown as Markdown").count() >= 2, true);
    for (const text of ["deep quotes", "deep lists", "emphasis", "brackets"]) assert.ok(await page.locator(".entry", { hasText: text }).count() > 0, text);
    assert.ok(await page.locator(".entries *").count() < 12_000);
    await assertFitsWidth(page, "hostile Markdown");
    assert.deepEqual(requested.filter((url) => url.includes("evil")), []);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(errors, []);
  });

  test("terminal output with links, cursor movement and a line of a megabyte", async () => {
    const esc = "\u001b";
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Run");
    one.runTool("Bash", { command: "ls --hyperlink" }, 1, `${esc}]8;;javascript:alert(1)${esc}\\click me${esc}]8;;${esc}\\ ${esc}[2J${esc}[Hcleared ${esc}[?1049h${esc}[31mred${esc}[0m ${esc}Pdcs${esc}\\end`);
    one.runTool("Bash", { command: "yes | tr -d '\\n'" }, 1, "W".repeat(1 << 20)).finishTurn("Done.");
    const { page, errors } = await open(one);
    const [first, second] = [page.locator("details.call").nth(0), page.locator("details.call").nth(1)];
    await unfold(first);
    assert.equal((await first.locator(".screen").textContent()).trim(), "click me cleared red end");
    assert.equal(await first.locator(".terminal a").count(), 0);
    await unfold(second);
    await click(second.getByRole("button", { name: "Show all" }));
    await page.waitForFunction(() => document.querySelectorAll("details.call .screen")[1]?.textContent.length >= 300_000);
    await assertFitsWidth(page, "a megabyte of output");
    await page.keyboard.press("/");
    await page.keyboard.type("Done");
    await waitForCount(page, ".entry", 1); // still responsive
    assert.deepEqual(errors, []);
  });
});
