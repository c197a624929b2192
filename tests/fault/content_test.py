"""Faults 14 to 23: the contents of a line."""
import json
import random
import subprocess
import sys
import unittest
import uuid

from framing_case import FramingCase, line
from support.harness import build, sanitized
from support.transcripts import Session, append

REPLACED = "\ufffd"


class Content(FramingCase):
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
        small = (2 << 20) if sanitized(build()) else (192 << 10)  # instrumented code needs more
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

    def test_17_the_last_of_duplicate_keys_wins_at_any_depth(self):
        """Differential test: Python's JSON reader also keeps the last value, so its output must give the same events."""
        self.begin()
        dice = random.Random(17)
        plain = Session(self.root, cwd="/home/ada/plain")
        for n in range(40):
            text = self.doubled(dice, self.session.record("user", {"role": "user", "content": f"number {n}"}))
            self.write(text + b"\n", wait=False)
            append(plain.path, json.dumps(json.loads(text)).encode() + b"\n")
        events = self.assert_settled(self.daemon, self.client, self.root)

        def bare(stream):
            return [{k: v for k, v in json.loads(text).items() if k not in ("cursor", "stream", "session")} for text in events[stream]]

        self.assertEqual(bare(self.stream), bare(f"claude/-home-ada-plain/{plain.session}"))
        self.assertEqual(self.skipped(), [])

    def doubled(self, dice, value):
        """JSON in which some keys occur twice, first with a value that must not be used."""
        if not isinstance(value, dict):
            return json.dumps(value).encode()
        members = []
        for name, held in value.items():
            if dice.random() < 0.4:
                wrong = dice.choice([b"null", b"7", b'"wrong"', b'{"role":"assistant"}', b"[1]", b"[]"])
                members.append(json.dumps(name).encode() + b":" + wrong)
        dice.shuffle(members)
        return b"{" + b",".join(members + [json.dumps(name).encode() + b":" + self.doubled(dice, held) for name, held in value.items()]) + b"}"

    def test_18_numbers_outside_double_range_keep_their_text(self):
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

    # --- Duplicates ---

    def test_19_a_copied_transcript_is_two_streams_and_a_repeated_line_is_one_event(self):
        self.begin()
        lines = self.turn_lines("once")
        self.write(lines)
        first = self.settle()
        fork = Session(self.root)
        append(fork.path, lines)  # a fork starts with a copied history, including uuids
        fork.turn("in the fork")
        self.write(lines)  # a resumed session repeats its history
        second = self.assert_settled(self.daemon, self.client, self.root)
        self.assertEqual(second[self.stream], first)
        twin = second[f"claude/-home-ada-api/{fork.session}"]
        without = [{k: v for k, v in json.loads(text).items() if k not in ("stream", "session")} for text in (*first, *twin[: len(first)])]
        self.assertEqual(without[: len(first)], without[len(first) :])
        used = [json.loads(text) for text in first if '"usage.updated"' in text]
        self.assertEqual(len({f["message"] for f in used}), len(used))

    def test_20_dangling_and_cyclic_parents_terminate(self):
        self.begin()
        ids = [str(uuid.uuid4()) for _ in range(4)]
        parents = [ids[1], ids[0], ids[2], str(uuid.uuid4())]  # a→b→a, itself, missing
        for n, (own, parent) in enumerate(zip(ids, parents)):
            for side in (False, True):
                record = self.session.record("user", {"role": "user", "content": f"number {n}"}, isSidechain=side)
                record.update(uuid=own if not side else str(uuid.uuid4()), parentUuid=parent)
                self.write(line(record))
        loop = [str(uuid.uuid4()) for _ in range(3)]
        for own, parent in zip(loop, loop[1:] + loop[:1]):  # a cyclic sidechain
            record = self.session.record("user", {"role": "user", "content": "round"}, isSidechain=True)
            record.update(uuid=own, parentUuid=parent)
            self.write(line(record))
        self.session.prompt("after")
        self.settle()
        self.assertEqual(self.prompts(), [*(f"number {n}" for n in range(4)), "after"])

    def test_21_lines_that_are_not_records_are_skipped_and_the_cursor_advances(self):
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
                self.write(self.prompt_line(names[-1]), wait=False)
            else:
                self.write(dice.choice(grammar)() + b"\n", wait=False)
        self.write(b"".join(dice.choice(grammar[:12])() + b"\n" for _ in range(20)))
        self.settle()
        self.assertEqual(self.prompts(), names)
        late = self.daemon.client()
        (frame,) = late.subscribe()
        stream, cursor = frame["cursors"][0].rsplit(":", 1)
        self.assertEqual((stream, int(cursor.split(".")[0])), (self.stream, self.written))  # includes the ignored lines

    def test_22_two_writers_at_once_leave_lines_that_are_independent(self):
        self.begin()
        append(self.session.path, b"")
        writer = ("import json,os,sys\n"
                  "fd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND)\n"
                  "sys.stdin.readline()\n"
                  "for text in sys.stdin:\n"
                  "  os.write(fd,text.encode())\n")
        writers = [subprocess.Popen([sys.executable, "-c", writer, self.session.path], stdin=subprocess.PIPE, text=True) for _ in range(2)]
        names = [[f"writer {n} line {i} " + "x" * 5000 for i in range(200)] for n in range(2)]
        for each, own in zip(writers, names):
            each.stdin.write("go\n" + "".join(self.prompt_line(name).decode() for name in own))
        for each in writers:
            each.stdin.close()
            self.assertEqual(each.wait(), 0)
        self.settle()
        texts_read = [f["prompt"]["text"] if isinstance(f["prompt"], dict) else f["prompt"] for f in self.client.all(type="turn.started")]
        for n, own in enumerate(names):
            self.assertEqual([text[:20] for text in texts_read if text.startswith(f"writer {n}")], [name[:20] for name in own])
        self.assertEqual(len(texts_read), 400)
        self.assertEqual(self.skipped(), [])

    def test_23_unicode_line_separators_do_not_end_a_line(self):
        self.begin()
        texts = ["a\u2028b", "a\u2029b", "a\u0085b", "a\u007fb", "a\u00a0b", "a\ufeffb"]
        for text in texts:
            self.write(self.prompt_line(text))
        self.settle()
        self.assertEqual(self.prompts(), texts)
        self.assertEqual(self.skipped(), [])
        start, raw = self.written, self.prompt_line("a@byte b", byte=b"\x1b")  # raw control characters are invalid JSON, and do not end the line
        self.write(raw)
        self.write(self.prompt_line("after") + self.prompt_line("escaped \x1b"))
        self.settle()
        self.assertEqual(self.skipped(), [(start, 1, len(raw), "not JSON", False)])
        self.assertEqual(self.prompts()[-2:], ["after", "escaped \x1b"])


if __name__ == "__main__":
    unittest.main()
