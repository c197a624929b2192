#!/usr/bin/env node
// usage: node test/screenshots.mjs DIRECTORY: screenshots of each view, light and dark, on a desktop and on a phone.
//        node test/screenshots.mjs --readme:  screenshot.png and screenshot-dark.png next to package.json, which the READMEs show.
// Requires a daemon (EARSHOT_BUILD) and a compiled clients/sdk, as the tests do.
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestDaemon } from "../../sdk/dist/test/harness.js";
import { click, launch, openTab, signIn } from "./browser.mjs";
import { exampleSessions, pictureSessions, waitForExamples, writeModels } from "./fixtures.mjs";
import { richSession } from "./session_fixture.mjs";

export const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};
export const color_schemes = ["light", "dark"];

/** Visits each view of the page and calls `capture(name, page)` for it. Returns the page's errors. */
export async function visitViews(browser, daemon, sessions, options, capture) {
  const { context, page, errors } = await openTab(browser, options);
  try {
    await signIn(page, daemon, errors);
    await waitForExamples(page);
    await capture("overview", page);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight)); // on a phone the rows are below the cards
    await click(page.locator("#rows .row", { hasText: "Upgrade the staging" }).getByRole("button", { name: "Details" }));
    await page.waitForFunction(() => document.querySelector(".spark .line")?.getAttribute("d").split("L").length > 4); // context history
    await click(page.locator(".quiet-line"));
    await capture("details", page);
    await page.goto(`http://127.0.0.1:${daemon.port}/?session=${sessions.long.session}&host=testhost`);
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    await page.locator(".chart svg .line").waitFor();
    await capture("session", page);
    await click(page.locator("details.call", { hasText: "make test" }).first().locator("summary"));
    await page.locator("details.call[open]", { hasText: "make test" }).first().scrollIntoViewIfNeeded();
    await capture("unfolded", page);
    await click(page.getByRole("button", { name: "raw result" }).first());
    await page.locator("dialog .record").waitFor();
    await capture("record", page);
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.locator("dialog .keys").waitFor();
    await capture("keys", page);
  } finally {
    await context.close();
  }
  return errors;
}

/** Visits a session with Markdown, code, diffs, terminals, pictures and marks in its timeline: from its top to its end, with a failed command unfolded, and at a place. */
export async function visitSession(browser, options, capture) {
  const daemon = new TestDaemon();
  writeModels(daemon.home);
  const one = richSession(daemon.root);
  await daemon.start();
  const { context, page, errors } = await openTab(browser, options);
  try {
    await signIn(page, daemon, errors);
    const url = `http://127.0.0.1:${daemon.port}/?session=${one.session}&host=testhost`;
    await page.goto(url);
    await page.locator("canvas.picture").waitFor();
    await page.locator(".code [data-scope=keyword]").first().waitFor();
    await page.locator(".diff [data-numbers] .line").first().waitFor();
    await capture("conversation", page);
    for (const [name, css] of [["markdown", ".markdown h4"], ["diffs", ".diff"]]) {
      await page.locator(css).first().evaluate((element) => scrollBy(0, element.getBoundingClientRect().top - 90));
      await capture(name, page);
    }
    const failed = page.locator("details.call[data-outcome=error]");
    await click(failed.locator("summary"));
    await failed.locator(".terminal").waitFor();
    await failed.evaluate((element) => scrollBy(0, element.getBoundingClientRect().top - 90));
    await capture("terminal", page);
    await failed.hover();
    const [link] = await failed.evaluateAll(([element]) => [element.querySelector("[data-item]").dataset.item]);
    await page.goto(`${url}&at=${encodeURIComponent(`${one.stream}@${link}`)}`);
    await page.locator(".entry[data-at] .terminal").waitFor();
    await capture("place", page);
  } finally {
    await context.close();
    await daemon.remove();
  }
  return errors;
}

/** Visits the states without sessions: not signed in, no sessions, and no daemon. */
export async function visitEmptyStates(browser, options, capture) {
  const daemon = await new TestDaemon().start();
  const { context, page } = await openTab(browser, options);
  try {
    await page.goto(`http://127.0.0.1:${daemon.port}/`);
    await page.locator("#state", { hasText: "Not signed in" }).waitFor();
    await capture("unauthorized", page);
    await signIn(page, daemon);
    await page.getByText("No agent sessions").waitFor();
    await capture("empty", page);
    await daemon.stop();
    await page.locator("#state", { hasText: /Retrying in \d+ s/ }).waitFor();
    await capture("reconnecting", page);
  } finally {
    await context.close();
    await daemon.remove();
  }
}

/** The overview with sessions that show most of it, light and dark. */
async function savePictures(browser, folder) {
  const daemon = new TestDaemon();
  const sessions = pictureSessions(daemon.root);
  try {
    await daemon.start(...sessions.args);
    const url = `http://127.0.0.1:${daemon.port}/`;
    for (const [colorScheme, name] of [["light", "screenshot.png"], ["dark", "screenshot-dark.png"]]) {
      const { context, page, errors } = await openTab(browser, { viewport: { width: 1280, height: 820 }, deviceScaleFactor: 1.5, colorScheme, locale: "en-GB" });
      await signIn(page, daemon, errors);
      await page.locator(".card").nth(2).waitFor();
      if (colorScheme === "light") sessions.finish(); // its mark stays: the overview is not where it is seen
      await page.locator("#rows .row[data-unseen]").waitFor();
      await page.waitForFunction(() => document.querySelectorAll(".card .asked").length === 3 && document.querySelectorAll("#rows .row[data-phase=working]").length === 4);
      await page.screenshot({ path: join(folder, name) });
      await context.close();
      if (errors.length > 0) throw new Error(`${url}: ${errors.join("; ")}`);
    }
  } finally {
    for (const process of sessions.processes) process.stop();
    await daemon.remove();
  }
}

async function saveScreenshots(browser, folder) {
  const daemon = new TestDaemon();
  const sessions = exampleSessions(daemon.root);
  try {
    await daemon.start();
    mkdirSync(folder, { recursive: true });
    for (const [screen, size] of Object.entries(screens)) {
      for (const colorScheme of color_schemes) {
        const capture = (name, page) => page.screenshot({ path: join(folder, `${name}-${colorScheme}-${screen}.png`) });
        await visitViews(browser, daemon, sessions, { ...size, colorScheme }, capture);
        await visitSession(browser, { ...size, colorScheme }, capture);
        await visitEmptyStates(browser, { ...size, colorScheme }, capture);
      }
    }
  } finally {
    for (const process of sessions.processes) process.stop();
    await daemon.remove();
  }
}

async function main(target) {
  const browser = await launch();
  try {
    if (target === "--readme") await savePictures(browser, join(dirname(fileURLToPath(import.meta.url)), ".."));
    else await saveScreenshots(browser, target);
  } finally {
    await browser.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.length !== 3) {
    console.error("usage: node test/screenshots.mjs DIRECTORY | --readme");
    process.exit(2);
  }
  await main(process.argv[2]);
}
