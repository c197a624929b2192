// Test setup: a browser per file, and a daemon with its own root for each test.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test as nodeTest } from "node:test";
import { TestDaemon, no_daemon } from "../../sdk/dist/test/harness.js";
import { axe, launch, open_pages, openTab, signIn } from "./browser.mjs";

const seen_max = 2000; // characters of a page

/** A test whose failure contains the text of its pages. */
export const test = (name, ...rest) => nodeTest(name, ...rest.slice(0, -1), async (t) => {
  try {
    await rest.at(-1)(t);
  } catch (error) {
    for (const page of open_pages) {
      const seen = await page.evaluate(() => `${location.search} ${document.querySelector("dialog")?.innerText ?? document.body.innerText}`).catch(String);
      const short = seen.replaceAll(/\s+/g, " ").replaceAll(/(.)\1{40,}/g, (run, one) => `${one}{${run.length}}`);
      error.message += `\nThe page shows: ${short.slice(0, seen_max)}`;
    }
    throw error;
  }
});

/** Calls `body` with the environment of its tests: `env.daemon` is created but not started; functions in `env.cleanups` run after each test, the last first, and all of them: the tests' process ends when nothing of them runs. `skip`: a reason. */
export function withBrowser(name, body, skip = false) {
  describe(name, { skip: no_daemon || skip }, () => {
    const env = { daemon: undefined, browser: undefined, cleanups: [], openPage, waitForState, use };
    before(async () => (env.browser = await launch()));
    after(() => env.browser.close());
    beforeEach(() => (env.daemon = new TestDaemon()));
    afterEach(async () => {
      const failures = [];
      for (const cleanup of [() => env.daemon.remove(), ...env.cleanups.splice(0)].reverse()) {
        try {
          await cleanup();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length) throw failures[0];
    });

    /** Opens the page, signed in unless `url` is given. `prepare` receives the tab before it navigates. Returns the tab and its URL. */
    async function openPage(options, url, prepare, daemon = env.daemon) {
      const opened = await openTab(env.browser, options);
      env.cleanups.push(() => opened.context.close());
      await prepare?.(opened.page);
      if (url) await opened.page.goto(url);
      return { ...opened, url: url ?? (await signIn(opened.page, daemon, opened.errors)) };
    }
    /** Waits until the connection status contains the text. */
    function waitForState(page, text) {
      return page.locator("#state", { hasText: text }).waitFor();
    }
    /** Stops the processes of the fixture after the test. */
    function use(fixture) {
      env.cleanups.push(...fixture.processes.map((process) => process.stop));
      return fixture;
    }
    body(env);
  });
}

/** The title changes after what the page shows. */
export const waitForTitle = (page, title) => page.waitForFunction((wanted) => document.title === wanted, title);

/** Waits until the selector matches `count` elements. */
export const waitForCount = (page, selector, count) =>
  page.waitForFunction(([css, wanted]) => document.querySelectorAll(css).length === wanted, [selector, count]);

/** Changes what the page receives: `edit(frame)` returns the frame to deliver, or changes it in place. Call it before the page is opened. */
export const editFrames = (page, edit) => page.routeWebSocket(/\/v1\/ws/, (socket) => {
  socket.connectToServer().onMessage((text) => {
    const frame = JSON.parse(text);
    socket.send(JSON.stringify(edit(frame) ?? frame));
  });
});

/** Asserts that the page does not scroll horizontally. */
export async function assertFitsWidth(page, what) {
  const excess = await page.evaluate((width) => Math.max(document.documentElement.scrollWidth, innerWidth) - width, page.viewportSize().width); // a phone zooms out
  assert.ok(excess <= 0, `${what} is ${excess} px too wide`);
}

/** Returns axe's violations. The page's policy forbids eval, so axe is injected through DevTools, which bypass it. */
export async function violations(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe, allowUnsafeEvalBlockedByCSP: true });
  await session.detach();
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
  });
}
