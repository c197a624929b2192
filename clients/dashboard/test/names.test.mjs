// Long names, many items and right-to-left texts, on the smallest phone and on a desktop.
import assert from "node:assert/strict";
import { click, waitForIndex } from "./browser.mjs";
import { assertFitsWidth, test, violations, withBrowser } from "./harness.mjs";
import { ScriptedSession } from "./fixtures.mjs";

const long_name = "averylongnamewithoutspaces".repeat(8);
const arabic = "أصلح المنارة: يجب أن تضيء كل ثلاثين ثانية، ثم شغّل كل الاختبارات وأخبرني بالنتيجة. ".repeat(3).trim();
const screens = { phone: { viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true }, desktop: { viewport: { width: 1280, height: 800 } } };

/** `long` has long names, `arabic` a right-to-left prompt and project; both call a tool. */
function sessionsWithNames(root) {
  const long = new ScriptedSession(root, `/home/ada/${long_name}`).at(9).setContext(44_000).addPrompt(long_name.repeat(4));
  long.setTodos(...Array.from({ length: 140 }, (_, n) => [`Step ${n} of many`, n < 120 ? "completed" : "pending"]));
  long.at(1).startTool(`mcp__${long_name}__search`, { query: long_name });
  const rtl = new ScriptedSession(root, "/home/ada/مشروع").at(8).setContext(12_000).addPrompt(arabic);
  rtl.append(rtl.reply("سأعود إليك قريبًا.", null));
  rtl.startTool("Bash", { command: "make test" });
  return { long: long.session, rtl: rtl.session };
}

withBrowser("names", (env) => {
  for (const [screen, size] of Object.entries(screens)) {
    test(`long and right-to-left names fit, and axe reports nothing: ${screen}`, async () => {
      const ids = sessionsWithNames(env.daemon.root);
      await env.daemon.start();
      const { page, errors } = await env.openPage(size);
      const check = async (name) => {
        await assertFitsWidth(page, name);
        assert.deepEqual(await violations(page), [], name);
      };
      const url = `http://127.0.0.1:${env.daemon.port}/`;
      const rtl = page.locator("#rows .row", { hasText: "أصلح" });
      await rtl.waitFor();
      await check("overview");
      // What is cut of a right-to-left title is its end, at the left.
      assert.deepEqual(await rtl.locator(".title").evaluate((title) => [getComputedStyle(title).direction, title.scrollWidth > title.clientWidth, title.scrollLeft]), ["rtl", true, 0]);
      await page.goto(`${url}?project=${encodeURIComponent(`/home/ada/${long_name}`)}`);
      const chip = page.locator(".filters .chip");
      await chip.waitFor();
      assert.ok((await chip.boundingBox()).height < 30, "the selected project is one line");
      await check("project");
      await page.goto(`${url}?group=none`);
      await rtl.locator(".project").waitFor(); // also where the tool is in the same line
      for (const row of await page.locator("#rows .row").all()) {
        const [said, tool] = [await row.locator(".message").boundingBox(), await row.locator(".tool").boundingBox()];
        assert.ok(said.width > 20 && said.x + said.width <= tool.x, `the project ends at ${said.x + said.width} px, the tool begins at ${tool.x}`);
      }
      assert.ok(await page.locator("#rows .row .todos").first().evaluate((todos) => todos.scrollWidth <= todos.clientWidth)); // 120/140
      await check("flat");
      await waitForIndex(env.daemon);
      await page.goto(`${url}?view=history`);
      await page.locator(".past").nth(1).waitFor();
      await check("history");
      await page.goto(`${url}?session=${ids.long}&host=testhost`);
      const call = page.locator("details.call", { hasText: "mcp__" }).locator("summary");
      await call.waitFor();
      const [line, duration] = [await call.boundingBox(), await call.locator(".duration").boundingBox()];
      assert.ok(duration.x + duration.width <= line.x + line.width, `the duration ends at ${duration.x + duration.width} px, its line at ${line.x + line.width}`);
      const title = await page.locator(".head h2").boundingBox();
      assert.ok(title.height < 120, `the title is ${title.height} px high`);
      await check("session");
      await page.goto(`${url}?session=${ids.rtl}&host=testhost`);
      await page.locator(".prompt", { hasText: "أصلح" }).waitFor();
      assert.equal(await page.locator(".head h2").evaluate((h2) => getComputedStyle(h2).direction), "rtl");
      assert.deepEqual(errors, []);
    });
  }

  test("on the smallest phone a snoozed session with a long name fits, and can be shown again", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").at(5).addPrompt(long_name);
    one.startTool("AskUserQuestion", { questions: [{ question: "Which?", header: "", options: [{ label: "This", description: "" }], multiSelect: false }] });
    await env.daemon.start();
    const { page } = await env.openPage(screens.phone);
    await click(page.locator(".card [data-action=snooze]"));
    await click(page.getByRole("button", { name: "Until it changes" }));
    await click(page.locator(".snoozed > .link"));
    await page.getByRole("button", { name: "Show now" }).waitFor();
    await assertFitsWidth(page, "snoozed");
    await click(page.getByRole("button", { name: "Show now" }));
    await page.locator(".card").waitFor();
  });

  test("on the smallest phone the header is one line, and the details of a row show each fact", async () => {
    sessionsWithNames(env.daemon.root);
    await env.daemon.start();
    const { page } = await env.openPage(screens.phone);
    const row = page.locator("#rows .row", { hasText: "أصلح" });
    await row.waitFor();
    await page.locator("#state", { hasText: "Live." }).waitFor();
    const [name, keys] = [await page.locator(".top h1").boundingBox(), await page.getByRole("button", { name: "Keys" }).boundingBox()];
    assert.ok(Math.abs(name.y + name.height / 2 - keys.y - keys.height / 2) < 4, `${name.y}, ${keys.y}`);
    await row.getByRole("button", { name: "Details" }).click();
    await row.locator(".details dl").waitFor();
    const [end, ends] = await row.locator(".details dl").evaluate((dl) => [dl.getBoundingClientRect().bottom, [...dl.querySelectorAll("dd")].map((dd) => dd.getBoundingClientRect().bottom)]);
    assert.equal(ends.length, 6);
    assert.ok(Math.max(...ends) <= end, `${ends} end after ${end}`);
  });

  test("a card that the keyboard reaches is not below the header", async () => {
    for (const [n, minutes] of [30, 20, 10].entries()) {
      const one = new ScriptedSession(env.daemon.root, "/home/ada/api").at(minutes).addPrompt(`Question ${n}`);
      one.startTool("AskUserQuestion", { questions: [{ question: "Which of these?", header: "", options: Array.from({ length: 12 }, (_, option) => ({ label: `Option ${option}`, description: "" })), multiSelect: false }] });
    }
    await env.daemon.start();
    const { page } = await env.openPage({ viewport: { width: 800, height: 500 } });
    await page.locator(".card").nth(2).waitFor();
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await page.keyboard.press("j");
    await page.locator(".card .title:focus", { hasText: "Question 0" }).waitFor();
    await page.waitForFunction(() => document.activeElement.getBoundingClientRect().top >= document.querySelector(".top").getBoundingClientRect().bottom);
  });
});
