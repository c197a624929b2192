"""clients/RECIPES.md: each recipe does what it says, run as it stands there. Only hosts and ports are put in."""
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
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "integration"))
import browser  # noqa: E402
from harness import TOP, Case, build, clean_environment, wait_for  # noqa: E402
from sessions import Registry, Session  # noqa: E402

PAGE = os.path.join(TOP, "clients", "RECIPES.md")
CLASSES = {"waiting", "working", "idle", "away"}  # of `earshot status --json`
tried = set()  # headings that a test here takes


def recipes():
    """heading → its fenced blocks, as (language, text)"""
    with open(PAGE, encoding="utf-8") as file:
        parts = re.split(r"^## (.+)\n", file.read(), flags=re.MULTILINE)[1:]
    return {heading: re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for heading, text in zip(parts[::2], parts[1::2])}


def recipe(heading):
    """Gives the test the blocks of one recipe."""
    tried.add(heading)

    def with_blocks(test):
        return functools.wraps(test)(lambda self: test(self, *(text for _, text in recipes()[heading])))

    return with_blocks


class Lines:
    """A command of a recipe, read line by line."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                        env=env, start_new_session=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.removesuffix("\n"))

    def wait(self, condition):
        return wait_for(lambda: next((line for line in list(self.lines) if condition(line)), None), f"a line; so far {self.lines}")

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)  # its own group: this test started it
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Recipe(Case):
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
            self.skipTest(f"{program} is not here")

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
        lines = Lines(command, self.env)
        self.addCleanup(lines.close)
        return lines

    def works(self, project="/home/ada/api"):
        """A session at work."""
        self.session = Session(self.root, cwd=project)
        self.registry = Registry(self.root, self.session.session, self.process())
        self.session.prompt("build it")
        self.registry.says("busy")
        self.client.wait(lambda: self.client.all(type="turn.started", session=self.session.session), "the turn")

    def asks(self):
        self.session.calls("Bash", {"command": "rm -rf build"})
        self.registry.says("waiting", "permission prompt")


class StatusLines(Recipe):
    @recipe("tmux: the status line")
    def test_tmux_shows_how_things_stand(self, conf):
        self.needs("tmux")
        self.file(".tmux.conf", conf)
        env = {**self.env, "TMUX_TMPDIR": self.home, "SHELL": "/bin/sh"}
        env.pop("TMUX", None)

        def tmux(*words):
            return subprocess.run(["tmux", "-u", "-L", "outer", *words], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=60)

        self.addCleanup(lambda: [subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, env=env) for name in ("inner", "outer")])
        # A terminal for it: a pane of another tmux, which has no status line of its own in that picture.
        inner = f"env -u TMUX tmux -u -L inner -f {self.home}/.tmux.conf new-session cat"
        started = tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "20", inner)
        self.assertEqual(started.returncode, 0, started.stderr)
        shown = lambda: tmux("capture-pane", "-p").stdout.rstrip("\n").split("\n")[-1]
        self.works()
        wait_for(lambda: re.search(r"● 1 \| \d\d:\d\d$", shown()), f"one at work in the status line: {shown()!r}", deadline=60)
        self.asks()
        wait_for(lambda: re.search(r"⏸ 1 \| \d\d:\d\d$", shown()), f"one that waits in the status line: {shown()!r}", deadline=60)
        self.registry.says("idle")
        wait_for(lambda: re.search(r"[^\d] +\| \d\d:\d\d$", shown()), f"nobody in the status line: {shown()!r}", deadline=60)

    @recipe("waybar")
    def test_waybar_is_given_a_line_a_tooltip_and_a_class(self, module, css):
        said = json.loads("{" + module + "}")["custom/earshot"]
        self.assertEqual((said["return-type"], said["escape"]), ("json", True))
        self.assertLessEqual(set(re.findall(r"#custom-earshot\.(\w+)", css)), CLASSES)
        bar = self.lines("exec " + said["exec"])
        bar.wait(lambda line: json.loads(line)["class"] == "idle")
        self.works()
        self.asks()
        told = json.loads(bar.wait(lambda line: json.loads(line)["class"] == "waiting" and "rm -rf" in line))
        self.assertEqual(told["text"], "⏸ 1")
        self.assertEqual(told["tooltip"], "⏸ api permission: approve Bash: rm -rf build")
        self.opens(said["on-click"])

    def opens(self, command):
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, rf"http://127\.0\.0\.1:{self.daemon.port}/#")

    @recipe("i3blocks")
    def test_i3blocks_shows_each_change(self, conf):
        self.needs("i3blocks")
        self.file("config", conf)
        bar = self.lines(f"exec i3blocks -c {self.home}/config")
        self.works()
        bar.wait(lambda line: '"● 1"' in line)
        self.asks()
        bar.wait(lambda line: '"⏸ 1"' in line)

    @recipe("polybar")
    def test_polybar_is_given_a_line_at_each_change(self, conf):
        said = configparser.ConfigParser()
        said.read_string(conf)
        module = said["module/earshot"]
        self.assertEqual((module["type"], module["tail"]), ("custom/script", "true"))
        bar = self.lines("exec " + module["exec"])
        self.works()
        bar.wait(lambda line: line == "● 1")
        self.opens(module["click-left"].removesuffix("&"))


class Others(Recipe):
    @recipe("A command of yours, when somebody waits")
    def test_a_command_hears_of_who_waits(self, script):
        self.needs("jq")
        said = self.lines(script)
        self.works()

        def rung():
            self.registry.says("busy")
            self.asks()
            return any("\a" in line for line in said.lines)

        wait_for(rung, "the bell")
        self.assertEqual(next(line for line in said.lines if "\a" in line), f"\a{self.session.session[:8]} permission")

    @recipe("A team's wall screen")
    def test_a_wall_screen_shows_the_dashboard(self, here, elsewhere):
        if not browser.program():
            self.skipTest("there is no browser")
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
        self.works(f"/home/ada/{name}")
        page.wait_text("body", name)
        self.assertEqual(page.evaluate("location.hash"), "", "the code is still in the address")


class Notices(Recipe):
    """What earshot-notify does with the recipes' rules."""

    def setUp(self):
        super().setUp()
        self.fake("systemctl", f'echo "$*" >>"{self.home}/systemctl"')

    def sh(self, script, *asked):
        """Runs it; then the service manager was asked for this."""
        done = subprocess.run(["/bin/sh", "-euc", script], capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        with open(os.path.join(self.home, "systemctl")) as file:
            self.assertEqual(file.read().splitlines(), list(asked))

    def receiver(self):
        from notifying import Receiver
        receiver = Receiver()
        self.addCleanup(receiver.close)
        return receiver

    def there(self, receiver, text):
        """The recipe with this receiver in place of the service's host."""
        return re.sub(r"https://[a-z.]+/", f"http://127.0.0.1:{receiver.port}/", text)

    def posted(self, receiver):
        """What came when an agent had waited for a while: path and body."""
        self.lines("exec earshot-notify")
        self.works()
        self.asks()
        got = wait_for(lambda: next((post for post in list(receiver.requests) if b"needs you" in post["body"]), None), "the notice", deadline=60)
        self.assertNotIn(b"rm -rf", got["body"], "text has left the machine")
        return got["path"], json.loads(got["body"])

    @recipe("Notices on the desktop")
    def test_the_desktop_is_told_by_the_built_in_rules(self, script):
        from notifying import DESKTOP, Desktop
        for program in DESKTOP:
            self.needs(program)
        desktop = Desktop(self.home)
        self.addCleanup(desktop.close)
        self.env.update({name: desktop.environment[name] for name in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY")})
        self.sh(script, "--user enable --now earshot-notify.service")
        self.lines("exec earshot-notify")
        self.works()
        self.asks()
        wait_for(lambda: any(notice[0] == "api needs you" for notice in desktop.notified()), "the notice", deadline=60)
        wait_for(lambda: desktop.showing() == 1, "it on the screen")
        self.registry.says("busy")
        wait_for(lambda: desktop.showing() == 0, "an empty screen")

    @recipe("A Slack channel")
    def test_a_slack_channel_is_told(self, rules, script):
        receiver = self.receiver()
        self.file(".config/earshot/notify.toml", rules)
        self.sh(self.there(receiver, script), "--user restart earshot-notify.service")
        path, body = self.posted(receiver)
        self.assertEqual(path, "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX")
        self.assertIn("api needs you", str(body))

    @recipe("A phone, by ntfy")
    def test_a_phone_is_told(self, rules, script):
        receiver = self.receiver()
        self.file(".config/earshot/notify.toml", self.there(receiver, rules))
        self.sh(script, "--user restart earshot-notify.service")
        path, body = self.posted(receiver)
        self.assertEqual((path, body["topic"], body["title"]), ("/", "earshot-2f9c41d07b8e", "api needs you"))


class Screen(browser.Browser):
    """The browser that a recipe starts."""

    def __init__(self, command, profile, env):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True)
        try:
            self._connect(os.path.join(profile, "DevToolsActivePort"))
        except BaseException:
            self._kill()
            raise


class Page(unittest.TestCase):
    def test_every_recipe_is_run_by_a_test(self):
        self.assertEqual(set(recipes()), tried)
        for heading, blocks in recipes().items():
            self.assertTrue(blocks, heading)


if __name__ == "__main__":
    unittest.main()
