// The pages of recorded sessions of all programs, wholly rendered: nothing fails, and their edits and commands are shown as such.
// Requires the recordings (EARSHOT_CORPUS); skipped with a message elsewhere.
import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { assertFitsWidth, test, withBrowser } from "./harness.mjs";

const corpus = process.env.EARSHOT_CORPUS ?? "";
const absent = corpus && existsSync(join(corpus, "codex")) ? false : "the recorded sessions are not available";
const sessions_max = 10; // of a program, those with the longest transcripts

const without_edits = new Set(["copilot"]); // the recordings of this program contain none

/** All files below a folder. */
const filesOf = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? filesOf(join(folder, entry.name)) : [join(folder, entry.name)]));
const firstRecord = (path) => JSON.parse(readFileSync(path, "utf8").split("\n", 1)[0]);
const transcripts = (folder) => filesOf(folder).filter((path) => path.endsWith(".jsonl") && !path.endsWith("timeline.jsonl"));

/** Copies the recordings of a program into a root. Returns the session ids, those with the longest transcripts first. */
const copy = {
  "claude-code": (root) => {
    for (const version of readdirSync(corpus).filter((name) => name.startsWith("claude-"))) {
      for (const name of readdirSync(join(corpus, version))) if (existsSync(join(corpus, version, name, "tree/projects"))) cpSync(join(corpus, version, name, "tree"), root, { recursive: true });
    }
  },
  codex: (root) => {
    for (const path of transcripts(join(corpus, "codex")).filter((name) => !name.includes("/recorded/"))) {
      const { payload, id = payload?.id } = firstRecord(path);
      if (typeof id === "string") put(path, join(root, `sessions/2026/01/02/rollout-2026-01-02T03-04-05-${id}.jsonl`));
    }
  },
  copilot: (root) => {
    for (const path of transcripts(join(corpus, "copilot"))) {
      const { type, data } = firstRecord(path);
      if (type === "session.start") put(path, join(root, `session-state/${data.sessionId}/events.jsonl`));
    }
  },
  pi: (root) => {
    for (const path of transcripts(join(corpus, "pi"))) {
      const { type, id } = firstRecord(path);
      if (type === "session") put(path, join(root, `sessions/--home-ada--/2026-01-02T03-04-05-000Z_${id}.jsonl`));
    }
  },
};

function put(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

withBrowser("the pages of recorded sessions", (env) => {
  for (const [program, fill] of Object.entries(copy)) {
    test(`${program}: everything is rendered, with diffs and terminals`, { skip: absent }, async (t) => {
      const root = join(env.daemon.home, `root-${program}`);
      mkdirSync(root);
      fill(root);
      await env.daemon.start("--root", `${program}:${program}=${root}`);
      const { page, errors } = await env.openPage({}, undefined, (fresh) => fresh.addInitScript(() => {
        globalThis.print = () => {
          const count = (css) => document.querySelectorAll(css).length;
          globalThis.printed = { entries: count(".entry"), diff_lines: count(".diff .line[data-kind]"), terminals: count(".terminal"), markdown: count(".markdown > *"), active: count(".entries :is(img, script, style, iframe, form, input, object, embed)") };
        };
      }));
      const response = await fetch(`http://127.0.0.1:${env.daemon.port}/v1/sessions?all=true&limit=1000`, { headers: { Authorization: `Bearer ${env.daemon.token}` } });
      const { sessions } = await response.json();
      const size = ({ cursors }) => Math.max(0, ...cursors.map((cursor) => Number(cursor.slice(cursor.lastIndexOf(":") + 1).split(".")[0])));
      const chosen = sessions.filter((session) => session.program === program).sort((a, b) => size(b) - size(a)).slice(0, sessions_max);
      assert.ok(chosen.length >= 3, `only ${chosen.length} sessions`);
      const sum = { entries: 0, diff_lines: 0, terminals: 0, markdown: 0, active: 0 };
      for (const { session, host } of chosen) {
        await page.goto(`http://127.0.0.1:${env.daemon.port}/?session=${encodeURIComponent(session)}&host=${encodeURIComponent(host)}`);
        await page.locator(".entry").first().waitFor();
        await page.getByRole("img", { name: /^Timeline: \d/ }).waitFor();
        await page.keyboard.press("Control+p");
        const printed = await (await page.waitForFunction(() => globalThis.printed)).jsonValue();
        for (const key of Object.keys(sum)) sum[key] += printed[key];
        await assertFitsWidth(page, session);
      }
      t.diagnostic(`${chosen.length} of ${sessions.length} sessions: ${JSON.stringify(sum)}`);
      assert.equal(sum.active, 0);
      const expected = ["entries", "terminals", "markdown", ...(without_edits.has(program) ? [] : ["diff_lines"])];
      for (const key of expected) assert.ok(sum[key] > 0, `no ${key}`);
      assert.deepEqual(errors, []);
    });
  }
});
