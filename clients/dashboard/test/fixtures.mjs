// A morning at work, written into a root: what the overview and a session's page have to show.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Transcript } from "../../sdk/dist/test/daemon.js";

let call = 0;

/** A session whose clock is moved by hand: `at` is minutes before now. */
export class Scripted extends Transcript {
  constructor(root, cwd) {
    super(root, cwd);
    this.minutes = 0;
    this.clock = () => new Date(Date.now() - this.minutes * 60_000);
  }

  at(minutes) {
    this.minutes = minutes;
    return this;
  }

  context(tokens, output = 400) {
    this.usage = { input_tokens: 40, output_tokens: output, cache_read_input_tokens: tokens, cache_creation_input_tokens: 300 };
    return this;
  }

  asks(text) {
    this.append(this.prompt(text));
    return this;
  }

  begins(tool, input) {
    const id = `toolu_${String(++call).padStart(5, "0")}`;
    this.append(this.calls(id, tool, input));
    return id;
  }

  ends(id, output = "ok", more = {}) {
    this.append(this.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output, is_error: false }] }, more));
    return this;
  }

  uses(tool, input, seconds, output) {
    const id = this.begins(tool, input);
    this.minutes -= seconds / 60;
    return this.ends(id, output);
  }

  todo(...items) {
    return this.uses("TodoWrite", { todos: items.map(([content, status]) => ({ content, status, activeForm: content })) }, 0.1, "Todos have been modified");
  }

  /** Some words in between, which take so many minutes. */
  says_(minutes, text) {
    this.append(this.says(text, null));
    this.minutes -= minutes;
    return this;
  }

  answers(text) {
    this.append(this.says(text));
    return this;
  }
}

/** The agent program's own word on a living process: sessions/<pid>.json. Returns how to say more, and how to end. */
export function registry(root, transcript, cwd) {
  const process_ = spawn("sleep", ["600"], { stdio: "ignore" });
  const stat = readFileSync(`/proc/${process_.pid}/stat`, "utf8");
  const born = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  let machine = "";
  try {
    machine = readFileSync("/etc/machine-id", "utf8").trim();
  } catch { /* there are machines without */ }
  mkdirSync(join(root, "sessions"), { recursive: true });
  const facts = { pid: process_.pid, sessionId: transcript.session, cwd, procStart: born, version: "2.1.330", kind: "interactive", pidDomain: `linux:${machine}:${readlinkSync("/proc/self/ns/pid")}` };
  return {
    says(status, waitingFor) {
      writeFileSync(join(root, "sessions", `${process_.pid}.json`), JSON.stringify({ ...facts, status, statusUpdatedAt: Date.now(), ...(waitingFor && { waitingFor }) }));
    },
    end: () => process_.kill(),
  };
}

/** Returns what must be ended. */
export function morning(root) {
  const ended = [];
  const api = "/home/ada/lighthouse-api";
  const web = "/home/ada/harbour-web";
  const infra = "/home/ada/infra";

  const big = new Scripted(root, api).at(62).context(18_000).asks("The fog signal sounds every 20 s. It should be 30 s: find out why, and mend it with a test.");
  big.uses("Grep", { pattern: "interval_s", path: `${api}/src` }, 4, "src/horn.cpp:41: interval_s = 30\nsrc/override.cpp:12: interval_s = 20");
  big.context(31_000).uses("Read", { file_path: `${api}/src/override.cpp` }, 2, "namespace horn {\n  // set for the regatta of 2024\n  int interval_s = 20;\n}");
  big.todo(["Find where the interval is set", "completed"], ["Fix the override", "in_progress"], ["Test with a fake clock", "pending"], ["Tell the keepers", "pending"]);
  const agent = big.begins("Agent", { description: "List every timer", prompt: "List every timer in src/signal.", subagent_type: "Explore" });
  const inner = Object.assign(big.agent("a4c19e77", agent, "List every timer"), { minutes: big.minutes });
  inner.clock = () => new Date(Date.now() - inner.minutes * 60_000);
  inner.append(inner.prompt("List every timer in src/signal."));
  for (const [tool, input] of [["Glob", { pattern: "src/signal/**" }], ["Read", { file_path: `${api}/src/signal/lamp.cpp` }], ["Grep", { pattern: "timer" }]]) {
    inner.append(inner.calls(`toolu_i${++call}`, tool, input));
    inner.minutes -= 0.6;
    inner.append(inner.result(`toolu_i${call}`, "found"));
  }
  inner.append(inner.says("Three timers: lamp, horn, radio."));
  big.at(inner.minutes).ends(agent, [{ type: "text", text: "Three timers: lamp, horn, radio." }], {
    toolUseResult: { status: "completed", agentId: "a4c19e77", totalDurationMs: 108_000, totalTokens: 9120, totalToolUseCount: 3, content: [{ type: "text", text: "Three timers." }] } });
  big.minutes -= 0.1;
  big.context(64_000).uses("Edit", { file_path: `${api}/src/override.cpp`, old_string: "int interval_s = 20;", new_string: "int interval_s = 30;" }, 1, "The file has been updated.");
  big.uses("Bash", { command: "make test", description: "Run the tests" }, 95, "[==========] 214 tests ran.\n[  PASSED  ] 214 tests.");
  big.context(88_000).answers("The override of the 2024 regatta was still in force. It is 30 s again, and all 214 tests pass.");
  big.at(21).asks("Good. Now make the clock injectable, so that the soak test does not take an hour.");
  big.context(102_000).uses("Read", { file_path: `${api}/src/clock.hpp` }, 12, "struct Clock;").says_(0.2, "Everything that sleeps takes the clock by reference; the test's clock jumps.");
  big.context(109_000).uses("Grep", { pattern: "sleep_for|steady_clock", path: `${api}/src` }, 9, "14 matches").uses("Write", { file_path: `${api}/src/fake_clock.hpp`, content: "#pragma once\n" }, 30);
  for (const [n, file] of ["lamp", "horn", "radio", "beacon", "pump"].entries()) {
    big.context(116_000 + n * 8_000).uses("Edit", { file_path: `${api}/src/signal/${file}.cpp`, old_string: "sleep(1)", new_string: "clock.sleep(1)" }, 24).says_(0.3, `${file} takes the clock now.`);
  }
  big.uses("Bash", { command: "make test", description: "Run the tests" }, 118, "[  FAILED  ] Beacon.Drift");
  big.append(JSON.stringify({ parentUuid: null, isSidechain: false, type: "system", subtype: "compact_boundary", content: "Conversation compacted", uuid: crypto.randomUUID(), timestamp: big.clock().toISOString(), sessionId: big.session, cwd: api, version: "2.1.330", level: "info", compactMetadata: { trigger: "auto", preTokens: 155_000 } }) + "\n");
  big.context(24_000).uses("Read", { file_path: `${api}/test/beacon_test.cpp` }, 8, "TEST(Beacon, Drift)").says_(0.4, "The beacon's test slept by itself.");
  big.context(30_000).uses("Edit", { file_path: `${api}/test/beacon_test.cpp`, old_string: "sleep(1)", new_string: "clock.sleep(1)" }, 30).uses("Bash", { command: "make test", description: "Run the tests" }, 112, "[  PASSED  ] 219 tests.");
  big.todo(["Find where the interval is set", "completed"], ["Fix the override", "completed"], ["Test with a fake clock", "in_progress"], ["Tell the keepers", "pending"]);
  big.at(1.2).context(41_000).append(big.says("The clock is injectable now. I will run the soak test.", null));
  big.begins("Bash", { command: "make soak HOURS=1", description: "Run the soak test" });
  const asks = registry(root, big, api);
  asks.says("waiting", "permission prompt");
  ended.push(asks);

  const asked = new Scripted(root, web).at(9).context(52_000).asks("Add a tide table to the harbour page.");
  asked.uses("Read", { file_path: `${web}/src/Harbour.tsx` }, 2);
  asked.at(3.5).begins("AskUserQuestion", { questions: [{ question: "Which source should the tide table use?", header: "Source", options: [{ label: "Hydrographic office", description: "official" }, { label: "A CSV of ours", description: "offline" }], multiSelect: false }] });

  const working = new Scripted(root, web).at(6).context(12_000).asks("Make the chart zoom smoothly on a phone.");
  working.todo(["Measure", "completed"], ["Pinch gestures", "completed"], ["Inertia", "in_progress"]);
  working.context(21_000).uses("Read", { file_path: `${web}/src/chart.ts` }, 2).context(33_000).uses("Edit", { file_path: `${web}/src/chart.ts`, old_string: "a", new_string: "b" }, 2);
  working.at(0.7).context(47_000).append(working.says("Pinch works. Now inertia: I measure before and after.", null));
  working.begins("Bash", { command: "npx playwright test chart.spec.ts --project=phone", description: "Run phone tests" });
  const second = new Scripted(root, infra).at(14).context(9_000).asks("Upgrade the staging database to 16 and keep a way back.");
  for (const size of [14_000, 22_000, 41_000, 90_000, 150_000, 18_000, 33_000, 60_000]) second.context(size, 900).uses("Bash", { command: "pg_dump --schema-only staging" }, 12);
  second.at(0.2).context(71_000).append(second.says("The dump is complete; the upgrade plan has four steps, each with its way back.", null));
  const thinking = new Scripted(root, api).at(2).context(96_000).asks("Why does the radio beacon drift by 40 ms a day?");
  thinking.uses("Read", { file_path: `${api}/src/radio/beacon.cpp` }, 2).context(118_000).uses("Grep", { pattern: "ppm" }, 2).context(140_000).uses("Grep", { pattern: "drift", path: `${api}/src/radio` }, 3);

  for (const [cwd, minutes, prompt, answer] of [
    [api, 18, "Rename horn::Signal to horn::FogSignal everywhere.", "Renamed in 31 files; the build and all tests pass."],
    [web, 26, "The footer overlaps the map on small screens.", "The footer is part of the page's grid now, below the map."],
    [infra, 190, "Which of our certificates end this month?", "Two: buoy.example on the 28th and quay.example on the 30th."],
    [infra, 400, "Write a runbook for the backup restore.", "docs/restore.md has it, tried on staging: 11 minutes from nothing to serving."],
    ["/home/ada/notes", 700, "Sort my reading list by how long each takes.", "Sorted. Three are under ten minutes."],
    [api, 95, "Explain the lamp's state machine to me.", "It has five states; the two that matter at night are Warming and Lit."],
  ]) {
    const quiet = new Scripted(root, cwd).at(minutes).asks(prompt);
    for (let n = 1; n < 9; n++) quiet.context(12_000 + ((n * 37 + minutes * 13) % 11) * 600 + n * (2_000 + minutes * 9), 150 + n * 40).uses("Bash", { command: "git status" }, 2, "clean");
    quiet.answers(answer);
  }
  return { big, asked, working, ended };
}
