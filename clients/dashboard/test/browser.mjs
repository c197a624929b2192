// Starts Debian's Chromium, headless, and collects the page's errors.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { request } from "node:http";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const executablePath = process.env.EARSHOT_CHROMIUM ?? "/usr/bin/chromium";
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

// Files injected by the test have no network address, so that Chromium would block their requests to loopback.
const flagsFor = (injects) => (injects ? [...flags, "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"] : flags);
const injects_page = Boolean(process.env.EARSHOT_PAGE_FROM);

const timeout_ms = Number(process.env.EARSHOT_PAGE_TIMEOUT_MS ?? 120_000); // of each wait: a page on a machine that also compiles can be slow
const code_ms = 60_000; // how long a one-time code is valid

/** `injects`: the test serves files of the page. */
export const launch = (injects = injects_page) => chromium.launch({ executablePath, headless: true, args: flagsFor(injects), timeout: timeout_ms });

/** Sends a request to the daemon's Unix socket. Returns status and body. */
export function post(daemon, path, json, method = "POST") {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: join(daemon.home, "run/earshot/sock"), path, method, headers: { Host: "localhost" } }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode, body }));
    });
    sent.on("error", reject);
    sent.end(json === undefined ? undefined : JSON.stringify(json));
  });
}

/** Returns the URL that `earshot open` would print. */
export const signInUrl = async (daemon) => JSON.parse((await post(daemon, "/v1/codes")).body).url;

/** Waits until the index of the history is built. */
export async function waitForIndex(daemon) {
  const end = Date.now() + timeout_ms;
  for (let answer; answer?.status !== 200 || JSON.parse(answer.body).index.building; await setTimeout(20)) {
    if (Date.now() > end) throw new Error(`the index is not built: ${answer?.status} ${answer?.body}`);
    answer = await post(daemon, "/v1/history", undefined, "GET");
  }
}

/** The browsers that are signed in. */
export const browsersOf = async (daemon) => JSON.parse((await post(daemon, "/v1/browsers", undefined, "GET")).body).browsers;

/** A browser with the profile in this directory, as a user starts it. */
export async function launchProfile(directory) {
  const context = await chromium.launchPersistentContext(directory, { executablePath, headless: true, args: flagsFor(injects_page), timeout: timeout_ms });
  context.setDefaultTimeout(timeout_ms);
  return context;
}

/** Opens the page with a one-time code, and with another one if the machine was too slow for the first. Returns the URL. */
export async function signIn(page, daemon, errors = []) {
  for (let tries = 1; ; tries++) {
    const created_ms = Date.now();
    const url = await signInUrl(daemon);
    const connects = page.waitForRequest("**/v1/challenge?browser=*"); // the key is stored by then: another page finds it
    connects.catch(() => {});
    const [exchange] = await Promise.all([page.waitForRequest("**/v1/browsers/register"), page.goto(url)]);
    const response = await exchange.response();
    if (response?.status() === 401 && Date.now() - created_ms > code_ms) continue;
    if (tries > 1) errors.length = 0; // the refusals
    if (response?.status() === 200) await connects;
    return url;
  }
}

/**
 * Clicks an element, again if it moved while the mouse was pressed, as entries do while their list measures them: the browser sends no click then.
 * Returns once the element, or the page that replaced its own, has received one.
 */
export async function click(locator) {
  for (let is_clicked = false; !is_clicked; ) {
    const element = await locator.elementHandle();
    await element.evaluate((it) => it.addEventListener("click", () => (it.is_clicked = true), { capture: true, once: true }));
    try {
      await element.click();
    } catch (error) {
      if (await element.evaluate((it) => it.isConnected).catch(() => true)) throw error;
    }
    is_clicked = await element.evaluate((it) => it.is_clicked === true).catch(() => true);
  }
}

/** All that are open. */
export const open_pages = new Set();

/** Opens an empty tab. EARSHOT_PAGE_SLOWER=N divides the page's processor time by N: it shows what does not wait. EARSHOT_PAGE_FROM=DIRECTORY serves the page's files from there, with the daemon's headers. */
export async function openTab(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(timeout_ms);
  const page = await context.newPage();
  if (process.env.EARSHOT_PAGE_SLOWER) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: Number(process.env.EARSHOT_PAGE_SLOWER) });
  open_pages.add(page);
  page.on("close", () => open_pages.delete(page));
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  if (process.env.EARSHOT_PAGE_FROM) {
    const files = { "/": "index.html", "/app.js": "app.js", "/session.js": "session.js", "/highlight.js": "highlight.js", "/style.css": "style.css" };
    await page.route((url) => url.pathname in files, async (route) => {
      const response = await route.fetch();
      const name = files[new URL(route.request().url()).pathname];
      const contentType = `text/${name.endsWith("js") ? "javascript" : name.slice(name.lastIndexOf(".") + 1)}; charset=utf-8`;
      await route.fulfill({ response, status: 200, contentType, body: readFileSync(join(process.env.EARSHOT_PAGE_FROM, name)) }); // also a part that the daemon does not have
    });
  }
  return { context, page, errors };
}

export const axe = readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");
