// A real earshotd with a root and a state directory of its own, and an agent program's transcript to write.
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const top = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
export const program = join(process.env.EARSHOT_BUILD ?? join(top, "build/release"), "earshotd");
export const vectors = join(top, "protocol/vectors");
export const missing = existsSync(program) ? false : `there is no ${program}: ./dev build makes it, or EARSHOT_BUILD says where it is`;
const deadline_ms = 30_000;

/** Nothing waits for time: the condition's first true value, or a failure after a generous while. */
export async function until<T>(what: string, condition: () => T | undefined | false | null): Promise<T> {
  const end = Date.now() + deadline_ms;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export class Place {
  readonly home = mkdtempSync(join(tmpdir(), "earshot-sdk-"));
  readonly root = join(this.home, "claude");
  readonly state = join(this.home, "state");
  private running: ChildProcess | undefined;
  port = 0;

  /** `hub`: it has no root of its own. */
  constructor(readonly host = "testhost", private readonly hub = false) {
    mkdirSync(this.root);
  }

  /** The same port again after a restart, so that a client that has only a URL finds it. */
  async start(...args: string[]): Promise<this> {
    const run = join(this.home, "run");
    mkdirSync(run, { recursive: true });
    const process_ = spawn(program, [...(this.hub ? [] : ["--root", this.root]), "--state", this.state, "--listen", `127.0.0.1:${this.port}`, "--host", this.host, ...args], {
      env: { PATH: process.env.PATH, HOME: this.home, XDG_RUNTIME_DIR: run, LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    process_.stdout.on("data", (text: Buffer) => (said += text.toString()));
    process_.stderr.on("data", (text: Buffer) => (said += text.toString()));
    const url = await until("the daemon", () => {
      if (process_.exitCode !== null) throw new Error(`earshotd ended: ${said}`);
      return /listening on (ws:\S+)/.exec(said)?.[1];
    });
    this.port = Number(new URL(url).port);
    this.running = process_;
    return this;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/v1/ws`;
  }

  get token(): string {
    return readFileSync(join(this.state, "token"), "utf8").trim();
  }

  async stop(): Promise<void> {
    const running = this.running;
    if (!running) return;
    this.running = undefined;
    running.kill("SIGTERM");
    await until("the daemon's end", () => running.exitCode !== null || running.signalCode !== null);
  }

  /** As a machine does that loses its power. */
  async kill(): Promise<void> {
    const running = this.running;
    if (!running) return;
    this.running = undefined;
    running.kill("SIGKILL");
    await until("the daemon's end", () => running.signalCode !== null);
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

let calls = 0;

/** Every method appends one line. */
export class Transcript {
  readonly session = randomUUID();
  readonly path: string;
  private parent: string | null = null;
  /** What the program's clock says. */
  clock = () => new Date();
  /** Of each message from now on. */
  usage = { input_tokens: 20, output_tokens: 12, cache_read_input_tokens: 100, cache_creation_input_tokens: 5 };

  constructor(root: string, private readonly cwd = "/home/ada/lighthouse") {
    this.path = join(root, "projects", cwd.replaceAll(/[^A-Za-z0-9-]/g, "-"), this.session + ".jsonl");
    mkdirSync(dirname(this.path), { recursive: true });
  }

  /** A transcript of a subagent of this session, in a file of its own. */
  agent(name: string, call: string, description: string): Transcript {
    const folder = join(this.path.replace(".jsonl", ""), "subagents");
    const inner = Object.create(Transcript.prototype) as Transcript;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `agent-${name}.meta.json`), JSON.stringify({ agentType: "general-purpose", description, toolUseId: call, spawnDepth: 1 }));
    return Object.assign(inner, { session: this.session, path: join(folder, `agent-${name}.jsonl`), cwd: this.cwd, parent: null, clock: this.clock, usage: { ...this.usage }, side: { isSidechain: true, agentId: name } });
  }

  private readonly side: object = {};

  get stream(): string {
    return "claude/" + this.path.split("/projects/")[1]!.replace(".jsonl", "");
  }

  record(type: string, message: object, more: object = {}): string {
    const uuid = randomUUID();
    const line = JSON.stringify({
      parentUuid: this.parent, isSidechain: false, type, uuid, timestamp: this.clock().toISOString(), userType: "external", cwd: this.cwd,
      sessionId: this.session, version: "2.1.330", gitBranch: "main", message, ...this.side, ...more,
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

  says(text: string, stop: string | null = "end_turn", blocks: object[] = [{ type: "text", text }]): string {
    return this.record("assistant", {
      id: `msg_${++calls}`, type: "message", role: "assistant", model: "claude-opus-5-5", content: blocks, stop_reason: stop,
      usage: this.usage,
    });
  }

  calls(call: string, tool: string, input: object): string {
    return this.says("", "tool_use", [{ type: "tool_use", id: call, name: tool, input }]);
  }

  result(call: string, output: string, failed = false): string {
    return this.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: call, content: output, is_error: failed }] });
  }
}
