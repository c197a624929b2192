// Runs a real earshotd with its own root and state directory, and writes transcripts as Claude Code does.
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const top = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
export const daemon_program = join(process.env.EARSHOT_BUILD ?? join(top, "build/release"), "earshotd");
export const vectors = join(top, "protocol/vectors");
/** Reason to skip the tests that need a daemon, or false. */
export const no_daemon = existsSync(daemon_program) ? false : `${daemon_program} does not exist: run ./dev build, or set EARSHOT_BUILD`;
const deadline_ms = 30_000;

/** Polls until the condition returns a truthy value, and returns that. Throws after a generous deadline. */
export async function until<T>(what: string, condition: () => T | undefined | false | null): Promise<T> {
  const end = Date.now() + deadline_ms;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timeout waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export class TestDaemon {
  readonly home = mkdtempSync(join(tmpdir(), "earshot-sdk-"));
  readonly root = join(this.home, "claude");
  readonly state = join(this.home, "state");
  private running: ChildProcess | undefined;
  port = 0;

  /** `hub`: the daemon has no root. */
  constructor(readonly host = "testhost", private readonly hub = false) {
    mkdirSync(this.root);
  }

  /** Keeps the port over restarts, for clients that only have the URL. */
  async start(...args: string[]): Promise<this> {
    const run = join(this.home, "run");
    mkdirSync(run, { recursive: true });
    const child = spawn(daemon_program, [...(this.hub ? [] : ["--root", this.root]), "--state", this.state, "--listen", `127.0.0.1:${this.port}`, "--host", this.host, ...args], {
      env: { PATH: process.env.PATH, HOME: this.home, XDG_RUNTIME_DIR: run, LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (text: Buffer) => (output += text.toString()));
    child.stderr.on("data", (text: Buffer) => (output += text.toString()));
    const url = await until("the daemon to listen", () => {
      if (child.exitCode !== null) throw new Error(`earshotd exited: ${output}`);
      return /listening on (ws:\S+)/.exec(output)?.[1];
    });
    this.port = Number(new URL(url).port);
    this.running = child;
    return this;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/v1/ws`;
  }

  get token(): string {
    return readFileSync(join(this.state, "token"), "utf8").trim();
  }

  async stop(): Promise<void> {
    await this.signal("SIGTERM");
  }

  /** Simulates a power failure. */
  async kill(): Promise<void> {
    await this.signal("SIGKILL");
  }

  private async signal(name: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.running;
    if (!child) return;
    this.running = undefined;
    child.kill(name);
    await until("the daemon to exit", () => child.exitCode !== null || child.signalCode !== null);
  }

  /** Stops the daemon and deletes its files. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

let messages = 0;

/** A Claude Code transcript. The methods that return a string build one line; `append` writes lines. */
export class Transcript {
  readonly session = randomUUID();
  readonly path: string;
  private parent: string | null = null;
  private readonly subagent_fields: object = {};
  /** Timestamps of the records. */
  clock = () => new Date();
  /** Token counts of the messages that follow. */
  usage = { input_tokens: 20, output_tokens: 12, cache_read_input_tokens: 100, cache_creation_input_tokens: 5 };

  constructor(root: string, private readonly cwd = "/home/ada/lighthouse") {
    this.path = join(root, "projects", cwd.replaceAll(/[^A-Za-z0-9-]/g, "-"), this.session + ".jsonl");
    mkdirSync(dirname(this.path), { recursive: true });
  }

  /** Creates the transcript of a subagent of this session, a file of its own. */
  subagent(name: string, call: string, description: string): Transcript {
    const folder = join(this.path.replace(".jsonl", ""), "subagents");
    const transcript = Object.create(Transcript.prototype) as Transcript;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `agent-${name}.meta.json`), JSON.stringify({ agentType: "general-purpose", description, toolUseId: call, spawnDepth: 1 }));
    return Object.assign(transcript, { session: this.session, path: join(folder, `agent-${name}.jsonl`), cwd: this.cwd, parent: null, clock: this.clock, usage: { ...this.usage }, subagent_fields: { isSidechain: true, agentId: name } });
  }

  get stream(): string {
    return "claude/" + this.path.split("/projects/")[1]!.replace(".jsonl", "");
  }

  record(type: string, message: object, more: object = {}): string {
    const uuid = randomUUID();
    const line = JSON.stringify({
      parentUuid: this.parent, isSidechain: false, type, uuid, timestamp: this.clock().toISOString(), userType: "external", cwd: this.cwd,
      sessionId: this.session, version: "2.1.330", gitBranch: "main", message, ...this.subagent_fields, ...more,
    });
    this.parent = uuid;
    return line + "\n";
  }

  append(...lines: string[]): void {
    appendFileSync(this.path, lines.join(""));
  }

  rewrite(...lines: string[]): void {
    writeFileSync(this.path, lines.join(""));
  }

  prompt(text: string): string {
    return this.record("user", { role: "user", content: text });
  }

  /** A message of the model. `stop`: `end_turn` ends the turn, null does not. */
  reply(text: string, stop: string | null = "end_turn", blocks: object[] = [{ type: "text", text }]): string {
    return this.record("assistant", {
      id: `msg_${++messages}`, type: "message", role: "assistant", model: "claude-opus-5-5", content: blocks, stop_reason: stop,
      usage: this.usage,
    });
  }

  toolCall(call: string, tool: string, input: object): string {
    return this.reply("", "tool_use", [{ type: "tool_use", id: call, name: tool, input }]);
  }

  toolResult(call: string, output: string, failed = false): string {
    return this.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: call, content: output, is_error: failed }] });
  }
}
