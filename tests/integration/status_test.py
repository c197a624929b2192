"""Status: what a session is doing now, told by its registry file, its transcript, and whether its process lives."""
import json
import os

from support.harness import DaemonCase
from support.transcripts import Registry, Session, SessionWithSiblingAgents, SessionWithInlineAgents


class Status(DaemonCase):
    def begin(self):
        self.daemon = self.start()
        self.client = self.daemon.subscriber()

    def told(self, session, state, **more):
        return self.client.wait_frame(type="status", session=session.session, state=state, **more)

    def test_a_session_that_asks_for_permission_waits_and_says_for_what(self):
        self.begin()
        session, process = Session(self.root), self.process()
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        session.prompt("clean up")
        self.told(session, "working", source="registry")
        session.tool_call("Bash", {"command": "rm -rf build", "description": "Remove"})
        registry.set_status("waiting", "permission prompt")
        frame = self.client.wait(lambda: next((f for f in self.client.all(type="status", state="waiting", reason="permission")
                                               if "rm -rf build" in f.get("detail", "")), None), "the permission and what it is for")
        self.assertEqual((frame["session"], frame["source"]), (session.session, "registry"))
        self.assertTrue(frame["since"])
        registry.set_status("busy")
        self.client.wait(lambda: self.client.all(type="status", session=session.session)[-1]["state"] == "working", "working again")

    def test_the_call_may_reach_the_transcript_after_the_registry_says_waiting(self):
        self.begin()
        session, process = Session(self.root), self.process()
        registry = Registry(self.root, session.session, process)
        session.prompt("write it")
        registry.set_status("waiting", "permission prompt")
        first = self.told(session, "waiting", reason="permission")
        session.tool_call("Write", {"file_path": "/home/ada/api/main.py", "content": "x"})
        refined = self.client.wait(lambda: next((f for f in self.client.all(type="status", state="waiting")
                                                 if "main.py" in f.get("detail", "")), None), "the refined status")
        self.assertEqual(refined["since"], first["since"])

    def test_what_is_asked_has_its_reason(self):
        self.begin()
        for waiting_for, reason in (("input needed", "question"), ("dialog open", "dialog"), ("permission prompt", "permission")):
            session = Session(self.root)
            session.prompt("go")
            Registry(self.root, session.session, self.process()).set_status("waiting", waiting_for)
            self.told(session, "waiting", reason=reason)

    def test_idle_busy_and_a_shell_in_the_background(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        self.told(session, "working")
        registry.set_status("idle")
        self.told(session, "idle", source="registry")
        registry.set_status("shell")
        self.told(session, "idle", reason="background")

    def test_a_session_whose_process_is_killed_has_ended(self):
        self.begin()
        session, process = Session(self.root), self.process()
        session.prompt("go")
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        self.told(session, "working")
        process.kill()
        process.wait()
        self.told(session, "ended")
        self.assertTrue(os.path.exists(registry.path))  # the stale file is not believed

    def test_a_registry_file_that_goes_is_the_end(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("idle")
        self.told(session, "idle", source="registry")
        os.unlink(registry.path)
        self.told(session, "ended")

    def test_a_reused_pid_is_not_believed(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        registry = Registry(self.root, session.session, self.process())
        registry.fields["procStart"] = "1"
        registry.set_status("busy")
        self.told(session, "ended")
        self.assertEqual(self.client.all(type="status", session=session.session, state="working", source="registry"), [])

    def test_another_pid_namespace_is_unknown_and_never_ended(self):
        self.begin()
        session = Session(self.root)
        session.turn("go")
        registry = Registry(self.root, session.session, self.process())
        registry.fields["pidDomain"] = "linux:0123456789abcdef0123456789abcdef:pid:[4026531999]"
        registry.set_status("busy")
        self.told(session, "unknown")
        self.assertEqual(self.client.all(type="status", session=session.session, state="ended"), [])

    def test_a_registry_read_while_it_is_rewritten_loses_nothing(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        self.told(session, "working", source="registry")
        with open(registry.path, "r+") as file:
            text = file.read()
            file.seek(0)
            file.truncate()
            Session(self.root).prompt("somebody else")
            self.client.wait_frame(type="turn.started", prompt="somebody else")
            file.write(text[: len(text) // 2])
            file.flush()
            Session(self.root).prompt("somebody else again")
            self.client.wait_frame(type="turn.started", prompt="somebody else again")
            file.write(text[len(text) // 2 :])
        registry.set_status("idle")
        self.told(session, "idle", source="registry")
        states = [f["state"] for f in self.client.all(type="status", session=session.session, source="registry")]
        self.assertEqual([s for s, before in zip(states, [None, *states]) if s != before], ["working", "idle"])

    def test_without_a_registry_the_transcript_decides(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        self.told(session, "working", source="transcript")
        session.reply("Done.", stop_reason="end_turn")
        self.told(session, "idle", source="transcript")
        session.prompt("and now?")
        session.tool_call("AskUserQuestion", {"questions": [{"question": "Which colour?", "header": "Colour", "options": []}]})
        self.told(session, "waiting", reason="question")

    def test_a_session_frame_carries_the_status(self):
        self.begin()
        session = Session(self.root)
        session.prompt("go")
        Registry(self.root, session.session, self.process()).set_status("waiting", "permission prompt")
        self.told(session, "waiting")
        frame = self.daemon.client().subscribe()[0]
        self.assertEqual((frame["status"]["state"], frame["status"]["reason"]), ("waiting", "permission"))
        self.assertEqual((frame["project"], frame["turn"]["number"], frame["turn"]["open"]), ("/home/ada/api", 1, True))


class Lists(DaemonCase):
    def todos_of(self, daemon, session):
        frames = [f for f in daemon.client().subscribe() if f["session"] == session.session]
        return [(t["content"], t["status"]) for t in frames[0].get("todos", [])] if frames else None

    def test_a_todo_file_shows_in_the_session_frame(self):
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

    def test_task_files_show_in_the_session_frame(self):
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
    def attached(self, session):
        """The session frame shows the running agent with its call, and in it the tool that the agent runs."""
        daemon = self.start()
        client = daemon.subscriber()
        session.prompt("delegate")
        call, agent, transcript = session.agent("Inspect the readme")
        transcript.prompt("Inspect the readme")
        transcript.tool_call("Read", {"file_path": "/home/ada/api/README.md"})
        client.wait(lambda: [f for f in client.all(type="tool.invoked", session=session.session) if f["tool"] == "Read" and "agent" in f], "the agent's call")

        def frame():
            return next((f for f in daemon.client().subscribe() if f["session"] == session.session and f.get("agents")), None)

        return daemon, call, agent, client.wait(frame, "a session frame with the agent")

    def test_files_below_the_session(self):
        session = Session(self.root)
        daemon, call, agent, frame = self.attached(session)
        self.assertEqual([(a["agent"], a["call"], a["agent_type"], a["description"]) for a in frame["agents"]],
                         [(agent, call, "general-purpose", "Inspect the readme")])
        self.assertEqual([t["tool"] for t in frame["agents"][0]["tools"]], ["Read"])
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]},
                         {f"claude/-home-ada-api/{session.session}", f"claude/-home-ada-api/{session.session}/subagents/agent-{agent}"})

    def test_files_beside_the_session(self):
        session = SessionWithSiblingAgents(self.root)
        daemon, call, agent, frame = self.attached(session)
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]},
                         {f"claude/-home-ada-api/{session.session}", f"claude/-home-ada-api/agent-{agent}"})
        self.assertIn(agent, [a.get("agent") for a in frame["agents"]])
        self.assertEqual([t["tool"] for a in frame["agents"] if a.get("agent") == agent for t in a["tools"]], ["Read"])

    def test_inline_sidechains(self):
        session = SessionWithInlineAgents(self.root)
        daemon, call, agent, frame = self.attached(session)
        self.assertEqual([a["call"] for a in frame["agents"] if "call" in a], [call])
        self.assertEqual([cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]], [f"claude/-home-ada-api/{session.session}"])
