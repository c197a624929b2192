// What the page says of its connection, honestly; and how it calls somebody who has asked to be called.
import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { Transcript } from "../../sdk/dist/test/daemon.js";
import { invitation } from "./browser.mjs";
import { house } from "./house.mjs";
import { Scripted, registry } from "./scene.mjs";

/** A new token: whoever came with the old one is put out. */
function rotate(place) {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: join(place.home, "run/earshot/sock"), path: "/v1/token/rotate", method: "POST", headers: { Host: "localhost" } }, (answer) => answer.resume().on("end", () => resolve(answer.statusCode)));
    asked.on("error", reject);
    asked.end();
  });
}

/** Put in before the page is: notes who is called, by a notification or a tone, instead of calling. */
function noteCalls() {
  globalThis.calls = [];
  globalThis.away = false;
  globalThis.Notification = class {
    static requestPermission() {
      calls.push("asked");
      return Promise.resolve(globalThis.forbidden ? "denied" : "granted");
    }
    constructor(title, { body }) {
      calls.push(`${title}: ${body}`);
    }
  };
  globalThis.AudioContext = class {
    currentTime = 0;
    destination = {};
    createGain() {
      return { gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} }, connect: () => {} };
    }
    createOscillator() {
      return { frequency: {}, connect: (to) => to, start: () => calls.push("tone"), stop() {} };
    }
  };
  Object.defineProperty(document, "visibilityState", { get: () => (away ? "hidden" : "visible") });
}

house("what the page says of itself", (house) => {
  test("it goes on after the daemon was away, and says so meanwhile, with a countdown", async () => {
    const one = new Transcript(house.place.root);
    one.append(one.prompt("before"));
    await house.place.start();
    const { page } = await house.visit();
    await house.state(page, "Live.");
    await house.place.stop();
    await house.state(page, /^The daemon was stopped and is gone\. Trying again in \d+ s\.$/);
    await page.locator("#help", { hasText: "What is listed may have changed since" }).waitFor();
    await page.locator("#sessions .title", { hasText: "before" }).waitFor(); // what was known stays
    await house.state(page, /^The daemon is gone\. Trying again in [1-9]\d* s\.$/);
    const was = await page.locator("#state").textContent();
    await page.waitForFunction((old) => document.getElementById("state").textContent !== old, was); // it counts
    const other = new Transcript(house.place.root, "/home/ada/buoy");
    other.append(other.prompt("born meanwhile"));
    await house.place.start();
    const now = page.getByRole("button", { name: "Try now" });
    if (await now.isVisible()) await now.click({ timeout: 1000 }).catch(() => {}); // unless it just came back by itself
    await house.state(page, "Live.");
    await page.locator("#sessions .title", { hasText: "born meanwhile" }).waitFor();
  });

  test("the frame of the page does not wait for the daemon's answer", async () => {
    await house.place.start();
    const { page } = await house.visit({}, undefined, (fresh) => fresh.routeWebSocket(/\/v1\/ws/, () => {})); // which never comes
    await house.state(page, "Connecting…");
    await page.getByRole("link", { name: "earshot" }).waitFor();
    await page.getByRole("button", { name: "Keys" }).click();
    await page.locator("dialog .keys").waitFor();
  });

  test("whoever has no token is told how to get in, and so is who comes with a used link, and who was put out", async () => {
    await house.place.start();
    const url = await invitation(house.place);
    const { page } = await house.visit({}, `http://127.0.0.1:${house.place.port}/`);
    await house.state(page, "Not signed in");
    await page.locator("#help code", { hasText: "earshot open" }).waitFor();
    const first = await house.visit({}, url);
    await house.state(first.page, "Live.");
    const second = await house.visit({}, url);
    await house.state(second.page, "used already");
    await second.page.locator("#help code", { hasText: "earshot open" }).waitFor();
    assert.equal(new URL(second.page.url()).hash, "");
    assert.equal(await rotate(house.place), 200);
    await house.state(first.page, "The token is not good any more.");
    await first.page.locator("#help code", { hasText: "earshot open" }).waitFor();
    assert.equal(await first.page.evaluate(() => sessionStorage.length), 0);
    await first.page.goto(await invitation(house.place));
    await house.state(first.page, "Live.");
  });

  test("a code that cannot be traded, since nobody answers, is no wrong code", async () => {
    await house.place.start();
    const { page } = await house.visit({}, undefined, (fresh) => fresh.route("**/v1/token", (route) => route.abort()));
    await house.state(page, "The daemon is gone: it did not answer.");
    await page.locator("#help code", { hasText: "earshot doctor" }).waitFor();
  });

  test("no sessions yet: what to do", async () => {
    await house.place.start();
    const { page } = await house.visit();
    await page.getByText("No agent has been at work in the last day.").waitFor();
    await page.locator(".empty code", { hasText: "earshotd --demo" }).waitFor();
    assert.equal(await page.getByRole("searchbox").count(), 0); // there is nothing to search
    const one = new Transcript(house.place.root);
    one.append(one.prompt("the first"));
    await page.locator("#sessions .title", { hasText: "the first" }).waitFor();
  });

  test("a page that fell behind says so for a while, and one that asked for too much says what the daemon says", async () => {
    const one = new Transcript(house.place.root);
    one.append(one.prompt("hello"));
    await house.place.start();
    let told;
    const { page } = await house.visit({}, undefined, (fresh) => fresh.routeWebSocket(/\/v1\/ws/, (socket) => {
      told ??= socket;
      const server = socket.connectToServer();
      server.onMessage((text) => socket.send(text));
      socket.onMessage((text) => server.send(text));
    }));
    await house.state(page, "Live.");
    await page.locator("#sessions .title", { hasText: "hello" }).waitFor();
    told.send(JSON.stringify({ type: "lagged", id: "a" }));
    await house.state(page, "This page fell behind and skipped some of what happened.");
    told.send(JSON.stringify({ type: "error", id: "a", code: "limit", message: "too much of it", retry: false }));
    await house.state(page, "The daemon says: too much of it");
    await page.getByRole("button", { name: "Try now" }).click();
    await house.state(page, "Live.");
  });

  test("notifications and sound are off until somebody asks for them; the title and screen readers always tell", async () => {
    const one = new Scripted(house.place.root, "/home/ada/api").asks("Mend the lamp");
    const agent = registry(house.place.root, one, "/home/ada/api");
    house.ended.push(agent.end);
    agent.says("busy");
    await house.place.start();
    const { page } = await house.visit({}, undefined, (fresh) => fresh.addInitScript(noteCalls));
    const calls = () => page.evaluate(() => globalThis.calls);
    const title = (wanted) => page.waitForFunction((text) => document.title === text, wanted);
    const notify = page.getByRole("button", { name: "Notify" });
    const sound = page.getByRole("button", { name: "Sound" });
    await page.locator(".row .status", { hasText: "working" }).waitFor();
    assert.deepEqual([await notify.getAttribute("aria-pressed"), await sound.getAttribute("aria-pressed")], ["false", "false"]);
    await page.evaluate(() => (globalThis.away = true));
    agent.says("waiting", "permission prompt");
    await title("(1) earshot");
    await page.locator("[aria-live=assertive]", { hasText: "Mend the lamp needs you" }).waitFor({ state: "attached" });
    assert.deepEqual(await calls(), []);
    agent.says("busy");
    await title("earshot");

    await page.evaluate(() => (globalThis.forbidden = true));
    await notify.click();
    await page.getByRole("button", { name: "Notify: blocked", pressed: false }).waitFor();
    await page.evaluate(() => {
      globalThis.forbidden = false;
      globalThis.calls.length = 0;
    });
    await notify.click();
    await sound.click();
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 2);
    assert.deepEqual(await calls(), ["asked"]);
    agent.says("waiting", "permission prompt");
    await page.waitForFunction(() => globalThis.calls.length === 3);
    const [, ...got] = await calls();
    assert.ok(got.includes("tone") && got.some((call) => call.startsWith("Mend the lamp needs you: ")), got.join("; "));
    agent.says("busy");
    await title("earshot");
    await page.evaluate(() => (globalThis.away = false)); // somebody looks at the page: it says enough itself
    agent.says("waiting", "permission prompt");
    await page.waitForFunction(() => globalThis.calls.length === 4);
    assert.equal((await calls())[3], "tone");

    await page.reload(); // who waits already is no news, and what was chosen stays chosen
    await title("(1) earshot");
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 2);
    assert.deepEqual(await calls(), []);
    await sound.click();
    await notify.click();
    await page.waitForFunction(() => [...document.querySelectorAll(".toggles [aria-pressed=true]")].length === 0);
  });
});
