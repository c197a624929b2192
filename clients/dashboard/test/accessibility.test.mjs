// Each view, light and dark, on a desktop and on a phone: axe finds nothing, nothing is too wide, and a picture of it goes into EARSHOT_SCREENSHOTS.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fitsTheWidth, house, violations } from "./house.mjs";
import { morning } from "./scene.mjs";
import { lights, screens, states, views } from "./shots.mjs";

const shots = process.env.EARSHOT_SCREENSHOTS;

house("looks", (house) => {
  for (const [screen, size] of Object.entries(screens)) {
    for (const light of lights) {
      test(`axe finds nothing and nothing is too wide: ${screen}, ${light}`, async () => {
        const seen = [];
        const judge = async (name, page) => {
          seen.push(name);
          assert.deepEqual(await violations(page), [], name);
          await fitsTheWidth(page, name);
          if (!shots) return;
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots, `${name}-${light}-${screen}.png`) });
        };
        const scene = house.scene(morning(house.place.root));
        await house.place.start();
        const options = { ...size, colorScheme: light };
        assert.deepEqual(await views(house.browser, house.place, scene, options, judge), []);
        await states(house.browser, options, judge);
        assert.deepEqual(seen, ["overview", "session", "unfolded", "record", "keys", "unauthorised", "empty", "reconnecting"]);
      });
    }
  }
});
