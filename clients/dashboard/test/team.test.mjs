// A team's hub in a real browser: whose each session is, one host alone, and a host that is away.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fitsTheWidth, house, many, violations } from "./house.mjs";
import { Scripted, registry } from "./scene.mjs";
import { lights, screens } from "./shots.mjs";
import { Team, no_broker } from "./team.mjs";

const shots = process.env.EARSHOT_SCREENSHOTS;
const away_ms = 60_000; // a host is away once three of its beats, of 5 s each, were missed
const cwd = "/home/keeper/lighthouse";

house("a team", (house) => {
  async function team(...names) {
    const one = new Team();
    house.ended.push(() => one.end());
    return one.start(names);
  }
  const visit = (one, options, prepare) => house.visit(options, undefined, prepare, one.hub);
  const heads = (page, ...wanted) => page.waitForFunction((all) => JSON.stringify([...document.querySelectorAll(".group h2")].map((one) => one.textContent)) === all, JSON.stringify(wanted));
  const head = (page, host) => page.locator(".group", { has: page.locator(".whose", { hasText: host }) });

  /** A session with a process that says that it works; with a tool, that it waits for leave to use that. */
  function begins(one, host, prompt, { folder = cwd, asks } = {}) {
    const session = new Scripted(one.root(host), folder).asks(prompt);
    const agent = registry(one.root(host), session, folder);
    house.ended.unshift(agent.end);
    agent.says("busy");
    if (!asks) return { session, agent };
    session.begins("Bash", { command: asks });
    agent.says("waiting", "permission prompt");
    return { session, agent };
  }

  test("each session shows its host, and one host alone is a filter that the address keeps", async () => {
    const one = await team("ada", "grace", "linus");
    const { page, complaints } = await visit(one);
    await page.getByText("No agent has been at work").waitFor();
    begins(one, "ada", "Mend the lamp");
    begins(one, "grace", "Mend the horn");
    await many(page, "#sessions .row", 2);
    begins(one, "linus", "Mend the radio", { asks: "make radio" });
    await page.locator(".row[data-phase=waiting] .where", { hasText: "lighthouse on linus" }).waitFor();
    await heads(page, "Needs you", `ada ${cwd}`, `grace ${cwd}`);
    await page.getByRole("link", { name: /^needs you, permission\. Mend the radio\. in \/home\/keeper\/lighthouse on linus\./ }).waitFor();
    await page.waitForFunction(() => document.querySelector("[aria-live=assertive]").textContent.startsWith("Mend the radio on linus needs you: "));
    const select = page.getByLabel("Host");
    assert.deepEqual(await select.locator("option").allTextContents(), ["All hosts", "ada (1)", "grace (1)", "linus (1)"]);

    await select.selectOption("ada");
    await many(page, "#sessions .row", 1);
    assert.equal(new URL(page.url()).searchParams.get("on"), "ada");
    assert.deepEqual(await page.locator(".chip").allTextContents(), ["working 1"]);
    assert.equal(await page.title(), "(1) earshot"); // who needs somebody does so whatever is looked at
    await page.reload();
    await many(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "ada");
    await page.locator("#sessions .row .title", { hasText: "Mend the lamp" }).click();
    await page.locator(".facts", { hasText: "ada" }).waitFor();
    await page.locator(".entry", { hasText: "Mend the lamp" }).waitFor();
    await page.getByText("← All sessions").click();
    await many(page, "#sessions .row", 1);
    await select.selectOption("");
    await many(page, "#sessions .row", 3);
    assert.equal(new URL(page.url()).search, "");
    await page.goBack();
    await many(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "ada");
    await page.goForward();
    await page.locator(".group .whose", { hasText: "grace" }).click();
    await many(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "grace");
    await page.locator(".group .whose", { hasText: "grace" }).click();
    await many(page, "#sessions .row", 3);

    await page.goto(`http://127.0.0.1:${one.hub.port}/?on=nobody`); // who left the team, perhaps
    await page.getByText("Nothing fits what is asked for.").waitFor();
    assert.equal(await select.inputValue(), "nobody");
    await page.getByRole("button", { name: "Show all 3" }).click();
    await many(page, "#sessions .row", 3);
    await page.keyboard.press("/");
    await page.keyboard.type("linus");
    await many(page, "#sessions .row", 1);
    assert.deepEqual(complaints, []);
  });

  test("a host that is away is shown so, with when it was last heard; its old wait is no news when it comes back", async () => {
    const one = await team("ada", "linus");
    const { page, complaints } = await visit(one);
    begins(one, "ada", "Mend the lamp");
    await many(page, "#sessions .row", 1);
    await heads(page, `ada ${cwd}`); // a hub says whose it is of one host, too
    begins(one, "linus", "Mend the radio", { asks: "make radio" });
    new Scripted(one.root("linus"), cwd).asks("Count the stairs").answers("There are 196.");
    await page.locator(".row[data-phase=done]", { hasText: "196" }).waitFor();
    await page.waitForFunction(() => document.querySelector("[aria-live=assertive]").textContent.includes("make radio"));
    await page.evaluate(() => {
      globalThis.announced = [];
      const said = document.querySelector("[aria-live=assertive]");
      new MutationObserver(() => announced.push(said.textContent)).observe(said, { subtree: true, characterData: true, childList: true });
    });
    const killed = Date.now();
    await one.hosts.get("linus").kill();
    await head(page, "linus").locator(".away").waitFor({ timeout: away_ms });
    await many(page, ".row[data-phase=waiting]", 0);
    await many(page, ".row[data-phase=away]", 2);
    await many(page, ".row[data-phase=away] .tool b", 1); // the tool that was in hand, and no time that goes on
    await many(page, ".row[data-phase=away] .tool time", 0);
    assert.match(await head(page, "linus").locator(".away").innerText(), /^away, last heard \d+ s ago$/);
    const heard = Date.parse(await head(page, "linus").locator(".away time").getAttribute("datetime"));
    assert.ok(heard > killed - 10_000 && heard <= killed, `last heard ${killed - heard} ms before it was killed`);
    await heads(page, `ada ${cwd}`, `linus ${cwd}`);
    assert.equal(await page.title(), "earshot"); // nobody can be helped there
    assert.deepEqual(await page.getByLabel("Host").locator("option").allTextContents(), ["All hosts", "ada (1)", "linus (2), away"]);
    await page.getByRole("button", { name: /^away/ }).click();
    await many(page, "#sessions .row", 2);
    assert.equal(new URL(page.url()).searchParams.get("state"), "away");
    await page.locator(".row .title", { hasText: "Count the stairs" }).click();
    await page.locator(".facts", { hasText: /host away, last heard .* ago/ }).waitFor();
    await page.locator(".entry", { hasText: "There are 196." }).locator(".raw").click();
    await page.locator("dialog", { hasText: "host linus does not answer" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });

    await one.begin("linus");
    await page.locator(".facts .away").waitFor({ state: "detached" });
    await page.locator(".entry", { hasText: "There are 196." }).locator(".raw").click();
    await page.locator("dialog", { hasText: "host linus does not let records be read" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.getByText("← All sessions").click();
    await page.getByRole("button", { name: /^away/ }).click(); // which still says that only those are shown
    await page.locator(".row[data-phase=waiting]", { hasText: "make radio" }).waitFor();
    await many(page, ".away", 0);
    await page.locator(".row[data-phase=done]", { hasText: "196" }).waitFor();
    assert.deepEqual(await page.evaluate(() => announced), []);
    begins(one, "linus", "Mend the door", { asks: "make door" }); // what is new is told
    await page.waitForFunction(() => announced.some((text) => text.startsWith("Mend the door on linus needs you")));
    assert.deepEqual(complaints, []);
  });

  for (const [screen, size] of Object.entries(screens)) {
    test(`axe finds nothing and nothing is too wide, of a team with a host away: ${screen}`, async () => {
      const far = "lighthouse-keeper-of-the-north.example";
      const one = await team("ada", "grace", far);
      begins(one, "ada", "Why is there a thirteenth month in the keeper's log?").session.begins("Bash", { command: "grep -n month src/*.c" });
      begins(one, "grace", "Mend the fog signal, and tell the keepers", { folder: "/srv/horn", asks: "make soak HOURS=1" });
      new Scripted(one.root("grace"), "/srv/horn").asks("Rename horn::Signal").answers("Renamed in 31 files.");
      new Scripted(one.root("ada"), cwd).at(90).asks("Explain the lamp").answers("It has five states.");
      begins(one, far, "Count the stairs").session.begins("Read", { file_path: "/home/keeper/stairs.txt" });
      const { page } = await visit(one, { ...size, colorScheme: "light" });
      await many(page, "#sessions .row", 5);
      await page.locator(".row[data-phase=waiting]").waitFor();
      await one.hosts.get(far).kill();
      await page.locator(".group .away").waitFor({ timeout: away_ms });
      const away = page.locator(".row[data-phase=away] .title");
      for (const light of lights) {
        await page.emulateMedia({ colorScheme: light });
        for (const name of ["team", "team-session"]) {
          if (name === "team-session") {
            await away.click();
            await page.locator(".facts .away").waitFor();
          }
          assert.deepEqual(await violations(page), [], `${name}, ${light}`);
          await fitsTheWidth(page, `${name}, ${light}`);
          if (!shots) continue;
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots, `${name}-${light}-${screen}.png`) });
        }
        await page.getByText("← All sessions").click();
        await away.waitFor();
      }
    });
  }
}, no_broker);
