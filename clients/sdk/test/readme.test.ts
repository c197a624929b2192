// What README.md shows is compiled as it stands there, and run.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Place, Transcript, missing, until } from "./daemon.js";

const sdk = join(dirname(fileURLToPath(import.meta.url)), "../..");

test("the examples of the README do what they say", { skip: missing }, async () => {
  const blocks = [...readFileSync(join(sdk, "README.md"), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text!);
  assert.equal(blocks.length, 2);
  const folder = mkdtempSync(join(tmpdir(), "earshot-readme-")); // a project of its own, that has the package
  after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "node_modules/@earshot"), { recursive: true });
  symlinkSync(sdk, join(folder, "node_modules/@earshot/sdk"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const files = blocks.map((text, n) => (writeFileSync(join(folder, `example-${n}.ts`), text), join(folder, `example-${n}.ts`)));
  execFileSync(join(sdk, "node_modules/.bin/tsc"), ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", "--typeRoots", join(sdk, "node_modules/@types"), ...files], { cwd: folder, stdio: "pipe" });

  const place = await new Place().start();
  mkdirSync(join(place.home, "xdg"));
  symlinkSync(place.state, join(place.home, "xdg/earshot"));
  const said = ["", ""];
  const running = files.map((file, n) => {
    const one = spawn(process.execPath, [file.replace(".ts", ".js")], { env: { PATH: process.env.PATH, HOME: place.home, XDG_STATE_HOME: join(place.home, "xdg") }, stdio: ["ignore", "pipe", "pipe"] });
    one.stdout.on("data", (text: Buffer) => (said[n] += text.toString()));
    one.stderr.on("data", (text: Buffer) => (said[n] += text.toString()));
    return one;
  });
  try {
    const one = new Transcript(place.root);
    one.append(one.prompt("go"));
    await until("the session", () => said[1]!.includes(`${one.session} working`));
    one.append(one.calls("c1", "Bash", { command: "false" }));
    await until("the tool in hand", () => said[1]!.includes(`${one.session} working Bash 125`));
    one.append(one.result("c1", "it went wrong", true));
    await until("the whole record", () => said[1]!.includes("parentUuid"));
    // Whoever comes while a turn runs is told of its end.
    for (let turn = 0; !said[0]!.includes(`${one.session} completed`); turn++) {
      one.append(one.says("done"), one.prompt(`turn ${turn}`));
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.ok(turn < 400, said[0]);
    }
  } finally {
    for (const one of running) one.kill();
    await place.end();
  }
});
