"""Faults 1 to 13: how lines arrive."""
import itertools
import json
import os
import signal
import time
import unittest

import pytest

from daemon_metrics import DaemonMetrics
from framing_case import FramingCase
from support.harness import build, sanitized, wait_for
from support.transcripts import Registry, Session, append

sparse_bytes = (4 << 30) + 4096  # does not fit in 32 bits
settled_ns = 2_000_000_000  # time_granularity of the daemon's folds


class Framing(FramingCase):
    # --- Torn ---

    def test_01_a_line_torn_inside_a_utf8_character_waits_for_its_lf(self):
        self.begin()
        text = self.prompt_line("grüße, 世界 🌍")
        for at in range(len(text) - 1):
            self.write(text[at : at + 1])
            self.assertEqual(self.metrics.events(), 0, f"after byte {at}")
        self.write(text[-1:])
        self.settle()
        self.assertEqual(self.prompts(), ["grüße, 世界 🌍"])

    def test_02_json_torn_at_page_multiples_and_never_ended_is_never_an_event(self):
        self.begin()
        text = self.prompt_line("x" * (80 << 10))
        for begin, end in itertools.pairwise([0, 16 << 10, 64 << 10, len(text) - 1]):
            self.write(text[begin:end])
            self.assertEqual(self.metrics.events(), 0)
            self.assertEqual(self.metrics.metric("earshot_tail_pending_bytes"), end)
        self.write(b"\n")
        self.settle()
        self.assertEqual(self.metrics.metric("earshot_tail_pending_bytes"), 0)
        whole, events = self.prompt_line("a complete record without its LF")[:-1], self.metrics.events()
        self.write(whole)
        self.assertEqual(self.metrics.metric("earshot_tail_pending_bytes"), len(whole))
        self.assertEqual(self.metrics.events(), events)
        os.unlink(self.session.path)  # with a partial tail
        self.client.wait_frame(type="stream.removed", stream=self.stream)
        self.assertEqual(len(self.prompts()), 1)
        self.assertEqual(self.metrics.metric("earshot_tail_pending_bytes"), 0)
        self.assert_settled(self.daemon, self.client)

    def test_03_cr_and_lf_in_two_writes_end_one_line(self):
        self.begin()
        for n in range(3):
            text = self.prompt_line(f"number {n}")
            before = self.metrics.events()
            self.write(text[:-1] + b"\r")
            self.assertEqual(self.metrics.events(), before)
            self.write(b"\n")
        self.settle()
        self.assertEqual(self.prompts(), ["number 0", "number 1", "number 2"])
        self.assertEqual(self.skipped(), [])

    def test_04_the_offset_of_a_torn_line_is_its_first_byte(self):
        self.begin()
        whole = self.turn_lines("before") + b'{"type":"user","mess\n'
        bad = whole.rindex(b"\n", 0, -1) + 1
        text = whole + self.prompt_line("after")
        for at in range(0, len(text), 7):
            self.write(text[at : at + 7])
        self.settle()  # cursors equal those of a single read
        self.assertEqual(self.skipped(), [(bad, 1, len(whole) - bad, "not JSON", False)])

    # --- Many at once ---

    def test_05_ten_thousand_lines_in_one_writev_all_arrive_in_order(self):
        self.begin()
        names = [f"prompt {n}" for n in range(10_000)]
        pieces = [b"".join(self.prompt_line(name) for name in names[at : at + 10]) for at in range(0, len(names), 10)]
        os.makedirs(self.session.folder)
        fd = os.open(self.session.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.assertEqual(os.writev(fd, pieces), sum(map(len, pieces)))
        os.close(fd)
        self.settle()
        self.assertEqual(self.prompts(), names)

    def test_06_a_thousand_appends_that_give_one_notification_are_all_read(self):
        self.begin()
        self.session.turn("begin")
        self.client.wait_frame(type="turn.finished")
        self.daemon.process.send_signal(signal.SIGSTOP)  # identical notifications are queued once
        for n in range(1000):
            self.session.prompt(f"stopped {n}")
        self.daemon.process.send_signal(signal.SIGCONT)
        for n in range(1000):
            self.session.prompt(f"running {n}")
        self.settle()
        self.assertEqual(self.prompts(), ["begin", *(f"stopped {n}" for n in range(1000)), *(f"running {n}" for n in range(1000))])

    # --- Large ---

    def test_07_a_line_of_100_mb_is_skipped_in_bounded_memory_without_affecting_its_neighbours(self):
        if sanitized(build()):
            self.skipTest("a sanitized daemon needs the whole address space: RLIMIT_AS cannot be tested")
        self.begin(prefix=("prlimit", f"--as={512 << 20}", "--"))
        self.write(self.turn_lines("before"))
        before, start = self.metrics.memory_max(), self.written
        head, piece, tail = b'{"type":"user","message":"', b"x" * (1 << 20), b'"}\n'
        append(self.session.path, head)
        for _ in range(100):
            append(self.session.path, piece)
        append(self.session.path, tail)
        length = len(head) + 100 * len(piece) + len(tail)
        self.session.prompt("after")
        self.client.wait_frame(type="turn.started", prompt="after", deadline=180)
        self.settle()
        self.assertEqual(self.skipped(), [(start, 1, length, "too long", False)])
        self.assertEqual(self.prompts(), ["before", "after"])
        self.assertLess(self.metrics.memory_max() - before, 64 << 20)

    @pytest.mark.all
    def test_08_work_on_a_transcript_of_4_gb_is_in_proportion_to_its_new_bytes(self):
        session = Session(self.root)
        session.turn("before")
        Registry(self.root, session.session, self.process()).set_status("busy")  # so that the daemon does not search /proc for its process
        with open(session.path, "r+b") as file:
            file.truncate(sparse_bytes)  # a sparse file: uses no disk space
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        # A file that was written just before the start is compared once after it.
        wait_for(lambda: time.time_ns() > os.stat(session.path).st_ctime_ns + settled_ns, "the change time to exclude a later change")
        self.daemon = self.start_with_much()
        client, metrics = self.daemon.subscriber(), DaemonMetrics(self.daemon)
        self.addCleanup(metrics.close)
        self.assertGreaterEqual(metrics.bytes(), sparse_bytes)  # read once because it is recent
        session.prompt("after the first")  # ends the hole, and is the first append
        client.wait_frame(type="turn.started", prompt="after the first", deadline=300)
        self.assertLess(metrics.memory_max(), (512 << 20) if sanitized(build()) else (96 << 20))
        metrics.wait_indexed()
        bytes, read, verified = metrics.bytes(), metrics.read_by_process(), metrics.metric("earshot_tail_verifications_total")
        size = os.path.getsize(session.path)
        for n in range(20):
            session.prompt(f"number {n}")
            client.wait_frame(type="turn.started", prompt=f"number {n}")
        metrics.wait_indexed()
        grown = os.path.getsize(session.path) - size
        self.assertEqual(metrics.bytes() - bytes, grown)
        self.assertEqual((verified, metrics.metric("earshot_tail_verifications_total")), (0, 0))
        self.assertLess(metrics.read_by_process() - read, grown + (1 << 20))
        self.assertGreater(int(client.all(type="turn.started")[-1]["cursor"].split(".")[0]), 1 << 32)
        self.assertEqual(client.all(type="reset"), [])

    # --- NULs ---

    def test_09_a_hole_of_nuls_is_one_diagnosis_and_later_lines_are_read(self):
        self.begin()
        self.write(self.turn_lines("before"))
        hole, after = self.written, self.turn_lines("after")
        with open(self.session.path, "r+b") as file:
            os.pwrite(file.fileno(), b"\n" + after, hole + 9000)
        self.written += 9001 + len(after)
        self.settle()
        self.assertEqual(self.skipped(), [(hole, 1, 9001, "not JSON", False)])
        glued, last = self.written, self.prompt_line("glued to a hole")
        with open(self.session.path, "r+b") as file:
            os.pwrite(file.fileno(), last, glued + 5000)
        self.settle()
        self.assertEqual(self.skipped()[1:], [(glued, 1, 5000 + len(last), "not JSON", True)])
        self.assertEqual(self.prompts(), ["before", "after", "glued to a hole"])

    def test_10_json_before_nuls_is_kept_and_a_tail_of_nuls_waits_without_spinning(self):
        self.begin()
        self.write(self.turn_lines("before"))
        start = self.written
        self.write(self.prompt_line("before nuls")[:-1])
        self.written += 4096
        os.truncate(self.session.path, self.written)  # extends the file
        self.metrics.wait_bytes(self.written)
        events, looks = self.metrics.events(), self.metrics.metric("earshot_tail_looks_total")
        for _ in range(50):  # a spinning loop would check at least once between two responses
            self.metrics.get("/healthz")
        self.assertLessEqual(self.metrics.metric("earshot_tail_looks_total") - looks, 10)  # notifications, and sweeps on a slow machine
        self.assertEqual(self.metrics.events(), events)
        self.write(b"\n" + self.prompt_line("after"))
        self.settle()
        self.assertEqual(self.prompts(), ["before", "before nuls", "after"])
        self.assertEqual([each[0] for each in self.skipped()], [start])

    # --- Concatenated ---

    def test_11_a_complete_record_after_a_torn_one_on_the_same_line_is_salvaged(self):
        self.begin()
        self.write(self.turn_lines("before"))
        start = self.written
        torn, whole = self.prompt_line("torn"), self.prompt_line("salvaged")
        self.write(torn[: len(torn) // 2] + whole)
        self.write(self.prompt_line("after"))
        self.settle()
        self.assertEqual(self.prompts(), ["before", "salvaged", "after"])
        self.assertEqual(self.skipped(), [(start, 1, len(torn) // 2 + len(whole), "not JSON", True)])

    def test_12_two_records_on_one_line_both_give_consecutive_events(self):
        self.begin()
        one, other = self.prompt_line("one"), self.prompt_line("other")
        self.write(one[:-1] + other)
        events = [json.loads(text) for text in self.settle()]
        self.assertEqual(self.prompts(), ["one", "other"])
        self.assertEqual(self.skipped(), [])
        self.assertEqual([e["cursor"].split(".")[:2] for e in events], [[str(self.written), str(n + 1)] for n in range(len(events))])

    def test_13_a_byte_order_mark_is_ignored_at_the_beginning_only(self):
        self.begin()
        mark = b"\xef\xbb\xbf"
        self.write(mark + self.prompt_line("at the beginning"))
        start, second = self.written, self.prompt_line("in the middle")
        self.write(mark + second)
        self.settle()
        self.assertEqual(self.prompts(), ["at the beginning", "in the middle"])
        self.assertEqual(self.skipped(), [(start, 1, len(mark + second), "not JSON", True)])


if __name__ == "__main__":
    unittest.main()
