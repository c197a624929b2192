// Transcripts contain untrusted text: the page shows it as text and never interprets it.
import assert from "node:assert/strict";
import { click } from "./browser.mjs";
import { test, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, registerProcess } from "./fixtures.mjs";

const script = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script><svg onload="document.title='taken'">`;
const escapes = "\u001b[31mred\u001b[0m\u001b]0;taken\u0007\u009b2J";
const visible_escapes = "␛[31mred␛[0m␛]0;taken␇‹U+009B›2J";
const bidi = "safe\u202egpj.exe\u2066x\u2069\u200f";
const visible_bidi = "safe‹U+202E›gpj.exe‹U+2066›x‹U+2069›‹U+200F›";
const megabyte = 1 << 20;

/** Runs before the page's own script. */
function noteViolations() {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.sample}`));
}

withBrowser("untrusted text", (env) => {
  /** The text created no element, changed no title, and caused no policy violation. */
  async function assertUninterpreted(page) {
    assert.equal(await page.locator("img, iframe, object, embed, form, main script, main style, main b > *, .text > :not(div), .text > div *, .title *, .input-summary *, .content > :not(mark, .part, span[data-scope]), .content mark > :not(span[data-scope]), .content span > *, .markdown [onload], .markdown [onerror]").count(), 0);
    const allowed = ["a", "aside", "b", "bdi", "blockquote", "br", "button", "canvas", "code", "dd", "del", "details", "dialog", "div", "dl", "dt", "em", "g", "h2", "h3", "h4", "header", "hr", "input", "li", "main", "mark", "ol", "p", "path", "pre", "progress", "rect", "section", "select", "option", "span", "strong", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "time", "title", "tr", "ul", "i", "label"];
    assert.deepEqual(await page.evaluate((names) => [...new Set([...document.querySelectorAll("main, main *")].map((element) => element.localName))].filter((name) => !names.includes(name)), allowed), []);
    assert.equal(await page.locator("script").count(), 1);
    await waitForTitle(page, "earshot");
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  }

  test("script and HTML are shown as text in every place", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/<b>api").addPrompt(script);
    one.runTool("Bash", { command: script, [script]: script }, 1, script).setTodos([script, "in_progress"]);
    one.append(one.reply(script, null));
    one.startTool("Write", { file_path: `/home/ada/${script}` });
    one.startTool("Edit", { file_path: "/home/ada/page.html", old_string: `<p>${script}</p>`, new_string: `<p class="changed">${script}</p>` });
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: script }).waitFor();
    await page.locator(".group h2", { hasText: "/home/ada/<b>api" }).waitFor();
    await page.locator(".message", { hasText: script }).waitFor();
    await assertUninterpreted(page);
    await click(page.locator("#sessions .row"));
    await page.locator(".entry[data-role=assistant]", { hasText: script }).waitFor();
    const folded = page.locator("details.call:not([open]) > summary");
    while (await folded.count() > 0) await click(folded.first());
    await page.locator(".folded .output", { hasText: script }).waitFor();
    await page.locator(".lines[data-coloured] .line .content", { hasText: script }).first().waitFor(); // coloured as HTML, and still text
    await page.locator(".input dt", { hasText: script }).first().waitFor();
    await page.locator(".todo li", { hasText: script }).waitFor();
    await page.locator(".files .path", { hasText: script }).waitFor();
    await click(page.getByRole("button", { name: "raw call" }).first());
    await page.locator("dialog .record", { hasText: "onerror" }).waitFor();
    await assertUninterpreted(page);
    assert.deepEqual(errors, []);
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<b>x</b>";
        return "set";
      } catch {
        return "refused";
      }
    });
    assert.equal(refused, "refused"); // trusted types
  });

  test("terminal escapes and bidirectional overrides are replaced by visible characters", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt(`${bidi} ${escapes}`);
    one.runTool("Bash", { command: `echo ${bidi}`, note: escapes }, 1, `${escapes}\n${bidi}`);
    one.append(one.reply(`${escapes} ${bidi}`, null));
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: `${visible_bidi} ${visible_escapes}` }).waitFor();
    await page.locator(".message", { hasText: `${visible_escapes} ${visible_bidi}` }).waitFor();
    await click(page.locator("#sessions .row"));
    await click(page.locator("details.call summary", { hasText: `echo ${visible_bidi}` }));
    await page.locator(".terminal .screen", { hasText: "red‹U+009B›2J" }).waitFor(); // its title is dropped, its colour is shown
    await page.locator(".terminal .screen", { hasText: visible_bidi }).waitFor();
    await page.locator(".terminal .command", { hasText: `echo ${visible_bidi}` }).waitFor();
    await page.locator(".folded dd", { hasText: visible_escapes }).waitFor();
    await click(page.getByRole("button", { name: "raw call" }));
    await page.locator("dialog .record", { hasText: visible_bidi }).waitFor();
    const has_controls = await page.evaluate(() => /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.documentElement.textContent));
    assert.equal(has_controls, false);
    await assertUninterpreted(page);
    assert.deepEqual(errors, []);
  });

  test("fault 158: a command that waits for approval shows what is invisible in it", async () => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Clean up");
    one.startTool("Bash", { command: "rm -rf build\u200b\u{e0041}\u00ad\u2060 # 👩\u200d🚀" });
    const agent = registerProcess(env.daemon.root, one, "/home/ada/api");
    env.cleanups.push(agent.stop);
    agent.setStatus("waiting", "permission prompt");
    await env.daemon.start();
    const { page, errors } = await env.openPage();
    await page.locator(".card .asked", { hasText: "rm -rf build‹U+200B›‹U+E0041›‹U+00AD›‹U+2060› # 👩\u200d🚀" }).waitFor();
    assert.deepEqual(errors, []);
  });

  test("lines and words of a megabyte do not widen or block the page", async () => {
    const word = "W".repeat(megabyte);
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt(word);
    one.runTool("Bash", { command: word, [word.slice(0, 3000)]: "x" }, 1, word).finishTurn(word);
    await env.daemon.start();
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: "WWW" }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await click(page.locator("#sessions .row"));
    await page.locator(".entry[data-role=assistant]", { hasText: "WWW" }).waitFor();
    await click(page.locator("details.call summary"));
    await page.locator(".folded .output", { hasText: "WWW" }).waitFor();
    await page.getByText("The beginning of 1.0 MiB").first().waitFor();
    await click(page.getByRole("button", { name: "raw result" }));
    await page.waitForFunction((size) => document.querySelector("dialog .record")?.textContent.length > size, megabyte); // the whole record
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("still responsive");
    await page.locator(".note", { hasText: "0 of 3 entries" }).waitFor();
    await assertUninterpreted(page);
    assert.deepEqual(errors, []);
  });
});
