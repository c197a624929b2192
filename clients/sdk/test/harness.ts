// Runs a real earshotd with its own root and state directory, and writes transcripts as Claude Code does.
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, closeSync, existsSync, fstatSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const top = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
export const daemon_program = join(process.env.EARSHOT_BUILD ?? join(top, "build/release"), "earshotd");
export const vectors = join(top, "protocol/vectors");
/** Reason to skip the tests that need a daemon, or false. */
export const no_daemon = existsSync(daemon_program) ? false : `${daemon_program} does not exist: run ./dev build, or set EARSHOT_BUILD`;
const deadline_ms = 120_000;

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

/** Of the daemon's configuration: on a busy machine a client may be slow without being defective. */
export const patient_limits = '[limits]\nhandshake = "2m"\nhello = "2m"\nsilence = "3m"\nstall = "3m"\n';

export class TestDaemon {
  readonly home = mkdtempSync(join(tmpdir(), "earshot-sdk-"));
  readonly root = join(this.home, "claude");
  readonly state = join(this.home, "state");
  private running: ChildProcess | undefined;
  port = 0;

  /** `hub`: the daemon has no root. */
  constructor(readonly host = "testhost", private readonly hub = false) {
    mkdirSync(this.root);
    const config = join(this.home, ".config/earshot");
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, "earshot.toml"), patient_limits);
  }

  /** Keeps the port over restarts, for clients that only have the URL, and waits until no other program uses it. */
  async start(...args: string[]): Promise<this> {
    while (!(await this.tryStart(args))) await new Promise((resolve) => setTimeout(resolve, 100));
    return this;
  }

  private async tryStart(args: string[]): Promise<boolean> {
    const run = join(this.home, "run");
    mkdirSync(run, { recursive: true });
    const child = spawn(daemon_program, [...(this.hub ? [] : ["--root", this.root]), "--state", this.state, "--listen", `127.0.0.1:${this.port}`, "--host", this.host, ...args], {
      env: { PATH: process.env.PATH, HOME: this.home, XDG_RUNTIME_DIR: run, LC_ALL: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (text: Buffer) => (output += text.toString()));
    child.stderr.on("data", (text: Buffer) => (output += text.toString()));
    const url = await until("the daemon to listen", () => (child.exitCode !== null ? "none" : /listening on (ws:\S+)/.exec(output)?.[1]));
    if (url === "none") {
      if (!output.includes("is in use")) throw new Error(`earshotd exited: ${output}`);
      return false;
    }
    this.port = Number(new URL(url).port);
    this.running = child;
    return true;
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

  /** Stops the daemon and the agents of its root, and deletes its files. */
  async remove(): Promise<void> {
    await this.stop();
    stopAgents(this.home);
    rmSync(this.home, { recursive: true, force: true });
  }
}

interface Agent { process: ChildProcess; key: string; answers: number; requests: number } // answers: a file, one byte for each

const agents: Agent[] = []; // key: program and root
const requests_max = 500; // of one process: the daemon examines a limited number of its descriptors
const agent_script = `
  const { openSync, writeSync } = require("node:fs");
  let rest = "";
  process.stdin.on("data", (text) => {
    const paths = (rest + text).split("\\n");
    rest = paths.pop();
    for (const path of paths) {
      try { if (path) openSync(path); } catch { /* deleted meanwhile */ }
      writeSync(1, ".");
    }
  });`;

/** Waits for the answer without returning to the event loop: `append` is synchronous. */
function request(agent: Agent, path: string): void {
  agent.process.stdin!.write(path + "\n");
  agent.requests++;
  const end = Date.now() + deadline_ms;
  const never = new Int32Array(new SharedArrayBuffer(4));
  while (fstatSync(agent.answers).size < agent.requests) {
    if (Date.now() > end) throw new Error(`timeout waiting for the agent that opens ${path}`);
    Atomics.wait(never, 0, 0, 1);
  }
}

/** Starts a process with the name of an agent program, unless it runs. It ends with the test. */
function startAgent(program: "claude" | "codex" | "pi", root: string): Agent {
  const key = `${program} ${root}`;
  const running = agents.find((agent) => agent.key === key && agent.requests < requests_max);
  if (running) return running;
  const path = join(mkdtempSync(join(tmpdir(), "earshot-agent-")), "answers");
  const answers = openSync(path, "a");
  rmSync(dirname(path), { recursive: true });
  const process_ = spawn(process.execPath, ["-e", agent_script], { argv0: program, cwd: "/", stdio: ["pipe", answers, "ignore"] });
  process_.stdin!.on("error", () => {}); // stopped meanwhile
  process_.unref();
  (process_.stdin as Socket).unref();
  const agent = { process: process_, key, answers, requests: 0 };
  agents.push(agent);
  request(agent, ""); // it runs
  return agent;
}

/** Has a process with the name of an agent program open the transcript. Without one, a session ends after ten seconds, however fast the test is. */
export function holdOpen(program: "claude" | "codex" | "pi", root: string, path: string): void {
  request(startAgent(program, root), path);
}

function stopAgents(home: string): void {
  for (const agent of agents.splice(0)) {
    if (!agent.key.includes(` ${home}/`)) {
      agents.push(agent);
      continue;
    }
    agent.process.kill();
    closeSync(agent.answers);
  }
}

let messages = 0;

/** A Claude Code transcript. The methods that return a string build one line; `append` writes lines. */
export class Transcript {
  readonly session = randomUUID();
  readonly path: string;
  private parent: string | null = null;
  private is_held = false;
  private readonly subagent_fields: object = {};
  /** Timestamps of the records. */
  clock = () => new Date();
  /** Token counts of the messages that follow. */
  usage = { input_tokens: 20, output_tokens: 12, cache_read_input_tokens: 100, cache_creation_input_tokens: 5 };

  constructor(private readonly root: string, private readonly cwd = "/home/ada/lighthouse") {
    this.path = join(root, "projects", cwd.replaceAll(/[^A-Za-z0-9-]/g, "-"), this.session + ".jsonl");
    mkdirSync(dirname(this.path), { recursive: true });
  }

  /** Creates the transcript of a subagent of this session, a file of its own. */
  subagent(name: string, call: string, description: string): Transcript {
    const folder = join(this.path.replace(".jsonl", ""), "subagents");
    const transcript = Object.create(Transcript.prototype) as Transcript;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `agent-${name}.meta.json`), JSON.stringify({ agentType: "general-purpose", description, toolUseId: call, spawnDepth: 1 }));
    return Object.assign(transcript, { root: this.root, session: this.session, path: join(folder, `agent-${name}.jsonl`), cwd: this.cwd, parent: null, clock: this.clock, usage: { ...this.usage }, subagent_fields: { isSidechain: true, agentId: name } });
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
    if (!this.is_held) startAgent("claude", this.root); // before the session exists
    appendFileSync(this.path, lines.join(""));
    if (!this.is_held) holdOpen("claude", this.root, this.path);
    this.is_held = true;
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
