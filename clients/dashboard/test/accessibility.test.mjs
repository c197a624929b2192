// Each view, light and dark, on a desktop and on a phone: axe reports nothing, and nothing is too wide. EARSHOT_SCREENSHOTS=DIRECTORY saves a screenshot of each.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { assertFitsWidth, test, violations, withBrowser } from "./harness.mjs";
import { exampleSessions } from "./fixtures.mjs";
import { color_schemes, screens, visitEmptyStates, visitSession, visitViews } from "./screenshots.mjs";

const screenshots = process.env.EARSHOT_SCREENSHOTS;

withBrowser("accessibility", (env) => {
  for (const [screen, size] of Object.entries(screens)) {
    for (const colorScheme of color_schemes) {
      test(`axe reports nothing and nothing is too wide: ${screen}, ${colorScheme}`, async () => {
        const visited = [];
        const check = async (name, page) => {
          visited.push(name);
          assert.deepEqual(await violations(page), [], name);
          await assertFitsWidth(page, name);
          if (!screenshots) return;
          mkdirSync(screenshots, { recursive: true });
          await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${screen}.png`) });
        };
        const sessions = env.use(exampleSessions(env.daemon.root));
        await env.daemon.start();
        const options = { ...size, colorScheme };
        assert.deepEqual(await visitViews(env.browser, env.daemon, sessions, options, check), []);
        assert.deepEqual(await visitSession(env.browser, options, check), []);
        await visitEmptyStates(env.browser, options, check);
        assert.deepEqual(visited, ["overview", "details", "session", "unfolded", "record", "keys", "conversation", "markdown", "diffs", "terminal", "place", "unauthorized", "empty", "reconnecting"]);
      });
    }
  }
});
