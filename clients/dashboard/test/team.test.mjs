// A team's hub in a real browser: hosts, the host filter, and an offline host.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { click, waitForIndex } from "./browser.mjs";
import { assertFitsWidth, test, violations, waitForCount, waitForTitle, withBrowser } from "./harness.mjs";
import { ScriptedSession, registerProcess } from "./fixtures.mjs";
import { color_schemes, screens } from "./screenshots.mjs";
import { Team, no_broker } from "./team_fixture.mjs";

const screenshots = process.env.EARSHOT_SCREENSHOTS;
const offline_ms_max = 180_000; // a host is offline after three missed heartbeats, 5 s apart
const index_ms_max = 120_000;
const cwd = "/home/keeper/lighthouse";

withBrowser("a team", (env) => {
  function startTeam(...names) {
    const team = new Team();
    env.cleanups.push(() => team.remove());
    return team.start(names);
  }
  const openHub = (team, options) => env.openPage(options, undefined, undefined, team.hub);
  const waitForGroups = (page, ...wanted) => page.waitForFunction((all) => JSON.stringify([...document.querySelectorAll(".group h2")].map((header) => header.textContent)) === all, JSON.stringify(wanted));
  const group = (page, host) => page.locator(".group", { has: page.locator(".host", { hasText: host }) });

  /** Lets the session wait for permission to run the command, which the page shows before: else it may learn of the wait alone. */
  async function startWait(page, { session, agent }, command) {
    session.startTool("Bash", { command });
    await page.locator(".row .tool", { hasText: command }).waitFor();
    agent.setStatus("waiting", "permission prompt");
  }

  /** Starts a working session with a live process; with `command`, it waits for permission to run that. */
  function startSession(team, host, prompt, { folder = cwd, command } = {}) {
    const session = new ScriptedSession(team.root(host), folder).addPrompt(prompt);
    const agent = registerProcess(team.root(host), session, folder);
    env.cleanups.push(agent.stop);
    agent.setStatus("busy");
    if (!command) return { session, agent };
    session.startTool("Bash", { command });
    agent.setStatus("waiting", "permission prompt");
    return { session, agent };
  }

  test("each session shows its host, and the host filter is part of the address", async () => {
    const team = await startTeam("ada", "grace", "linus");
    const { page, errors } = await openHub(team);
    await page.getByText("No agent sessions").waitFor();
    startSession(team, "ada", "Fix the lamp");
    startSession(team, "grace", "Fix the horn");
    await waitForCount(page, "#sessions .row", 2);
    await startWait(page, startSession(team, "linus", "Fix the radio"), "make radio");
    await page.locator(".card .place", { hasText: "lighthouse" }).locator(".host", { hasText: "linus" }).waitFor();
    await waitForGroups(page, "Needs you", cwd); // of all hosts: each row names its own
    assert.deepEqual((await page.locator("#rows .row .host").allTextContents()).sort(), ["ada", "grace"]);
    await page.getByLabel("Group").selectOption("host");
    await waitForGroups(page, "Needs you", "ada", "grace");
    assert.deepEqual(await page.locator("#rows .row .project").allTextContents(), ["lighthouse", "lighthouse"]);
    assert.equal(await page.locator("#rows .row .host").count(), 0);
    await page.getByLabel("Group").selectOption("project");
    await page.getByRole("link", { name: /^needs you, permission\. Fix the radio\. in \/home\/keeper\/lighthouse on linus\./ }).waitFor();
    await page.waitForFunction(() => /^Fix the radio on linus needs you: /.test(document.querySelector("[aria-live=polite]").textContent));
    const select = page.getByLabel("Host", { exact: true });
    assert.deepEqual(await select.locator("option").allTextContents(), ["All hosts", "ada", "grace", "linus"]);

    await select.selectOption("ada");
    await waitForCount(page, "#sessions .row", 1);
    assert.equal(new URL(page.url()).searchParams.get("on"), "ada");
    await page.getByRole("button", { name: "1 working" }).waitFor();
    await waitForTitle(page, "(1) earshot"); // counts all hosts
    await page.reload();
    await waitForCount(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "ada");
    await click(page.locator("#sessions .row .title", { hasText: "Fix the lamp" }));
    await page.locator(".facts", { hasText: "ada" }).waitFor();
    await page.locator(".entry", { hasText: "Fix the lamp" }).waitFor();
    await click(page.getByText("← All sessions"));
    await waitForCount(page, "#sessions .row", 1);
    await select.selectOption("");
    await waitForCount(page, "#sessions .row", 3);
    assert.equal(new URL(page.url()).search, "");
    await page.goBack();
    await waitForCount(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "ada");
    await page.goForward();
    await page.getByLabel("Group").selectOption("host");
    await click(page.locator(".group .host", { hasText: "grace" }));
    await waitForCount(page, "#sessions .row", 1);
    assert.equal(await select.inputValue(), "grace");
    await click(page.locator(".group .host", { hasText: "grace" }));
    await waitForCount(page, "#sessions .row", 3);

    await page.goto(`http://127.0.0.1:${team.hub.port}/?on=former`); // a host without sessions
    await page.getByText("No session matches the filters.").waitFor();
    assert.equal(await select.inputValue(), "former");
    await click(page.getByRole("button", { name: "Show all 3" }));
    await waitForCount(page, "#sessions .row", 3);
    await page.keyboard.press("/");
    await page.keyboard.type("linus");
    await waitForCount(page, "#sessions .row", 1);
    assert.deepEqual(errors, []);
  });

  test("the history shows each session's host, and has the same filter", async () => {
    const team = await startTeam("ada", "grace");
    const { page, errors } = await openHub(team);
    startSession(team, "ada", "Fix the lamp");
    startSession(team, "grace", "Fix the horn");
    await waitForCount(page, "#sessions .row", 2);
    await waitForIndex(team.hub);
    await click(page.getByRole("link", { name: "History" }));
    const end = Date.now() + index_ms_max;
    do { // until the index has both
      assert.ok(Date.now() < end, "the history lacks a session");
      await page.reload();
      await page.locator(".past, .history .empty").first().waitFor();
    } while ((await page.locator(".past").count()) < 2);
    await page.locator(".past", { hasText: "Fix the horn" }).locator(".host", { hasText: "grace" }).waitFor();
    await page.getByLabel("Host").selectOption("ada");
    await waitForCount(page, ".past", 1);
    await page.locator(".past", { hasText: "Fix the lamp" }).locator(".host", { hasText: "ada" }).waitFor();
    assert.match(page.url(), /on=ada/);
    await page.getByRole("searchbox").fill("Fix");
    await waitForCount(page, ".found", 1);
    await page.locator(".found .host", { hasText: "ada" }).waitFor();
    assert.deepEqual(errors, []);
  });

  test("an offline host is shown with the time it was last seen; its earlier wait is not announced again when it returns", async () => {
    const team = await startTeam("ada", "linus");
    const { page, errors } = await openHub(team);
    startSession(team, "ada", "Fix the lamp");
    await waitForCount(page, "#sessions .row", 1);
    await page.getByLabel("Group").selectOption("host");
    await waitForGroups(page, "ada"); // a hub shows the host even if there is only one
    await startWait(page, startSession(team, "linus", "Fix the radio"), "make radio");
    new ScriptedSession(team.root("linus"), cwd).addPrompt("Count the stairs").finishTurn("There are 196.");
    await page.locator(".row[data-phase=done]", { hasText: "196" }).waitFor();
    await page.waitForFunction(() => document.querySelector("[aria-live=polite]").textContent.includes("make radio"));
    await page.evaluate(() => {
      globalThis.announced = [];
      const region = document.querySelector("[aria-live=polite]");
      new MutationObserver(() => announced.push(region.textContent)).observe(region, { subtree: true, characterData: true, childList: true });
    });
    const before_kill = Date.now();
    await team.hosts.get("linus").kill();
    const killed = Date.now();
    await group(page, "linus").locator(".offline").waitFor({ timeout: offline_ms_max });
    await waitForCount(page, ".row[data-phase=waiting]", 0);
    await waitForCount(page, ".row[data-phase=offline]", 2);
    await waitForCount(page, ".row[data-phase=offline] .tool b", 1); // the open tool call, without a running timer
    await waitForCount(page, ".row[data-phase=offline] .tool time", 0);
    assert.match(await group(page, "linus").locator(".offline").innerText(), /^offline, last seen \d+[sm] ago$/);
    const last_seen = Date.parse(await group(page, "linus").locator(".offline time").getAttribute("datetime"));
    // At most three heartbeats before. The broker may have received the last one late, but not as late as the hub noticed.
    assert.ok(last_seen > before_kill - 15_000 && last_seen <= killed + 5000, `last seen ${before_kill - last_seen} ms before it was killed`);
    await page.waitForFunction(() => JSON.stringify([...document.querySelectorAll(".group h2 .host")].map((host) => host.textContent)) === '["ada","linus"]'); // offline hosts last
    const colors = await page.evaluate(() => ["linus", "ada"].map((name) => getComputedStyle([...document.querySelectorAll(".group h2")].find((header) => header.textContent.startsWith(name))).color));
    assert.notEqual(colors[0], colors[1]); // greyed
    await waitForTitle(page, "earshot: 1 unseen"); // an offline host's wait is not counted
    assert.deepEqual(await page.getByLabel("Host", { exact: true }).locator("option").allTextContents(), ["All hosts", "ada", "linus, offline"]);
    await page.getByLabel("Group").selectOption("none");
    await page.locator(".row .host", { hasText: /^linus, offline \d+[sm]$/ }).first().waitFor();
    await page.getByLabel("Group").selectOption("host");
    await click(page.getByRole("button", { name: /^offline/ }));
    await waitForCount(page, "#sessions .row", 2);
    assert.equal(new URL(page.url()).searchParams.get("state"), "offline");
    await click(page.locator(".row .title", { hasText: "Count the stairs" }));
    await page.locator(".facts", { hasText: /host offline, last seen .* ago, .*\d:\d\d/ }).waitFor();
    assert.deepEqual(await page.evaluate(() => {
      const style = getComputedStyle(document.querySelector(".head"));
      return [style.filter, getComputedStyle(document.querySelector(".head h2")).color === getComputedStyle(document.querySelector(".facts")).color];
    }), ["grayscale(1)", true]);
    await click(page.locator(".entry", { hasText: "There are 196." }).locator(".raw"));
    await page.locator("dialog", { hasText: "host linus does not respond" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });

    await team.startHost("linus");
    await page.locator(".facts .offline").waitFor({ state: "detached" });
    await click(page.locator(".entry", { hasText: "There are 196." }).locator(".raw"));
    await page.locator("dialog", { hasText: "host linus does not allow other hosts to read records" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await click(page.getByText("← All sessions"));
    await click(page.getByRole("button", { name: /^offline/ })); // clears the filter
    await page.locator(".row[data-phase=waiting]", { hasText: "make radio" }).waitFor();
    await waitForCount(page, ".offline", 0);
    await page.locator(".row[data-phase=done]", { hasText: "196" }).waitFor();
    assert.deepEqual(await page.evaluate(() => announced.filter((text) => text.includes("radio"))), []);
    await startWait(page, startSession(team, "linus", "Fix the door"), "make door"); // a new wait is announced
    await page.waitForFunction(() => announced.some((text) => text.startsWith("Fix the door on linus needs you")));
    assert.deepEqual(errors, []);
  });

  for (const [screen, size] of Object.entries(screens)) {
    test(`axe reports nothing and nothing is too wide with an offline host: ${screen}`, async () => {
      const far = "lighthouse-keeper-of-the-north.example";
      const team = await startTeam("ada", "grace", far);
      startSession(team, "ada", "Why is there a thirteenth month in the keeper's log?").session.startTool("Bash", { command: "grep -n month src/*.c" });
      startSession(team, "grace", "Fix the fog signal, and notify the keepers", { folder: "/srv/horn", command: "make soak HOURS=1" });
      new ScriptedSession(team.root("grace"), "/srv/horn").addPrompt("Rename horn::Signal").finishTurn("Renamed in 31 files.");
      new ScriptedSession(team.root("ada"), cwd).at(90).addPrompt("Explain the lamp").finishTurn("It has five states.");
      startSession(team, far, "Count the stairs").session.startTool("Read", { file_path: "/home/keeper/stairs.txt" });
      const { page } = await openHub(team, { ...size, colorScheme: "light" });
      await waitForCount(page, "#sessions .row", 4);
      await page.locator(".quiet-line", { hasText: "1 ended or quiet" }).waitFor();
      await page.getByLabel("Group").selectOption("host");
      await page.locator(".row[data-phase=waiting]").waitFor();
      await waitForCount(page, ".row[data-phase=offline]", 0);  // the first heartbeat of each host arrived
      await team.hosts.get(far).kill();
      const offline = page.locator(".row[data-phase=offline] .title", { hasText: "Count the stairs" });
      await offline.waitFor({ timeout: offline_ms_max });
      const heading = await page.locator("#rows .group", { has: page.locator(".offline") }).evaluate((group) => [".host", ".count", ".offline"].map((css) => group.querySelector(css).getBoundingClientRect()).map(({ y, height }) => y + height / 2));
      assert.ok(Math.max(...heading) - Math.min(...heading) < 5, `one line: ${heading}`);
      for (const colorScheme of color_schemes) {
        await page.emulateMedia({ colorScheme });
        for (const name of ["team", "team-session"]) {
          if (name === "team-session") {
            await click(offline);
            await page.locator(".facts .offline").waitFor();
          }
          assert.deepEqual(await violations(page), [], `${name}, ${colorScheme}`);
          await assertFitsWidth(page, `${name}, ${colorScheme}`);
          if (!screenshots) continue;
          mkdirSync(screenshots, { recursive: true });
          await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${screen}.png`) });
        }
        await click(page.getByText("← All sessions"));
        await offline.waitFor();
      }
    });
  }
}, no_broker);
