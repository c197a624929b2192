"""Faults 24 to 34: a followed file is rewritten, replaced or removed, whichever program wrote it."""
import json
import os
import shutil
import struct
import time
import unittest

from fault_case import held_events
from mutation_case import MutationCase, contents
from support.programs import CodexEventsSession, CodexSession, CopilotSession, PiSession
from support.transcripts import Registry, Session, append
from system_limits import preloaded

linger_s = 0.5  # an unlinked file is read until it did not grow for so long


class Mutation(MutationCase):
    truncation_step = 1

    # --- Rewritten ---

    def test_24_a_file_truncated_to_nothing_and_rewritten_is_reset(self):
        self.begin()
        session = self.written()
        for n in range(5):
            other = contents(self.another(session, f"life {n}"))
            shutil.rmtree(os.path.join(self.home, "elsewhere"))
            with open(session.path, "wb") as file:  # O_TRUNC
                self.client.wait(lambda: len(self.resets(session)) == n + 1, "the reset")
                file.write(other)
            self.settle()
        self.assert_continues(session, resets=5)

    def test_25_truncated_and_grown_past_the_offset_between_two_checks_is_reset(self):
        self.begin()
        session = self.written()
        before = os.path.getsize(session.path)
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(contents(self.another(session, *(f"other {n}" for n in range(5)))))
            self.assertGreater(os.path.getsize(session.path), before)
        self.settle()
        self.assert_continues(session, resets=1)

    def test_25_rewritten_to_the_same_size_between_two_checks_is_reset(self):
        self.begin()
        session = self.written("same size A")
        text = contents(session.path)
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(text.replace(b"same size A", b"same size B"))
            self.assertEqual(os.path.getsize(session.path), len(text))
        self.client.wait_frame(type="reset")
        self.settle()
        self.assert_continues(session, resets=1)

    def test_26_truncated_at_each_byte_withdraws_exactly_the_later_events(self):
        self.begin()
        session = self.session()
        session.prompt("one")
        session.reply("two")
        self.sessions.append(session)
        whole = self.settle()[self.stream_of(session)]
        ends = [int(json.loads(text)["cursor"].split(".")[0]) for text in whole]
        size = read = os.path.getsize(session.path)
        cuts = range(size - 1, -1, -self.truncation_step)
        fd = os.open(session.path, os.O_WRONLY)
        self.addCleanup(os.close, fd)
        for resets, at in enumerate(cuts, 1):
            os.ftruncate(fd, at)
            left = [text for text, end in zip(whole, ends) if end <= at]
            self.client.wait(lambda: len(self.resets(session)) == resets and len(held_events(self.client).get(self.stream_of(session), [])) >= len(left),
                             f"the history of {at} bytes")
            read += at
            self.metrics.wait_bytes(read)  # an earlier truncation would have nothing to withdraw
            self.assert_same_events(left, held_events(self.client).get(self.stream_of(session), []), f"truncated to {at} bytes")
        self.assert_continues(session, resets=len(cuts))

    def test_27_rewritten_with_the_first_line_kept_is_reset(self):
        self.begin()
        session = self.written()
        first = contents(session.path).partition(b"\n")[0] + b"\n"
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(first + contents(self.another(session, *(f"other {n}" for n in range(5)))))
        self.settle()
        self.assert_continues(session, resets=1)

    def test_28_an_edit_of_one_byte_in_the_middle_is_reset(self):
        self.begin()
        session = self.written("first", "second", "x" * 9000)  # farther back than the bytes compared at each append
        self.clock_moved(session.path)
        with self.stopped():  # a program may write a text several times
            self.poke(session.path, b'"first"', b'"fIrst"')
        self.client.wait_frame(type="reset", reason="rewritten")
        self.settle()
        self.assertIn("fIrst", [f.get("prompt") for f in self.client.all(type="turn.started")])
        self.assert_continues(session, resets=1)

    def test_28_an_edit_hidden_by_an_append_is_noticed_when_a_client_resumes(self):
        self.begin("--watch", "inotify")  # the sweep looks again soon after an append, and may notice it first
        session = self.written("first", "second", "x" * 9000)
        with self.stopped():
            self.poke(session.path, b'"first"', b'"fIrst"')
            session.turn("hides it")
        last = self.client.wait_frame(type="turn.finished", turn=4)
        resumed = self.daemon.client()
        resumed.subscribe(after=[f"{self.stream_of(session)}:{last['cursor']}"])
        reset = resumed.wait_frame(type="reset", stream=self.stream_of(session), reason="rewritten")
        self.settle()  # the client that was connected throughout is corrected too
        session.turn("and on")
        if "id" in reset:  # the daemon noticed it before the client resumed: the session's frame stands for the history
            resumed.wait_frame(type="session", session=session.session)
            resumed.wait_frame(type="turn.finished", turn=5)
        else:
            self.assert_settled(self.daemon, resumed, session.path)
        self.settle()

    def test_29_an_edit_that_restores_the_modification_time_is_reset(self):
        self.begin()
        session = self.written("first", "second", "x" * 9000)
        self.clock_moved(session.path)
        before = os.stat(session.path)
        with self.stopped():
            self.poke(session.path, b'"first"', b'"fIrst"')
            os.utime(session.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(os.stat(session.path).st_mtime_ns, before.st_mtime_ns)
        self.client.wait_frame(type="reset", reason="rewritten")
        self.settle()
        self.assert_continues(session, resets=1)

    # --- Replaced ---

    def test_30_a_grown_copy_renamed_over_it_continues_without_a_reset(self):
        self.begin()
        session = self.written()
        for n in range(5):
            copy = session.path + ".part"
            shutil.copy(session.path, copy)
            if n % 2:  # otherwise the same content
                self.write_turn(session, f"from the copy {n}", copy)
            os.rename(copy, session.path)
            self.settle()
        self.assert_continues(session, resets=0)

    def test_31_a_file_with_other_content_renamed_over_it_is_reset(self):
        self.begin()
        session = self.written()
        for n, prompts in enumerate((("short",), tuple(f"longer {n}" for n in range(9)), ("short again",)), 1):
            os.rename(self.another(session, *prompts), session.path)
            self.client.wait(lambda: len(self.resets(session)) == n, "the reset")
            self.settle()
        self.assert_continues(session, resets=3)

    def test_32_deleted_and_recreated_is_a_new_history_whichever_inode_it_gets(self):
        self.begin()
        session = self.written()
        for n in range(60):
            shutil.rmtree(os.path.join(self.home, "elsewhere"), ignore_errors=True)
            life = contents(self.another(session, f"life {n}", "x" * (n % 7 * 400)))
            with self.stopped() if n % 3 == 0 else open(os.devnull):  # in one pause of the daemon, or immediately
                os.unlink(session.path)
                append(session.path, life)
            if n % 2:
                self.settle()
        self.settle()
        self.assertEqual(self.metrics.troubles(), {})
        session.turn("and on")
        self.settle()

    # --- Removed ---

    def test_33_a_file_unlinked_while_it_is_written_is_read_to_its_end(self):
        self.begin()
        for attempt in range(20):
            session = self.written()
            prompts = [f"unlinked {attempt} {n}" for n in range(3)]
            gap_s = self.unlink_and_write(session, prompts, waits=attempt % 2 == 0)
            self.client.wait_frame(type="stream.removed", stream=self.stream_of(session))
            self.settle()
            if gap_s < linger_s / 2:
                break
        else:
            self.fail("each time the machine was slower than an unlinked file may grow")
        started = [frame["prompt"] for frame in self.client.all(type="turn.started", stream=self.stream_of(session))]
        self.assertEqual([prompt for prompt in started if prompt in prompts], prompts)
        self.assertEqual(self.client.all(type="reset"), [])
        self.assertEqual(self.metrics.troubles(), {})

    def unlink_and_write(self, session, prompts, waits):
        """Unlinks the transcript and then writes these turns to it, each when the one before was delivered if `waits`; returns the longest time
        without growth."""
        turns, stream = [self.turn_lines(session, prompt) for prompt in prompts], self.stream_of(session)
        fd = os.open(session.path, os.O_WRONLY | os.O_APPEND)
        gap_s, last = 0, time.monotonic()
        os.unlink(session.path)
        for prompt, lines in zip(prompts, turns):
            before = time.monotonic()
            os.write(fd, lines)
            gap_s, last = max(gap_s, time.monotonic() - last), before
            if waits:
                self.client.wait(lambda: self.client.find(type="turn.started", prompt=prompt) or self.client.find(type="stream.removed", stream=stream),
                                 "the turn, or the end of the stream")
        os.close(fd)
        return gap_s


class ProgramMutation(Mutation):
    """The same of another program's session."""

    truncation_step = 41  # bytes

    def session(self):
        return self.kind(os.path.join(self.home, self.kind.program))

    def begin(self, *args, **more):
        root = self.session().root
        os.makedirs(root)
        super().begin(*args, roots=[f"{self.kind.program}:{root}"], **more)

    def stream_of(self, session):
        return session.stream()


class CodexMutation(ProgramMutation):
    kind = CodexSession


class CodexEventsMutation(ProgramMutation):
    kind = CodexEventsSession


class CopilotMutation(ProgramMutation):
    kind = CopilotSession


class PiMutation(ProgramMutation):
    kind = PiSession


del ProgramMutation  # no program by itself


class Files(MutationCase):
    def test_81_an_edit_in_the_clock_tick_of_the_last_check_is_reset(self):
        tick = os.path.join(self.home, "tick")

        def stop_clock(ns):
            with open(tick, "wb" if not os.path.exists(tick) else "r+b") as file:
                file.write(struct.pack("q", ns))

        stop_clock(0)  # it runs
        self.begin("--watch", "inotify", prefix=preloaded(self, "coarse_ctime", TICK=tick))
        session = self.written("first", "second", "x" * 9000)
        stop_clock(time.time_ns() - 10**9)  # one tick, however long the test takes
        session.prompt("again")
        self.client.wait_frame(type="turn.started", prompt="again")  # the last check
        self.poke(session.path, b'"role":"user","content":"first"', b'"role":"user","content":"fIrst"')  # once in the file: two writes could be two resets
        self.client.wait(lambda: self.resets(session), "the reset")
        self.settle()
        self.assertEqual(self.resets(session), ["rewritten"])
        stop_clock(0)
        self.assert_continues(session, resets=1)

    def test_34_a_thousand_deleted_transcripts_are_removed_without_errors(self):
        lines = contents(self.another(Session(self.root), "old"))
        old = [Session(self.root, cwd=f"/home/ada/p{n % 20}") for n in range(1000)]
        for session in old:
            append(session.path, lines)
            os.utime(session.path, (1_600_000_000, 1_600_000_000))
        self.begin()
        fresh = [Session(self.root, cwd=f"/home/ada/p{n}") for n in range(20)]
        for session in fresh:
            session.turn("fresh")
        self.sessions = fresh
        self.settle()
        self.assertEqual(self.metrics.metric("earshot_tail_known_files"), 1020)
        for session in old + fresh[1:]:
            os.unlink(session.path)
        self.metrics.wait(lambda: self.metrics.metric("earshot_tail_known_files") == 1, "1,019 files to be removed")
        self.settle()
        removed = {self.stream_of(session) for session in old + fresh[1:]}  # unread ones too: a client may have resumed them
        self.client.wait(lambda: len(self.client.all(type="stream.removed")) >= len(removed), "1,019 removals")
        self.assertEqual(sorted(f["stream"] for f in self.client.all(type="stream.removed")), sorted(removed))
        self.assertEqual(self.metrics.troubles(), {})
        self.assertEqual([f for f in self.client.frames if f["type"] in ("error", "reset")], [])
        self.assertNotIn("warn", self.daemon.stderr().decode())

    def test_110_old_transcripts_then_their_directories_are_removed_while_their_session_runs(self):
        old = [Session(self.root, cwd=f"/home/ada/old{n}") for n in range(13)]
        for session in old:
            session.turn("old")
            os.utime(session.path, (1_600_000_000, 1_600_000_000))
        self.begin()
        registry = Registry(self.root, old[0].session, self.process())

        def change(status):
            registry.set_status(status)
            self.client.wait(lambda: self.client.all(type="status", session=old[0].session)[-1:] and
                             self.client.all(type="status", session=old[0].session)[-1]["state"] == {"busy": "working"}.get(status, status), status)

        change("busy")
        for session in old[1:]:
            os.unlink(session.path)
        os.unlink(old[0].path)
        self.metrics.wait(lambda: self.metrics.metric("earshot_tail_known_files") == 0, "the removals")
        change("idle")
        for session in old:
            os.rmdir(session.folder)
        self.metrics.wait(lambda: self.metrics.metric("earshot_tail_directories") == 1, "the directories to be left")
        change("busy")
        change("idle")


if __name__ == "__main__":
    unittest.main()
