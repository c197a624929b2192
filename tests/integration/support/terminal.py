"""Runs `earshot` on a pseudo-terminal, and text with control sequences that must not reach one."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from support.harness import build, clean_environment, wait_for
from support.transcripts import Session

CONTROL_SEQUENCES = "\x1b]0;owned\x07 \x1b[31mred\x1b[0m \x9b31m \u202eback\u2066 \x7f \r\x08 \u200f bell\x07 end"
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


class Terminal:
    """A program of earshot on its own pty."""

    def __init__(self, args, home, columns=100, program="earshot", **environment):
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen([os.path.join(build(), program), *args], stdin=child, stdout=child, stderr=child,
                                        env={**clean_environment(home), **environment}, start_new_session=True)
        os.close(child)
        self.text = b""

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            self.text += piece
        return self.text.decode(errors="replace")

    def plain(self):
        return COLOUR.sub("", self.read()).replace("\r\n", "\n")

    def wait(self, pattern):
        try:
            return wait_for(lambda: re.search(pattern, self.plain()), f"{pattern!r} on the terminal",
                            give_up=lambda: self.process.poll() is not None and f"exited with {self.process.returncode}")
        except AssertionError as failed:
            raise AssertionError(f"{failed}; it shows:\n{self.plain()}") from None

    def wait_connected(self, root):
        """Waits until it shows live events: another session writes prompts until one is displayed."""
        probe, due = Session(root, cwd="/home/ada/probe"), 0

        def displayed():
            nonlocal due
            if time.monotonic() >= due:
                probe.prompt("are you connected")
                due = time.monotonic() + 0.1
            return "are you connected" in self.plain()

        wait_for(displayed, "the terminal's first line")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        code = wait_for(lambda: self.process.poll() is not None and (self.process.returncode,), "the end")[0]
        self.read()
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)


def assert_no_control_characters(case, text):
    found = CONTROL.search(text.replace("\r", "").replace("\n", ""))
    case.assertIsNone(found, f"a control character is displayed: {found and text[max(0, found.start() - 60):found.end() + 20]!r}")
    case.assertNotIn("\x1b", text)
