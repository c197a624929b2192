"""The program `earshot` in a pipe and on a terminal."""
import json
import os
import signal
import subprocess

from support.harness import CommandLines, DaemonCase, build, clean_environment, earshot, wait_for
from support.terminal import CONTROL_SEQUENCES, Terminal, assert_no_control_characters
from support.transcripts import Registry, Session


class Tail(DaemonCase):
    def terminal(self, *args, **more):
        terminal = Terminal(args, self.home, **more)
        self.addCleanup(terminal.close)
        return terminal

    def test_tail_on_a_terminal_prints_a_line_per_event(self):
        self.start()
        terminal = self.terminal("tail", "--state", self.state)
        terminal.wait_connected(self.root)
        session = Session(self.root)
        session.prompt("fix the flaky test")
        terminal.wait("fix the flaky test")
        registry = Registry(self.root, session.session, self.process())
        call = session.tool_call("Bash", {"command": "npm test", "description": "Run"})
        terminal.wait(r"Bash +npm test")  # or the wait may be known without its call
        registry.set_status("waiting", "permission prompt")
        terminal.wait(r"(?i)needs you.*permission.*npm test")
        session.result(call, "ok")
        session.reply("All green.", stop_reason="end_turn")
        terminal.wait(r"turn 1 completed")
        shown = terminal.plain()
        self.assertRegex(shown, r"api .*Bash +npm test")
        self.assertIn("All green.", shown)
        self.assertTrue(all(len(line) <= 100 for line in shown.split("\n")), shown)
        self.assertRegex(terminal.read(), "\x1b\\[")  # coloured
        self.assertEqual(terminal.stop(), 0)

    def test_no_color_is_respected(self):
        self.start()
        terminal = self.terminal("tail", "--state", self.state, NO_COLOR="1")
        terminal.wait_connected(self.root)
        Session(self.root).prompt("plainly")
        terminal.wait("plainly")
        self.assertNotRegex(terminal.read(), "\x1b\\[[0-9;]*m")
        self.assertEqual(terminal.stop(signal.SIGTERM), 0)

    def test_control_characters_never_reach_the_terminal(self):
        self.start()
        pretty = self.terminal("tail", "--state", self.state)
        pretty.wait_connected(self.root)
        session = Session(self.root, cwd="/home/ada/e\x1b[31mvil")
        session.prompt(f"prompt {CONTROL_SEQUENCES}")
        call = session.tool_call("Bash", {"command": f"echo {CONTROL_SEQUENCES}", "description": CONTROL_SEQUENCES})
        session.result(call, f"output {CONTROL_SEQUENCES}", error=True)
        session.result(session.tool_call(f"Tool{CONTROL_SEQUENCES}", {"file_path": CONTROL_SEQUENCES}))
        session.append(session.record("summary", summary=f"title {CONTROL_SEQUENCES}", leafUuid=session.parent), {"type": "custom-title", "customTitle": f"title {CONTROL_SEQUENCES}", "sessionId": session.session})
        session.reply(f"answer {CONTROL_SEQUENCES}", stop_reason="end_turn")
        pretty.wait("turn 1 completed")
        assert_no_control_characters(self, pretty.plain())
        table = self.terminal("ls", "--state", self.state)
        wait_for(lambda: table.process.poll() is not None, "the table")
        self.assertIn("vil", table.plain())
        assert_no_control_characters(self, table.plain())
        pretty.stop()

    def test_154_json_on_a_terminal_has_no_raw_control_character(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root, cwd=f"/home/ada/e{CONTROL_SEQUENCES}")
        Registry(self.root, session.session, self.process()).set_status("busy")
        session.prompt(f"needle {CONTROL_SEQUENCES}")
        session.result(session.tool_call(f"Tool{CONTROL_SEQUENCES}", {"file_path": CONTROL_SEQUENCES}))
        session.append({"type": f"odd{CONTROL_SEQUENCES}", "sessionId": session.session}, {"type": "custom-title", "customTitle": f"title {CONTROL_SEQUENCES}", "sessionId": session.session})
        session.reply(f"answer {CONTROL_SEQUENCES}", stop_reason="end_turn")
        os.mkfifo(os.path.join(os.path.dirname(session.path), "A\x9b31mB\u202eC\x7f.jsonl"))
        client.wait_frame(type="turn.finished", session=session.session)
        wait_for(lambda: "31mB" in self.health_problems(), "the problem of the FIFO")
        wait_for(lambda: earshot("search", "needle", "--state", self.state, home=self.home).returncode == 0, "the index")
        commands = {
            "ls": ["ls"], "tail": ["tail", "--since", "1h"], "show": ["show", session.session], "search": ["search", "needle"], "focus": ["focus", session.session],
            "status": ["status"], "statusline": ["statusline"], "browsers": ["browsers"], "doctor": ["doctor"], "usage": ["usage", "--root", self.root],
            "replay": ["replay", "--stats", "--events", session.path],
        }
        with_json = [name for name in (line.split("\t")[0] for line in earshot("complete", "", home=self.home).stdout.splitlines())
                     if "\n--json\t" in earshot("complete", name, "--", home=self.home).stdout]
        self.assertEqual(sorted(with_json), sorted(commands))
        offline = ("usage", "replay")
        for name, words in commands.items():
            with self.subTest(command=name):
                terminal = self.terminal(*words, "--json", *(() if name in offline else ("--state", self.state)))
                if name == "tail":
                    terminal.wait("turn.finished")
                else:
                    wait_for(lambda: terminal.process.poll() is not None, "the end")
                shown = terminal.read()
                self.assertIn("{" if name != "browsers" else "[", shown)
                assert_no_control_characters(self, shown)

    def test_154_the_notifier_on_a_terminal_prints_no_raw_control_character(self):
        rules = os.path.join(self.home, "notify.toml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write('[[rule]]\nname = "a\u202eb"\non = "turn.finished"\nsinks = ["p"]\ntitle = "x\u009by"\n[sink.p]\nkind = "ntfy"\nurl = "https://ntfy.test/x"\n')
        for words in (["check", rules], ["test", "turn.finished", "--rules", rules], ["check", rules, "--json"], ["test", "turn.finished", "--rules", rules, "--json"]):
            with self.subTest(words=words):
                terminal = self.terminal(*words, program="earshot-notify")
                wait_for(lambda: terminal.process.poll() is not None, "the end")
                shown = terminal.read()
                self.assertIn("a\\u202eb", shown)
                assert_no_control_characters(self, shown)

    def health_problems(self):
        return "".join(each["path"] for each in json.loads(earshot("status", "--json", "--state", self.state, home=self.home).stdout)["problems"])

    def test_159_tail_in_a_pipe_prints_the_lines_of_the_terminal_without_colour(self):
        self.start()
        session = Session(self.root)
        session.turn("piped")
        terminal = self.terminal("tail", "--since", "1h", "--state", self.state, NO_COLOR="1")
        terminal.wait("turn 1 completed")
        piped = CommandLines([os.path.join(build(), "earshot"), "tail", "--since", "1h", "--state", self.state], clean_environment(self.home))
        self.addCleanup(piped.close)
        wait_for(lambda: any("turn 1 completed" in line for line in piped.lines), "the turn")
        self.assertEqual([line for line in piped.lines if "api" in line], [line for line in terminal.plain().split("\n") if "api" in line])

    def test_tail_json_writes_the_frames_unchanged(self):
        daemon = self.start()
        client = daemon.subscriber()
        path = os.path.join(self.home, "frames")
        with open(path, "wb") as out:
            tail = subprocess.Popen([os.path.join(build(), "earshot"), "tail", "--json", "--state", self.state], stdout=out, env=clean_environment(self.home))
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)

        def lines():
            with open(path, encoding="utf-8") as file:
                return file.read().split("\n")[:-1]

        wait_for(lambda: any(json.loads(line)["type"] == "ready" for line in lines()), "the end of the snapshot")
        session = Session(self.root)
        session.turn("piped")
        self.assert_delivered(daemon, client, session.path)
        events = client.event_texts()[f"claude/-home-ada-api/{session.session}"]
        wait_for(lambda: sum('"cursor"' in line for line in lines()) >= len(events), "the turn")
        self.assert_same_events(events, [line for line in lines() if "cursor" in json.loads(line)], "the output of tail")

    def test_tail_reconnects_after_a_restart_of_the_daemon(self):
        daemon = self.start()
        terminal = self.terminal("tail", "--state", self.state)
        terminal.wait_connected(self.root)
        session = Session(self.root)
        session.prompt("before")
        terminal.wait("before")
        daemon.stop()
        self.start_again(daemon)
        session.prompt("afterwards")
        terminal.wait("afterwards")
        terminal.stop()

    def test_without_a_daemon_it_names_the_address_and_exits_1(self):
        done = earshot("ls", "--state", self.state, "--connect", "ws://127.0.0.1:9/v1/ws", home=self.home)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("127.0.0.1:9", done.stderr)

    def test_every_command_names_the_socket_and_the_reason(self):
        for command in ("ls", "status", "search"):
            with self.subTest(command=command):
                done = earshot(command, *(["x"] if command == "search" else []), "--socket", "/nonexistent", home=self.home)
                self.assertIn("cannot reach the daemon at unix:/nonexistent: No such file or directory\n", done.stderr)

    def test_a_time_that_is_no_date_is_refused_and_a_future_one_said(self):
        self.assertEqual(earshot("usage", "--root", self.root, "--since", "2026-02-31", home=self.home).returncode, 2)
        future = earshot("usage", "--root", self.root, "--since", "2999-01-01", home=self.home)
        self.assertEqual(future.returncode, 0, future)
        self.assertIn("--since 2999-01-01 is in the future", future.stderr)

    def test_a_usage_error_exits_2(self):
        self.assertEqual(earshot("dance", home=self.home).returncode, 2)
        early = earshot("--json", "ls", home=self.home)
        self.assertEqual(early.returncode, 2)
        self.assertIn("`--json` follows the command: earshot ls --json", early.stderr)
        for words, text in ((["dance"], "unknown command `dance`\nRun `earshot --help` for a list of commands.\n"),
                            (["ls", "--dance"], "unknown option `--dance` of `earshot ls`\nRun `earshot ls --help` for its options.\n"),
                            (["show", "--turn", "0"], "--turn: `0` is not a number from 1 to 1,000,000,000\nRun `earshot show --help` for its options.\n"),
                            (["search", "--limit", "x", "y"], "--limit: `x` is not a number from 1 to 10,000\nRun `earshot search --help` for its options.\n"),
                            (["search", "--kind", "text", "y"], "--kind: `text` is none of prompt, answer, tool, title\nRun `earshot search --help` for its options.\n"),
                            (["completions", "csh"], "SHELL: `csh` is none of bash, zsh, fish\nRun `earshot completions --help` for its options.\n"),
                            (["usage", "--by", "host"], "--by: `host` is none of day, model, program, project, session\nRun `earshot usage --help` for its options.\n"),
                            (["browsers", "list"], "ACTION: `list` is no action; write `earshot browsers` for the list, `earshot browsers revoke` to sign out\n"
                                                   "Run `earshot browsers --help` for its options.\n")):
            with self.subTest(words=words):
                done = earshot(*words, home=self.home)
                self.assertEqual((done.returncode, done.stderr), (2, "earshot: " + text))

    def test_156_an_option_without_a_command_is_said_to_follow_one(self):
        alone = earshot("--state", self.state, home=self.home)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("`--state` follows a command, as in: earshot ls --state", alone.stderr)

    def test_156_every_text_that_cannot_be_written_is_reported(self):
        for words in (["earshot"], ["earshot", "--help"], ["earshot", "--version"], ["earshot", "ls", "--help"], ["earshot", "help", "ls"],
                      ["earshot", "completions", "bash"], ["earshot", "complete", ""], ["earshot-notify", "--help"], ["earshot-notify", "--version"],
                      ["earshot-notify", "check"], ["earshot-notify", "check", "--json"], ["earshot-notify", "test", "permission"],
                      ["earshot-notify", "test", "permission", "--json"], ["earshot-notify", "completions", "zsh"], ["earshot-notify", "complete", ""],
                      ["earshotd", "--help"], ["earshotd", "--version"], ["earshotd", "--print-config"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([os.path.join(build(), words[0]), *words[1:]], stdout=full, stderr=subprocess.PIPE, text=True, env=clean_environment(self.home))
                self.assertEqual((done.returncode, done.stderr), (1, f"{words[0]}: cannot write the output: No space left on device\n"))


class Ls(DaemonCase):
    def test_ls_lists_waiting_sessions_first(self):
        daemon = self.start()
        client = daemon.subscriber()
        calm, asking = Session(self.root, cwd="/home/ada/calm"), Session(self.root, cwd="/home/ada/asking")
        calm.turn("nothing much")
        asking.prompt("delete it")
        asking.tool_call("Bash", {"command": "rm -rf build"})
        Registry(self.root, asking.session, self.process()).set_status("waiting", "permission prompt")
        client.wait(lambda: [f for f in client.all(type="status", state="waiting") if "rm -rf" in f.get("detail", "")], "the waiting session")
        client.wait_frame(type="turn.finished", session=calm.session)
        table = earshot("ls", "--state", self.state, home=self.home)
        self.assertEqual(table.returncode, 0, table)
        rows = [line for line in table.stdout.splitlines() if "asking" in line or "calm" in line]
        self.assertEqual(len(rows), 2, table.stdout)
        self.assertIn("asking", rows[0])
        self.assertRegex(rows[0], "permission.*rm -rf build")

    def test_ls_json_is_one_array_of_session_frames(self):
        _, session = self.daemon_with_a_turn()
        done = earshot("ls", "--json", "--state", self.state, home=self.home)
        frames = json.loads(done.stdout)
        self.assertEqual([(f["type"], f["session"], f["turn"]["number"]) for f in frames], [("session", session.session, 1)])

    def test_ls_without_sessions_prints_a_hint(self):
        self.start()
        done = earshot("ls", "--state", self.state, home=self.home)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no sessions", (done.stdout + done.stderr).lower())


class Replay(DaemonCase):
    def test_replay_needs_no_daemon_and_reads_stdin(self):
        session = Session(self.root)
        session.turn("offline")
        one = earshot("replay", session.path, home=self.home)
        self.assertEqual(one.returncode, 0, one)
        types = [json.loads(line)["type"] for line in one.stdout.splitlines()]
        self.assertEqual(types[0], "session.started")
        self.assertEqual(types[-1], "turn.finished")
        with open(session.path) as file:
            piped = subprocess.run([os.path.join(build(), "earshot"), "replay", "-"], stdin=file, capture_output=True, text=True,
                                   env=clean_environment(self.home))
        self.assertEqual([json.loads(line)["type"] for line in piped.stdout.splitlines()], types)

    def test_the_meta_view_prints_no_text(self):
        session = Session(self.root)
        session.turn("a secret word")
        output = earshot("replay", "--view", "meta", session.path, home=self.home).stdout
        self.assertIn("turn.finished", output)
        self.assertNotIn("secret word", output)
