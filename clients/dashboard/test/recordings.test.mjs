// Plays recorded sessions into a root in real time: the page shows each status that lasted long enough.
// Requires the recordings (EARSHOT_CORPUS); skipped with a message elsewhere.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { TestDaemon } from "../../sdk/dist/test/harness.js";
import { test, withBrowser } from "./harness.mjs";

const corpus = process.env.EARSHOT_CORPUS ?? "";
const player = join(corpus, "../tools/play.py");
const absent = corpus && existsSync(player) ? false : "the recorded sessions are not available";
const speeds = [2, 0.5, 0.1]; // the slower ones on a machine that cannot keep up
const shown_ms_min = 1800; // a status that lasts this long in the recording must be shown, at one of the speeds
const late_ms_max = 30_000; // how long after its end the page may still show the last ones
const wanted = ["i_perm", "i_agent_bg", "compact", "agent_sync", "todo", "toolerr", "denied"];
const states = { busy: "working", idle: "idle", waiting: "waiting", shell: "idle" };

/** Returns the directory of a recording, of any program version. */
function recording(name) {
  for (const version of readdirSync(corpus)) {
    const folder = join(corpus, version, name);
    if (existsSync(join(folder, "timeline.jsonl"))) return folder;
  }
  return undefined;
}

/** Returns each state that a registry file of the recording had for long enough: `session state`. */
function lastingStates(folder) {
  const current = new Map();
  const lasting = new Set();
  for (const line of readFileSync(join(folder, "timeline.jsonl"), "utf8").trim().split("\n")) {
    const { ms, path, text } = JSON.parse(line);
    if (!path.startsWith("sessions/")) continue;
    const previous = current.get(path);
    if (previous && ms - previous.ms >= shown_ms_min) lasting.add(`${previous.session} ${states[previous.status]}`);
    current.delete(path);
    const entry = text?.trim() ? JSON.parse(text) : {};
    if (entry.status) current.set(path, { ms, session: entry.sessionId, status: entry.status });
  }
  return lasting;
}

/** Runs in the page: records each state of each row. */
function recordStates() {
  globalThis.seen = new Set();
  const record = () => {
    for (const row of document.querySelectorAll("#sessions .row")) seen.add(`${new URL(row.querySelector("a").href).searchParams.get("session")} ${row.dataset.state}`);
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(record).observe(document.body, { childList: true, subtree: true, attributes: true }));
}

withBrowser("recorded sessions", (env) => {
  /** Plays the recordings to a daemon of their own and its page. `missing`: the expected statuses that the page did not show. */
  async function play(names, expected, speed, daemon) {
    const roots = names.map((name) => join(daemon.home, name));
    await daemon.start(...names.flatMap((name, n) => ["--root", `${name.replaceAll("_", "-")}=${roots[n]}`]));
    const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(recordStates), daemon);
    await page.getByText("No agent sessions").waitFor();
    const plays = names.map((name, n) => {
      const play = spawn("/usr/bin/python3", [player, recording(name), roots[n], "--speed", String(speed)], { stdio: "ignore" });
      env.cleanups.push(() => play.kill());
      return new Promise((resolve) => play.on("exit", resolve));
    });
    assert.deepEqual(await Promise.all(plays), names.map(() => 0));
    const hasAll = page.waitForFunction((all) => all.every((state) => globalThis.seen.has(state)), [...expected], { timeout: late_ms_max });
    await hasAll.catch(() => {});
    const missing = await page.evaluate((all) => all.filter((state) => !globalThis.seen.has(state)), [...expected]);
    return { page, errors, missing };
  }

  test("are shown with each status during playback, and completely afterwards", { skip: absent }, async (t) => {
    const names = wanted.filter((name) => recording(name));
    assert.ok(names.length >= 5, `only ${names.join()} are recorded`);
    const expected = new Set(names.flatMap((name) => [...lastingStates(recording(name))]));
    assert.ok([...expected].some((state) => state.endsWith(" waiting")) && [...expected].some((state) => state.endsWith(" working")));
    let daemon, page, errors, missing;
    for (const speed of speeds) {
      const fresh = daemon ? new TestDaemon() : env.daemon;
      if (daemon) env.cleanups.push(() => fresh.remove());
      daemon = fresh;
      ({ page, errors, missing } = await play(names, expected, speed, daemon));
      t.diagnostic(`at ${speed} times the speed ${expected.size - missing.length} of ${expected.size} statuses of ${names.length} recordings were shown`);
      if (missing.length === 0) break;
    }
    assert.deepEqual(missing, []);
    for (const [project, selector, text] of [
      ["compact", ".entry.notice", "context compacted"],
      ["agent-sync", ".entry[data-agent]", ""],
      ["toolerr", ".outcome", "error"],
      ["denied", ".outcome", "denied"],
      ["todo", ".todo li", ""],
    ]) {
      if (!names.includes(project.replaceAll("-", "_"))) continue;
      await page.goto(`http://127.0.0.1:${daemon.port}/?quiet=1`);
      const row = await page.waitForFunction((name) => {
        const all = [...document.querySelectorAll("#rows > li")];
        const header = all.findIndex((li) => li.querySelector("h2")?.textContent.replaceAll("_", "-").endsWith(name));
        return header < 0 ? null : all[header + 1].querySelector(".row a").href;
      }, project);
      await page.goto(await row.jsonValue());
      await page.locator(selector, { hasText: text }).first().waitFor();
      await page.getByRole("img", { name: /^Timeline: \d/ }).waitFor();
    }
    assert.deepEqual(errors, []);
  });
});
