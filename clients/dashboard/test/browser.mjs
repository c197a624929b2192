// Debian's Chromium, headless, on a page of a daemon; and what the page complained of.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { request } from "node:http";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const executablePath = process.env.EARSHOT_CHROMIUM ?? "/usr/bin/chromium";
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

// A page whose files are put in by the test has no address of its own, so that the browser would keep it from loopback.
const stand_in = process.env.EARSHOT_PAGE_FROM ? ["--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"] : [];

export const launch = () => chromium.launch({ executablePath, headless: true, args: [...flags, ...stand_in] });

/** The URL that `earshot open` would print. */
export function invitation(place) {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: join(place.home, "run/earshot/sock"), path: "/v1/codes", method: "POST", headers: { Host: "localhost" } }, (answer) => {
      let text = "";
      answer.on("data", (piece) => (text += piece));
      answer.on("end", () => resolve(JSON.parse(text).url));
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** EARSHOT_PAGE_FROM=DIRECTORY: these files instead of those that are built into the daemon, with the daemon's own headers. */
export async function open(browser, place, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (said) => said.type() === "error" && complaints.push(said.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  if (process.env.EARSHOT_PAGE_FROM) {
    const files = { "/": "index.html", "/app.js": "app.js", "/style.css": "style.css" };
    await page.route((url) => url.pathname in files, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: readFileSync(join(process.env.EARSHOT_PAGE_FROM, files[new URL(route.request().url()).pathname])) });
    });
  }
  return { context, page, complaints };
}

export const axe = readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");
