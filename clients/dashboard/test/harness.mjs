// What each file of tests here begins with: a browser, and for each test a daemon of its own with a page on it.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe } from "node:test";
import { Place, missing } from "../../sdk/dist/test/daemon.js";
import { axe, invitation, launch, open } from "./browser.mjs";

const timeout_ms = 30_000;

/** `body` gets the house: `place` is the daemon's, not started yet; what is in `ended` is called after the test. `skip`: why not. */
export function house(name, body, skip = false) {
  describe(name, { skip: missing || skip }, () => {
    const house = { place: undefined, browser: undefined, ended: [], visit, state, scene };
    before(async () => (house.browser = await launch()));
    after(() => house.browser.close());
    beforeEach(() => (house.place = new Place()));
    afterEach(async () => {
      for (const one of house.ended.splice(0)) await one();
      await house.place.end();
    });

    /** A page, signed in unless there is another address; `prepare` gets it before it goes anywhere. */
    async function visit(options, address, prepare, place = house.place) {
      const opened = await open(house.browser, place, options);
      opened.page.setDefaultTimeout(timeout_ms);
      house.ended.push(() => opened.context.close());
      await prepare?.(opened.page);
      await opened.page.goto(address ?? (await invitation(place)));
      return opened;
    }
    /** The page says this of its connection. */
    function state(page, text) {
      return page.locator("#state", { hasText: text }).waitFor({ timeout: timeout_ms });
    }
    /** Written into the root, and ended after the test. */
    function scene(made) {
      house.ended.push(...made.ended.map((one) => one.end));
      return made;
    }
    body(house);
  });
}

/** How many elements fit, in the end. */
export const many = (page, selector, count) =>
  page.waitForFunction(([one, wanted]) => document.querySelectorAll(one).length === wanted, [selector, count]);

/** Nothing is wider than the window. */
export async function fitsTheWidth(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${what} is ${over} px too wide`);
}

/** What axe has against the page as it is. The page's policy forbids eval: DevTools puts axe in, which it does not ask. */
export async function violations(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe, allowUnsafeEvalBlockedByCSP: true });
  await session.detach();
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
  });
}
