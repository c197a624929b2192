"""Faults 1 to 23: how lines arrive, and what stands in them."""
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import unittest
import uuid

from fault import FaultCase
from figures import Figures
from harness import build, earshot, sanitized
from sessions import Session, append

sparse_bytes = (4 << 30) + 4096  # more than 32 bits can say
REPLACED = "\ufffd"


def line(record, **raw):
    """One line; each `@name` in it becomes these bytes, that no JSON writer would write."""
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    for name, bytes in raw.items():
        text = text.replace(b"@" + name.encode(), bytes)
    return text + b"\n"


class Framing(FaultCase):
    def begin(self, *args, **more):
        self.daemon = self.start(*args, **more)
        self.client = self.daemon.subscriber()
        self.figures = Figures(self.daemon)
        self.addCleanup(self.figures.close)
        self.session = Session(self.root)
        self.stream = f"claude/-home-ada-api/{self.session.session}"
        self.written = 0

    def write(self, bytes, look=True):
        append(self.session.path, bytes)
        self.written += len(bytes)
        if look:
            self.figures.wait_bytes(self.written)

    def prompt_line(self, text, **raw):
        return line(self.session.record("user", {"role": "user", "content": text}), **raw)

    def turn_lines(self, prompt):
        """A whole turn, as bytes that are nowhere yet."""
        other = Session(os.path.join(self.home, "elsewhere"), session=self.session.session)
        other.turn(prompt)
        with open(other.path, "rb") as file:
            bytes = file.read()
        os.unlink(other.path)
        return bytes

    def settle(self):
        return self.settled(self.daemon, self.client, self.session.path).get(self.stream, [])

    def prompts(self):
        return [f["prompt"] for f in self.client.all(type="turn.started")]

    def skipped(self):
        """What was said of lines that could not be used: (offset, lines, bytes, reason, salvaged)"""
        return [(f["line"], f["lines"], f["bytes"], f["reason"], f.get("salvaged", False)) for f in self.client.all(type="line.skipped")]

    def replay_stats(self):
        done = earshot("replay", "--stats", "--json", self.session.path, home=self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    # --- Torn ---

    def test_01_a_line_torn_inside_a_utf8_character_waits_for_its_lf(self):
        self.begin()
        text = self.prompt_line("grüße, 世界 🌍")
        for at in range(len(text) - 1):
            self.write(text[at : at + 1])
            self.assertEqual(self.figures.events(), 0, f"after byte {at}")
        self.write(text[-1:])
        self.settle()
        self.assertEqual(self.prompts(), ["grüße, 世界 🌍"])

    def test_02_json_torn_at_page_multiples_and_never_ended_is_never_an_event(self):
        self.begin()
        text = self.prompt_line("x" * (80 << 10))
        for begin, end in itertools.pairwise([0, 16 << 10, 64 << 10, len(text) - 1]):
            self.write(text[begin:end])
            self.assertEqual(self.figures.events(), 0)
            self.assertEqual(self.figures.metric("earshot_tail_pending_bytes"), end)
        self.write(b"\n")
        self.settle()
        self.assertEqual(self.figures.metric("earshot_tail_pending_bytes"), 0)
        self.write(text[:1000])
        self.assertEqual(self.figures.metric("earshot_tail_pending_bytes"), 1000)
        os.unlink(self.session.path)  # with a partial tail
        self.client.wait_frame(type="stream.removed", stream=self.stream)
        self.assertEqual(len(self.prompts()), 1)
        self.assertEqual(self.figures.metric("earshot_tail_pending_bytes"), 0)
        self.settled(self.daemon, self.client)

    def test_03_cr_and_lf_in_two_writes_end_one_line(self):
        self.begin()
        for n in range(3):
            text = self.prompt_line(f"number {n}")
            before = self.figures.events()
            self.write(text[:-1] + b"\r")
            self.assertEqual(self.figures.events(), before)
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
        self.settle()  # cursors, too, are those of a one-shot run
        self.assertEqual(self.skipped(), [(bad, 1, len(whole) - bad, "not JSON", False)])

    # --- Many at once ---

    def test_05_ten_thousand_lines_in_one_writev_come_all_and_in_order(self):
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
        self.daemon.process.send_signal(signal.SIGSTOP)  # the same notification again and again is queued once
        for n in range(1000):
            self.session.prompt(f"stopped {n}")
        self.daemon.process.send_signal(signal.SIGCONT)
        for n in range(1000):
            self.session.prompt(f"running {n}")
        self.settle()
        self.assertEqual(self.prompts(), ["begin", *(f"stopped {n}" for n in range(1000)), *(f"running {n}" for n in range(1000))])

    # --- Large ---

    def test_07_a_line_of_100_mb_is_skipped_in_bounded_memory_and_its_neighbours_are_whole(self):
        if sanitized(build()):
            self.skipTest("a sanitized daemon needs all the address space there is: RLIMIT_AS cannot be tried")
        self.begin(prefix=("prlimit", f"--as={512 << 20}", "--"))
        self.write(self.turn_lines("before"))
        before, start = self.figures.memory_max(), self.written
        head, piece, tail = b'{"type":"user","message":"', b"x" * (1 << 20), b'"}\n'
        append(self.session.path, head)
        for _ in range(100):
            append(self.session.path, piece)
        append(self.session.path, tail)
        length = len(head) + 100 * len(piece) + len(tail)
        self.session.prompt("after")
        self.client.wait_frame(type="turn.started", prompt="after", deadline=60)
        self.settle()
        self.assertEqual(self.skipped(), [(start, 1, length, "too long", False)])
        self.assertEqual(self.prompts(), ["before", "after"])
        self.assertLess(self.figures.memory_max() - before, 64 << 20)

    def test_08_work_on_a_transcript_of_4_gb_is_in_proportion_to_its_new_bytes(self):
        session = Session(self.root)
        session.turn("before")
        with open(session.path, "r+b") as file:
            file.truncate(sparse_bytes)  # a hole: long to read, and no disk is used
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        self.daemon = self.start()
        client, figures = self.daemon.subscriber(), Figures(self.daemon)
        self.addCleanup(figures.close)
        self.assertGreaterEqual(figures.bytes(), sparse_bytes)  # read once, because it is recent
        session.prompt("after the first")  # tells the hole's end, and is the first look that appends
        client.wait_frame(type="turn.started", prompt="after the first", deadline=60)
        self.assertLess(figures.memory_max(), (512 << 20) if sanitized(build()) else (96 << 20))
        bytes, read, verified = figures.bytes(), figures.read_by_process(), figures.metric("earshot_tail_verifications_total")
        size = os.path.getsize(session.path)
        for n in range(20):
            session.prompt(f"number {n}")
            client.wait_frame(type="turn.started", prompt=f"number {n}")
        grown = os.path.getsize(session.path) - size
        self.assertEqual(figures.bytes() - bytes, grown)
        self.assertEqual(figures.metric("earshot_tail_verifications_total"), verified)
        self.assertLess(figures.read_by_process() - read, grown + (1 << 20))
        self.assertGreater(int(client.all(type="turn.started")[-1]["cursor"].split(".")[0]), 1 << 32)
        self.assertEqual(client.all(type="reset"), [])

    # --- NULs ---

    def test_09_a_hole_of_nuls_is_one_diagnosis_and_what_follows_goes_on(self):
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
        os.truncate(self.session.path, self.written)  # upward
        self.figures.wait_bytes(self.written)
        events, looks = self.figures.events(), self.figures.metric("earshot_tail_looks_total")
        for _ in range(50):  # a loop that spins looks at least once between two answers
            self.figures.get("/healthz")
        self.assertLessEqual(self.figures.metric("earshot_tail_looks_total") - looks, 3)
        self.assertEqual(self.figures.events(), events)
        self.write(b"\n" + self.prompt_line("after"))
        self.settle()
        self.assertEqual(self.prompts(), ["before", "before nuls", "after"])
        self.assertEqual([each[0] for each in self.skipped()], [start])

    # --- Glued ---

    def test_11_a_whole_record_glued_to_a_torn_one_is_salvaged(self):
        self.begin()
        self.write(self.turn_lines("before"))
        start = self.written
        torn, whole = self.prompt_line("torn"), self.prompt_line("salvaged")
        self.write(torn[: len(torn) // 2] + whole)
        self.write(self.prompt_line("after"))
        self.settle()
        self.assertEqual(self.prompts(), ["before", "salvaged", "after"])
        self.assertEqual(self.skipped(), [(start, 1, len(torn) // 2 + len(whole), "not JSON", True)])

    def test_12_two_records_on_one_line_are_both_told_and_numbered_through(self):
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

    # --- Odd content ---

    def test_14_invalid_utf8_becomes_u_fffd_and_the_record_is_kept_and_counted(self):
        self.begin()
        self.write(self.prompt_line("plain"))
        self.write(self.prompt_line("a@slash b", slash=b"\xc0\x80"))
        self.write(self.prompt_line("c@byte d", byte=b"\xff"))
        self.settle()
        prompts = [text.replace(REPLACED * 2, REPLACED) for text in self.prompts()]
        self.assertEqual(prompts, ["plain", f"a{REPLACED} b", f"c{REPLACED} d"])
        self.assertEqual(self.skipped(), [])
        self.assertEqual(self.replay_stats()["lines"]["repaired"], 2)

    def test_15_a_lone_surrogate_escape_is_u_fffd_in_the_event(self):
        self.begin()
        self.write(self.prompt_line("high @one, low @two, pair @both", one=rb"\ud83d", two=rb"\ude00", both=rb"\ud83d\ude00"))
        self.settle()
        self.assertEqual(self.prompts(), [f"high {REPLACED}, low {REPLACED}, pair 😀"])
        self.assertEqual(self.skipped(), [])

    def test_16_a_hundred_thousand_levels_are_a_diagnosis_on_a_small_stack(self):
        small = (2 << 20) if sanitized(build()) else (192 << 10)  # what is instrumented takes more of it
        self.begin(prefix=("prlimit", f"--stack={small}", "--"))
        levels, allowed = 100_000, 1024  # the record itself is one of these
        starts = []
        self.write(self.prompt_line("before"))
        deep = b"[" * (allowed - 1) + b"]" * (allowed - 1)
        self.write(line(self.session.record("user", {"role": "user", "content": "deep enough"}, deep="@deep")).replace(b'"@deep"', deep))
        starts.append(self.written)
        self.write(line(self.session.record("user", {"role": "user", "content": "too deep"}, deep="@deep")).replace(b'"@deep"', b"[" + deep + b"]"))
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            starts.append(self.written)
            self.write(b'{"type":"user","message":' + opening * levels + b"1" + closing * levels + b"}\n")
        self.write(self.prompt_line("between"))
        starts.append(self.written)
        self.write(b"[" * levels + b"\n")  # never closed
        self.write(self.prompt_line("after"))
        self.settle()
        self.assertEqual(self.prompts(), ["before", "deep enough", "between", "after"])
        self.assertEqual([(offset, lines, reason) for offset, lines, _, reason, _ in self.skipped()],
                         [(starts[0], 3, "nested too deeply"), (starts[3], 1, "nested too deeply")])

    def test_17_of_duplicate_keys_the_last_one_wins_wherever_they_stand(self):
        """Differential: what Python's reader, for which the last wins too, makes of a line must give the same events."""
        self.begin()
        dice = random.Random(17)
        plain = Session(self.root, cwd="/home/ada/plain")
        for n in range(40):
            text = self.doubled(dice, self.session.record("user", {"role": "user", "content": f"number {n}"}))
            self.write(text + b"\n", look=False)
            append(plain.path, json.dumps(json.loads(text)).encode() + b"\n")
        events = self.settled(self.daemon, self.client, self.root)

        def bare(stream):
            return [{k: v for k, v in json.loads(text).items() if k not in ("cursor", "stream", "session")} for text in events[stream]]

        self.assertEqual(bare(self.stream), bare(f"claude/-home-ada-plain/{plain.session}"))
        self.assertEqual(self.skipped(), [])

    def doubled(self, dice, value):
        """JSON in which some keys come twice, the first time with a value that must not be used."""
        if not isinstance(value, dict):
            return json.dumps(value).encode()
        members = []
        for name, held in value.items():
            if dice.random() < 0.4:
                wrong = dice.choice([b"null", b"7", b'"wrong"', b'{"role":"assistant"}', b"[1]", b"[]"])
                members.append(json.dumps(name).encode() + b":" + wrong)
        dice.shuffle(members)
        return b"{" + b",".join(members + [json.dumps(name).encode() + b":" + self.doubled(dice, held) for name, held in value.items()]) + b"}"

    def test_18_numbers_that_no_double_holds_are_told_as_they_were_written(self):
        self.begin()
        numbers = [b"1e400", b"-1e400", b"9007199254740993", b"18446744073709551616", b"0.1000000000000000055511151231257827", b"1" * 400,
                   b"-0", b"1E+2", b"0.0", b"1e-400"]
        for n, number in enumerate(numbers):
            block = {"type": "tool_use", "id": f"toolu_{n}", "name": "Count", "input": {"n": "@number", "after": n}}
            record = self.session.record("assistant", {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": "m",
                                                       "content": [block], "stop_reason": "tool_use"})
            self.write(line(record).replace(b'"@number"', number))
        events = [text for text in self.settle() if '"tool.invoked"' in text]
        self.assertEqual(len(events), len(numbers))
        for number, text in zip(numbers, events):
            self.assertIn(f'"n":{number.decode()},', text)
        self.assertNotIn("inf", "".join(events).lower())
        self.assertEqual(self.skipped(), [])

    # --- The same again ---

    def test_19_a_copied_transcript_is_two_streams_and_a_replayed_line_is_told_once(self):
        self.begin()
        lines = self.turn_lines("once")
        self.write(lines)
        first = self.settle()
        fork = Session(self.root)
        append(fork.path, lines)  # a fork begins with copied history, uuids and all
        fork.turn("in the fork")
        self.write(lines)  # a resumed session writes down again what it read
        second = self.settled(self.daemon, self.client, self.root)
        self.assertEqual(second[self.stream], first)
        twin = second[f"claude/-home-ada-api/{fork.session}"]
        without = [{k: v for k, v in json.loads(text).items() if k not in ("stream", "session")} for text in (*first, *twin[: len(first)])]
        self.assertEqual(without[: len(first)], without[len(first) :])
        used = [json.loads(text) for text in first if '"usage.updated"' in text]
        self.assertEqual(len({f["message"] for f in used}), len(used))

    def test_20_dangling_and_cyclic_parents_end(self):
        self.begin()
        ids = [str(uuid.uuid4()) for _ in range(4)]
        parents = [ids[1], ids[0], ids[2], str(uuid.uuid4())]  # a→b→a, itself, nobody
        for n, (own, parent) in enumerate(zip(ids, parents)):
            for side in (False, True):
                record = self.session.record("user", {"role": "user", "content": f"number {n}"}, isSidechain=side)
                record.update(uuid=own if not side else str(uuid.uuid4()), parentUuid=parent)
                self.write(line(record))
        loop = [str(uuid.uuid4()) for _ in range(3)]
        for own, parent in zip(loop, loop[1:] + loop[:1]):  # a sidechain that is a ring
            record = self.session.record("user", {"role": "user", "content": "round"}, isSidechain=True)
            record.update(uuid=own, parentUuid=parent)
            self.write(line(record))
        self.session.prompt("after")
        self.settle()
        self.assertEqual(self.prompts(), [*(f"number {n}" for n in range(4)), "after"])

    def test_21_whatever_is_no_record_is_passed_over_and_the_cursor_goes_on(self):
        self.begin()
        dice = random.Random(21)
        grammar = [
            lambda: b"", lambda: b"   \t", lambda: b"\r", lambda: b"null", lambda: b"true", lambda: b"-12.5e3", lambda: b'"text"', lambda: b"[]",
            lambda: b"{}", lambda: b"[{}]", lambda: json.dumps({"type": f"new-kind-{dice.randrange(5)}", "uuid": str(uuid.uuid4())}).encode(),
            lambda: json.dumps({"type": dice.choice([None, 3, [], {}, ""])}).encode(), lambda: b'{"type":"user"}',
            lambda: b'{"type":"assistant","message":[]}', lambda: b'{"type":"user","message":{"content":7}}', lambda: b'{"type":', lambda: b"}{",
            lambda: bytes(dice.randrange(256) for _ in range(dice.randrange(40))).replace(b"\n", b""),
            lambda: json.dumps({"type": "summary", "summary": "s", "leafUuid": "x"}).encode(),
        ]
        names = []
        for n in range(300):
            if dice.random() < 0.2:
                names.append(f"number {n}")
                self.write(self.prompt_line(names[-1]), look=False)
            else:
                self.write(dice.choice(grammar)() + b"\n", look=False)
        self.write(b"".join(dice.choice(grammar[:12])() + b"\n" for _ in range(20)))
        self.settle()
        self.assertEqual(self.prompts(), names)
        late = self.daemon.client()
        (frame,) = late.subscribe()
        stream, cursor = frame["cursors"][0].rsplit(":", 1)
        self.assertEqual((stream, int(cursor.split(".")[0])), (self.stream, self.written))  # behind what meant nothing, too

    def test_22_two_writers_at_once_leave_lines_that_are_independent(self):
        self.begin()
        append(self.session.path, b"")
        writer = ("import json,os,sys\n"
                  "fd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND)\n"
                  "sys.stdin.readline()\n"
                  "for text in sys.stdin:\n"
                  "  os.write(fd,text.encode())\n")
        writers = [subprocess.Popen([sys.executable, "-c", writer, self.session.path], stdin=subprocess.PIPE, text=True) for _ in range(2)]
        names = [[f"writer {n} says {i} " + "x" * 5000 for i in range(200)] for n in range(2)]
        for each, own in zip(writers, names):
            each.stdin.write("go\n" + "".join(self.prompt_line(name).decode() for name in own))
        for each in writers:
            each.stdin.close()
            self.assertEqual(each.wait(), 0)
        self.settle()
        told = [f["prompt"]["text"] if isinstance(f["prompt"], dict) else f["prompt"] for f in self.client.all(type="turn.started")]
        for n, own in enumerate(names):
            self.assertEqual([text[:20] for text in told if text.startswith(f"writer {n}")], [name[:20] for name in own])
        self.assertEqual(len(told), 400)
        self.assertEqual(self.skipped(), [])

    def test_23_line_separators_of_other_worlds_end_no_line(self):
        self.begin()
        texts = ["a\u2028b", "a\u2029b", "a\u0085b", "a\u007fb", "a\u00a0b", "a\ufeffb"]
        for text in texts:
            self.write(self.prompt_line(text))
        self.settle()
        self.assertEqual(self.prompts(), texts)
        self.assertEqual(self.skipped(), [])
        start, raw = self.written, self.prompt_line("a@byte b", byte=b"\x1b")  # raw control characters are no JSON: one line all the same
        self.write(raw)
        self.write(self.prompt_line("after") + self.prompt_line("escaped \x1b"))
        self.settle()
        self.assertEqual(self.skipped(), [(start, 1, len(raw), "not JSON", False)])
        self.assertEqual(self.prompts()[-2:], ["after", "escaped \x1b"])


if __name__ == "__main__":
    unittest.main()
