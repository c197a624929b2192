"""Sessions whose every event a client received, and operations on their transcripts."""
import json
import os
import signal

from fault_case import FaultCase, held_events
from support.harness import wait_for
from support.transcripts import Session, append


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class MutationCase(FaultCase):
    kind = Session

    def begin(self, *args, **more):
        self.follow(*args, **more)
        self.sessions = []  # the client received each of their events

    def session(self):
        return self.kind(self.root)

    def stream_of(self, session):
        return f"claude/{os.path.basename(session.folder)}/{session.session}"

    def written(self, *prompts):
        """A session with these turns, all delivered."""
        session = self.session()
        for prompt in prompts or ("first", "second"):
            session.turn(prompt)
        self.sessions.append(session)
        self.settle()
        return session

    def settle(self, deadline=None):
        """Waits until the client holds every session that has a transcript, and nothing else."""
        there = [session.path for session in self.sessions if os.path.isfile(session.path) and not os.path.islink(session.path)]
        return self.assert_settled(self.daemon, self.client, *there, deadline=deadline)

    def settle_since(self, session, known):
        """The same for a session that had this many events when the client subscribed."""
        stream = self.stream_of(session)
        expected = self.daemon.replay(session.path)[stream][known:]
        self.client.wait(lambda: len(held_events(self.client).get(stream, [])) >= len(expected), f"{len(expected)} events of {stream}", deadline=180)
        self.assert_same_events(expected, held_events(self.client)[stream], stream)

    def turn_lines(self, session, text):
        """The session's next turn as bytes, which are not written."""
        records, session.append = [], lambda *added: records.extend(added) or added[-1]
        session.turn(text)
        del session.append
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)

    def write_turn(self, session, text, where):
        """Writes a turn through another path or an open descriptor."""
        lines = self.turn_lines(session, text)
        append(where, lines) if isinstance(where, str) else os.write(where, lines)

    def another(self, session, *prompts):
        """A file elsewhere with another history of this session."""
        other = self.kind(os.path.join(self.home, "elsewhere"), session.cwd, session.session)
        for prompt in prompts or ("another past", "and more of it"):
            other.turn(prompt)
        return other.path

    def stopped(self):
        """Pauses the daemon for the block: it sees the changes made there at once."""
        daemon = self.daemon

        class Stopped:
            def __enter__(self):
                daemon.process.send_signal(signal.SIGSTOP)
                tasks = f"/proc/{daemon.process.pid}/task"
                wait_for(lambda: all("State:\tT" in contents(f"{tasks}/{task}/status").decode() for task in os.listdir(tasks)), "each thread to stop")

            def __exit__(self, *_):
                daemon.process.send_signal(signal.SIGCONT)

        return Stopped()

    def clock_moved(self, path):
        """Waits until a change now has a later ctime than the file: the clock for files is coarse on some kernels."""
        scratch = os.path.join(self.home, "clock")

        def later():
            with open(scratch, "w"):
                pass
            return os.stat(scratch).st_ctime_ns > os.stat(path).st_ctime_ns

        wait_for(later, "the file system's clock")

    def poke(self, path, old, new):
        """Overwrites each occurrence of `old` in place."""
        self.assertEqual(len(old), len(new))
        text = contents(path)
        fd, at = os.open(path, os.O_WRONLY), text.index(old)
        while at >= 0:
            os.pwrite(fd, new, at)
            at = text.find(old, at + 1)
        os.close(fd)

    def resets(self, session):
        return [f["reason"] for f in self.client.all(type="reset", stream=self.stream_of(session))]

    def assert_continues(self, session, resets):
        """Asserts that the stream continues after this many resets."""
        session.turn("and on")
        self.settle()
        self.assertEqual(len(self.resets(session)), resets, self.client.all(type="reset"))
        self.assertEqual(self.client.all(type="stream.removed"), [])
        self.assertEqual(self.metrics.troubles(), {})
