"""Runs each recipe of clients/RECIPES.md as printed; only hosts and ports are replaced."""
import configparser
import functools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "integration"))
import browser  # noqa: E402
from support.harness import TOP, CommandLines, DaemonCase, build, clean_environment, deadline_s, wait_for  # noqa: E402
from support.transcripts import Registry, Session  # noqa: E402

PAGE = os.path.join(TOP, "clients", "RECIPES.md")
CLASSES = {"waiting", "working", "unseen", "idle", "away"}  # of `earshot statusline --json`
tested = set()  # headings with a test in this file


def recipes():
    """Returns heading → its fenced blocks, as (language, text)."""
    with open(PAGE, encoding="utf-8") as file:
        parts = re.split(r"^## (.+)\n", file.read(), flags=re.MULTILINE)[1:]
    return {heading: re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for heading, text in zip(parts[::2], parts[1::2])}


def recipe(heading):
    """Calls the test with the blocks of one recipe."""
    tested.add(heading)

    def with_blocks(test):
        return functools.wraps(test)(lambda self: test(self, *(text for _, text in recipes()[heading])))

    return with_blocks


class RecipeLines(CommandLines):
    """A command of a recipe, read line by line."""

    def __init__(self, command, env):
        super().__init__(["/bin/sh", "-c", command], env, stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self, condition):
        return wait_for(lambda: next((line for line in list(self.lines) if condition(line)), None), f"a line; so far {self.lines}")

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)  # the process group that this test started
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        super().close()


class Recipe(DaemonCase):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.home, ".local/state/earshot")
        self.bin = os.path.join(self.home, "bin")
        os.mkdir(self.bin)
        self.daemon = self.start()
        self.client = self.daemon.subscriber()
        self.env = {**clean_environment(self.home), "XDG_RUNTIME_DIR": self.daemon.runtime, "LC_ALL": "C.UTF-8",
                    "PATH": f"{self.bin}:{build()}:{os.environ['PATH']}"}
        self.env.pop("DISPLAY", None)
        self.env.pop("WAYLAND_DISPLAY", None)

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")

    def fake(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)

    def file(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def lines(self, command):
        lines = RecipeLines(command, self.env)
        self.addCleanup(lines.close)
        return lines

    def start_working(self, project="/home/ada/api"):
        """Starts a session with an open turn."""
        self.session = Session(self.root, cwd=project)
        self.registry = Registry(self.root, self.session.session, self.process())
        self.session.prompt("build it")
        self.registry.set_status("busy")
        self.client.wait(lambda: self.client.all(type="turn.started", session=self.session.session), "the turn")

    def start_waiting(self):
        self.session.tool_call("Bash", {"command": "rm -rf build"})
        self.registry.set_status("waiting", "permission prompt")


class Pane:
    """A process in a pane of tmux."""

    def __init__(self, pid):
        self.pid = pid


class StatusLines(Recipe):
    @recipe("tmux: the status line")
    def test_tmux_shows_working_and_waiting_sessions(self, conf):
        self.needs("tmux")
        self.file(".tmux.conf", conf)
        env = {**self.env, "TMUX_TMPDIR": self.home, "SHELL": "/bin/sh"}
        env.pop("TMUX", None)

        def tmux(*words):
            return subprocess.run(["tmux", "-u", "-L", "outer", *words], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=60)

        self.addCleanup(lambda: [subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, env=env) for name in ("inner", "outer")])
        # Its terminal is a pane of another tmux, whose status line is not captured.
        inner = f"env -u TMUX tmux -u -L inner -f {self.home}/.tmux.conf new-session cat"
        started = tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "20", inner)
        self.assertEqual(started.returncode, 0, started.stderr)
        shown = lambda: tmux("capture-pane", "-p").stdout.rstrip("\n").split("\n")[-1]
        self.start_working()
        wait_for(lambda: re.search(r"● 1 \| \d\d:\d\d$", shown()), f"a working session in the status line: {shown()!r}")
        self.start_waiting()
        wait_for(lambda: re.search(r"⏸ 1 \| \d\d:\d\d$", shown()), f"a waiting session in the status line: {shown()!r}")
        self.registry.set_status("idle")
        wait_for(lambda: re.search(r"[^\d] +\| \d\d:\d\d$", shown()), f"an empty status line: {shown()!r}")
        # The key goes to the session that waits, in another session of tmux.
        inner = ["tmux", "-u", "-L", "inner"]
        in_inner = lambda *words: subprocess.run([*inner, *words], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=deadline_s * 4).stdout.strip()
        in_inner("new-session", "-d", "-s", "agent", "cat")
        waiting = Session(self.root, cwd="/home/ada/agent")
        waiting.prompt("go on")
        waiting.tool_call("Bash", {"command": "rm -rf build"})
        Registry(self.root, waiting.session, Pane(int(in_inner("list-panes", "-t", "agent", "-F", "#{pane_pid}")))).set_status("waiting", "permission prompt")
        wait_for(lambda: re.search(r"⏸ 1 \| \d\d:\d\d$", shown()), f"a waiting session in the status line: {shown()!r}")
        tmux("send-keys", "C-b", "e")
        wait_for(lambda: in_inner("list-clients", "-F", "#{client_session}") == "agent", "the client in the session of the agent")

    @recipe("waybar")
    def test_waybar_receives_a_line_a_tooltip_and_a_class(self, module, css):
        module = json.loads("{" + module + "}")["custom/earshot"]
        self.assertEqual((module["return-type"], module["escape"]), ("json", True))
        self.assertLessEqual(set(re.findall(r"#custom-earshot\.(\w+)", css)), CLASSES)
        bar = self.lines("exec " + module["exec"])
        bar.wait(lambda line: json.loads(line)["class"] == "idle")
        self.start_working()
        self.start_waiting()
        line = json.loads(bar.wait(lambda line: json.loads(line)["class"] == "waiting" and "rm -rf" in line))
        self.assertEqual(line["text"], "⏸ 1")
        self.assertRegex(line["tooltip"], r"^⏸ api permission( ▰▱▱▱▱ \d%)?: approve Bash: rm -rf build$")
        self.assertEqual(module["on-click"], "earshot focus")
        self.assert_opens_dashboard(module["on-click-right"])

    def assert_opens_dashboard(self, command):
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, rf"http://127\.0\.0\.1:{self.daemon.port}/#")

    @recipe("i3blocks")
    def test_i3blocks_shows_each_change(self, conf):
        self.needs("i3blocks")
        self.file("config", conf)
        bar = self.lines(f"exec i3blocks -c {self.home}/config")
        self.start_working()
        bar.wait(lambda line: '"● 1"' in line)
        self.start_waiting()
        bar.wait(lambda line: '"⏸ 1"' in line)

    @recipe("polybar")
    def test_polybar_receives_a_line_at_each_change(self, conf):
        config = configparser.ConfigParser()
        config.read_string(conf)
        module = config["module/earshot"]
        self.assertEqual((module["type"], module["tail"]), ("custom/script", "true"))
        bar = self.lines("exec " + module["exec"])
        self.start_working()
        bar.wait(lambda line: line == "● 1")
        self.assert_opens_dashboard(module["click-left"].removesuffix("&"))


class Others(Recipe):
    @recipe("A command for each wait")
    def test_a_command_runs_for_each_wait(self, script):
        self.needs("jq")
        output = self.lines(script)
        self.start_working()

        def bell():
            self.registry.set_status("busy")
            self.start_waiting()
            return any("\a" in line for line in output.lines)

        wait_for(bell, "the bell")
        self.assertEqual(next(line for line in output.lines if "\a" in line), f"\a{self.session.session[:8]} permission")

    @recipe("A team's wall screen")
    def test_a_wall_screen_displays_the_dashboard(self, here, elsewhere):
        if not browser.program():
            self.skipTest("no browser is installed")
        for name, script in (("here", here), ("elsewhere", elsewhere)):
            with self.subTest(name):
                self.screen(name, script.replace("7717", str(self.daemon.port)))
        with open(os.path.join(self.home, "ssh")) as file:
            self.assertRegex(file.read(), rf"^-f -N .*-L {self.daemon.port}:127\.0\.0\.1:{self.daemon.port} dev7$")

    def screen(self, name, script):
        self.fake("ssh", f'case "$1" in -f) echo "$*" >"{self.home}/ssh" ;; *) shift; exec "$@" ;; esac')
        profile = os.path.join(self.home, name)
        self.fake("chromium", f'exec {browser.program()} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run '
                              f'--disable-background-networking --remote-debugging-port=0 --user-data-dir={profile} "$@"')
        page = Screen(["/bin/sh", "-c", script], profile, self.env)
        self.addCleanup(page.close)
        self.start_working(f"/home/ada/{name}")
        page.wait_text("body", name)
        self.assertEqual(page.evaluate("location.hash"), "", "the code is still in the address")


class Notices(Recipe):
    """Runs earshot-notify with the rules of the recipes."""

    def setUp(self):
        super().setUp()
        self.fake("systemctl", f'echo "$*" >>"{self.home}/systemctl"')

    def sh(self, script, *requests):
        """Runs the script; the service manager must have received these requests."""
        done = subprocess.run(["/bin/sh", "-euc", script], capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        with open(os.path.join(self.home, "systemctl")) as file:
            self.assertEqual(file.read().splitlines(), list(requests))

    def receiver(self):
        from support.notifier import Receiver
        receiver = Receiver()
        self.addCleanup(receiver.close)
        return receiver

    def redirected(self, receiver, text):
        """Returns the recipe with this receiver in place of the service's host."""
        return re.sub(r"https://[a-z.]+/", f"http://127.0.0.1:{receiver.port}/", text)

    def posted(self, receiver):
        """Returns path and body of the request sent for a session that waits."""
        self.lines("exec earshot-notify")
        self.start_working()
        self.start_waiting()
        request = wait_for(lambda: next((post for post in list(receiver.requests) if b"needs you" in post["body"]), None), "the notice")
        self.assertNotIn(b"rm -rf", request["body"], "text has left the machine")
        return request["path"], json.loads(request["body"])

    @recipe("Desktop notifications")
    def test_the_built_in_rules_notify_the_desktop(self, script):
        from support.notifier import DESKTOP, Desktop
        for program in DESKTOP:
            self.needs(program)
        desktop = Desktop(self.home)
        self.addCleanup(desktop.close)
        self.env.update({name: desktop.environment[name] for name in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY")})
        self.sh(script, "--user enable --now earshot-notify.service")
        self.lines("exec earshot-notify")
        self.start_working()
        self.start_waiting()
        wait_for(lambda: any(notice[0] == "api needs you" for notice in desktop.notify_calls()), "the notice")
        wait_for(lambda: desktop.displayed() == 1, "the notice on the screen")
        self.registry.set_status("busy")
        wait_for(lambda: desktop.displayed() == 0, "an empty screen")

    @recipe("A Slack channel")
    def test_a_slack_channel_receives_a_notification(self, rules, script):
        receiver = self.receiver()
        self.file(".config/earshot/notify.toml", rules)
        self.sh(self.redirected(receiver, script), "--user restart earshot-notify.service")
        path, body = self.posted(receiver)
        self.assertEqual(path, "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX")
        self.assertIn("api needs you", str(body))

    @recipe("A phone, by ntfy")
    def test_a_phone_receives_a_notification(self, rules, script):
        receiver = self.receiver()
        self.file(".config/earshot/notify.toml", self.redirected(receiver, rules))
        self.sh(script, "--user restart earshot-notify.service")
        path, body = self.posted(receiver)
        self.assertEqual((path, body["topic"], body["title"]), ("/", "earshot-2f9c41d07b8e", "api needs you"))


    @recipe("A phone, for unanswered waits only")
    def test_a_phone_is_notified_when_a_wait_is_unanswered(self, rules, script):
        receiver = self.receiver()
        self.file(".config/earshot/notify.toml", self.redirected(receiver, rules).replace('after = "2m"', 'after = "100ms"'))
        self.sh(script, "--user reload earshot-notify.service")
        path, body = self.posted(receiver)
        self.assertEqual((path, body["topic"], body["title"]), ("/", "earshot-2f9c41d07b8e", "api needs you"))
        self.assertRegex(body["click"], r"^http://127\.0\.0\.1:\d+/\?session=")


class Screen(browser.Browser):
    """The browser started by a recipe."""

    def __init__(self, command, profile, env):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True)
        try:
            self._connect(os.path.join(profile, "DevToolsActivePort"))
        except BaseException:
            self._kill()
            raise


class Page(unittest.TestCase):
    def test_every_recipe_is_run_by_a_test(self):
        self.assertEqual(set(recipes()), tested)
        for heading, blocks in recipes().items():
            self.assertTrue(blocks, heading)


if __name__ == "__main__":
    unittest.main()
