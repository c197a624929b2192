// The page under load: what is rendered and kept is bounded. Times are never asserted: they are reported, as rows of `./dev bench page`.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { click, openTab } from "./browser.mjs";
import { test, waitForCount, withBrowser } from "./harness.mjs";
import { ScriptedSession } from "./fixtures.mjs";

const sessions = 1000;
const interval_ms = 100;
const load_s = 5;
const late_ms_max = 300_000; // until the page has caught up
const page_bytes_max = 75 * 1024; // of the overview, compressed
const parts_bytes_max = 150 * 1024; // of all files, those that are loaded later included
const team = { sessions: 10_000, hosts: 1_000, waiting: 40 };
const paint_runs = 7;
const session_events = Number(process.env.EARSHOT_EVENTS ?? 192_000); // of one session, on its page
const growth_max = 1.3; // of the heap after all sessions have begun; of one session, when the bounded lists are full

const quantile = (list, share = 0.5) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];
const mebibytes = (bytes) => `${(bytes / (1 << 20)).toFixed(1)} MiB`;

/** Reports a figure; tests/bench/rows_page.py reads it. */
const report = (t, what, ms) => t.diagnostic(`${what}: ${(ms / 1000).toPrecision(3)} s`);

/** Reports the time between frames, and the longest task in which the page could not respond. */
function reportFrames(t, what, { frames, long }) {
  report(t, `${what}: between frames, p95`, quantile(frames, 0.95));
  report(t, `${what}: longest task`, Math.max(0, ...long));
}

/** Returns the page's heap in bytes after garbage collection. */
async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

/** Returns a function that returns the CPU time of the page's main thread in seconds. */
async function mainThreadTime(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
}

/** Runs in the page: records tasks of more than 50 ms and the time between frames. */
function measure() {
  globalThis.long = [];
  globalThis.frames = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  let last;
  const frame = (now) => {
    if (last !== undefined) frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** What measure() has recorded. */
const measured = (page) => page.evaluate(() => ({ long: globalThis.long, frames: globalThis.frames }));

/** Calls `write(batch)` every `interval_ms` for `load_s` seconds, and measures the page meanwhile. It renders fewer than `rows_max` rows. */
async function measureUnderLoad(t, what, page, rows_max, write) {
  const cpuTime = await mainThreadTime(page);
  const cpu_before = await cpuTime();
  await page.evaluate(measure);
  const start_ms = Date.now();
  for (let batch = 0; batch < (load_s * 1000) / interval_ms; batch++) {
    await write(batch);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, start_ms + (batch + 1) * interval_ms - Date.now())));
  }
  const took = Date.now() - start_ms; // milliseconds
  const rows = await page.locator("#sessions li").count();
  reportFrames(t, what, await measured(page));
  report(t, `${what}: main thread in a second`, ((await cpuTime() - cpu_before) / took) * 1e6);
  assert.ok(rows < rows_max, `${rows} rendered rows`);
}

/** Runs in the page: each session is of one of many hosts, and works or waits. */
function spreadOverHosts({ sessions, hosts, waiting }) {
  const numbers = new Map();
  const numberOf = (session) => numbers.get(session) ?? numbers.set(session, numbers.size).get(session);
  const Original = WebSocket;
  globalThis.WebSocket = class extends Original {
    set onmessage(handle) {
      super.onmessage = ({ data }) => {
        const session = data.startsWith('{"type":"session"') && /"session":"([^"]*)"/.exec(data)?.[1];
        const number = session ? numberOf(session) : 0;
        const state = number % (sessions / waiting) === 0 ? "waiting" : "working";
        handle({ data: session ? data.replace(/"host":"[^"]*"/, `"host":"host-${number % hosts}"`).replace(/"status":\{"state":"[a-z]*"/, `"status":{"state":"${state}"`) : data });
      };
    }
  };
}

withBrowser("load", (env) => {
  test("the page is small, the overview loads three files, and paints before the daemon has answered", async (t) => {
    await env.daemon.start();
    const paints = { "a new tab": [], "an open tab": [] };
    const recordPaint = async (page, where) => {
      await env.waitForState(page, "Live.");
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
      paints[where].push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    };
    for (let n = 0; n < paint_runs; n++) { // each time with an empty cache; a new tab is also a new process
      const { page, context } = await env.openPage();
      await recordPaint(page, "a new tab");
      const devtools = await context.newCDPSession(page);
      await devtools.send("Network.clearBrowserCache");
      await page.reload();
      await recordPaint(page, "an open tab");
      if (n === 0) {
        const resources = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => `${new URL(entry.name).pathname} ${entry.initiatorType} ${entry.renderBlockingStatus}`));
        assert.deepEqual(resources.filter((resource) => !resource.startsWith("/v1/") && !resource.startsWith("/session.js")).sort(), ["/app.js script non-blocking", "/icon.svg other non-blocking", "/style.css link blocking"]);
        const texts = await page.evaluate(async () => Promise.all(["/", "/app.js", "/style.css"].map(async (path) => (await fetch(path)).text())));
        const size = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
        t.diagnostic(`${size} bytes compressed`);
        assert.ok(size < page_bytes_max, `${size} bytes compressed`);
        const parts = await page.evaluate(async () => Promise.all(["/session.js", "/highlight.js"].map(async (path) => (await fetch(path)).text())));
        const total = parts.reduce((sum, text) => sum + gzipSync(text).length, size);
        t.diagnostic(`${total} bytes with what is loaded later`);
        assert.ok(total < parts_bytes_max, `${total} bytes compressed`);
        for (const part of parts) assert.match(part, /Copyright|License/);
        assert.match(texts[0], /<div id="app"><header class="top">.*Connecting…/); // the header is part of the HTML
        assert.ok(texts[1].includes("MIT License"), "the bundle contains the license texts");
        const tag = await page.evaluate(async () => (await fetch("/app.js")).headers.get("etag"));
        assert.match(tag ?? "", /^"/); // cached and revalidated
      }
      await context.close();
    }
    for (const [where, all] of Object.entries(paints)) report(t, `page: first paint in ${where}, p50`, quantile(all));
    const { page: empty } = await openTab(env.browser);
    await empty.evaluate(measure);
    await empty.waitForFunction((count) => globalThis.frames.length >= count, 200);
    reportFrames(t, "an empty page", await measured(empty));
    await empty.context().close();
  });

  test(`${sessions} sessions and 1,000 events a second: few rendered rows, bounded memory`, async (t) => {
    const all = Array.from({ length: sessions }, (_, n) => new ScriptedSession(env.daemon.root, `/home/ada/project-${n % 40}`).addPrompt(n === 777 ? "the needle" : `task ${n}`));
    await env.daemon.start();
    const { page } = await env.openPage();
    const waitForWorking = (count) => page.getByRole("button", { name: `${count.toLocaleString("en")} working` }).waitFor({ timeout: late_ms_max });
    await waitForWorking(sessions);
    for (const one of all) one.append(one.setContext(9_000).reply("begun", null)); // until then, the heap is smaller
    new ScriptedSession(env.daemon.root, "/home/ada/project-0").addPrompt("all have begun");
    await waitForWorking(sessions + 1);
    const before = await heap(page);
    await measureUnderLoad(t, "page, 1,000 sessions and 1,000 events a second", page, 80, async (batch) => {
      for (let n = 0; n < 50; n++) { // two events each: a message and its tokens
        const one = all[(batch * 50 + n) % sessions];
        one.append(one.setContext(10_000 + batch * 500).reply(`step ${batch}`, null));
      }
      if (batch % 10 === 5) await page.mouse.wheel(0, 2500);
    });
    new ScriptedSession(env.daemon.root, "/home/ada/project-0").addPrompt("the last one");
    await waitForWorking(sessions + 2); // nothing waits in the page's memory
    const after = await heap(page);
    t.diagnostic(`heap ${mebibytes(before)} before, ${mebibytes(after)} after`);
    assert.ok(after < before * growth_max, `heap grew from ${mebibytes(before)} to ${mebibytes(after)}`);
    await page.evaluate(() => scrollTo(0, 0));
    await page.keyboard.press("/");
    await page.keyboard.type("needle");
    await waitForCount(page, "#sessions .row", 1);
  });

  test(`a team of ${team.hosts} hosts and ${team.sessions} sessions: few rendered rows while sessions change and the user scrolls`, async (t) => {
    const all = Array.from({ length: team.sessions }, (_, n) => {
      const one = new ScriptedSession(env.daemon.root, `/home/ada/project-${n % 300}`);
      one.is_held = true; // a live process of each would be too many: the page's frames are changed instead
      return one.setContext(1000 * (n % 190)).addPrompt(n === 7777 ? "the needle" : `task ${n}`);
    });
    await env.daemon.start();
    const { page, errors } = await env.openPage({ viewport: { width: 1440, height: 900 } }, undefined, (fresh) => fresh.addInitScript(spreadOverHosts, team));
    const start_ms = Date.now();
    await page.getByRole("button", { name: `${(team.sessions - team.waiting).toLocaleString("en")} working` }).waitFor({ timeout: late_ms_max });
    report(t, "page, 10,000 sessions of 1,000 hosts: all shown", Date.now() - start_ms);
    await page.getByLabel("Group").selectOption("host");
    await page.waitForFunction((hosts) => document.querySelectorAll("#host option").length === hosts + 1, team.hosts);
    await measureUnderLoad(t, "page, 10,000 sessions of 1,000 hosts", page, 100, async (batch) => {
      for (let n = 0; n < 20; n++) {
        const one = all[(batch * 20 + n) * 7 % all.length];
        one.append(one.reply(`step ${batch}`, null));
      }
      await page.mouse.wheel(0, 400);
    });
    await page.evaluate(() => scrollTo(0, 0));
    await page.getByLabel("Host", { exact: true }).selectOption("host-77");
    await page.waitForFunction(() => [...document.querySelectorAll("#rows .group .host")].map((host) => host.textContent).join() === "host-77");
    await page.getByLabel("Host", { exact: true }).selectOption("");
    await page.keyboard.press("Escape"); // leaves the select
    await page.keyboard.press("/");
    await page.keyboard.type("needle");
    await waitForCount(page, "#sessions .row", 1);
    assert.deepEqual(errors, []);
  });

  test(`a session of ${session_events.toLocaleString("en")} events: the page's memory is bounded`, async (t) => {
    const one = new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Never stop");
    await env.daemon.start();
    const { page } = await env.openPage();
    await click(page.locator("#sessions .row"));
    await page.locator(".entry").first().waitFor();
    const heaps = [await heap(page)];
    const parts = 12; // the bounded lists are full before the sixth
    const calls_per_write = 500;
    const calls_per_part = session_events / parts / 4; // four events each: the call, its tokens, its result and a message
    const start_ms = Date.now();
    for (let part = 1; part <= parts; part++) {
      for (let n = 0; n < calls_per_part; n += calls_per_write) {
        const lines = [];
        for (let m = 0; m < calls_per_write; m++) {
          const call = `toolu_${part}_${n + m}`;
          lines.push(one.toolCall(call, "Edit", { file_path: `/home/ada/api/src/${part}/${n + m}.ts` }), one.toolResult(call, "ok"));
          lines.push(one.record("assistant", { id: `msg_${part}_${n + m}`, type: "message", role: "assistant", model: "claude-opus-5-5", content: [{ type: "text", text: `part ${part} step ${n + m}` }], stop_reason: null }));
        }
        one.append(...lines);
      }
      await page.waitForFunction((text) => {
        scrollTo(0, document.documentElement.scrollHeight);
        return [...document.querySelectorAll(".entry")].some((entry) => entry.textContent.includes(text));
      }, `part ${part} step ${calls_per_part - 1}`, { polling: 250, timeout: late_ms_max });
      heaps.push(await heap(page));
    }
    const entries = await page.locator(".entry").count();
    t.diagnostic(`${session_events.toLocaleString("en")} events in ${((Date.now() - start_ms) / 1000).toFixed(1)} s; heap ${heaps.map(mebibytes).join(", ")}; ${entries} rendered entries`);
    assert.ok(entries < 200);
    const full = heaps.slice(parts / 2);
    assert.ok(Math.min(...full.slice(-3)) < Math.min(...full.slice(0, 3)) * growth_max, heaps.map(mebibytes).join(", ")); // a leak shows in each of the last
    await page.getByText("earlier entries are no longer in the page's memory").waitFor();

    // Scrolling through what is in memory: each step renders a few entries.
    await page.evaluate(measure);
    await page.evaluate(() => scrollTo(0, 0));
    for (let step = 0; step < 60; step++) {
      await page.mouse.wheel(0, 4000);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    }
    reportFrames(t, "page, a long session, scrolled", await measured(page));
  });
});
