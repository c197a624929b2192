"""One session's transcript, written in pieces; the daemon reads each piece before the next."""
import json
import os

from fault_case import FaultCase
from support.harness import earshot
from support.transcripts import Session, append


def line(record, **raw):
    """One line. Each `@name` in it is replaced by these bytes, which a JSON writer would not produce."""
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    for name, bytes in raw.items():
        text = text.replace(b"@" + name.encode(), bytes)
    return text + b"\n"


class FramingCase(FaultCase):
    def begin(self, *args, **more):
        self.follow(*args, **more)
        self.session = Session(self.root)
        self.stream = f"claude/-home-ada-api/{self.session.session}"
        self.written = 0

    def write(self, bytes, wait=True):
        append(self.session.path, bytes)
        self.written += len(bytes)
        if wait:
            self.metrics.wait_bytes(self.written)

    def prompt_line(self, text, **raw):
        return line(self.session.record("user", {"role": "user", "content": text}), **raw)

    def turn_lines(self, prompt):
        """A complete turn as bytes, not written to the transcript."""
        other = Session(os.path.join(self.home, "elsewhere"), session=self.session.session)
        other.turn(prompt)
        with open(other.path, "rb") as file:
            bytes = file.read()
        os.unlink(other.path)
        return bytes

    def settle(self):
        return self.assert_settled(self.daemon, self.client, self.session.path).get(self.stream, [])

    def prompts(self):
        return [f["prompt"] for f in self.client.all(type="turn.started")]

    def skipped(self):
        """The line.skipped events: (offset, lines, bytes, reason, salvaged)"""
        return [(f["line"], f["lines"], f["bytes"], f["reason"], f.get("salvaged", False)) for f in self.client.all(type="line.skipped")]

    def replay_stats(self):
        done = earshot("replay", "--stats", "--json", self.session.path, home=self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)
