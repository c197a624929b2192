// Transcripts with realistic content for the overview and the session page.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, readlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Transcript, holdOpen } from "../../sdk/dist/test/harness.js";

let call = 0;

/** A session with a manual clock: `minutes` before now. With another `now`, its times do not depend on how long the writing takes. */
export class ScriptedSession extends Transcript {
  constructor(root, cwd, now = Date.now) {
    super(root, cwd);
    this.minutes = 0;
    this.clock = () => new Date(now() - this.minutes * 60_000);
  }

  at(minutes) {
    this.minutes = minutes;
    return this;
  }

  setContext(tokens, output = 400) {
    this.usage = { input_tokens: 40, output_tokens: output, cache_read_input_tokens: tokens, cache_creation_input_tokens: 300 };
    return this;
  }

  addPrompt(text) {
    this.append(this.prompt(text));
    return this;
  }

  startTool(tool, input) {
    const id = `toolu_${String(++call).padStart(5, "0")}`;
    this.append(this.toolCall(id, tool, input));
    return id;
  }

  finishTool(id, output = "ok", more = {}) {
    this.append(this.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output, is_error: false }] }, more));
    return this;
  }

  runTool(tool, input, seconds, output) {
    const id = this.startTool(tool, input);
    this.minutes -= seconds / 60;
    return this.finishTool(id, output);
  }

  setTodos(...items) {
    return this.runTool("TodoWrite", { todos: items.map(([content, status]) => ({ content, status, activeForm: content })) }, 0.1, "Todos have been modified");
  }

  /** A message within a turn; the clock advances by `minutes`. */
  addMessage(minutes, text) {
    this.append(this.reply(text, null));
    this.minutes -= minutes;
    return this;
  }

  finishTurn(text) {
    this.append(this.reply(text));
    return this;
  }
}

/** A session of Codex CLI, or a subagent of one: a rollout below `root`/sessions. */
export class Rollout {
  constructor(root, cwd, { parent, agent_type, minutes = 0 } = {}) {
    Object.assign(this, { parent, minutes, id: randomUUID(), calls: 0, total: { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 } });
    this.session = parent?.session ?? this.id;
    const folder = join(root, "sessions/2026/03/14");
    mkdirSync(folder, { recursive: true });
    this.path = join(folder, `rollout-2026-03-14T09-26-50-${this.id}.jsonl`);
    this.append("session_meta", { session_id: this.session, id: this.id, cwd, cli_version: "0.169.0", originator: "codex-tui", history_mode: "paginated", git: { branch: "main" },
      source: parent ? { subagent: "spawn" } : "cli", ...(parent && { thread_source: "subagent", parent_thread_id: parent.id, agent_role: agent_type }) });
    holdOpen("codex", root, this.path);
  }

  append(type, payload) {
    appendFileSync(this.path, JSON.stringify({ timestamp: new Date(Date.now() - this.minutes * 60_000).toISOString(), type, payload }) + "\n");
    return this;
  }

  item(item) {
    return this.append("event_msg", { type: "item_completed", turn_id: this.turn, item: { id: `${item.type}-${++this.calls}`, ...item } });
  }

  addPrompt(text, settings = {}) {
    this.turn = randomUUID();
    this.append("event_msg", { type: "task_started", turn_id: this.turn });
    this.append("turn_context", { turn_id: this.turn, approval_policy: "on-request", sandbox_policy: { type: "workspace-write" }, model: "gpt-5.5", ...settings });
    return this.item({ type: "UserMessage", content: [{ type: "text", text }] });
  }

  startTool(name, input, namespace) {
    const call_id = `call_${++this.calls}`;
    this.append("response_item", { type: "function_call", name, ...(namespace && { namespace }), arguments: JSON.stringify(input), call_id });
    return call_id;
  }

  finishTool(call_id, output = "ok") {
    return this.append("response_item", { type: "function_call_output", call_id, output });
  }

  addText(text) {
    return this.item({ type: "AgentMessage", content: [{ type: "Text", text }] });
  }

  /** Tokens of a response, and the account's limits: percent used of 5 hours and of a week. */
  addUsage(context, [hours, week] = [], resets_in_minutes = 95) {
    const last = { input_tokens: context - 400, cached_input_tokens: Math.floor(context * 0.8), output_tokens: 400, reasoning_output_tokens: 120, total_tokens: context };
    for (const kind of Object.keys(this.total)) this.total[kind] += last[kind];
    const resets = Math.floor(Date.now() / 1000);
    const rate_limits = hours === undefined ? null : {
      limit_id: "codex", plan_type: "plus", primary: { used_percent: hours, window_minutes: 300, resets_at: resets + resets_in_minutes * 60 },
      secondary: { used_percent: week, window_minutes: 10_080, resets_at: resets + 4 * 86_400 } };
    return this.append("event_msg", { type: "token_count", info: { total_token_usage: this.total, last_token_usage: last, model_context_window: 258_400 }, rate_limits });
  }

  finishTurn(text) {
    if (text) this.addText(text);
    return this.append("event_msg", { type: "task_complete", turn_id: this.turn, last_agent_message: text ?? null });
  }
}

/** A session of Pi with one finished turn. */
export function piSession(root, cwd, prompt, answer, minutes = 0) {
  const folder = join(root, "sessions", `--${cwd.slice(1).replaceAll("/", "-")}--`);
  mkdirSync(folder, { recursive: true });
  const session = randomUUID();
  const at = (seconds) => new Date(Date.now() - minutes * 60_000 + seconds * 1000);
  const message = (id, seconds, content) => ({ type: "message", id, parentId: null, timestamp: at(seconds).toISOString(), message: { ...content, timestamp: at(seconds).getTime() } });
  const lines = [
    { type: "session", version: 3, id: session, timestamp: at(0).toISOString(), cwd },
    message("e001", 1, { role: "user", content: [{ type: "text", text: prompt }] }),
    message("e002", 8, { role: "assistant", content: [{ type: "text", text: answer }], provider: "acme", model: "acme-1", stopReason: "stop",
      usage: { input: 4100, output: 220, cacheRead: 0, cacheWrite: 0, totalTokens: 4320, cost: { total: 0.012 } } }),
  ];
  const path = join(folder, `2026-03-14T09-26-50-101Z_${session}.jsonl`);
  writeFileSync(path, lines.map((line) => JSON.stringify(line) + "\n").join(""));
  holdOpen("pi", root, path);
  return session;
}

/** Sessions of other programs: one of Codex CLI with a plan and a subagent, one of Pi. Returns the former and the daemon's arguments. */
export function otherPrograms(home) {
  const [codex_root, pi_root] = [join(home, "codex"), join(home, "pi")];
  const codex = new Rollout(codex_root, "/home/ada/lighthouse-api", { minutes: 12 }).addPrompt("Plan how the lamp can fail over to the second bulb.");
  codex.addUsage(18_200, [12.5, 64.2]);
  codex.item({ type: "Plan", text: "1. Watch the current of the first bulb\n2. Switch within 200 ms\n3. Report the change to the keepers" });
  codex.finishTurn("The plan has three steps.");
  codex.minutes = 6;
  codex.addPrompt("Do it.");
  const test = codex.startTool("exec_command", { cmd: "make -C lamp test" });
  codex.item({ type: "CommandExecution", id: test, command: ["/bin/bash", "-lc", "make -C lamp test"], status: "completed", aggregated_output: "12 tests passed\n", exit_code: 0, duration: { secs: 4, nanos: 0 } });
  const patch = codex.startTool("apply_patch", {});
  codex.item({ type: "FileChange", id: patch, status: "completed", changes: { "/home/ada/lighthouse-api/lamp/failover.c": { type: "add" } } });
  const spawn_call = codex.startTool("spawn_agent", { task_name: "wiring", message: "Check the wiring of the second bulb" }, "collaboration");
  const subagent = new Rollout(codex_root, "/home/ada/lighthouse-api", { parent: codex, agent_type: "explorer", minutes: 5 });
  codex.item({ type: "SubAgentActivity", id: spawn_call, kind: "started", agent_thread_id: subagent.id, agent_path: "/root/wiring" });
  subagent.addPrompt("Check the wiring of the second bulb");
  const look = subagent.startTool("exec_command", { cmd: "cat wiring.md" });
  subagent.finishTool(look, "Process exited with code 0\nOutput:\nboth bulbs share one fuse\n");
  subagent.finishTurn("Both bulbs share one fuse.");
  codex.minutes = 4;
  codex.item({ type: "SubAgentActivity", kind: "completed", agent_thread_id: subagent.id, agent_path: "/root/wiring" });
  codex.append("response_item", { type: "agent_message", id: "a1", author: "/root/wiring", recipient: "/root", content: [{ type: "input_text", text: "Both bulbs share one fuse." }] });
  codex.addUsage(64_600, [31, 66.8]);
  codex.minutes = 1;
  codex.startTool("exec_command", { cmd: "make -C lamp soak" });
  piSession(pi_root, "/home/ada/notes", "Which of my notes mention the fuse?", "Two do: wiring.md and shopping.md.", 17);
  return { codex, subagent, args: ["--root", `codex:codex=${codex_root}`, "--root", `pi:pi=${pi_root}`] };
}

/** Claude Code's registry entry of a live process, sessions/<pid>.json. Returns functions that set its status and stop the process. */
export function registerProcess(root, transcript, cwd) {
  const process_ = spawn("cat", [], { stdio: ["pipe", "ignore", "ignore"] }); // as long as the test runs
  const stat = readFileSync(`/proc/${process_.pid}/stat`, "utf8");
  const start_time = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  if (existsSync(transcript.path)) utimesSync(transcript.path, new Date(), new Date()); // this process wrote it: the times in the records are another clock's
  let machine = "";
  try {
    machine = readFileSync("/etc/machine-id", "utf8").trim();
  } catch { /* missing in containers */ }
  mkdirSync(join(root, "sessions"), { recursive: true });
  const entry = { pid: process_.pid, sessionId: transcript.session, cwd, procStart: start_time, version: "2.1.330", kind: "interactive", pidDomain: `linux:${machine}:${readlinkSync("/proc/self/ns/pid")}` };
  return {
    /** `since_ms`: when the status began. */
    setStatus(status, waitingFor, since_ms = Date.now()) {
      writeFileSync(join(root, "sessions", `${process_.pid}.json`), JSON.stringify({ ...entry, status, statusUpdatedAt: since_ms, ...(waitingFor && { waitingFor }) }));
    },
    stop: () => process_.kill(),
  };
}

const models = `[[model]]
pattern = "claude-opus-5-5"
context_window = 200_000
input = 5
output = 25
cache_read = 0.5
cache_write_5m = 6.25
cache_write_1h = 10
date = "2026-03-14"
source = "invented"
`;

/** Context window and prices of the model in the sessions: the daemon's own table changes. `home`: of the daemon. */
export function writeModels(home) {
  const folder = join(home, ".config/earshot");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "models.toml"), models);
}

/** Writes eleven sessions: two waiting, three working, six finished. Returns those that tests refer to, and the processes to stop. */
export function exampleSessions(root) {
  const processes = [];
  const start_ms = Date.now();
  const now = () => start_ms;
  writeModels(dirname(root));
  const api = "/home/ada/lighthouse-api";
  const web = "/home/ada/harbour-web";
  const infra = "/home/ada/infra";

  const long = new ScriptedSession(root, api, now).at(62).setContext(18_000).addPrompt("The fog signal sounds every 20 s. It should be 30 s: find out why, and fix it with a test.");
  long.runTool("Grep", { pattern: "interval_s", path: `${api}/src` }, 4, "src/horn.cpp:41: interval_s = 30\nsrc/override.cpp:12: interval_s = 20");
  long.setContext(31_000).runTool("Read", { file_path: `${api}/src/override.cpp` }, 2, "namespace horn {\n  // set for the regatta of 2024\n  int interval_s = 20;\n}");
  long.setTodos(["Find where the interval is set", "completed"], ["Fix the override", "in_progress"], ["Test with a fake clock", "pending"], ["Notify the keepers", "pending"]);
  const agent = long.startTool("Agent", { description: "List every timer", prompt: "List every timer in src/signal.", subagent_type: "Explore" });
  const subagent = Object.assign(long.subagent("a4c19e77", agent, "List every timer"), { minutes: long.minutes });
  subagent.clock = () => new Date(now() - subagent.minutes * 60_000);
  subagent.append(subagent.prompt("List every timer in src/signal."));
  for (const [name, input] of [["Glob", { pattern: "src/signal/**" }], ["Read", { file_path: `${api}/src/signal/lamp.cpp` }], ["Grep", { pattern: "timer" }]]) {
    subagent.append(subagent.toolCall(`toolu_i${++call}`, name, input));
    subagent.minutes -= 0.6;
    subagent.append(subagent.toolResult(`toolu_i${call}`, "found"));
  }
  subagent.append(subagent.reply("Three timers: lamp, horn, radio."));
  long.at(subagent.minutes).finishTool(agent, [{ type: "text", text: "Three timers: lamp, horn, radio." }], {
    toolUseResult: { status: "completed", agentId: "a4c19e77", totalDurationMs: 108_000, totalTokens: 9120, totalToolUseCount: 3, content: [{ type: "text", text: "Three timers." }] } });
  long.minutes -= 0.1;
  long.setContext(64_000).runTool("Edit", { file_path: `${api}/src/override.cpp`, old_string: "int interval_s = 20;", new_string: "int interval_s = 30;" }, 1, "The file has been updated.");
  long.runTool("Bash", { command: "make test", description: "Run the tests" }, 95, "[==========] 214 tests ran.\n[  PASSED  ] 214 tests.");
  long.setContext(88_000).finishTurn("The override of the 2024 regatta was still in force. It is 30 s again, and all 214 tests pass.");
  long.at(21).addPrompt("Good. Now make the clock injectable, so that the soak test does not take an hour.");
  long.setContext(102_000).runTool("Read", { file_path: `${api}/src/clock.hpp` }, 12, "struct Clock;").addMessage(0.2, "Everything that sleeps takes the clock by reference; the test's clock jumps.");
  long.setContext(109_000).runTool("Grep", { pattern: "sleep_for|steady_clock", path: `${api}/src` }, 9, "14 matches").runTool("Write", { file_path: `${api}/src/fake_clock.hpp`, content: "#pragma once\n" }, 30);
  for (const [n, file] of ["lamp", "horn", "radio", "beacon", "pump"].entries()) {
    long.setContext(116_000 + n * 8_000).runTool("Edit", { file_path: `${api}/src/signal/${file}.cpp`, old_string: "sleep(1)", new_string: "clock.sleep(1)" }, 24).addMessage(0.3, `${file} takes the clock now.`);
  }
  long.runTool("Bash", { command: "make test", description: "Run the tests" }, 118, "[  FAILED  ] Beacon.Drift");
  long.append(JSON.stringify({ parentUuid: null, isSidechain: false, type: "system", subtype: "compact_boundary", content: "Conversation compacted", uuid: crypto.randomUUID(), timestamp: long.clock().toISOString(), sessionId: long.session, cwd: api, version: "2.1.330", level: "info", compactMetadata: { trigger: "auto", preTokens: 155_000 } }) + "\n");
  long.setContext(24_000).runTool("Read", { file_path: `${api}/test/beacon_test.cpp` }, 8, "TEST(Beacon, Drift)").addMessage(0.4, "The beacon's test slept by itself.");
  long.setContext(30_000).runTool("Edit", { file_path: `${api}/test/beacon_test.cpp`, old_string: "sleep(1)", new_string: "clock.sleep(1)" }, 30).runTool("Bash", { command: "make test", description: "Run the tests" }, 112, "[  PASSED  ] 219 tests.");
  long.setTodos(["Find where the interval is set", "completed"], ["Fix the override", "completed"], ["Test with a fake clock", "in_progress"], ["Notify the keepers", "pending"]);
  long.at(1.2).setContext(41_000).append(long.reply("The clock is injectable now. I will run the soak test.", null));
  long.startTool("Bash", { command: "make soak HOURS=1", description: "Run the soak test" });
  const waiting = registerProcess(root, long, api);
  waiting.setStatus("waiting", "permission prompt");
  processes.push(waiting);

  const question = new ScriptedSession(root, web, now).at(9).setContext(52_000).addPrompt("Add a tide table to the harbour page.");
  question.runTool("Read", { file_path: `${web}/src/Harbour.tsx` }, 2);
  question.at(3.5).startTool("AskUserQuestion", { questions: [{ question: "Which source should the tide table use?", header: "Source", options: [{ label: "Hydrographic office", description: "official" }, { label: "A CSV of ours", description: "offline" }], multiSelect: false }] });

  const tool = new ScriptedSession(root, web, now).at(6).setContext(12_000).addPrompt("Make the chart zoom smoothly on a phone.");
  tool.setTodos(["Measure", "completed"], ["Pinch gestures", "completed"], ["Inertia", "in_progress"]);
  tool.setContext(21_000).runTool("Read", { file_path: `${web}/src/chart.ts` }, 2).setContext(33_000).runTool("Edit", { file_path: `${web}/src/chart.ts`, old_string: "a", new_string: "b" }, 2);
  tool.at(0.7).setContext(47_000).append(tool.reply("Pinch works. Now inertia: I measure before and after.", null));
  tool.startTool("Bash", { command: "npx playwright test chart.spec.ts --project=phone", description: "Run phone tests" });
  const message = new ScriptedSession(root, infra, now).at(14).setContext(9_000).addPrompt("Upgrade the staging database to 16 and keep a way back.");
  for (const size of [14_000, 22_000, 41_000, 90_000, 150_000, 18_000, 33_000, 60_000]) message.setContext(size, 900).runTool("Bash", { command: "pg_dump --schema-only staging" }, 12);
  message.at(0.2).setContext(71_000).append(message.reply("The dump is complete; the upgrade plan has four steps, each with its way back.", null));
  const thinking = new ScriptedSession(root, api, now).at(2).setContext(96_000).addPrompt("Why does the radio beacon drift by 40 ms a day?");
  thinking.runTool("Read", { file_path: `${api}/src/radio/beacon.cpp` }, 2).setContext(118_000).runTool("Grep", { pattern: "ppm" }, 2).setContext(140_000).runTool("Grep", { pattern: "drift", path: `${api}/src/radio` }, 3);

  for (const [cwd, minutes, prompt, answer] of [
    [api, 18, "Rename horn::Signal to horn::FogSignal everywhere.", "Renamed in 31 files; the build and all tests pass."],
    [web, 26, "The footer overlaps the map on small screens.", "The footer is part of the page's grid now, below the map."],
    [infra, 190, "Which of our certificates end this month?", "Two: buoy.example on the 28th and quay.example on the 30th."],
    [infra, 400, "Write a runbook for the backup restore.", "docs/restore.md has it, tried on staging: 11 minutes from nothing to serving."],
    ["/home/ada/notes", 700, "Sort my reading list by how long each takes.", "Sorted. Three are under ten minutes."],
    [api, 95, "Explain the lamp's state machine to me.", "It has five states; the two that matter at night are Warming and Lit."],
  ]) {
    const finished = new ScriptedSession(root, cwd, now).at(minutes).addPrompt(prompt);
    for (let n = 1; n < 9; n++) finished.setContext(12_000 + ((n * 37 + minutes * 13) % 11) * 600 + n * (2_000 + minutes * 9), 150 + n * 40).runTool("Bash", { command: "git status" }, 2, "clean");
    finished.finishTurn(answer);
  }
  return { long, processes };
}

/**
 * Sessions for pictures: those of exampleSessions() and otherPrograms(), a plan that waits for approval, and one that finishes unseen once the daemon
 * runs. `finish` finishes it; `args` are the daemon's.
 */
export function pictureSessions(root) {
  const { processes, long } = exampleSessions(root);
  processes[0].setStatus("waiting", "permission prompt", Date.now() - 74_000);
  const { args } = otherPrograms(dirname(root));
  const infra = "/home/ada/infra";
  const plan = new ScriptedSession(root, infra).at(16).setContext(38_000).addPrompt("Move the certificates to the new authority before Friday.");
  plan.setTodos(["List what is issued", "completed"], ["Plan the order", "in_progress"], ["Renew", "pending"]).runTool("Bash", { command: "step ca list --format json" }, 9, "14 certificates");
  plan.at(5.6).setContext(171_000).startTool("ExitPlanMode", { plan: "1. Issue the 14 leaf certificates beside the old ones\n2. Switch quay.example, watch it for an hour\n3. Switch the other 13, buoys last\n4. Revoke the old ones on Thursday, with a way back until Sunday" });
  const late = new ScriptedSession(root, "/home/ada/lighthouse-api").at(8).setContext(26_000).addPrompt("Translate the keeper's log into French, and keep the units.");
  late.runTool("Read", { file_path: "/home/ada/lighthouse-api/log/2026-03.md" }, 4, "# March");
  const finish = () => late.at(0).setContext(47_000).finishTurn("Translated 31 days; distances stay in nautical miles, and the two jokes are footnotes.");
  return { processes, long, args, finish };
}

/** Waits until the overview shows all of them, each completely: two cards, then five rows in three groups and the line of the four quiet ones. */
export async function waitForExamples(page) {
  await page.waitForFunction(() => {
    const figure = (state) => document.querySelector(`.figure[data-state=${state}] b`)?.textContent;
    return document.querySelectorAll(".card").length === 2 && document.querySelector("#rows li")?.ariaSetSize === "9" && figure("waiting") === "2" && figure("working") === "3";
  });
  for (const text of ["Which source should the tide table use?", "make soak"]) await page.locator("#sessions .card .asked", { hasText: text }).waitFor();
  await page.locator("#rows .row .tool", { hasText: "npx playwright test" }).waitFor();
}
