"""The reference assembler for Codex: what its rules mean, each with its records in sight."""
import json
import unittest

import codex_reference

META = ("session_meta", {"id": "s-1", "cwd": "/home/ada/lamp", "cli_version": "0.169.0", "history_mode": "paginated"})
EARLY = ("session_meta", {"id": "s-1", "cwd": "/home/ada/lamp", "cli_version": "0.77.0"})


def event(type, **fields):
    return "event_msg", {"type": type, **fields}


def started(turn, **fields):
    return event("task_started", turn_id=turn, **fields)


def completed(turn, **fields):
    return event("task_complete", turn_id=turn, **fields)


def item(type, **fields):
    return event("item_completed", item={"type": type, **fields})


def user(text):
    return item("UserMessage", content=[{"type": "text", "text": text}])


def said(text):
    return item("AgentMessage", content=[{"type": "Text", "text": text}])


def response(type, **fields):
    return "response_item", {"type": type, **fields}


def message(role, text):
    return response("message", role=role, content=[{"type": "input_text", "text": text}])


def call(name, id, **arguments):
    return response("function_call", name=name, call_id=id, arguments=json.dumps(arguments))


def output(id, text):
    return response("function_call_output", call_id=id, output=text)


def rollout(*records, start=100):
    """A line each second. A record that is no pair has no envelope."""
    lines = []
    for n, record in enumerate(records, start):
        if isinstance(record, tuple):
            record = {"timestamp": f"2026-03-14T09:{n // 60:02}:{n % 60:02}.000Z", "type": record[0], "payload": record[1]}
        lines.append(record)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def assemble(*records):
    return list(codex_reference.events(rollout(*records), stem="rollout-x"))


class Codex(unittest.TestCase):
    def assert_events(self, records, *expected, types=""):
        """Of the events whose type begins with `types`; what is expected leaves members out."""
        found = [event for event in assemble(*records) if event["type"].startswith(types)]
        shown = [{key: event.get(key) for key in one} for event, one in zip(found, expected)] + found[len(expected):]
        self.assertEqual(shown, list(expected))

    def test_a_turn_begins_with_its_prompt_and_lasts_from_its_announcement(self):
        self.assert_events([META, started("t"), event("thread_settings_applied"), user("hi"), said("Hello."), completed("t")],
                           {"type": "turn.started", "turn": 1, "prompt": "hi", "origin": "human"},
                           {"type": "turn.finished", "outcome": "completed", "duration_ms": 4000, "stop_reason": None}, types="turn")

    def test_what_an_item_and_the_history_say_is_told_once(self):
        history = response("message", id="m", role="assistant", content=[{"type": "output_text", "text": "Hello."}])
        self.assert_events([META, started("t"), message("user", "hi"), user("hi"), said("Hello."), history], {"role": "assistant", "text": "Hello."},
                           types="message")

    def test_the_item_of_a_command_ends_its_call_and_its_output_is_late(self):
        command = item("CommandExecution", id="c", command=["/bin/sh", "-lc", "make"], exit_code=2, aggregated_output="no rule\n",
                       duration={"secs": 1, "nanos": 990_000_000})
        self.assert_events([META, started("t"), user("build"), call("exec_command", "c", cmd="make"), command, output("c", "no rule\n")],
                           {"type": "tool.invoked", "tool": "exec_command", "input": {"cmd": "make"}},
                           {"type": "tool.finished", "outcome": "error", "output": "no rule\n", "duration_ms": 1990}, types="tool")

    def test_commands_inside_a_script_are_calls_of_their_own(self):
        script = response("custom_tool_call", name="exec", input="run()", call_id="c")
        inside = item("CommandExecution", id="exec-1", command=["/bin/sh", "-lc", "ls"], exit_code=0)
        self.assert_events([META, started("t"), user("look"), script, inside, output("c", "Script completed\n")],
                           {"call": "c", "input": "run()"}, {"call": "exec-1", "input": {"cmd": "ls"}},
                           {"call": "exec-1", "outcome": "ok", "duration_ms": 0}, {"call": "c", "outcome": "ok"}, types="tool")

    def test_a_command_that_goes_on_is_a_task_until_its_item(self):
        ended = item("CommandExecution", id="c", command=["make"], exit_code=0)
        self.assert_events([META, started("t"), user("watch"), call("exec_command", "c"), output("c", "Process running with session ID 7\n"), ended],
                           {"type": "task.finished", "task": "7", "call": "c", "outcome": "completed"}, types="task")

    def test_outcomes_follow_from_the_beginning_of_an_output(self):
        for text, outcome in {
            "Exit code: 0\nOutput:\nExit code: 1": "ok", "Exit code: 1\nOutput:\n": "error", '{"output":"x","metadata":{"exit_code":3}}': "error",
            "Wall time: 4 seconds\naborted by user": "interrupted", "Aborted (core dumped)": "ok", "patch rejected by user": "denied",
            "Script failed\nOutput:\nreject command": "denied", "Script failed\nOutput:\n": "error", "unsupported call: x": "error", "fine": "ok",
        }.items():
            with self.subTest(text):
                self.assert_events([META, started("t"), user("x"), call("shell", "c"), output("c", text)], {}, {"outcome": outcome}, types="tool")

    def test_a_message_typed_in_mid_turn_steers_it(self):
        self.assert_events([META, started("t"), user("mend"), user("the red one")], {"role": "user", "kind": "text", "text": "the red one"},
                           types="message")

    def test_without_a_lifecycle_only_the_next_prompt_ends_a_turn(self):
        first, second = event("user_message", message="first"), event("user_message", message="second")
        self.assert_events([EARLY, message("user", "first"), first, event("agent_message", message="Done."), message("user", "second"), second],
                           {"turn": 1, "prompt": "first"}, {"outcome": "completed", "inferred": True, "duration_ms": 1000}, {"turn": 2}, types="turn")

    def test_an_announced_turn_that_another_follows_is_superseded(self):
        self.assert_events([META, started("t1"), started("t2")], {"type": "turn.started", "prompt": None, "origin": "unknown"},
                           {"type": "turn.finished", "outcome": "superseded", "duration_ms": 0}, types="turn")

    def test_what_ended_before_is_read_again_without_events(self):
        records = [META, started("t"), user("hi"), said("Hello."), completed("t")]
        self.assertEqual(len(assemble(*records, started("t"), completed("t"))), len(assemble(*records)))

    def test_a_plan_is_told_when_it_changes(self):
        plans = [record for n, status in enumerate(("pending", "pending", "completed"))
                 for record in (call("update_plan", f"c{n}", plan=[{"step": "Mend", "status": status}]), output(f"c{n}", "Plan updated"))]
        self.assert_events([META, started("t"), user("mend"), *plans], {"todos": [{"content": "Mend", "status": "pending"}]},
                           {"todos": [{"content": "Mend", "status": "completed"}], "source": "update_plan"}, types="todo")

    def test_an_agent_starts_with_its_call_and_ends_once(self):
        def activity(id, kind):
            return item("SubAgentActivity", id=id, kind=kind, agent_thread_id="s-2")
        self.assert_events([META, started("t"), user("spawn"), call("spawn_agent", "c", task_name="looker"), activity("c", "started"),
                            activity("x", "completed"), activity("y", "completed"), activity("z", "interacted"), activity("w", "interrupted")],
                           {"type": "agent.started", "call": "c", "description": "looker", "background": True},
                           {"type": "agent.finished", "subagent": "s-2", "call": "c", "outcome": "completed"},
                           {"type": "agent.finished", "outcome": "interrupted"}, types="agent")

    def test_a_failed_request_fails_its_turn(self):
        error = {"message": "limit", "codex_error_info": "usage_limit_exceeded"}
        self.assert_events([META, started("t"), user("go on"), completed("t", error=error)],
                           {"outcome": "failed", "stop_reason": "usage_limit_exceeded"}, types="turn.finished")
        self.assert_events([META, started("t"), user("go on"), completed("t")], {"outcome": "completed", "stop_reason": "no_answer"},
                           types="turn.finished")

    def test_a_compaction_abandons_open_calls_and_begins_the_announced_turn(self):
        compacted = ("compacted", {"message": "So far."})
        self.assert_events([META, started("t1"), user("x"), call("shell", "c"), completed("t1"), started("t2"), compacted],
                           {"type": "session.started"}, {"type": "turn.started"}, {"type": "tool.invoked"}, {"type": "turn.finished", "turn": 1},
                           {"type": "tool.finished", "outcome": "abandoned", "duration_ms": None}, {"type": "turn.started", "turn": 2},
                           {"type": "compaction.finished", "kind": "full"}, {"type": "message.added", "role": "summary", "text": "So far."})

    def test_copied_history_makes_no_events(self):
        copied = [{"timestamp": "2026-03-14T09:01:40.000Z", "type": type, "payload": payload} for type, payload in (
            ("session_meta", {"id": "s-2"}), ("session_meta", {"id": "s-1"}), event("user_message", message="one"), call("shell", "c"))]
        self.assert_events([*copied, event("user_message", message="two"), output("c", "late")], {"type": "session.started"},
                           {"type": "turn.started", "turn": 1, "prompt": "two"})

    def test_rollouts_without_envelopes_have_no_times(self):
        self.assert_events([{"id": "s-1", "timestamp": "2025-08-05T10:00:00.000Z", "instructions": None}, {"record_type": "state"},
                            message("user", "<user_instructions>x</user_instructions>")[1], message("user", "look")[1],
                            response("message", id="m", role="assistant", content=[{"type": "output_text", "text": "Seen."}])[1]],
                           {"type": "session.started", "dialect": "codex-items", "time": None}, {"type": "turn.started", "prompt": "look"},
                           {"type": "message.added", "text": "Seen.", "message": "m"})

    def test_events_of_a_subagent_name_it_and_its_session(self):
        meta = {"id": "s-2", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "s-1", "agent_role": "explorer"}}}}
        self.assert_events([("session_meta", meta), started("t"), event("user_message", message="look")],
                           {"session": "s-1", "agent": "s-2", "parent": "s-1", "agent_type": "explorer", "source": "subagent"},
                           {"type": "turn.started", "agent": "s-2", "origin": "agent"})

    def test_a_reset_that_moves_by_a_minute_is_no_change_of_a_limit(self):
        def limits(at):
            return event("token_count", info=None, rate_limits={"limit_id": "codex", "primary": {"used_percent": 5.0, "resets_at": at}})
        self.assert_events([META, limits(1773482400), limits(1773482460), limits(1773482461)],
                           {"windows": [{"name": "primary", "used_percent": 5.0, "resets_at": "2026-03-14T10:00:00Z"}]},
                           {"windows": [{"name": "primary", "used_percent": 5.0, "resets_at": "2026-03-14T10:01:01Z"}]}, types="limits")

    def test_types_without_a_rule_are_counted(self):
        data = rollout(META, ("oddity", {}), event("odd"), item("Odd"), ("world_state", {}))
        self.assertEqual(codex_reference.unknown(data), {"oddity": 1, "event_msg/odd": 1, "event_msg/item_completed/Odd": 1})


if __name__ == "__main__":
    unittest.main()
