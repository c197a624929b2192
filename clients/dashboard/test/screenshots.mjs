#!/usr/bin/env node
// usage: node test/shots.mjs DIRECTORY: each view of the page, in each light and on each kind of screen, as pictures.
//        node test/shots.mjs --readme:  screenshot.png beside package.json, the one that the README shows.
// Wants what the tests want: a daemon (EARSHOT_BUILD) and clients/sdk compiled.
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Place } from "../../sdk/dist/test/daemon.js";
import { invitation, launch, open } from "./browser.mjs";
import { morning } from "./scene.mjs";

export const screens = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};
export const lights = ["light", "dark"];

/** The views of one page, one after the other; `take` gets the name of each when it stands still. */
export async function views(browser, place, scene, options, take) {
  const { context, page, complaints } = await open(browser, place, options);
  try {
    await page.goto(await invitation(place));
    await page.locator(".row").first().waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll(".spark .line")].filter((line) => line.getAttribute("d").split("L").length > 4).length > 5); // what was read of the past
    await take("overview", page);
    await page.goto(`http://127.0.0.1:${place.port}/?session=${scene.big.session}&host=testhost`);
    await page.locator(".entry", { hasText: "Three timers" }).first().waitFor();
    await page.locator(".chart canvas").waitFor();
    await take("session", page);
    await page.locator("details.call", { hasText: "make test" }).first().locator("summary").click();
    await page.locator("details.call[open]").scrollIntoViewIfNeeded();
    await take("unfolded", page);
    await page.getByRole("button", { name: "raw result" }).first().click();
    await page.locator("dialog .record").waitFor();
    await take("record", page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.locator("dialog .keys").waitFor();
    await take("keys", page);
  } finally {
    await context.close();
  }
  return complaints;
}

/** What the page says when there is nothing to show, or nobody to ask. */
export async function states(browser, options, take) {
  const place = await new Place().start();
  const { context, page } = await open(browser, place, options);
  try {
    await page.goto(`http://127.0.0.1:${place.port}/`);
    await page.locator("#state", { hasText: "Not signed in" }).waitFor();
    await take("unauthorised", page);
    await page.goto(await invitation(place));
    await page.getByText("No agent has been at work").waitFor();
    await take("empty", page);
    await place.stop();
    await page.locator("#state", { hasText: /Trying again in \d+ s/ }).waitFor();
    await take("reconnecting", page);
  } finally {
    await context.close();
    await place.end();
  }
}

async function main(target) {
  const browser = await launch();
  const place = new Place();
  const scene = morning(place.root);
  try {
    await place.start();
    if (target === "--readme") {
      const path = join(dirname(fileURLToPath(import.meta.url)), "../screenshot.png");
      await views(browser, place, scene, { viewport: { width: 1200, height: 756 }, colorScheme: "light" }, async (name, page) => name === "overview" && void (await page.screenshot({ path })));
      return;
    }
    mkdirSync(target, { recursive: true });
    for (const [screen, size] of Object.entries(screens)) {
      for (const colorScheme of lights) {
        const take = (name, page) => page.screenshot({ path: join(target, `${name}-${colorScheme}-${screen}.png`) });
        await views(browser, place, scene, { ...size, colorScheme }, take);
        await states(browser, { ...size, colorScheme }, take);
      }
    }
  } finally {
    for (const one of scene.ended) one.end();
    await browser.close();
    await place.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.length !== 3) {
    console.error("usage: node test/shots.mjs DIRECTORY | --readme");
    process.exit(2);
  }
  await main(process.argv[2]);
}
