"""Agent programs beside Claude Code: their roots, events and status."""
import json
import os
import shutil
import signal
import time
import uuid

from support.endpoints import EndpointCase, curl
from support.harness import earshot, wait_for
from support.notifier import Notifier, Receiver, hook_rules
from support.programs import SESSIONS, CodexEventsSession, CodexSession, CopilotSession, PiSession, kill, start_process
from support.resume_state import ResumeState
from support.transcripts import Registry, Session, append, now

DEFAULT_DIRECTORIES = {"codex": ".codex", "copilot": ".copilot", "pi": ".pi/agent"}  # below the home directory
VARIABLES = {"codex": "CODEX_HOME", "copilot": "COPILOT_HOME", "pi": "PI_CODING_AGENT_DIR"}


class Roots(EndpointCase):
    def programs_of_roots(self, daemon):
        """path → program"""
        return {root["path"]: root["program"] for root in self.health(daemon)["roots"]}

    def assert_root(self, argument, path, program):
        daemon = self.start(roots=[argument])
        self.assertEqual(self.programs_of_roots(daemon), {path: program})
        daemon.stop()

    def root_with_a_turn(self, program, directory):
        session = SESSIONS[program](os.path.join(self.home, directory))
        session.turn("hello")
        return session

    def test_the_default_roots_are_those_of_all_programs(self):
        sessions = [self.root_with_a_turn(program, directory) for program, directory in DEFAULT_DIRECTORIES.items()]
        sessions.append(Session(os.path.join(self.home, ".claude")))
        sessions[-1].turn("hello")
        daemon = self.start(roots=[])
        frames = {frame["session"]: frame["program"] for frame in daemon.client().subscribe()}
        self.assertEqual(frames, {session.session: getattr(session, "program", "claude-code") for session in sessions})
        roots = {root["name"]: (root["program"], root["path"], root["present"], root["transcripts"]) for root in self.health(daemon)["roots"]}
        self.assertEqual(roots, {"claude": ("claude-code", f"{self.home}/.claude", True, 1), "config-claude": ("claude-code", f"{self.home}/.config/claude", False, 0),
                                 "codex": ("codex", f"{self.home}/.codex", True, 1), "copilot": ("copilot", f"{self.home}/.copilot", True, 1),
                                 "pi": ("pi", f"{self.home}/.pi/agent", True, 1)})
        doctor = earshot("doctor", "--state", self.state, home=self.home)
        for program, directory in DEFAULT_DIRECTORIES.items():
            self.assertRegex(doctor.stdout, rf"{self.home}/{directory}: 1 transcript of {program}\b")

    def test_a_variable_of_each_program_names_its_root(self):
        environment = {VARIABLES[program]: os.path.join(self.home, "moved", program) for program in SESSIONS}
        sessions = [self.root_with_a_turn(program, f"moved/{program}") for program in SESSIONS]
        for program, directory in DEFAULT_DIRECTORIES.items():
            self.root_with_a_turn(program, directory)  # not read
        daemon = self.start(roots=[], environment=environment)
        programs = self.programs_of_roots(daemon)
        for program, name in VARIABLES.items():
            self.assertEqual(programs.get(environment[name]), program)
            self.assertNotIn(os.path.join(self.home, DEFAULT_DIRECTORIES[program]), programs)
        self.assertEqual({frame["session"] for frame in daemon.client().subscribe()}, {session.session for session in sessions})

    def test_an_empty_variable_means_the_default(self):
        daemon = self.start(roots=[], environment={name: "" for name in VARIABLES.values()})
        programs = self.programs_of_roots(daemon)
        for program, directory in DEFAULT_DIRECTORIES.items():
            self.assertEqual(programs.get(os.path.join(self.home, directory)), program)

    def test_the_program_of_a_root_may_be_named(self):
        for program in ("claude-code", *SESSIONS):
            path = os.path.join(self.home, "named-" + program)  # missing: nothing else tells
            self.assert_root(f"{program}:{path}", path, program)
        path = os.path.join(self.home, "mine")
        daemon = self.start(roots=[f"copilot:work={path}"])
        self.assertEqual([(root["name"], root["path"], root["program"]) for root in self.health(daemon)["roots"]], [("work", path, "copilot")])
        session = CopilotSession(path)
        client = daemon.subscriber()
        session.turn("hello")
        self.assertEqual(client.wait_frame(type="session.started")["stream"], f"work/{session.session}/events")

    def test_what_is_in_a_root_names_its_program(self):
        for program in SESSIONS:
            self.root_with_a_turn(program, "found-" + program)
            self.assert_root(os.path.join(self.home, "found-" + program), os.path.join(self.home, "found-" + program), program)
        claude = Session(os.path.join(self.home, "found-claude"))
        claude.turn("hello")
        self.assert_root(os.path.join(self.home, "found-claude"), os.path.join(self.home, "found-claude"), "claude-code")

    def test_an_empty_root_is_that_of_the_program_with_this_default_directory(self):
        for program, directory in DEFAULT_DIRECTORIES.items():
            path = os.path.join(self.home, "elsewhere", directory)
            os.makedirs(path)
            self.assert_root(path, path, program)
        self.assert_root(self.root, self.root, "claude-code")  # empty, and of no known name

    def test_a_root_that_cannot_be_a_program_s_is_refused(self):
        other = os.path.join(self.home, "photos")
        os.makedirs(os.path.join(other, "2026"))
        both = os.path.join(self.home, "both")
        for program in ("codex", "copilot"):
            self.root_with_a_turn(program, "both")
        for argument, words in ((f"cdoex:{other}", ("cdoex", "claude-code, codex, copilot, pi")),
                                (other, (other, "no agent program's files", f"--root PROGRAM:{other}")),
                                (both, (both, "several agent programs", "codex, copilot", f"--root PROGRAM:{both}"))):
            stderr = self.start_refused(roots=[argument], code=2)
            for word in words:
                self.assertIn(word, stderr)
        self.assert_root(f"codex:{other}", other, "codex")  # as the messages advise
        self.assert_root(f"codex:{both}", both, "codex")

    def test_a_service_is_not_installed_with_a_root_that_would_be_refused(self):
        for options in (["--root", f"cdoex:{self.home}"],):
            daemon = self.start("--install-service", *options, roots=[], ready=False)
            self.assertNotEqual(daemon.wait_exit(), 0)
            self.assertIn("cdoex", daemon.stderr().decode())
            self.assertFalse(os.path.exists(os.path.join(self.home, ".config", "systemd")))

    def test_two_roots_of_different_programs_in_one_directory(self):
        both = os.path.join(self.home, "both")
        sessions = [self.root_with_a_turn(program, "both") for program in ("codex", "copilot")]
        daemon = self.start(roots=[f"codex:a={both}", f"copilot:b={both}"])
        frames = {frame["session"]: (frame["program"], frame["cursors"][0].split("/")[0]) for frame in daemon.client().subscribe()}
        self.assertEqual(frames, {sessions[0].session: ("codex", "a"), sessions[1].session: ("copilot", "b")})


class ProgramsCase(EndpointCase):
    """A root per program, named after it."""

    def begin(self, *args, **more):
        self.daemon = self.start(*args, roots=[f"{program}:{program}={self.root_of(program)}" for program in SESSIONS] + ["claude=" + self.root], **more)
        self.client = self.daemon.subscriber()

    def root_of(self, program):
        return os.path.join(self.home, "roots", program)

    def session(self, kind, *args, **more):
        return kind(self.root_of(kind.program), *args, **more)

    def events(self, session, *names, **fields):
        """These members of the events of a session's own stream."""
        found = self.client.all(session=session.session, stream=session.stream(), **fields)
        return [tuple(frame.get(name) for name in names) for frame in found if "cursor" in frame]

    def finished(self, session, turn=1):
        self.client.wait_frame(type="turn.finished", session=session.session, stream=session.stream(), turn=turn)


class UnknownRecords(ProgramsCase):
    def test_records_of_unknown_types_are_counted_by_program_version_and_type(self):
        self.begin()
        counted = {}
        for program, kind in SESSIONS.items():
            session = self.session(kind)
            session.turn("hello")
            for _ in range(2):
                counted[program] = session.unknown("spectral_analysis")
            session.turn("and on")
            self.finished(session, 2)
            self.assertEqual(self.events(session, "prompt", type="turn.started"), [("hello",), ("and on",)])
        records = {(each["program"], each.get("version")): each["types"] for each in self.health(self.daemon)["unknown_records"]}
        self.assertEqual(records, {(program, SESSIONS[program].version): {type: 2} for program, type in counted.items()})
        metrics = curl(self.daemon, "/metrics", unix=True)[2].decode()
        for program, type in counted.items():
            self.assertIn(f'earshot_unknown_records{{program="{program}",version="{SESSIONS[program].version or ""}",type="{type}"}} 2\n', metrics)
        doctor = earshot("doctor", "--state", self.state, home=self.home).stdout
        for program, kind in SESSIONS.items():
            self.assertRegex(doctor, rf"{program}{' ' + kind.version if kind.version else ''} writes 1 record type that earshot does not know: {counted[program]}")

    def test_known_records_are_not_counted(self):
        self.begin()
        for kind in (*SESSIONS.values(), CodexEventsSession):
            session = self.session(kind)
            session.turn("hello")
            session.compact("They greeted.")
            self.finished(session)
        self.assertNotIn("unknown_records", self.health(self.daemon))

    def test_the_text_of_a_type_cannot_break_the_metrics(self):
        self.begin()
        session = self.session(CodexSession)
        session.turn("hello")
        session.unknown('evil"} 1\nearshot_up 0\n#')
        session.turn("and on")
        self.finished(session, 2)
        metrics = curl(self.daemon, "/metrics", unix=True)[2].decode()
        self.assertNotIn("earshot_up", metrics)
        self.assertIn('earshot_unknown_records{program="codex",version="0.169.0",type="(other)"} 1\n', metrics)


class Events:
    """For each program: `kind` is its session's class."""

    def new(self, *args, **more):
        return self.session(self.kind, *args, **more)

    def test_a_turn_is_delivered_as_replay_prints_it(self):
        self.begin()
        session = self.new()
        session.turn("look around", "All fine.")
        self.finished(session)
        self.assert_delivered(self.daemon, self.client, session.path)
        started = self.client.find(type="session.started")
        self.assertEqual((started["stream"], started["session"], started["program"], started["dialect"], started["project"], started.get("version")),
                         (session.stream(), session.session, session.program, session.dialect, session.cwd, session.version))
        self.assertEqual(self.events(session, "turn", "prompt", "origin", type="turn.started"), [(1, "look around", "human")])
        invoked, finished = self.client.find(type="tool.invoked"), self.client.find(type="tool.finished")
        self.assertEqual((invoked["tool"], invoked["input"]), (session.shell_tool, session.tool_input("echo look around")))
        self.assertEqual((finished["call"], finished["outcome"], finished["output"]), (invoked["call"], "ok", "look around"))
        self.assertEqual(self.events(session, "text", type="message.added", role="assistant"), [("All fine.",)])
        self.assertEqual(self.events(session, "outcome", "tools", type="turn.finished"), [("completed", 1)])

    def test_lines_appended_byte_by_byte_are_the_same_events(self):
        self.begin()
        source = self.kind(os.path.join(self.home, "elsewhere"))
        source.turn("grüße, 世界 🌍")
        with open(source.path, "rb") as file:
            data = file.read()
        path = source.path.replace(os.path.join(self.home, "elsewhere"), self.root_of(source.program))
        for at in range(len(data)):
            append(path, data[at : at + 1])
        self.assertEqual(list(self.assert_delivered(self.daemon, self.client, path)), [source.stream()])

    def test_a_tool_that_fails_and_one_that_is_interrupted(self):
        self.begin()
        session = self.new()
        session.prompt("build it")
        failed, stopped = session.tool_call("make"), None
        session.result(failed, "no rule", error=True)
        stopped = session.tool_call("sleep 99")
        session.interrupt(stopped)
        self.finished(session)
        self.assertEqual(self.events(session, "call", "outcome", type="tool.finished"), [(failed, "error"), (stopped, "interrupted")])
        self.assertEqual(self.events(session, "outcome", type="turn.finished"), [("interrupted",)])
        session.turn("once more")
        self.finished(session, 2)
        self.assert_delivered(self.daemon, self.client, session.path)

    def test_a_compaction(self):
        self.begin()
        session = self.new()
        session.turn("hello")
        session.compact("They greeted.")
        session.turn("go on")
        self.finished(session, self.turn_after_compaction)
        self.assertEqual(self.events(session, "kind", type="compaction.finished"), [("full",)])
        self.assertEqual(self.events(session, "text", type="message.added", role="summary"), [("They greeted.",)])
        self.assert_delivered(self.daemon, self.client, session.path)

    turn_after_compaction = 2

    def test_a_client_that_resumes_misses_and_repeats_no_event(self):
        self.begin()
        session = self.new()
        session.turn("first")
        self.finished(session)
        state = ResumeState()
        client = state.resume(self.daemon)
        session.prompt("second")
        call = session.tool_call()  # what Pi has not written before its answer is there now
        client.wait_frame(type="tool.invoked", call=call)
        state.learn(client)
        client.close()
        session.result(call)
        session.reply()
        client = state.resume(self.daemon)  # on the same daemon
        state.learn(client)
        client.close()
        self.daemon.stop()
        session.turn("third")
        self.begin()  # on the next one
        client = state.resume(self.daemon)
        session.turn("fourth")
        client.wait_frame(type="turn.finished", turn=4)
        state.learn(client)
        self.assert_same_events(self.daemon.replay(session.path)[session.stream()], state.events[session.stream()], session.stream())
        self.assertEqual(client.all(type="reset"), [])

    def test_the_session_frame(self):
        self.begin()
        session = self.new()
        session.prompt("look around")
        call = session.tool_call("make")
        self.client.wait_frame(type="tool.invoked", call=call)
        frame = next(f for f in self.daemon.client().subscribe() if f["session"] == session.session)
        self.assertEqual((frame["program"], frame["project"], frame["dialect"], frame.get("version")), (session.program, session.cwd, session.dialect, session.version))
        self.assertEqual((frame["turn"]["number"], frame["turn"]["open"], frame["turn"]["prompt"]), (1, True, "look around"))
        self.assertEqual([(tool["call"], tool["tool"], tool["input"]) for tool in frame["tools"]], [(call, session.shell_tool, session.tool_input("make"))])
        self.assertEqual([cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]], [session.stream()])
        self.assertIn("model", frame)

    def test_replay_detects_the_program_of_a_file_anywhere(self):
        self.begin()
        session = self.new()
        session.turn("look around")
        self.finished(session)
        live = [json.loads(text) for text in self.client.event_texts()[session.stream()]]
        copy = os.path.join(self.home, "copy.jsonl")
        shutil.copy(session.path, copy)
        [(stream, texts)] = self.daemon.replay(copy).items()
        self.assertEqual(stream, "copy")
        self.assertEqual([{**json.loads(text), "stream": session.stream()} for text in texts], live)
        by_root = self.daemon.replay(self.root_of(session.program))  # a directory: its transcripts
        self.assert_same_events(self.client.event_texts()[session.stream()], by_root[session.stream()], session.stream())
        with open(session.path) as file:
            done = earshot("replay", "--state", self.state, "--host", self.daemon.host, "-", home=self.home, stdin=file)
        piped = [json.loads(text) for text in done.stdout.removesuffix("\n").split("\n")]
        self.assertEqual([{**event, "stream": session.stream(), "session": session.session} for event in piped], live, done.stderr)


class CodexEvents(Events, ProgramsCase):
    kind = CodexSession
    turn_after_compaction = 3  # the compaction is work outside of a turn: a turn of its own

    def test_a_subagent_s_rollout_belongs_to_its_parent_s_session(self):
        self.begin()
        session = self.new()
        session.prompt("let one look")
        call, agent = session.spawn("look at the lamp")
        agent.prompt("look at the lamp")
        agent_call = agent.tool_call("ls")
        self.client.wait_frame(type="tool.invoked", call=agent_call)
        frame = self.client.wait(lambda: next((f for f in self.snapshot(self.daemon) if f["session"] == session.session and len(f["cursors"]) == 2
                                               and any(a.get("tools") for a in f["agents"])), None), "the session with its subagent")
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frame["cursors"]}, {session.stream(), agent.stream()})
        self.assertEqual([(a["agent"], a["call"], a["description"], [t["tool"] for t in a["tools"]]) for a in frame["agents"]],
                         [(agent.thread, call, "looker", ["exec_command"])])
        agent.result(agent_call)
        agent.reply("The lamp is fine.")
        session.spawn_finished(agent)
        session.reply()
        self.finished(session)
        self.finished(agent)
        for frame in self.client.all(stream=agent.stream()):
            if "cursor" in frame:
                self.assertEqual((frame["session"], frame["agent"]), (session.session, agent.thread))
        self.assertTrue(all("agent" not in frame for frame in self.client.all(stream=session.stream())))
        self.assertEqual(self.events(agent, "prompt", "origin", type="turn.started"), [("look at the lamp", "agent")])
        self.assertEqual(self.events(session, "subagent", "call", "outcome", type="agent.finished"), [(agent.thread, call, "completed")])
        self.assertEqual([f["session"] for f in self.daemon.client().subscribe()], [session.session])
        self.assert_delivered(self.daemon, self.client, self.root_of("codex"))

    def test_a_subagent_s_rollout_belongs_to_its_parent_s_session_after_a_restart(self):
        session = self.new()
        session.prompt("let one look")
        call, agent = session.spawn()
        agent.turn("look")
        session.spawn_finished(agent)
        session.reply()
        self.begin()
        frames = self.daemon.client().subscribe()
        self.assertEqual([f["session"] for f in frames], [session.session])
        self.assertEqual({cursor.rsplit(":", 1)[0] for cursor in frames[0]["cursors"]}, {session.stream(), agent.stream()})
        self.daemon.stop()
        for path in (session.path, agent.path):
            os.utime(path, (1_600_000_000, 1_600_000_000))
        self.begin("--recent", "1h")  # neither is read at start
        self.assertEqual([f["session"] for f in self.daemon.client().subscribe(id="b", all=True)], [session.session])

    def test_what_the_account_may_still_use(self):
        self.begin()
        session = self.new()
        session.prompt("hello")
        limits = {"limit_id": "codex", "primary": {"used_percent": 12.5, "window_minutes": 300, "resets_at": 1795390000}, "secondary": None, "plan_type": "plus"}
        session.append(session.event("token_count", info=None, rate_limits=limits))
        session.reply()
        updated = self.client.wait_frame(type="limits.updated", session=session.session)
        self.assertEqual((updated["limit"], updated["plan"], updated["windows"]),
                         ("codex", "plus", [{"name": "primary", "used_percent": 12.5, "window_minutes": 300, "resets_at": "2026-11-22T23:26:40Z"}]))
        self.finished(session)
        frame = next(f for f in self.daemon.client().subscribe() if f["session"] == session.session)
        self.assertEqual([(limit["limit"], limit["windows"]) for limit in frame["limits"]], [("codex", updated["windows"])])


class OlderCodexEvents(Events, ProgramsCase):
    kind = CodexEventsSession
    turn_after_compaction = 3


class CopilotEvents(Events, ProgramsCase):
    kind = CopilotSession

    def test_a_refused_tool_is_denied(self):
        self.begin()
        session = self.new()
        session.prompt("clean up")
        call = session.tool_call("rm -r build")
        request = session.ask_permission(call)
        session.answer_permission(request, call, "denied-interactively-by-user")
        session.result(call, "The user refused.", error=True, code="denied")
        session.reply()
        self.finished(session)
        self.assertEqual(self.events(session, "call", "outcome", type="tool.finished"), [(call, "denied")])
        self.assert_delivered(self.daemon, self.client, session.path)

    def test_a_session_of_the_old_layout(self):
        self.begin()
        session = self.new()
        session.path = os.path.join(session.root, "session-state", session.session + ".jsonl")
        session.turn("hello")
        self.finished(session)
        self.assertEqual(self.client.find(type="session.started")["stream"], f"copilot/{session.session}")


class PiEvents(Events, ProgramsCase):
    kind = PiSession

    def test_a_new_session_appears_with_its_first_answer(self):
        self.begin()
        session, other = self.new(), self.new()
        session.prompt("hello")
        other.turn("meanwhile")
        self.finished(other)
        self.assertEqual(self.client.all(session=session.session), [])
        session.reply("Hello.")
        self.finished(session)
        self.assertEqual(self.events(session, "prompt", type="turn.started"), [("hello",)])


class SideBySide(ProgramsCase):
    def test_sessions_of_all_programs_in_one_daemon(self):
        self.begin()
        sessions = [self.session(kind) for kind in (*SESSIONS.values(), CodexEventsSession)]
        claude = Session(self.root)
        for n in range(3):
            for session in (*sessions, claude):
                session.turn(f"turn {n}")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 15, "15 turns")
        events = self.assert_delivered(self.daemon, self.client, *map(self.root_of, SESSIONS), self.root)
        self.assertEqual(set(events), {session.stream() for session in sessions} | {f"claude/-home-ada-api/{claude.session}"})

    def test_a_filter_by_program_selects_sessions_events_and_status(self):
        before = {program: self.session(kind) for program, kind in SESSIONS.items()}
        for session in before.values():
            session.turn("before")
        self.begin()
        clients = {program: self.daemon.client() for program in SESSIONS}
        for program, client in clients.items():
            self.assertEqual([frame["session"] for frame in client.subscribe(filter={"program": [program]})], [before[program].session])
        after = {program: self.session(kind) for program, kind in SESSIONS.items()}
        for session in after.values():
            session.turn("after")
        for program, client in clients.items():
            client.wait_frame(type="turn.finished")
            client.wait_frame(type="status", session=after[program].session, state="idle")
            self.assertEqual({frame["session"] for frame in client.all(type="turn.finished")}, {after[program].session})
            self.assertLessEqual({frame["session"] for frame in client.frames if "session" in frame}, {before[program].session, after[program].session})
        status, _, body = curl(self.daemon, "/v1/sessions?program=co*", unix=True)
        self.assertEqual((status, {frame["program"] for frame in json.loads(body)["sessions"]}), (200, {"codex", "copilot"}))

    def test_one_working_directory_for_all_programs(self):
        self.begin()
        sessions = [self.session(kind, cwd=self.home) for kind in SESSIONS.values()]
        for session in sessions:
            session.turn("here")
            self.finished(session)
        frames = {frame["session"]: (frame["program"], frame["project"]) for frame in self.daemon.client().subscribe(filter={"project": [self.home]})}
        self.assertEqual(frames, {session.session: (session.program, self.home) for session in sessions})


class StatusCase(ProgramsCase):
    def new(self, kind):
        """A session with a process: it does not end while the test is slow."""
        return self.held_open(self.session(kind))

    def wait_status(self, session, state, **more):
        return self.client.wait_frame(type="status", session=session.session, state=state, **more)

    def wait_present(self, session, what, **fields):
        """Waits until the last status of a session has these members."""
        def last():
            statuses = self.client.all(type="status", session=session.session)
            return statuses and all(statuses[-1].get(name) == value for name, value in fields.items()) and statuses[-1]

        return self.client.wait(last, what)

    def states(self, session):
        return [frame["state"] for frame in self.client.all(type="status", session=session.session)]

    def require_processes(self):
        """Skips the test where a missing process proves nothing."""
        if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
            self.skipTest("a pid namespace hides the processes of other users: their absence proves nothing")
        with open("/proc/self/mounts") as mounts:
            proc = [line for line in mounts if " /proc proc " in line]
        if not proc or "hidepid=" in proc[-1]:
            self.skipTest("processes of other users are hidden (hidepid): their absence proves nothing")

    def wait_ended(self, session):
        return self.wait_status(session, "ended", source="process")


class Status(StatusCase):
    def test_an_open_turn_is_working_and_a_finished_one_idle(self):
        self.begin()
        for kind in (*SESSIONS.values(), CodexEventsSession):
            session = self.new(kind)
            session.prompt("go")
            call = session.tool_call()
            self.wait_status(session, "working", source="transcript")
            session.result(call)
            session.reply()
            self.wait_present(session, "the finished turn", state="idle", source="transcript")

    def test_a_turn_that_fails_for_want_of_a_sign_in_waits_for_it_until_the_next_turn(self):
        self.begin()
        session = self.new(CodexSession)
        session.prompt("go")
        session.append(session.event("error", message="unexpected status 401", codex_error_info="unauthorized"))
        session.finish()
        frame = self.wait_status(session, "waiting", reason="auth")
        self.assertEqual((frame["source"], frame["detail"]), ("transcript", "sign in: unauthorized"))
        session.prompt("again")
        self.wait_present(session, "the next turn", state="working")
        session.reply()
        self.wait_present(session, "its end", state="idle")

    def test_a_request_that_a_provider_refuses_fails_the_turn(self):
        """That the user must sign in is the program's statement, not that of any server with status 401."""
        self.begin()
        copilot, pi = self.new(CopilotSession), self.new(PiSession)
        for session in (copilot, pi):
            session.prompt("go")
        copilot.append(copilot.record("session.error", errorType="authentication", message="Unauthorized", statusCode=401))
        pi.assistant(reason="error", errorMessage='401 {"error":{"message":"invalid key"}}')
        for session in (copilot, pi):
            self.wait_present(session, "the failed turn", state="idle")
            self.assertNotIn("waiting", self.states(session))

    def test_111_each_request_is_a_wait_and_a_notice_of_its_own(self):
        self.begin()
        receiver = Receiver()
        self.addCleanup(receiver.close)
        notifier = Notifier(self, self.state, hook_rules(receiver))
        self.addCleanup(notifier.finish)
        session = self.new(CopilotSession)
        session.prompt("clean up")
        calls = [session.tool_call(f"rm -r build{n}") for n in range(3)]
        self.wait_status(session, "working")
        requests = [str(uuid.uuid4()) for _ in calls]
        asked = lambda n: session.record("permission.requested", requestId=requests[n], permissionRequest={"kind": "shell", "toolCallId": calls[n]})
        answered = lambda n: session.record("permission.completed", requestId=requests[n], toolCallId=calls[n], result={"kind": "approved"})
        records = [asked(0), asked(1)]
        session.append(*records)  # both are pending, the second since a later time
        waits = []

        def wait_request(detail):
            waits.append(self.wait_present(session, detail, state="waiting", request=requests[len(waits)], detail=detail))
            wait_for(lambda: len(receiver.delivered()) == len(waits), f"a notice of {detail}")

        wait_request("1 of 2: approve bash: rm -r build0")
        session.append(answered(0))
        wait_request("approve bash: rm -r build1")
        records.append(asked(2))
        session.append(answered(1), records[-1])  # one follows the other
        wait_request("approve bash: rm -r build2")
        self.assertEqual([wait["since"] for wait in waits], [record["timestamp"] for record in records])
        session.append(answered(2))
        self.wait_present(session, "the last answer", state="working")
        for call in calls:
            session.result(call)
        session.reply()
        self.wait_present(session, "the finished turn", state="idle")
        notifier.stop()
        self.assertEqual([notice["rule"] for notice in receiver.delivered()], ["waiting"] * 3)

    def test_115_and_118_a_resumed_session_is_idle_until_its_process_writes(self):
        self.require_processes()
        self.begin()
        session = self.session(CodexSession)
        first = session.writer(self)
        session.prompt("paint it")
        session.call("request_user_input", {"questions": [{"id": "q1", "header": "Colour", "question": "Which colour?", "options": []}]})
        asked = time.time()
        self.wait_status(session, "waiting")
        kill(first)
        self.wait_ended(session)
        wait_for(lambda: time.time() > asked + 1, "a second that separates the question from the next process")
        os.remove(session.lock_path)
        session.writer(self, opens=False)
        self.wait_present(session, "the resumed session", state="idle")
        self.daemon.stop()
        self.begin()  # fault 163: also as the first status
        self.assertEqual([frame["status"]["state"] for frame in self.snapshot(self.daemon, sessions=[session.session])], ["idle"])
        session.prompt("blue")
        self.wait_present(session, "the next turn", state="working")

    def test_118_copilot_a_resumed_session_is_idle_before_its_first_prompt(self):
        self.begin()
        session = self.session(CopilotSession)
        first = start_process(self, "copilot", cwd="/")
        lock = lambda process: os.path.join(session.folder, f"inuse.{process.pid}.lock")
        os.makedirs(session.folder, exist_ok=True)
        open(lock(first), "w").close()
        session.prompt("go")
        self.wait_status(session, "working")
        wait_for(lambda: self.process_known(session), "the process of the session")
        kill(first)
        self.wait_ended(session)
        written = os.stat(session.path).st_mtime
        wait_for(lambda: time.time() > written + 1, "a second that separates the turn from the next process")
        second = start_process(self, "copilot", cwd="/")
        open(lock(second), "w").close()
        self.wait_present(session, "the resumed session", state="idle")

    def process_known(self, session):
        status, _, _ = curl(self.daemon, f"/v1/process?session={session.session}", unix=True)
        return status == 200

    def test_163_the_first_status_of_a_session_without_a_process_is_ended(self):
        self.require_processes()
        session = self.session(CodexSession)
        session.prompt("paint it")
        session.call("request_user_input", {"questions": [{"id": "q1", "header": "Colour", "question": "Which colour?", "options": []}]})
        registered = Session(self.root)
        registered.prompt("go")
        for each in (session, registered):
            os.utime(each.path, (time.time() - 60,) * 2)
        self.begin()
        frames = self.snapshot(self.daemon, sessions=[session.session, registered.session])
        self.assertEqual([frame["status"]["state"] for frame in frames], ["ended", "ended"])

    # Codex

    def test_codex_an_announced_turn_is_working(self):
        self.begin()
        session = self.session(CodexSession)
        session.announce()
        self.wait_status(session, "working", source="transcript")
        self.assertEqual(self.events(session, "type", type="turn.started"), [])

    def test_codex_a_question_is_waiting(self):
        self.begin()
        session = self.new(CodexSession)
        session.prompt("paint it")
        call = session.call("request_user_input", {"questions": [{"id": "q1", "header": "Colour", "question": "Which colour?", "options": []}]})
        status = self.wait_status(session, "waiting", reason="question", source="transcript")
        self.assertIn("Which colour?", status["detail"])
        session.output(call, json.dumps({"answers": {"q1": {"answers": ["red"]}}}))
        self.wait_present(session, "the answer", state="working")

    def test_codex_a_plan_that_is_shown_is_waiting(self):
        self.begin()
        session = self.new(CodexSession)
        session.mode = "plan"
        session.prompt("plan it")
        session.append(session.item("Plan", id="plan-1", text="1. Look\n2. Mend"))
        session.finish("1. Look\n2. Mend")
        self.wait_status(session, "waiting", reason="plan", source="transcript")
        session.prompt("go")
        self.wait_present(session, "the next turn", state="working")

    def test_codex_a_command_that_takes_long_may_wait_for_approval_and_is_working(self):
        self.begin()
        session = self.session(CodexSession)
        session.writer(self)
        session.prompt("clean up")
        call = session.tool_call("rm -r build")
        self.wait_status(session, "working")
        hint = self.client.wait(lambda: next((f for f in self.client.all(type="status", session=session.session) if "approval" in f.get("detail", "")), None),
                                "the hint")
        self.assertEqual((hint["state"], hint["source"], hint["detail"]),
                         ("working", "transcript", "exec_command: rm -r build (may be waiting for approval: not visible)"))
        session.result(call)
        self.client.wait(lambda: "detail" not in self.client.all(type="status", session=session.session)[-1], "the end of the hint")
        session.reply()
        self.wait_present(session, "the finished turn", state="idle")
        self.assertNotIn("waiting", self.states(session))

    def test_codex_a_writer_that_is_killed_ends_its_sessions(self):
        self.require_processes()
        self.begin()
        sessions = [self.session(kind) for kind in (CodexSession, CodexSession, CodexEventsSession)]
        writers = [sessions[0].writer(self), sessions[1].writer(self), sessions[2].writer(self, locks=False)]
        for session in sessions:
            session.prompt("go")
            self.wait_status(session, "working")
        sessions[1].reply()
        self.wait_present(sessions[1], "the finished turn", state="idle")
        for writer in writers:
            kill(writer)
        for session in sessions:
            self.wait_ended(session)
        self.assertTrue(os.path.exists(sessions[0].lock_path))  # a file that is not locked proves nothing
        self.assertFalse(sessions[0].is_locked())
        again, without = sessions[0].writer(self), self.session(CodexSession)
        sessions[0].prompt("resumed")
        self.wait_present(sessions[0], "the resumed session", state="working")
        without.turn("go")
        self.wait_ended(without)  # the processes were examined again
        self.assertEqual(self.states(sessions[0])[-1], "working")
        kill(again)
        self.wait_present(sessions[0], "its second end", state="ended", source="process")

    def test_codex_a_locked_thread_is_alive_although_nothing_has_its_rollout_open(self):
        self.require_processes()
        self.begin()
        alive, open_only, dead = (self.session(CodexSession, cwd=self.home) for _ in range(3))
        writer = alive.writer(self, opens=False)
        open_only.writer(self, locks=False)
        for session in (alive, open_only, dead):
            session.turn("go")
        os.makedirs(os.path.dirname(dead.lock_path), exist_ok=True)
        open(dead.lock_path, "w").close()  # left behind
        start_process(self, "codex", cwd=self.home)  # a directory does not prove whose process it is
        for session in (alive, open_only):
            self.wait_present(session, "the finished turn", state="idle")
        self.wait_ended(dead)
        self.assertEqual([self.states(session)[-1] for session in (alive, open_only)], ["idle", "idle"])
        kill(writer)
        self.wait_ended(alive)
        self.assertEqual(self.states(open_only)[-1], "idle")

    def test_codex_a_thread_that_its_process_has_closed_has_ended(self):
        self.require_processes()
        self.begin()
        session, other = self.session(CodexSession), self.session(CodexSession)
        writer = session.writer(self)
        for each in (session, other):
            each.turn("go")
        self.wait_ended(other)  # the writer was seen
        self.assertEqual(self.states(session)[-1], "idle")
        writer.send_signal(signal.SIGUSR1)  # as an app server that unloads a thread
        self.wait_ended(session)
        self.assertIsNone(writer.poll())

    def test_codex_a_session_that_is_resumed_for_a_moment_ends_again(self):
        self.require_processes()
        self.begin()
        session, other = self.session(CodexSession), self.session(CodexSession)
        writer = session.writer(self)
        for each in (session, other):
            each.turn("go")
        self.wait_ended(other)  # the writer was seen
        kill(writer)
        self.wait_ended(session)
        writer = session.writer(self)
        session.turn("resumed")
        self.client.wait(lambda: self.states(session)[-1] == "idle", "the second turn")
        kill(writer)
        self.client.wait(lambda: self.states(session).count("ended") == 2, "the second end")

    def test_codex_a_session_without_a_writer_has_ended_also_after_a_restart(self):
        self.require_processes()
        session, open_turn = self.session(CodexSession), self.session(CodexSession)
        session.turn("go")
        open_turn.prompt("go")
        self.begin()
        for each in (session, open_turn):
            self.wait_ended(each)

    def test_codex_a_turn_that_a_new_program_finishes_is_closed(self):
        self.begin()
        session = self.new(CodexSession)
        session.prompt("first")
        self.wait_status(session, "working")
        session.interrupt(session.tool_call())
        self.wait_present(session, "the interruption", state="idle")

    def test_codex_a_thread_that_is_renamed_gets_its_title(self):
        self.begin()
        session = self.session(CodexSession)
        session.turn("mend the lamp")
        index = os.path.join(session.root, "session_index.jsonl")
        for title in ("Lamp", "Lamp and horn"):
            with open(index, "a") as file:
                file.write(json.dumps({"id": str(uuid.uuid4()), "thread_name": "Other", "updated_at": now()}) + "\n")
                file.write(json.dumps({"id": session.session, "thread_name": title, "updated_at": now()}) + "\n")
            self.client.wait(lambda: self.client.all(type="status", session=session.session, title=title), f"the title {title}")
        frames = self.daemon.client().subscribe(sessions=[session.session])
        self.assertEqual([frame["title"] for frame in frames], ["Lamp and horn"])

    # Copilot CLI

    def test_copilot_the_title_in_the_workspace_file_is_that_of_the_session(self):
        self.begin()
        session = self.session(CopilotSession)
        session.prompt("mend the lamp")
        for title in ("Mend the lamp", "Mend the horn"):
            path = os.path.join(session.folder, "workspace.yaml")
            with open(path + ".tmp", "w") as file:
                file.write(f"id: {session.session}\nname: {title}\n")
            os.rename(path + ".tmp", path)
            self.client.wait(lambda: self.client.all(type="status", session=session.session, title=title), f"the title {title}")
        session.reply()
        frames = self.daemon.client().subscribe(sessions=[session.session])
        self.assertEqual([frame["title"] for frame in frames], ["Mend the horn"])

    def test_copilot_a_request_for_permission_is_waiting_until_it_is_answered(self):
        self.begin()
        session = self.new(CopilotSession)
        session.prompt("clean up")
        for command, kind in (("rm -r build", "approved"), ("rm -r /", "denied-interactively-by-user")):
            call = session.tool_call(command)
            request = session.ask_permission(call)
            wait = self.wait_present(session, "the request", state="waiting", reason="permission", source="transcript", detail=f"approve bash: {command}")
            self.assertTrue(wait["since"])
            session.answer_permission(request, call, kind)
            self.wait_present(session, "the answer", state="working")
            session.result(call)
        session.reply()
        self.wait_present(session, "the finished turn", state="idle")

    def test_copilot_a_request_ends_with_an_abort(self):
        self.begin()
        session = self.new(CopilotSession)
        session.prompt("clean up")
        call = session.tool_call("rm -r build")
        session.ask_permission(call)
        self.wait_status(session, "waiting", reason="permission")
        session.interrupt(call)
        self.wait_present(session, "the abort", state="idle")

    def test_copilot_a_question_and_a_plan_are_waiting(self):
        self.begin()
        session = self.new(CopilotSession)
        session.prompt("paint it")
        call = session.call("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]})
        status = self.wait_status(session, "waiting", reason="question", source="transcript")
        self.assertIn("Which colour?", status["detail"])
        session.result(call, "red")
        self.wait_present(session, "the answer", state="working")
        call = session.call("exit_plan_mode", {"summary": "1. Look\n2. Mend"})
        self.wait_status(session, "waiting", reason="plan")
        session.result(call, "approved")
        self.wait_present(session, "the approval", state="working")

    def test_copilot_a_compaction(self):
        self.begin()
        session = self.new(CopilotSession)
        session.turn("hello")
        self.wait_status(session, "idle")
        session.add("session.compaction_start", currentTokens=11000, trigger="manual")
        self.wait_status(session, "working", reason="compaction")
        session.add("session.compaction_complete", success=True, summaryContent="They greeted.")
        self.wait_present(session, "its end", state="idle")

    def test_copilot_a_shutdown_ends_the_session(self):
        self.begin()
        session = self.new(CopilotSession)
        session.turn("hello")
        self.wait_status(session, "idle")
        session.shut_down()
        self.wait_status(session, "ended", source="transcript")
        session.add("session.resume", resumeTime="2026-11-22T10:00:00.000Z", context={"cwd": session.cwd, "branch": "main"}, alreadyInUse=False)
        session.prompt("resumed")
        self.wait_present(session, "the resumed session", state="working")

    def test_copilot_what_a_run_without_a_terminal_did_is_marked(self):
        self.require_processes()
        self.begin()
        for arguments, is_headless in ((("-p", "go"), True), ((), False)):
            session = self.session(CopilotSession)
            session.lock(start_process(self, "copilot", *arguments))
            session.prompt("go")
            self.wait_status(session, "working")
            killed, other = start_process(self, "copilot"), self.session(CopilotSession)
            other.lock(killed)
            kill(killed)
            other.prompt("go")
            self.wait_ended(other)  # the processes were examined
            session.reply()
            self.wait_present(session, "the finished turn", state="idle")
            done = next(frame["done"] for frame in self.client.all(type="status", session=session.session) if "done" in frame)
            self.assertEqual(done.get("headless", False), is_headless)

    def test_copilot_a_killed_process_ends_the_session_that_its_lock_file_names(self):
        self.require_processes()
        self.begin()
        session, other = self.session(CopilotSession), self.session(CopilotSession)
        process = start_process(self, "copilot")
        lock = session.lock(process)
        other.lock(start_process(self, "copilot"))
        session.prompt("go")
        other.prompt("go")
        self.wait_status(session, "working")
        self.wait_status(other, "working")
        kill(process)
        self.wait_ended(session)
        self.assertTrue(os.path.exists(lock))
        self.assertEqual(self.states(other)[-1], "working")

    # Pi

    def test_pi_a_killed_process_ends_the_sessions_of_its_directory(self):
        self.require_processes()
        self.begin()
        work, play = os.path.join(self.home, "work"), os.path.join(self.home, "play")
        os.mkdir(work)
        os.mkdir(play)
        session, other = self.session(PiSession, cwd=work), self.session(PiSession, cwd=play)
        process = start_process(self, "pi", cwd=work)
        start_process(self, "pi", cwd=play)
        for each in (session, other):
            each.prompt("go")
            each.tool_call()
            self.wait_status(each, "working")
        kill(process)
        self.wait_ended(session)
        self.assertEqual(self.states(other)[-1], "working")

    def test_a_process_of_another_program_does_not_keep_a_session_alive(self):
        self.require_processes()
        self.begin()
        pi, copilot = self.session(PiSession, cwd=self.home), self.session(CopilotSession, cwd=self.home)
        start_process(self, "pi", cwd=self.home)
        start_process(self, "claude", cwd=self.home)
        start_process(self, "codex", cwd=self.home)
        for session in (pi, copilot):
            session.turn("go")
        self.wait_present(pi, "the finished turn", state="idle")
        self.wait_ended(copilot)
        self.assertEqual(self.states(pi)[-1], "idle")

    def test_a_registry_of_another_program_says_nothing(self):
        self.begin()
        session = self.session(PiSession)
        session.turn("go")
        Registry(self.root, session.session + "-other", self.process()).set_status("busy")
        self.wait_status(session, "idle", source="transcript")


if __name__ == "__main__":
    import unittest

    unittest.main()
