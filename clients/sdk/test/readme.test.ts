// Compiles and runs the examples of README.md.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TestDaemon, Transcript, no_daemon, until } from "./harness.js";

const sdk = join(dirname(fileURLToPath(import.meta.url)), "../..");

test("the README's examples work", { skip: no_daemon }, async () => {
  const blocks = [...readFileSync(join(sdk, "README.md"), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text!);
  assert.equal(blocks.length, 2);
  const folder = mkdtempSync(join(tmpdir(), "earshot-readme-")); // a project that depends on the package
  after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "node_modules/@earshot"), { recursive: true });
  symlinkSync(sdk, join(folder, "node_modules/@earshot/sdk"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const files = blocks.map((text, n) => (writeFileSync(join(folder, `example-${n}.ts`), text), join(folder, `example-${n}.ts`)));
  execFileSync(join(sdk, "node_modules/.bin/tsc"), ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", "--typeRoots", join(sdk, "node_modules/@types"), ...files], { cwd: folder, stdio: "pipe" });

  const daemon = await new TestDaemon().start();
  mkdirSync(join(daemon.home, "xdg"));
  symlinkSync(daemon.state, join(daemon.home, "xdg/earshot"));
  const outputs = ["", ""];
  const processes = files.map((file, n) => {
    const child = spawn(process.execPath, [file.replace(".ts", ".js")], { env: { PATH: process.env.PATH, HOME: daemon.home, XDG_STATE_HOME: join(daemon.home, "xdg") }, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", (text: Buffer) => (outputs[n] += text.toString()));
    child.stderr.on("data", (text: Buffer) => (outputs[n] += text.toString()));
    return child;
  });
  try {
    const transcript = new Transcript(daemon.root);
    transcript.append(transcript.prompt("go"));
    await until("the session", () => outputs[1]!.includes(`${transcript.session} working`));
    transcript.append(transcript.toolCall("c1", "Bash", { command: "false" }));
    await until("the open tool call", () => outputs[1]!.includes(`${transcript.session} working Bash 125`));
    transcript.append(transcript.toolResult("c1", "no such file", true));
    await until("the whole record", () => outputs[1]!.includes("parentUuid"));
    // The first example may have subscribed during any turn: end turns until it prints one.
    for (let turn = 0; !outputs[0]!.includes(`${transcript.session} completed`); turn++) {
      transcript.append(transcript.reply("done"), transcript.prompt(`turn ${turn}`));
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.ok(turn < 2400, outputs[0]); // two minutes
    }
  } finally {
    for (const child of processes) child.kill();
    await daemon.remove();
  }
});
