// A session that shows what the session page can show: Markdown, code, edits with line numbers, coloured output, pictures, waits, queued prompts and failures.
import zlib from "node:zlib";
import { ScriptedSession } from "./fixtures.mjs";

/** CRC-32 as PNG needs it: older versions of Node have none. */
function crc(data) {
  let value = ~0;
  for (const byte of data) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (0xedb88320 & -(value & 1));
  }
  return ~value >>> 0;
}

/** A PNG of a coloured gradient, base64. */
export function png(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows.set([30 + (x * 180) / width, 90 + (y * 120) / height, 150], y * (1 + width * 3) + 1 + x * 3);
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), chunk("IHDR", header), chunk("IDAT", zlib.deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]).toString("base64");
}

const esc = "\u001b";
export const coloured_output = [
  `${esc}[1m[build]${esc}[0m 3 targets`, `  0%\r 50%\r100% ${esc}[32mdone${esc}[0m`, `${esc}[33mwarning:${esc}[0m unused variable 'drift_ms'`, `${esc}[2mtests/soak_test.cpp:41${esc}[0m`,
  `${esc}[32m[  PASSED  ]${esc}[0m 218 tests.`, `${esc}[31;1m[  FAILED  ]${esc}[0m Beacon.Drift: expected ${esc}[32m0 ms${esc}[0m, got ${esc}[31m41 ms${esc}[0m`, `${esc}[38;5;208m1 FAILED TEST${esc}[0m`,
].join("\n");

export const answer = `## What I found

The soak test sleeps in **real time**. Every timer in \`src/signal\` reads \`steady_clock\` itself, so a fake clock never reaches them.

1. \`Clock\` becomes an interface with *two* implementations
2. Timers take it by reference
3. The test advances it by hand

| timer | interval | sleeps | injectable |
|---|---:|---:|:-:|
| lamp | 5 s | 720 | yes |
| horn | 30 s | 120 | yes |
| radio | 60 s | 60 | after this change |

\`\`\`cpp
// Advances all timers that are due, in their order.
void FakeClock::advance(std::chrono::seconds by) {
  const auto end = now_ + by;
  while (!timers_.empty() && timers_.top().due <= end) {
    now_ = timers_.top().due;
    timers_.pop().run();   // may add timers
  }
  now_ = end;
}
\`\`\`

> The regatta's override stays until Monday: see [the ticket](https://tickets.example/LH-204).

- [x] lamp and horn
- [ ] radio, which needs the new constructor
`;

/** `minutes`: how long ago it began. */
export function richSession(root, { minutes = 74, now = Date.now } = {}) {
  const api = "/home/ada/lighthouse-api";
  const one = new ScriptedSession(root, api, now).at(minutes).setContext(14_000, 700);
  one.append(one.record("user", { role: "user", content: [{ type: "text", text: "The soak test takes an hour, because it sleeps in real time. Make the clock injectable.\n\nThe chart shows what I mean:" }, { type: "image", source: { type: "base64", media_type: "image/png", data: png(420, 160) } }] }));
  one.runTool("Grep", { pattern: "sleep_for|steady_clock", path: `${api}/src` }, 5, "src/horn.cpp:41\nsrc/lamp.cpp:12\nsrc/radio.cpp:77");
  one.setContext(31_000, 900).runTool("Read", { file_path: `${api}/src/clock.hpp` }, 3, "#pragma once\n#include <chrono>\n");
  one.append(one.reply("", null, [{ type: "thinking", thinking: "The timers each read the clock. An interface would let the test control it.", signature: "x" }]));
  one.setContext(48_000, 1400).addMessage(0.6, answer);
  const question = one.startTool("AskUserQuestion", { questions: [{ question: "May the constructor of Radio change?", header: "API", options: [{ label: "Yes", description: "All callers are ours" }, { label: "No", description: "Keep it" }], multiSelect: false }] });
  one.minutes -= 11;
  one.finishTool(question, 'User has answered your questions: "May the constructor of Radio change?"="Yes"');
  const edit = one.startTool("Edit", { file_path: `${api}/src/horn.cpp`, old_string: "  while (on_) {\n    std::this_thread::sleep_for(interval_s);\n    sound();\n  }", new_string: "  while (on_) {\n    clock_.sleep_for(interval_s);\n    sound();\n    ++count_;\n  }" });
  one.minutes -= 0.3;
  one.finishTool(edit, "The file has been updated.", { toolUseResult: { filePath: `${api}/src/horn.cpp`, structuredPatch: [{ oldStart: 38, oldLines: 8, newStart: 38, newLines: 9, lines: [
    " ", " void Horn::run() {", "   while (on_) {", "-    std::this_thread::sleep_for(interval_s);", "+    clock_.sleep_for(interval_s);", "     sound();", "+    ++count_;", "   }", " }"] }] } });
  one.setContext(66_000, 1200).runTool("MultiEdit", { file_path: `${api}/src/radio.cpp`, edits: [
    { old_string: "Radio::Radio(Antenna& antenna)", new_string: "Radio::Radio(Antenna& antenna, Clock& clock)" }, { old_string: "sleep_for(60s)", new_string: "clock_.sleep_for(60s)" }] }, 12, "Applied 2 edits");
  one.runTool("Write", { file_path: `${api}/src/fake_clock.hpp`, content: "#pragma once\n#include \"clock.hpp\"\n\n/// A clock that only its test advances.\nclass FakeClock : public Clock {\n public:\n  void advance(std::chrono::seconds by);\n  time_point now() const override { return now_; }\n\n private:\n  time_point now_{};\n};\n" }, 8, "File created");
  one.append(JSON.stringify({ type: "queue-operation", operation: "enqueue", timestamp: one.clock().toISOString(), sessionId: one.session, content: "Also update docs/testing.md, please." }) + "\n");
  const failing = one.startTool("Bash", { command: "make -j8 test 2>&1 | tail -40", description: "Build and test" });
  one.minutes -= 2.4;
  one.append(one.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: failing, content: coloured_output, is_error: true }] }));
  one.append(JSON.stringify({ parentUuid: null, isSidechain: false, type: "system", subtype: "api_error", level: "error", error: { status: 529, message: "Overloaded" }, retryInMs: 2000, retryAttempt: 1, maxRetries: 10, uuid: crypto.randomUUID(), timestamp: one.clock().toISOString(), sessionId: one.session, cwd: api, version: "2.1.330" }) + "\n");
  one.minutes -= 0.5;
  one.append(JSON.stringify({ parentUuid: null, isSidechain: false, type: "system", subtype: "compact_boundary", content: "Conversation compacted", uuid: crypto.randomUUID(), timestamp: one.clock().toISOString(), sessionId: one.session, cwd: api, version: "2.1.330", level: "info", compactMetadata: { trigger: "auto", preTokens: 155_000 } }) + "\n");
  one.setContext(21_000, 500).runTool("Edit", { file_path: `${api}/test/beacon_test.cpp`, old_string: "sleep(1)", new_string: "clock.advance(1s)" }, 4, "The file has been updated.");
  one.setContext(34_000, 800).runTool("Bash", { command: "make -j8 test 2>&1 | tail -3", description: "Build and test" }, 110, `${esc}[32m[  PASSED  ]${esc}[0m 219 tests.`);
  one.setContext(39_000, 600).finishTurn("All **219 tests** pass, and the soak test takes 4 s instead of an hour.");
  one.at(9).addPrompt("Good. Now the docs, and push it.");
  one.setContext(52_000, 900).runTool("Edit", { file_path: `${api}/docs/testing.md`, old_string: "The soak test takes an hour.", new_string: "The soak test takes 4 seconds: its clock is injected." }, 3, "The file has been updated.");
  const push = one.startTool("Bash", { command: "git push origin main", description: "Push" });
  one.minutes -= 0.4;
  one.append(one.record("user", { role: "user", content: [{ type: "tool_result", tool_use_id: push, content: "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.", is_error: true }] }, { toolUseResult: "User rejected tool use" }));
  one.append(one.record("user", { role: "user", content: [{ type: "text", text: "[Request interrupted by user for tool use]" }] }));
  one.at(3).addPrompt("Run the soak test again first.");
  one.setContext(58_000, 400).append(one.reply("I run it with the injected clock.", null));
  one.startTool("Bash", { command: "make soak HOURS=24", description: "Run the soak test" });
  return one;
}
