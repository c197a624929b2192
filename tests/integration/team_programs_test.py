"""Sessions of other agent programs than Claude Code at a team hub, with a real broker: program, session and subagents are those of the host."""
import json
import os
import time
import unittest
import uuid

from support.harness import earshot, wait_for
from support.team import TeamCase
from support.transcripts import append, now

CWD = "/home/ada/lamp"


class Rollout:
    """A session of Codex CLI, or a subagent of one."""

    process_name = "codex"

    def __init__(self, case, root, parent=None):
        self.id, self.parent, self.calls = str(uuid.uuid4()), parent, 0
        self.session = parent.session if parent else self.id
        self.path = os.path.join(root, f"sessions/2026/03/14/rollout-2026-03-14T09-26-50-{self.id}.jsonl")
        subagent = {"thread_source": "subagent", "source": {"subagent": "spawn"}, "parent_thread_id": parent.id, "agent_role": "explorer"} if parent else {"source": "cli"}
        case.held_open(self)
        self.add("session_meta", session_id=self.session, id=self.id, cwd=CWD, cli_version="0.169.0", originator="codex-tui", history_mode="paginated", **subagent)

    def add(self, kind, **payload):
        append(self.path, json.dumps({"timestamp": now(), "type": kind, "payload": payload}).encode() + b"\n")

    def item(self, kind, **fields):
        self.calls += 1
        self.add("event_msg", type="item_completed", turn_id=self.turn, item={"type": kind, "id": f"{kind}-{self.calls}", **fields})

    def start_turn(self, prompt):
        self.turn = str(uuid.uuid4())
        self.add("event_msg", type="task_started", turn_id=self.turn)
        self.add("turn_context", turn_id=self.turn, model="gpt-5.5", approval_policy="never", sandbox_policy={"type": "read-only"})
        self.item("UserMessage", content=[{"type": "text", "text": prompt}])

    def finish_turn(self, answer):
        self.item("AgentMessage", content=[{"type": "Text", "text": answer}])
        self.add("event_msg", type="task_complete", turn_id=self.turn, last_agent_message=answer)

    def usage(self, percent):
        count = {"input_tokens": 1300, "cached_input_tokens": 1000, "output_tokens": 40, "total_tokens": 1340}
        self.add("event_msg", type="token_count", info={"total_token_usage": count, "last_token_usage": count, "model_context_window": 258400},
                 rate_limits={"limit_id": "codex", "plan_type": "plus", "primary": {"used_percent": percent, "window_minutes": 300, "resets_at": 4102444800}})


class Programs(TeamCase):
    def setUp(self):
        super().setUp()
        self.nats = self.broker()
        self.hub_daemon = self.hub(self.nats)
        self.codex = os.path.join(self.home, "ada", "codex")
        os.makedirs(os.path.join(self.codex, "sessions"))

    def codex_host(self, **given):
        return self.host("ada", self.nats, args=("--root", f"codex:codex={self.codex}"), **given)

    def a_session_with_a_subagent(self):
        main = Rollout(self, self.codex)
        main.start_turn("Look at the lamp")
        agent = Rollout(self, self.codex, main)
        agent.start_turn("Look at the wiring")
        agent.usage(12.5)
        agent.finish_turn("One fuse.")
        time.sleep(0.01)  # the later one of two statements about the account is valid
        main.usage(31)
        main.finish_turn("It shares a fuse.")
        return main, agent

    def sessions(self, client):
        return [f for f in client.frames if f["type"] == "session"]

    def assert_is_shown(self, client, main, agent):
        """The client has the session's frame, with what its main stream states."""
        name = f"{main.session}@ada"
        frame = client.wait_frame(type="session", session=name)
        wanted = {"program": "codex", "project": CWD, "host": "ada", "sandbox": "read-only", "source": "cli", "originator": "codex-tui", "last_text": "It shares a fuse."}
        self.assertEqual({key: frame.get(key) for key in wanted}, wanted)
        self.assertEqual((frame["usage"]["context"], frame["usage"]["context_window"]), (1340, 258400))
        self.assertEqual([w["used_percent"] for limit in frame["limits"] for w in limit["windows"]], [31])
        self.assertEqual(len(frame["cursors"]), 2)
        self.assertEqual({f["session"] for f in self.sessions(client)}, {name})

    def test_a_session_of_codex_and_its_subagent_are_one_session_with_its_program(self):
        ada = self.codex_host()
        live = self.hub_daemon.subscriber()
        main, agent = self.a_session_with_a_subagent()
        name = f"{main.session}@ada"
        live.wait_frame(type="turn.finished", session=name, agent=agent.id)
        wait_for(lambda: [f for f in live.frames if f["type"] == "turn.finished" and "agent" not in f], "the end of the main turn")
        events = [f for f in live.frames if "cursor" in f]
        self.assertEqual({f["session"] for f in events}, {name})
        self.assertEqual({f.get("agent") for f in events}, {None, agent.id})
        started = next(f for f in events if f["type"] == "session.started" and "agent" in f)
        self.assertEqual((started["program"], started["parent"], started["agent_type"]), ("codex", main.id, "explorer"))
        limits = [f for f in events if f["type"] == "limits.updated"]
        self.assertEqual([f["windows"][0]["used_percent"] for f in limits if "agent" not in f], [31])
        self.assert_is_shown(self.hub_daemon.subscriber(), main, agent)

        # Filters by program, and the command line.
        other = self.session(ada)
        other.turn("Look at the horn")
        live.wait_frame(type="turn.finished", session=f"{other.session}@ada")
        codex_only = self.hub_daemon.subscriber(filter={"program": ["codex"]})
        codex_only.wait_frame(type="ready")
        self.assert_is_shown(codex_only, main, agent)
        live.wait(lambda: (statuses := live.all(type="status", session=name)) and statuses[-1]["state"] == "idle", "the status, which arrives by its own way")
        table = earshot("ls", "--state", self.hub_daemon.state, home=self.home).stdout
        self.assertRegex(table, r"^STATUS +PROGRAM +SESSION")
        self.assertRegex(table, rf"(?m)^\S+ idle(?:, unseen)? +codex +{main.session[:8]} +lamp ")
        self.assertRegex(table, r"(?m)^limits of codex  31% of 5h until .* · plus$")

        # The hub's files alone name them.
        ada.stop()
        self.hub_daemon.stop()
        self.hub_daemon = self.hub(self.nats)
        again = self.hub_daemon.subscriber(all=True, filter={"program": ["codex"]})
        again.wait_frame(type="ready")
        self.assert_is_shown(again, main, agent)

    def test_in_the_meta_view_they_are_the_same(self):
        self.codex_host(view="meta")
        live = self.hub_daemon.subscriber()
        main, agent = self.a_session_with_a_subagent()
        live.wait_frame(type="turn.finished", agent=agent.id)
        client = self.hub_daemon.subscriber()
        frame = client.wait_frame(type="session", session=f"{main.session}@ada")
        self.assertEqual((frame["program"], frame["project"]), ("codex", CWD))
        self.assertTrue(wait_for(lambda: [f for f in live.frames if f["type"] == "limits.updated" and "agent" not in f], "the limits"))


if __name__ == "__main__":
    unittest.main()
