// Sessions as they were recorded, played live into a root: the page shows each stage that the recording held for long enough.
// Extra: runs where the recorded sessions are (EARSHOT_CORPUS) and is skipped, out loud, elsewhere.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { house } from "./house.mjs";

const corpus = process.env.EARSHOT_CORPUS ?? "";
const player = join(corpus, "../tools/play.py");
const absent = corpus && existsSync(player) ? false : "the recorded sessions are not here";
const speed = 2;
const held_ms = 900; // a status that the played recording held for as long must be seen
const wanted = ["i_perm", "i_agent_bg", "compact", "agent_sync", "todo", "toolerr", "denied"];
const states = { busy: "working", idle: "idle", waiting: "waiting", shell: "idle" };

/** The directory of a recording, of whatever version has it. */
function recording(name) {
  for (const version of readdirSync(corpus)) {
    const folder = join(corpus, version, name);
    if (existsSync(join(folder, "timeline.jsonl"))) return folder;
  }
  return undefined;
}

/** Each state that a registry file of it held for long enough: `session state`. */
function held(folder) {
  const before = new Map();
  const out = new Set();
  for (const line of readFileSync(join(folder, "timeline.jsonl"), "utf8").trim().split("\n")) {
    const { ms, path, text } = JSON.parse(line);
    if (!path.startsWith("sessions/")) continue;
    const was = before.get(path);
    if (was && ms - was.ms >= held_ms * speed) out.add(`${was.session} ${states[was.status]}`);
    before.delete(path);
    const facts = text?.trim() ? JSON.parse(text) : {};
    if (facts.status) before.set(path, { ms, session: facts.sessionId, status: facts.status });
  }
  return out;
}

/** Runs in the page: notes each state that a row of it had. */
function noteStates() {
  globalThis.seen = new Set();
  const look = () => {
    for (const row of document.querySelectorAll("#sessions .row")) seen.add(`${new URL(row.querySelector("a").href).searchParams.get("session")} ${row.dataset.state}`);
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true }));
}

house("recorded sessions", (house) => {
  test("are shown in each stage as they are played, and in full", { skip: absent }, async (t) => {
    const names = wanted.filter((name) => recording(name));
    assert.ok(names.length >= 5, `only ${names.join()} were recorded`);
    const roots = names.map((name) => join(house.place.home, name));
    await house.place.start(...names.flatMap((name, n) => ["--root", `${name.replaceAll("_", "-")}=${roots[n]}`]));
    const { page, complaints } = await house.visit({}, undefined, (fresh) => fresh.addInitScript(noteStates));
    await page.getByText("No agent has been at work").waitFor();
    const plays = names.map((name, n) => {
      const play = spawn("/usr/bin/python3", [player, recording(name), roots[n], "--speed", String(speed)], { stdio: "ignore" });
      house.ended.push(() => play.kill());
      return new Promise((resolve) => play.on("exit", resolve));
    });
    assert.deepEqual(await Promise.all(plays), names.map(() => 0));
    const must = new Set(names.flatMap((name) => [...held(recording(name))]));
    assert.ok([...must].some((one) => one.endsWith(" waiting")) && [...must].some((one) => one.endsWith(" working")));
    await page.waitForFunction((all) => all.every((one) => globalThis.seen.has(one)), [...must]);
    t.diagnostic(`${must.size} stages of ${names.length} recordings were seen as they were played`);
    for (const [project, selector, text] of [
      ["compact", ".entry.mark", "context compacted"],
      ["agent-sync", ".entry[data-agent]", ""],
      ["toolerr", ".outcome", "error"],
      ["denied", ".outcome", "denied"],
      ["todo", ".todo li", ""],
    ]) {
      if (!names.includes(project.replaceAll("-", "_"))) continue;
      await page.goto(`http://127.0.0.1:${house.place.port}/`);
      await page.locator("#sessions .row").first().waitFor();
      const row = await page.evaluate((name) => {
        const all = [...document.querySelectorAll("#sessions > li")];
        const head = all.findIndex((li) => li.querySelector("h2")?.textContent.replaceAll("_", "-").endsWith(name));
        return head < 0 ? null : all[head + 1].querySelector(".row a").href;
      }, project);
      assert.ok(row, `no row of ${project}`);
      await page.goto(row);
      await page.locator(selector, { hasText: text }).first().waitFor();
      await page.getByRole("img", { name: /^Timeline: \d/ }).waitFor();
    }
    assert.deepEqual(complaints, []);
  });
});
