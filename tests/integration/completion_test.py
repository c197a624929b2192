"""Completion in real shells: what transcripts contain is data (fault 86)."""
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios

from support.harness import DaemonCase, build, clean_environment, earshot, wait_for
from support.terminal import Terminal
from support.transcripts import Session

# Each is the only session id with its first two characters.
IDS = ["a1$(touch x)", "a2`touch x`", "a3;touch x;", "a4'q'$(touch x)'", 'a5"$(touch x)"', "a6*", "a7 b", "a8\nb\ttouch x", "a9&touch x|touch x>x<y",
       "b1!!b", "b2~", "b3#b", "b4[a-z]?", "b5{x,y}", "b6\\$(touch x)\\", "b7$HOME", "b8=x", "b9:$(touch x)", "c1\x1b[31m", "c2$'touch x'", "c3(touch x)", "c5\u00e9"]
UNTYPABLE = ["c4\u202ex", "--rotate"]  # not displayable as it is; an option
TITLE = "title $(touch x) `touch x` ';touch x;' \" * \\ :\n$(touch x)\t%n%F{red}"
RECORDER = """#!/bin/sh
if [ "$1" = complete ]; then
    for try in 1 2 3 4 5; do  # a busy daemon does not answer in time
        words=$('{earshot}' "$@")
        [ -z "$words" ] || break
    done
    [ -z "$words" ] || printf '%s\\n' "$words"
    exit
fi
for word in "$@"; do printf '%s\\0' "$word"; done > '{arguments}.part'
mv '{arguments}.part' '{arguments}'
"""


class Shell(Terminal):
    """An interactive shell on its own pty."""

    def __init__(self, command, directory, environment):
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, cwd=directory, env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(child)
        self.text = b""

    def type(self, keys):
        os.write(self.fd, keys.encode())


class Completion(DaemonCase):
    def setUp(self):
        super().setUp()
        self.programs, self.work = os.path.join(self.home, "bin"), os.path.join(self.home, "work")
        self.arguments = os.path.join(self.home, "arguments")
        for directory in (self.programs, self.work):
            os.mkdir(directory)
        with open(os.path.join(self.programs, "earshot"), "w") as file:
            file.write(RECORDER.format(earshot=os.path.join(build(), "earshot"), arguments=self.arguments))
        os.chmod(os.path.join(self.programs, "earshot"), 0o700)
        for name in ("a6x", "b4x", "xa"):  # for patterns to match
            open(os.path.join(self.work, name), "w").close()
        state = os.path.join(self.home, "state", "earshot")
        self.environment = {**clean_environment(self.home), "XDG_STATE_HOME": os.path.dirname(state), "XDG_CONFIG_HOME": os.path.join(self.home, "config"),
                            "ZDOTDIR": self.home, "PATH": self.programs + ":" + os.environ["PATH"]}
        for id in IDS + UNTYPABLE:
            session = Session(self.root, session=id)
            session.prompt("hello")
            session.append({"type": "custom-title", "customTitle": TITLE, "sessionId": id})
        daemon = self.start(state=state)
        client = daemon.subscriber()
        client.wait(lambda: len({f["session"] for f in client.all(type="session") if f.get("title")}) == len(IDS + UNTYPABLE), "the sessions")
        self.ids = {f["session"] for f in client.all(type="session")} - set(UNTYPABLE)

    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed")
        script = os.path.join(self.home, f"completions.{name}")
        with open(script, "w") as file:
            file.write(earshot("completions", name, home=self.home).stdout)
        start = {"bash": os.path.join(self.home, "bashrc"), "zsh": os.path.join(self.home, ".zshrc"), "fish": os.path.join(self.home, "config", "fish", "config.fish")}[name]
        os.makedirs(os.path.dirname(start), exist_ok=True)
        with open(start, "w") as file:
            file.write({"bash": f"source {script}\nPS1='ready> '\n",
                        "zsh": f"autoload -Uz compinit; compinit -u -d {self.home}/dump; source {script}\nPS1='ready> '\n",
                        "fish": f"set -g fish_greeting\nsource {script}\nfunction fish_prompt; echo -n 'ready> '; end\n"}[name])
        shell = Shell({"bash": ["bash", "--noprofile", "--rcfile", start, "-i"], "zsh": ["zsh", "-i"], "fish": ["fish", "-i"]}[name], self.work, self.environment)
        self.addCleanup(shell.close)
        shell.wait("ready> ")
        return shell

    def check(self, name):
        shell = self.shell(name)
        for id in sorted(self.ids):
            with self.subTest(shell=name, id=id):
                shell.type(f"earshot show {id[:2]}\t\r")
                wait_for(lambda: os.path.exists(self.arguments), f"the command; the terminal shows\n{shell.plain()[-800:]}")
                with open(self.arguments, "rb") as file:
                    words = file.read().split(b"\0")[:-1]
                os.remove(self.arguments)
                self.assertEqual(words, [b"show", id.encode()])
        # The list of all ids, with their titles.
        shell.type("earshot show \t\t")
        shell.wait(r"(?s)a4.*b8=x")
        self.assertNotIn("--rotate", shell.plain())
        shell.type("\x03")
        self.assertEqual(sorted(os.listdir(self.work)), ["a6x", "b4x", "xa"])

    def test_86_bash_inserts_session_ids_as_data(self):
        self.check("bash")

    def test_86_zsh_inserts_session_ids_as_data(self):
        self.check("zsh")

    def test_86_fish_inserts_session_ids_as_data(self):
        self.check("fish")
