"""`earshot focus`: panes of a real tmux with two sessions, and windows of a real X server."""
import json
import os
import re
import shutil
import subprocess
import sys

from support import x11
from support.harness import CommandLines, DaemonCase, clean_environment, deadline_s, earshot, wait_for
from support.transcripts import Registry, Session

X11 = os.path.abspath(x11.__file__)


class Process:
    """A process that a test knows by its number only."""

    def __init__(self, pid):
        self.pid = pid


class Focus(DaemonCase):
    def setUp(self):
        super().setUp()
        self.daemon = self.start()
        self.client = self.daemon.subscriber()

    def waiting_session(self, pid, project="/home/ada/api", waiting="permission prompt"):
        """The id of a session that this process runs, as soon as the daemon knows that it waits."""
        session = Session(self.root, cwd=project)
        session.prompt("build it")
        session.tool_call("Bash", {"command": "rm -rf build"})
        Registry(self.root, session.session, Process(pid)).set_status("waiting", waiting)
        self.client.wait(lambda: self.client.all(type="status", session=session.session, state="waiting"), "the wait")
        return session.session

    def focus(self, *args, code=0, **environment):
        env = {name: value for name, value in clean_environment(self.home).items() if name not in ("DISPLAY", "TMUX", "WINDOWID")}
        done = earshot("focus", "--state", self.state, *args, env={**env, **environment})
        self.assertEqual(done.returncode, code, done)
        return done

    # The daemon

    def test_without_a_waiting_session_nothing_is_chosen(self):
        done = self.focus(code=1)
        self.assertIn("no session waits for you", done.stderr)

    def test_through_tcp_it_says_that_it_needs_the_socket(self):
        done = earshot("focus", "--connect", f"ws://127.0.0.1:{self.daemon.port}/v1/ws", "--token-file", os.path.join(self.state, "token"), home=self.home)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("only through its Unix socket", done.stderr)
        self.assertIn("--socket FILE", done.stderr)

    def test_a_session_without_a_terminal_is_named(self):
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        session = self.waiting_session(process.pid)
        done = self.focus(code=5)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"pid {process.pid}", done.stderr)
        self.assertIn("it has no terminal", done.stderr)
        report = json.loads(self.focus(session[:8], "--json", code=5).stdout)
        self.assertEqual((report["session"], report["focused"], report["pid"], report["program"]), (session, False, process.pid, "claude-code"))

    def test_a_session_that_has_ended_has_no_process(self):
        session = Session(self.root)
        session.turn("hello")
        self.client.wait(lambda: self.client.all(type="turn.finished", session=session.session), "the turn")
        done = self.focus(session.session, code=4)
        self.assertIn("no process of api", done.stderr)

    # tmux

    def tmux(self, *words, server="inner"):
        done = subprocess.run(["tmux", "-u", "-L", server, "-f", "/dev/null", *words], capture_output=True, text=True, env=self.tmux_env,
                              stdin=subprocess.DEVNULL, timeout=deadline_s * 4)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.strip()

    def start_tmux(self):
        """A server with the sessions `one` and `two words`; the processes of the panes of the second one. Nothing is attached."""
        if not shutil.which("tmux"):
            self.skipTest("tmux is not installed")
        self.tmux_env = {**clean_environment(self.home), "TMUX_TMPDIR": self.home, "SHELL": "/bin/sh"}
        for name in ("TMUX", "DISPLAY"):
            self.tmux_env.pop(name, None)
        self.addCleanup(lambda: [subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, env=self.tmux_env) for name in ("inner", "outer")])
        self.tmux("new-session", "-d", "-s", "one", "-x", "100", "-y", "30", "sleep 600")
        self.tmux("new-session", "-d", "-s", "two words", "-x", "100", "-y", "30", "sleep 601")
        self.tmux("split-window", "-t", "two words:0", "sleep 602; sleep 603")  # a shell, whose child is the session's process
        self.tmux("split-window", "-t", "two words:0", "sleep 604")
        self.tmux("new-window", "-t", "two words:1", "sleep 605")
        return [int(pid) for pid in self.tmux("list-panes", "-s", "-t", "two words", "-F", "#{pane_pid}").split()]

    def attach(self, session="one"):
        """Attaches a client, whose terminal is a pane of another tmux; returns the pane's terminal."""
        command = f"env -u TMUX tmux -u -L inner attach-session -t '{session}'"
        self.tmux("new-session", "-d", "-s", "terminals", "-x", "100", "-y", "30", command, server="outer")
        self.tmux("new-window", "-t", "terminals:1", "sleep 600", server="outer")
        return wait_for(lambda: self.tmux("list-clients", "-F", "#{client_tty}"), "the client")

    def shown(self):
        """The session, the window and the pane that the client shows."""
        client = self.tmux("list-clients", "-F", "#{client_session}")
        return client, *self.tmux("display-message", "-p", "-t", f"={client}:", "#{window_index} #{pane_index}").split()

    def child_of(self, pid):
        def children():
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                return file.read().split()

        return int(wait_for(children, "the shell's child")[0])

    def test_the_pane_is_selected_and_the_client_switched_to_its_session(self):
        pids = self.start_tmux()
        tty = self.attach()
        self.assertEqual(self.shown(), ("one", "0", "0"))
        session = self.waiting_session(self.child_of(pids[1]))
        report = json.loads(self.focus("--json", TMUX_TMPDIR=self.home).stdout)
        self.assertEqual((report["session"], report["focused"], report["terminal"]), (session, True, "tmux"))
        self.assertRegex(report["tty"], "^/dev/pts/[0-9]+$")
        self.assertEqual(report["steps"][:2], ["tmux: selected pane two words:0.1", f"tmux: switched the client at {tty} to the session"])
        self.assertEqual(self.shown(), ("two words", "0", "1"))
        # The client's own terminal is a pane of the outer tmux: its window was selected, too.
        self.assertIn("tmux: selected pane terminals:0.0", report["steps"])
        self.assertEqual(self.tmux("display-message", "-p", "-t", "terminals:", "#{window_index}", server="outer"), "0")

    def test_a_client_that_shows_the_session_stays_there(self):
        pids = self.start_tmux()
        self.attach("two words")
        self.assertEqual(self.shown(), ("two words", "1", "0"))
        self.waiting_session(pids[2])
        done = self.focus(TMUX_TMPDIR=self.home)
        self.assertRegex(done.stdout, rf"^focused api \(\w+\), pid {pids[2]} on /dev/pts/\d+\n  tmux: selected pane two words:0\.2\n")
        self.assertNotIn("switched", done.stdout)
        self.assertEqual(self.shown(), ("two words", "0", "2"))

    def test_a_detached_tmux_session_is_not_in_front(self):
        pids = self.start_tmux()
        self.waiting_session(pids[0])
        done = self.focus(code=5, TMUX_TMPDIR=self.home)
        self.assertRegex(done.stderr, r"attach-session -t '=two words'")
        command = re.search(r"tmux session: (.*)", done.stderr)[1]
        self.tmux("new-session", "-d", "-s", "terminals", "-x", "100", "-y", "30", f"env -u TMUX {command}", server="outer")
        wait_for(lambda: self.tmux("list-clients", "-F", "#{client_session}") == "two words", "the client of the command that was printed")

    def test_a_finished_session_counts_as_seen_once_it_is_in_front(self):
        pids = self.start_tmux()
        session = Session(self.root)
        registry = Registry(self.root, session.session, Process(pids[1]))
        session.prompt("mend the lamp")
        registry.set_status("busy")
        self.client.wait_frame(type="status", session=session.session, source="registry")
        session.reply("Mended.", stop_reason="end_turn")
        registry.set_status("idle")

        def is_unseen():
            return self.client.all(type="session", session=session.session)[-1].get("unseen", False)

        self.client.wait_frame(type="session", session=session.session, unseen=True)
        self.focus(session.session, code=5, TMUX_TMPDIR=self.home)  # no client shows the pane
        self.assertTrue(is_unseen())
        self.attach()
        self.focus(session.session, TMUX_TMPDIR=self.home)
        self.client.wait(lambda: not is_unseen(), "the session to count as seen")

    def test_the_session_that_has_waited_longest_is_chosen(self):
        pids = self.start_tmux()
        self.attach()
        first = self.waiting_session(pids[3], "/home/ada/first")
        second = self.waiting_session(pids[0], "/home/ada/second")
        self.assertEqual(json.loads(self.focus("--json", TMUX_TMPDIR=self.home).stdout)["session"], first)
        self.assertEqual(self.shown(), ("two words", "1", "0"))
        self.assertEqual(json.loads(self.focus("--project", "second", "--json", TMUX_TMPDIR=self.home).stdout)["session"], second)
        self.assertEqual(self.shown(), ("two words", "0", "0"))

    # X11

    def start_x11(self):
        if not shutil.which("Xvfb"):
            self.skipTest("Xvfb is not installed")
        server = x11.Server(self.home)
        self.addCleanup(server.close)
        self.display = x11.Display(server.display)
        self.addCleanup(self.display.socket.close)
        self.x11_env = {**clean_environment(self.home), "DISPLAY": server.display}
        self.x11_env.pop("XAUTHORITY", None)

    def lines(self, *command):
        lines = CommandLines([sys.executable, X11, *command], self.x11_env)
        self.addCleanup(lines.close)
        wait_for(lambda: lines.lines, "the first line", give_up=lambda: lines.process.poll() is not None and "it has ended")
        return lines

    def terminal(self, *command):
        """A window, and the pid of the command in it."""
        window, pid = self.lines("terminal", *command).lines[0].split()
        return int(window), int(pid)

    def test_the_window_of_the_terminal_is_raised_and_has_the_focus(self):
        self.start_x11()
        window, pid = self.terminal("sh", "-c", "sleep 600; true")
        other, _ = self.terminal("sleep", "600")
        self.assertEqual(self.display.topmost(), other)
        self.waiting_session(self.child_of(pid))
        report = json.loads(self.focus("--json").stdout)  # DISPLAY is that of the session's process
        self.assertEqual((report["focused"], report["terminal"]), (True, "x11"))
        self.assertEqual((self.display.focused(), self.display.topmost()), (window, window))
        self.assertRegex(report["steps"][-1], r"^X11: activated a window of python[\d.]*, pid \d+$")

    def test_a_window_manager_is_asked_to_activate_the_window(self):
        self.start_x11()
        manager = self.lines("manager")
        window, pid = self.terminal("sleep", "600")
        other, _ = self.terminal("sleep", "600")
        wait_for(lambda: self.display.clients() == [window, other], "the window manager to list both windows")
        self.waiting_session(pid)
        self.focus()
        wait_for(lambda: manager.lines[1:] == [str(window)], "the request to the window manager")

    def test_the_window_of_a_tmux_client_is_raised(self):
        self.start_x11()
        pids = self.start_tmux()
        self.tmux_env["DISPLAY"] = self.x11_env["DISPLAY"]
        self.x11_env.update(TMUX_TMPDIR=self.home)
        window, _ = self.terminal("tmux", "-u", "-L", "inner", "attach-session", "-t", "one")
        self.terminal("sleep", "600")
        wait_for(lambda: self.tmux("list-clients", "-F", "#{client_tty}"), "the client")
        self.waiting_session(pids[0])
        report = json.loads(self.focus("--json", TMUX_TMPDIR=self.home).stdout)
        self.assertEqual((report["focused"], report["terminal"]), (True, "tmux"))
        self.assertEqual((self.display.focused(), self.display.topmost()), (window, window))
        self.assertEqual(self.shown(), ("two words", "0", "0"))

    def test_a_window_of_another_machine_is_not_activated(self):
        self.start_x11()
        _, pid = self.terminal("sleep", "600")
        foreign = self.display.create_window()
        self.display.name_process(foreign, pid, machine="elsewhere")
        self.display.map(foreign)
        self.display.sync()
        self.waiting_session(pid)
        self.focus()
        self.assertNotEqual(self.display.focused(), foreign)

    def test_a_display_that_is_gone_is_reported(self):
        self.start_x11()
        self.x11_env["DISPLAY"] = ":64999"
        terminal = subprocess.Popen([sys.executable, "-c", "import pty; pty.spawn(['sleep', '600'])"], env=self.x11_env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(terminal.wait)
        self.addCleanup(terminal.kill)
        session = self.waiting_session(self.child_of(terminal.pid), "/home/ada/other")
        done = self.focus(session, code=5)
        self.assertIn("no X server can be used at the display :64999", done.stderr)
        self.assertRegex(done.stderr, r"switch to the terminal /dev/pts/\d+ yourself, which python[\d.]* holds")


class Manual(DaemonCase):
    def test_the_help_lists_the_exit_codes(self):
        text = earshot("focus", "--help", home=self.home).stdout
        for code in ("0 the terminal", "4 no process", "5 its terminal"):
            self.assertIn(code, text)
