"""Status: what a session is doing now, from its registry file, its transcript and its process."""
import json
import os

from support.harness import DaemonCase
from support.transcripts import Registry, Session, SessionWithSiblingAgents, SessionWithInlineAgents, now


class Status(DaemonCase):
    def begin(self):
        self.daemon = self.start()
        self.client = self.daemon.subscriber()

    def registered(self):
        """(a session with an open turn, the registry file of its process)"""
        session = Session(self.root)
        session.prompt("go")
        return session, Registry(self.root, session.session, self.process())

    def wait_status(self, session, state, **more):
        return self.client.wait_frame(type="status", session=session.session, state=state, **more)

    def test_a_permission_prompt_is_waiting_with_the_pending_call(self):
        self.begin()
        session, process = Session(self.root), self.process()
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        session.prompt("clean up")
        self.wait_status(session, "working", source="registry")
        session.tool_call("Bash", {"command": "rm -rf build", "description": "Remove"})
        registry.set_status("waiting", "permission prompt")
        frame = self.client.wait(lambda: next((f for f in self.client.all(type="status", state="waiting", reason="permission")
                                               if "rm -rf build" in f.get("detail", "")), None), "the permission prompt with its call")
        self.assertEqual((frame["session"], frame["source"]), (session.session, "registry"))
        self.assertTrue(frame["since"])
        registry.set_status("busy")
        self.client.wait(lambda: self.client.all(type="status", session=session.session)[-1]["state"] == "working", "working again")

    def test_a_call_that_arrives_after_waiting_refines_the_status(self):
        self.begin()
        session, process = Session(self.root), self.process()
        registry = Registry(self.root, session.session, process)
        session.prompt("write it")
        registry.set_status("waiting", "permission prompt")
        first = self.wait_status(session, "waiting", reason="permission")
        session.tool_call("Write", {"file_path": "/home/ada/api/main.py", "content": "x"})
        refined = self.client.wait(lambda: next((f for f in self.client.all(type="status", state="waiting")
                                                 if "main.py" in f.get("detail", "")), None), "the refined status")
        self.assertEqual(refined["since"], first["since"])

    def test_each_kind_of_wait_has_its_reason(self):
        self.begin()
        for waiting_for, reason in (("input needed", "question"), ("dialog open", "dialog"), ("permission prompt", "permission")):
            session = Session(self.root)
            session.prompt("go")
            Registry(self.root, session.session, self.process()).set_status("waiting", waiting_for)
            self.wait_status(session, "waiting", reason=reason)

    def test_112_a_wait_that_is_not_known_is_a_permission_in_an_open_turn(self):
        self.begin()
        for waiting_for in ("sandbox request", "worker request", "goal proposal", "moon phase", None):
            session = Session(self.root)
            session.prompt("go")
            Registry(self.root, session.session, self.process()).set_status("waiting", waiting_for)
            self.wait_status(session, "waiting", reason="permission")

    def test_113_a_turn_is_not_done_while_its_agents_work(self):
        self.begin()
        session, registry = self.registered()
        agents = []
        for n in range(2):
            call, agent, _ = session.agent(f"Pier {n}")
            session.result(call, "Async agent launched successfully.",
                           details={"isAsync": True, "status": "async_launched", "agentId": agent, "description": f"Pier {n}"})
            agents.append((call, agent))
        session.reply("Two agents look.", stop_reason="end_turn")
        session.append(session.record("system", subtype="turn_duration", durationMs=59000, pendingBackgroundAgentCount=2))
        registry.set_status("idle")
        self.wait_status(session, "working", reason="background", detail="2 agents")
        frame, = self.snapshot(self.daemon, sessions=[session.session])
        self.assertNotIn("unseen", frame)
        for left, (call, agent) in zip(("1 agent", None), agents):
            notice = f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{call}</tool-use-id>\n<status>completed</status>\n</task-notification>"
            session.append(session.record("queue-operation", operation="enqueue", content=notice))
            if left:
                self.wait_status(session, "working", reason="background", detail=left)
        self.client.wait(lambda: self.client.all(type="status", session=session.session)[-1]["state"] == "idle", "idle")
        self.wait_unseen(session)

    def wait_unseen(self, session):
        self.client.wait(lambda: self.client.all(type="session", session=session.session)[-1].get("unseen"), "the finished session, unseen")

    def test_113_a_command_in_the_background_is_named(self):
        self.begin()
        session = self.held_open(Session(self.root))
        session.version = "2.1.100"  # without a registry
        session.prompt("go")
        call = session.tool_call("Bash", {"command": "npm run dev", "run_in_background": True})
        session.result(call, "Command running in background with ID: b1", details={"backgroundTaskId": "b1"})
        session.reply("It runs.", stop_reason="end_turn")
        self.wait_status(session, "idle", reason="background", detail="npm run dev", source="transcript")

    def test_162_a_question_is_the_same_wait_after_a_restart(self):
        self.begin()
        session = self.held_open(Session(self.root))
        session.version = "2.1.100"  # without a registry
        session.prompt("paint it")
        _, _, agent = session.agent("Mix colours")
        call = session.tool_call("AskUserQuestion", {"questions": [{"question": "Which colour?", "header": "Colour", "options": []}]})
        asked = self.wait_status(session, "waiting", reason="question")
        agent.reply("Still mixing.")
        self.client.wait_frame(type="message.added", session=session.session, text="Still mixing.")
        self.daemon.stop()
        self.begin()
        frame, = self.snapshot(self.daemon, sessions=[session.session])
        self.assertEqual((frame["status"]["since"], frame["status"]["request"]), (asked["since"], call))

    def test_a_failed_sign_in_is_a_wait_that_the_registry_does_not_state(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = self.held_open(Session(self.root))
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.prompt("go")
        session.append(session.record("assistant", {
            "id": "e1", "type": "message", "role": "assistant", "model": "<synthetic>", "stop_reason": "stop_sequence", "usage": {},
            "content": [{"type": "text", "text": "Please run /login"}]}, isApiErrorMessage=True, error="authentication_failed", apiErrorStatus=401))
        registry.set_status("idle")
        frame = client.wait_frame(type="status", session=session.session, state="waiting")
        self.assertEqual((frame["reason"], frame["detail"]), ("auth", "sign in: authentication_failed"))
        registry.set_status("busy")
        session.prompt("again")
        session.reply("Hello.", stop_reason="end_turn")
        registry.set_status("idle")
        client.wait(lambda: client.all(type="status", session=session.session)[-1]["state"] == "idle", "the end of the next turn")

    def test_a_session_that_goes_on_in_the_background_works_until_its_successor_runs(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = self.held_open(Session(self.root))
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.prompt("go")
        session.tool_call("Bash", {"command": "make"})
        client.wait_frame(type="status", session=session.session, state="working", source="registry")
        successor = Session(self.root)
        session.append({"type": "continued-in", "timestamp": now(), "sessionId": session.session, "continuedInSessionId": successor.session})
        session.append({"type": "custom-title", "customTitle": "read", "sessionId": session.session})
        client.wait_frame(type="session.updated", session=session.session, title="read")
        os.unlink(registry.path)
        last = lambda: client.all(type="status", session=session.session)[-1]
        client.wait(lambda: last()["source"] == "transcript", "a status without the process")
        self.assertNotIn("ended", {frame["state"] for frame in client.all(type="status", session=session.session)})
        Registry(self.root, successor.session, self.process()).set_status("busy")
        client.wait_frame(type="status", session=successor.session, state="working")
        client.wait_frame(type="status", session=session.session, state="ended")

    def test_116_a_second_terminal_hides_no_wait(self):
        self.begin()
        session, first = self.registered()
        first.set_status("waiting", "permission prompt")
        wait = self.wait_status(session, "waiting", reason="permission")
        second = Registry(self.root, session.session, self.process())
        second.set_status("busy")
        first.set_status("idle")
        self.wait_status(session, "working")
        second.set_status("waiting", "permission prompt")
        other = self.client.wait(lambda: next((f for f in self.client.all(type="status", state="waiting") if f["request"] != wait["request"]), None),
                                 "the wait of the other process")
        first.set_status("busy")
        second.set_status("idle")
        self.client.wait(lambda: self.client.all(type="status", session=session.session)[-1]["state"] == "working", "the answer")
        self.assertGreater(other["since"], wait["since"])

    def test_busy_idle_and_a_background_shell(self):
        self.begin()
        session, registry = self.registered()
        registry.set_status("busy")
        self.wait_status(session, "working")
        registry.set_status("idle")
        self.wait_status(session, "idle", source="registry")
        registry.set_status("shell")
        self.wait_status(session, "idle", reason="background")

    def test_a_killed_process_ends_its_session(self):
        self.begin()
        session, process = Session(self.root), self.process()
        session.prompt("go")
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        self.wait_status(session, "working")
        process.kill()
        process.wait()
        self.wait_status(session, "ended")
        self.assertTrue(os.path.exists(registry.path))  # the stale file is ignored

    def test_a_removed_registry_file_ends_the_session(self):
        self.begin()
        session, registry = self.registered()
        registry.set_status("idle")
        self.wait_status(session, "idle", source="registry")
        os.unlink(registry.path)
        self.wait_status(session, "ended")

    def test_a_reused_pid_is_not_trusted(self):
        self.begin()
        session, registry = self.registered()
        registry.fields["procStart"] = "1"
        registry.set_status("busy")
        self.wait_status(session, "ended")
        self.assertEqual(self.client.all(type="status", session=session.session, state="working", source="registry"), [])

    def test_another_pid_namespace_is_unknown_and_never_ended(self):
        self.begin()
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        registry.fields["pidDomain"] = "linux:0123456789abcdef0123456789abcdef:pid:[4026531999]"
        registry.set_status("busy")  # before the first line: without an entry the session would end
        session.turn("go")
        self.client.wait_frame(type="turn.finished", session=session.session)
        self.wait_status(session, "unknown")
        self.assertEqual(self.client.all(type="status", session=session.session, state="ended"), [])

    def test_a_registry_file_read_during_a_rewrite_keeps_its_status(self):
        self.begin()
        session, registry = self.registered()
        registry.set_status("busy")
        self.wait_status(session, "working", source="registry")
        with open(registry.path, "r+") as file:
            text = file.read()
            file.seek(0)
            file.truncate()
            Session(self.root).prompt("another session")
            self.client.wait_frame(type="turn.started", prompt="another session")
            file.write(text[: len(text) // 2])
            file.flush()
            Session(self.root).prompt("another session again")
            self.client.wait_frame(type="turn.started", prompt="another session again")
            file.write(text[len(text) // 2 :])
        registry.set_status("idle")
        self.wait_status(session, "idle", source="registry")
        states = [f["state"] for f in self.client.all(type="status", session=session.session, source="registry")]
        self.assertEqual([s for s, before in zip(states, [None, *states]) if s != before], ["working", "idle"])

    def test_without_a_registry_the_status_comes_from_the_transcript(self):
        self.begin()
        session = self.held_open(Session(self.root))
        session.prompt("go")
        self.wait_status(session, "working", source="transcript")
        session.reply("Done.", stop_reason="end_turn")
        self.wait_status(session, "idle", source="transcript")
        session.prompt("and now?")
        session.tool_call("AskUserQuestion", {"questions": [{"question": "Which colour?", "header": "Colour", "options": []}]})
        self.wait_status(session, "waiting", reason="question")

    def test_105_and_108_a_session_without_a_process_has_ended_also_after_a_restart(self):
        self.begin()
        working, idle = Session(self.root, cwd=self.home), Session(self.root, cwd=self.home)
        working.version = "2.0.55"  # keeps no registry: its process would run in the session's directory
        working.prompt("go")
        idle.turn("go")
        self.wait_status(working, "working", source="transcript")
        self.wait_status(idle, "idle", source="transcript")
        for restart in (False, True):
            if restart:
                self.daemon.stop()
                self.begin()
            self.client.wait(lambda: all(self.state_of(session) == ("ended", "process") for session in (working, idle)),
                             "the end of both sessions")
        working.prompt("resumed elsewhere")
        self.wait_status(working, "working", source="transcript")

    def state_of(self, session):
        frame = next(f for f in self.snapshot(self.daemon) if f["session"] == session.session)
        return frame["status"]["state"], frame["status"]["source"]

    def test_104_the_registry_names_the_project_before_the_first_line(self):
        self.begin()
        registry = Registry(self.root, "0b9c4a52-0000-4000-8000-000000000001", self.process())
        registry.set_status("waiting", "permission prompt")
        status = self.client.wait_frame(type="status", session="0b9c4a52-0000-4000-8000-000000000001", state="waiting")
        self.assertEqual((status["program"], status["project"]), ("claude-code", "/home/ada/api"))
        session = self.client.wait_frame(type="session", session="0b9c4a52-0000-4000-8000-000000000001")
        self.assertEqual((session["program"], session["project"]), ("claude-code", "/home/ada/api"))

    def test_a_session_frame_carries_the_status(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        Registry(self.root, session.session, self.process()).set_status("waiting", "permission prompt")
        self.wait_status(session, "waiting")
        self.client.wait_frame(type="turn.started")
        frame = self.snapshot(self.daemon)[0]
        self.assertEqual((frame["status"]["state"], frame["status"]["reason"]), ("waiting", "permission"))
        self.assertEqual((frame["project"], frame["turn"]["number"], frame["turn"]["open"]), ("/home/ada/api", 1, True))


class TodoLists(DaemonCase):
    def todos_of(self, daemon, session):
        frames = [f for f in self.snapshot(daemon) if f["session"] == session.session]
        return [(t["content"], t["status"]) for t in frames[0].get("todos", [])] if frames else None

    def test_a_todo_file_appears_in_the_session_frame(self):
        session = Session(self.root)
        session.prompt("plan it")
        os.makedirs(os.path.join(self.root, "todos"))
        path = os.path.join(self.root, "todos", f"{session.session}-agent-{session.session}.json")

        def write(*todos):
            with open(path + ".new", "w") as file:
                json.dump([{"content": content, "status": status, "activeForm": content} for content, status in todos], file)
            os.rename(path + ".new", path)

        write(("measure", "in_progress"), ("cut", "pending"))
        daemon = self.start()
        client = daemon.subscriber()
        client.wait(lambda: self.todos_of(daemon, session) == [("measure", "in_progress"), ("cut", "pending")], "the list")
        seen = len(client.all(type="session"))
        write(("measure", "completed"), ("cut", "in_progress"))
        client.wait(lambda: any([t["status"] for t in f.get("todos", [])] == ["completed", "in_progress"]
                                for f in client.all(type="session")[seen:]), "the changed list in a new session frame")

    def test_task_files_appear_in_the_session_frame(self):
        session = Session(self.root)
        session.prompt("plan it")
        folder = os.path.join(self.root, "tasks", session.session)
        os.makedirs(folder)

        def write(number, subject, status):
            with open(os.path.join(folder, f"{number}.json"), "w") as file:
                json.dump({"id": str(number), "subject": subject, "description": "", "status": status, "blocks": [], "blockedBy": []}, file)

        for number in (10, 2, 1):
            write(number, f"task {number}", "pending")
        daemon = self.start()
        client = daemon.subscriber()
        client.wait(lambda: self.todos_of(daemon, session) == [(f"task {n}", "pending") for n in (1, 2, 10)], "the list, by number")
        write(2, "task 2", "completed")
        client.wait(lambda: ("task 2", "completed") in (self.todos_of(daemon, session) or []), "the changed task")


class Subagents(DaemonCase):
    def assert_subagent_shown(self, session, *members):
        """The session frame lists the running subagent with its call and the tool that it runs; once an agent in it has these members."""
        daemon = self.start()
        client = daemon.subscriber()
        session.prompt("delegate")
        call, agent, transcript = session.agent("Inspect the readme")
        transcript.prompt("Inspect the readme")
        transcript.tool_call("Read", {"file_path": "/home/ada/api/README.md"})
        client.wait(lambda: [f for f in client.all(type="tool.invoked", session=session.session) if f["tool"] == "Read" and "agent" in f], "the agent's call")

        def frame():
            return next((f for f in self.snapshot(daemon) if f["session"] == session.session and any(set(members) <= set(a) for a in f["agents"])), None)

        return daemon, call, agent, client.wait(frame, "a session frame with the agent")

    def test_subagent_files_below_the_session(self):
        session = Session(self.root)
        daemon, call, agent, frame = self.assert_subagent_shown(session, "agent", "call")  # a file beside the transcript names the call
        self.assertEqual([(a["agent"], a["call"], a["agent_type"], a["description"]) for a in frame["agents"]],
                         [(agent, call, "general-purpose", "Inspect the readme")])
        self.assertEqual([t["tool"] for t in frame["agents"][0]["tools"]], ["Read"])
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]},
                         {f"claude/-home-ada-api/{session.session}", f"claude/-home-ada-api/{session.session}/subagents/agent-{agent}"})

    def test_subagent_files_in_the_session_s_directory(self):
        session = SessionWithSiblingAgents(self.root)
        daemon, call, agent, frame = self.assert_subagent_shown(session)
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]},
                         {f"claude/-home-ada-api/{session.session}", f"claude/-home-ada-api/agent-{agent}"})
        self.assertIn(agent, [a.get("agent") for a in frame["agents"]])
        self.assertEqual([t["tool"] for a in frame["agents"] if a.get("agent") == agent for t in a["tools"]], ["Read"])

    def test_subagents_as_inline_sidechains(self):
        session = SessionWithInlineAgents(self.root)
        daemon, call, agent, frame = self.assert_subagent_shown(session)
        self.assertEqual([a["call"] for a in frame["agents"] if "call" in a], [call])
        self.assertEqual([cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]], [f"claude/-home-ada-api/{session.session}"])
