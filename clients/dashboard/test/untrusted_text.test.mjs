// A transcript is anybody's text: whatever it holds is shown as text, and does nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { house } from "./house.mjs";
import { Scripted } from "./scene.mjs";

const script = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script><svg onload="document.title='taken'">`;
const escapes = "\u001b[31mred\u001b[0m\u001b]0;taken\u0007\u009b2J";
const visibleEscapes = "␛[31mred␛[0m␛]0;taken␇‹U+009B›2J";
const bidi = "safe\u202egpj.exe\u2066x\u2069\u200f";
const visibleBidi = "safe‹U+202E›gpj.exe‹U+2066›x‹U+2069›‹U+200F›";
const megabyte = 1 << 20;

/** Put in before the page is. */
function noteViolations() {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.sample}`));
}

house("hostile text", (house) => {
  /** Nothing was made of it: no element, no other title, nothing that the policy had to stop. */
  async function harmless(page) {
    assert.equal(await page.locator("img, iframe, object, embed, form, main script, main style, main b > *, .text *, .title *, .gist *, pre > :not(div), pre div *").count(), 0);
    assert.equal(await page.locator("script").count(), 1);
    assert.equal(await page.title(), "earshot");
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  }

  test("script and HTML show as text, everywhere", async () => {
    const one = new Scripted(house.place.root, "/home/ada/<b>api").asks(script);
    one.uses("Bash", { command: script, [script]: script }, 1, script).todo([script, "in_progress"]);
    one.append(one.says(script, null));
    one.begins("Write", { file_path: `/home/ada/${script}` });
    await house.place.start();
    const { page, complaints } = await house.visit({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: script }).waitFor();
    await page.locator(".group h2", { hasText: "/home/ada/<b>api" }).waitFor();
    await page.locator(".said", { hasText: script }).waitFor();
    await harmless(page);
    await page.locator("#sessions .row").click();
    await page.locator(".entry[data-role=assistant]", { hasText: script }).waitFor();
    for (const summary of await page.locator("details.call summary").all()) await summary.click();
    await page.locator(".folded .output", { hasText: script }).waitFor();
    await page.locator(".input dt", { hasText: script }).first().waitFor();
    await page.locator(".todo li", { hasText: script }).waitFor();
    await page.locator(".files .path", { hasText: script }).waitFor();
    await page.getByRole("button", { name: "raw call" }).first().click();
    await page.locator("dialog .record", { hasText: "onerror" }).waitFor();
    await harmless(page);
    assert.deepEqual(complaints, []);
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

  test("a terminal's escapes, and what turns the direction of writing, are visible and turn nothing", async () => {
    const one = new Scripted(house.place.root, "/home/ada/api").asks(`${bidi} ${escapes}`);
    one.uses("Bash", { command: `echo ${bidi}`, note: escapes }, 1, `${escapes}\n${bidi}`);
    one.append(one.says(`${escapes} ${bidi}`, null));
    await house.place.start();
    const { page, complaints } = await house.visit({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: `${visibleBidi} ${visibleEscapes}` }).waitFor();
    await page.locator(".said", { hasText: `${visibleEscapes} ${visibleBidi}` }).waitFor();
    await page.locator("#sessions .row").click();
    await page.locator("details.call summary", { hasText: `echo ${visibleBidi}` }).click();
    await page.locator(".folded .output", { hasText: visibleEscapes }).waitFor();
    await page.locator(".folded dd", { hasText: visibleEscapes }).waitFor();
    await page.getByRole("button", { name: "raw call" }).click();
    await page.locator("dialog .record", { hasText: visibleBidi }).waitFor();
    const working = await page.evaluate(() => /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.documentElement.textContent));
    assert.equal(working, false);
    await harmless(page);
    assert.deepEqual(complaints, []);
  });

  test("lines of a megabyte, and words without an end, widen nothing and hold nothing up", async () => {
    const word = "W".repeat(megabyte);
    const one = new Scripted(house.place.root, "/home/ada/api").asks(word);
    one.uses("Bash", { command: word, [word.slice(0, 3000)]: "x" }, 1, word).answers(word);
    await house.place.start();
    const { page, complaints } = await house.visit({}, undefined, (fresh) => fresh.addInitScript(noteViolations));
    await page.locator("#sessions .title", { hasText: "WWW" }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.locator("#sessions .row").click();
    await page.locator(".entry[data-role=assistant]", { hasText: "WWW" }).waitFor();
    await page.locator("details.call summary").click();
    await page.locator(".folded .output", { hasText: "WWW" }).waitFor();
    await page.getByText("The beginning of 1.0 MiB").first().waitFor();
    await page.getByRole("button", { name: "raw result" }).click();
    await page.waitForFunction((size) => document.querySelector("dialog .record")?.textContent.length > size, megabyte); // all of it
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("still at hand");
    await page.locator(".cut", { hasText: "0 of 3 entries" }).waitFor();
    await harmless(page);
    assert.deepEqual(complaints, []);
  });
});
