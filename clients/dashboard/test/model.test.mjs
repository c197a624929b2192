// The session's model, the layout of its timeline and the data of its charts: functions without a browser.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compiled } from "./compiled.mjs";

const { SessionModel } = await compiled("model.ts");
const { layoutTimeline } = await compiled("timelineLayout.ts");
const { contextSteps, costByTurn } = await compiled("chartData.ts");
const { toolKind, commandOf } = await compiled("toolKind.ts");

const start_ms = Date.parse("2026-03-14T09:00:00Z");
let cursor = 0;
/** An event at `minutes` after the start. */
const event = (minutes, type, fields = {}) => ({ type, host: "dev7", stream: "claude/a", session: "a", cursor: `${++cursor}.1.f00d`, time: new Date(start_ms + minutes * 60_000).toISOString(), turn: 1, ...fields });
const usage = (output) => ({ input: 100, output, cache_read: 1000, cache_write: 0 });

function apply(...events) {
  const model = new SessionModel();
  for (const one of events) model.apply(one);
  return model;
}
const call = (minutes, id, tool, input, end, outcome = "ok", more = {}) => [event(minutes, "tool.invoked", { call: id, tool, input, ...more }), ...(end === undefined ? [] : [event(end, "tool.finished", { call: id, tool, outcome, output: "", ...more })])];

describe("the model", () => {
  test("waits: questions of the transcript, and what the daemon's status says; the same wait counts once", () => {
    const model = apply(event(0, "turn.started", { prompt: "x", origin: "human" }), ...call(1, "q", "AskUserQuestion", { questions: [] }, 4), ...call(5, "b", "Bash", { command: "make" }, undefined));
    const status = (state, minutes, reason) => model.observe({ state, reason, source: "registry", since: new Date(start_ms + minutes * 60_000).toISOString() });
    status("waiting", 6, "permission");
    status("waiting", 6, "permission"); // refined
    assert.deepEqual(model.waits.map(({ start, end, reason }) => [(start - start_ms) / 60_000, end && (end - start_ms) / 60_000, reason]), [[1, 4, "question"], [6, undefined, "permission"]]);
    status("working", 8);
    assert.equal(model.waits[1].end, start_ms + 8 * 60_000);
    // One request follows another, which was made before it was answered.
    const next = (request, minutes, now) => model.observe({ state: "waiting", reason: "permission", source: "transcript", since: new Date(start_ms + minutes * 60_000).toISOString(), request }, start_ms + now * 60_000);
    next("one", 9, 9);
    next("two", 10, 12);
    next("two", 10, 13); // refined
    assert.deepEqual(model.waits.slice(2).map(({ start, end }) => [(start - start_ms) / 60_000, end && (end - start_ms) / 60_000]), [[9, 12], [10, undefined]]);
    // Of an open question the status may be known before its call.
    const asked = new SessionModel();
    asked.observe({ state: "waiting", reason: "question", source: "transcript", since: new Date(start_ms + 60_000).toISOString() });
    for (const one of call(1, "q", "AskUserQuestion", {}, undefined)) asked.apply(one);
    assert.equal(asked.waits.length, 1);
    asked.observe({ state: "waiting", reason: "question", source: "transcript", since: new Date(start_ms + 60_000).toISOString() });
    assert.equal(asked.waits.length, 1);
  });

  test("fault 125: a turn that was begun under the former name of its stream ends under the new one", () => {
    const model = apply(event(0, "turn.started", { prompt: "x", origin: "human" }), event(0, "turn.started", { prompt: "y", origin: "human", agent: "a1" }));
    model.renameStream("claude/a", "claude/b");
    for (const agent of [undefined, "a1"]) model.apply(event(2, "turn.finished", { stream: "claude/b", outcome: "completed", agent }));
    assert.deepEqual(model.turns.map(({ outcome, end }) => [outcome, end - start_ms]), [["completed", 120_000], ["completed", 120_000]]);
  });

  test("lines that were added and removed count if the call succeeded", () => {
    const model = apply(...call(1, "a", "Edit", { file_path: "/a", old_string: "one\ntwo", new_string: "one\n2\n3" }, 2), ...call(3, "b", "Edit", { file_path: "/a", old_string: "x", new_string: "y" }, 4, "denied"),
      ...call(5, "c", "shell", { command: ["apply_patch", "*** Begin Patch\n*** Add File: b.py\n+x\n+y\n*** End Patch"] }, 6), ...call(7, "d", "Write", { file_path: "/c", content: "cut" }, 8, "ok", { truncated: { "input/content": 9000 } }));
    const counts = [...model.files.values()].map(({ path, added, removed, changed, least }) => [path, added, removed, changed, least ?? false]);
    assert.deepEqual(counts, [["/a", 2, 1, 2, false], ["b.py", 2, 0, 1, false], ["/c", 1, 0, 1, true]]);
  });

  test("the entry of a place: of a call's result it is the call, of an event without an entry the entry before it", () => {
    const events = [event(0, "turn.started", { prompt: "x", origin: "human" }), ...call(1, "a", "Bash", { command: "make" }, 2), event(3, "usage.updated", { total: usage(5), ...usage(5) })];
    const model = apply(...events);
    assert.equal(model.find(events[1]).tool.call, "a");
    assert.equal(model.find(events[2]).tool.call, "a");
    assert.equal(model.find({ stream: "claude/other", cursor: events[1].cursor }), undefined);
    const targeted = new SessionModel();
    targeted.target = { place: { stream: events[3].stream, cursor: events[3].cursor } };
    for (const one of events) targeted.apply(one);
    assert.equal(targeted.target.found.tool.call, "a");
  });

  test("a turn's share of the cost: its tokens, with those of its subagents, or the recorded cost", () => {
    const model = apply(event(0, "turn.started", { prompt: "1", origin: "human" }), event(1, "usage.updated", { total: usage(100) }), event(2, "turn.started", { turn: 2, prompt: "2", origin: "human" }),
      event(3, "usage.updated", { total: usage(100 + 300) }), event(4, "usage.updated", { stream: "claude/a/agent", agent: "s", total: { input: 0, output: 200, cache_read: 0, cache_write: 0 } }));
    const { costs, source } = costByTurn(model.turns, 10, "estimated");
    assert.equal(source, "estimated");
    assert.equal(Math.round(costs.reduce((sum, { usd }) => sum + usd, 0)), 10);
    const [first, second] = [100 + 1000 * 0.1 + 100 * 5, 300 * 5 + 200 * 5];
    assert.ok(Math.abs(costs[0].usd - (10 * first) / (first + second)) < 1e-9);
    const recorded = apply(event(0, "turn.started", { prompt: "1", origin: "human" }), event(1, "usage.updated", { total: usage(1), cost_usd: 0.5 }), event(2, "turn.started", { turn: 2, prompt: "2", origin: "human" }), event(3, "usage.updated", { total: usage(2), cost_usd: 0.75 }));
    assert.deepEqual(costByTurn(recorded.turns, 0.75, "recorded").costs.map(({ usd }) => usd), [0.5, 0.25]);
    assert.deepEqual(costByTurn(recorded.turns, undefined, undefined).source, "recorded");
    assert.deepEqual(costByTurn([], 1, "estimated").costs, []);
    assert.deepEqual(costByTurn(model.turns, undefined, "estimated").costs, []);
  });
});

describe("the timeline", () => {
  const session = () => apply(event(0, "turn.started", { prompt: "Fix it", origin: "human" }), ...call(1, "a", "Bash", { command: "make" }, 3), ...call(1.5, "b", "Read", { file_path: "/a" }, 2), ...call(4, "q", "AskUserQuestion", {}, 9),
    event(9.5, "queue.changed", { operation: "enqueue", text: "more" }), event(9.8, "api.failed", { status: 529, fatal: false, error: "busy" }), event(10, "compaction.finished", { kind: "full" }), ...call(10, "c", "Edit", { file_path: "/a" }, undefined));
  const until = start_ms + 12 * 60_000;
  const boxOf = (layout, text) => layout.boxes.find((box) => box.tooltip().startsWith(text));

  test("calls that overlap are in different lanes; waits have a lane of their own above them", () => {
    const layout = layoutTimeline(session(), "", 1000, until, 1);
    const [make, read, wait, question] = ["Bash make", "Read /a", "waiting for you: question", "AskUserQuestion"].map((text) => boxOf(layout, text));
    assert.ok(make.y < read.y && read.x > make.x && read.x + read.width < make.x + make.width);
    assert.ok(wait.y < make.y);
    assert.ok(Math.abs(wait.x - question.x) < 2 && Math.abs(wait.width - question.width) < 4);
    assert.match(wait.tooltip(), /5m00s/);
    const running = boxOf(layout, "Edit /a");
    assert.match(running.tooltip(), /running · 2m00s/);
    assert.match(boxOf(layoutTimeline(session(), "", 1000, until - 90_500, 1), "Edit /a").tooltip(), /running · 29s/); // whole seconds
    assert.ok(running.x + running.width <= 1000);
    for (const text of ["queued: more", "the API failed with 529", "context compacted"]) assert.ok(boxOf(layout, text)?.event, text);
  });

  test("zoom stretches the axis and keeps the order; what a click means stays with its box", () => {
    const model = session();
    const [small, large] = [layoutTimeline(model, "", 1000, until, 1), layoutTimeline(model, "", 1000, until, 8)];
    assert.deepEqual([small.width, large.width, small.height], [1000, 8000, large.height]);
    const bars = ({ boxes }) => boxes.filter(({ tool }) => tool);
    assert.deepEqual(bars(small).map(({ tool }) => tool.call).sort(), ["a", "b", "c", "q"]);
    for (const { tool, x, width } of bars(small)) {
      const box = bars(large).find((one) => one.tool === tool);
      assert.ok(Math.abs(box.x - x * 8) < 40 && box.width > width * 6, tool.call);
    }
    assert.equal(small.boxes.find(({ turn }) => turn).turn.prompt, "Fix it");
  });

  test("long pauses are cut out, and thousands of calls have few boxes", () => {
    const events = [event(0, "turn.started", { prompt: "x", origin: "human" })];
    for (let n = 0; n < 5000; n++) events.push(...call(n / 100, `c${n}`, "Bash", { command: "x" }, (n + 0.9) / 100));
    events.push(...call(60 * 24 * 3, "late", "Bash", { command: "late" }, 60 * 24 * 3 + 10));
    const layout = layoutTimeline(apply(...events), "", 1000, start_ms + (60 * 24 * 3 + 10) * 60_000, 1);
    assert.ok(layout.boxes.length < 2500, `${layout.boxes.length} boxes`);
    assert.ok(boxOf(layout, "no activity for 2d"));
    const late = boxOf(layout, "Bash late");
    assert.ok(late.width > 100 && late.x + late.width <= 1000);
  });

  test("an empty session, and one without times", () => {
    assert.deepEqual(layoutTimeline(new SessionModel(), "", 800, 0, 1).boxes, []);
    const without = apply({ ...event(0, "turn.started", { prompt: "x", origin: "human" }), time: undefined });
    assert.ok(layoutTimeline(without, "", 800, 0, 1).height > 0);
  });
});

test("a chart's steps keep the largest and the last value of each pixel", () => {
  const points = Array.from({ length: 10_000 }, (_, n) => ({ at: n, context: n === 5555 ? 9999 : n % 100 }));
  const steps = contextSteps(points, 200);
  assert.ok(steps.length <= 400);
  assert.equal(Math.max(...steps.map(({ context }) => context)), 9999);
  assert.deepEqual(steps.at(-1), points.at(-1));
  for (let n = 1; n < steps.length; n++) assert.ok(steps[n].at >= steps[n - 1].at);
  assert.deepEqual(contextSteps(points.slice(0, 3), 200), points.slice(0, 3));
  assert.deepEqual(contextSteps([], 200), []);
});

test("tools of all programs have their kind and command", () => {
  const kinds = { edit: ["Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "edit", "create", "str_replace_editor"], command: ["Bash", "shell", "exec_command"], read: ["Read", "Grep", "Glob", "view", "WebFetch"], agent: ["Task", "Agent", "collaboration.spawn_agent"], other: ["TodoWrite", "mcp__x__y", "constructor"] };
  for (const [kind, tools] of Object.entries(kinds)) for (const tool of tools) assert.equal(toolKind(tool), kind, tool);
  assert.equal(commandOf("shell", { command: ["bash", "-lc", "make | tail"] }), "make | tail");
  assert.equal(commandOf("exec_command", { cmd: "ls" }), "ls");
  assert.equal(commandOf("Bash", { command: "ls" }), "ls");
  for (const none of [["Read", { command: "x" }], ["Bash", undefined], ["Bash", {}], ["Bash", [1]], ["Bash", null]]) assert.equal(commandOf(...none), undefined);
});
