"""The events of `earshot replay` are those of the reference assemblers: for fixtures, and for all recorded sessions.

Skipped where the recorded sessions are not installed (EARSHOT_CORPUS, or shared/corpus next to the project).
"""
import io
import json
import pathlib
import tempfile
import unittest

import conformance
import pi_reference
import reference

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
GOLDEN = conformance.TOP / "tests/golden"


class Conformance(unittest.TestCase):
    def assert_conforms(self, directory, name):
        output = io.StringIO()
        program = next(program for program in conformance.programs() if program.name == name)
        rows = conformance.compare([program], directory, report=conformance.Differences(2, output))
        if not rows:
            self.skipTest(f"no transcripts of {name} below {directory}")
        self.assertEqual(sum(row.wrong for row in rows.values()), 0, output.getvalue() + conformance.table(rows))

    def assert_recorded_sessions_conform(self, name):
        if not conformance.corpus():
            self.skipTest("the recorded sessions are not installed")
        self.assert_conforms(conformance.corpus(), name)

    def test_fixtures_of_claude_code_have_the_events_of_the_reference(self):
        self.assert_conforms(FIXTURES, "claude-code")

    def test_an_overlong_line_of_claude_code_is_skipped_alone(self):
        prompt = '{"type":"user","uuid":"%s","sessionId":"lamp","message":{"role":"user","content":"%s"}}\n'
        lines = [prompt % ("u1", "Light the lamp"), prompt % ("u2", "x" * reference.LINE_BYTES_MAX), prompt % ("u3", "And the horn")]
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "claude-code/lamp.jsonl")
            path.parent.mkdir()
            path.write_text("".join(lines), "utf-8")
            self.assert_conforms(pathlib.Path(directory), "claude-code")

    def test_fixtures_of_codex_have_the_events_of_the_reference(self):
        self.assert_conforms(FIXTURES, "codex")
        self.assert_conforms(GOLDEN, "codex")

    def test_fixtures_of_copilot_have_the_events_of_the_reference(self):
        self.assert_conforms(FIXTURES, "copilot")
        self.assert_conforms(GOLDEN, "copilot")

    def test_fixtures_of_pi_have_the_events_of_the_reference(self):
        self.assert_conforms(FIXTURES, "pi")
        self.assert_conforms(GOLDEN, "pi")

    def test_recorded_sessions_of_claude_code_have_the_events_of_the_reference(self):
        self.assert_recorded_sessions_conform("claude-code")

    def test_recorded_sessions_of_codex_have_the_events_of_the_reference(self):
        self.assert_recorded_sessions_conform("codex")

    def test_recorded_sessions_of_copilot_have_the_events_of_the_reference(self):
        self.assert_recorded_sessions_conform("copilot")

    def test_recorded_sessions_of_pi_have_the_events_of_the_reference(self):
        self.assert_recorded_sessions_conform("pi")


class WrittenByHand(unittest.TestCase):
    """Events that are written by hand check both readers."""

    def test_an_event_that_the_reference_does_not_make_is_wrong(self):
        with tempfile.TemporaryDirectory() as directory:
            program = next(program for program in conformance.programs() if program.name == "claude-code")
            program.golden = pathlib.Path(directory)
            path, seed = program.golden / "lamp.jsonl", GOLDEN / "seeds/002-user-string.jsonl"
            path.write_bytes(seed.read_bytes())
            events = [json.loads(line) for line in seed.with_suffix(conformance.EXPECTED).read_text("utf-8").splitlines()]
            for prompt, wrong in ((events[-1]["prompt"], 0), ("Grind the stone", 1)):
                lines = [json.dumps(event) for event in [*events[:-1], {**events[-1], "prompt": prompt}]]
                path.with_suffix(conformance.EXPECTED).write_text("\n".join(lines), "utf-8")
                rows = conformance.compare([program], pathlib.Path("/nonexistent"))
                self.assertEqual(sum(row.wrong for row in rows.values()), wrong)


class Comparison(unittest.TestCase):
    """What the comparison itself must find."""

    def setUp(self):
        self.events = list(pi_reference.events(next(FIXTURES.glob("pi/*lighthouse.jsonl")).read_bytes(), stem="x_lighthouse"))
        self.found = [reference.cut(event) for event in self.events]

    def wrong(self):
        return len(list(conformance.differences(self.events, self.found)))

    def test_events_that_are_cut_as_on_the_wire_are_the_same(self):
        self.assertTrue(any("truncated" in event for event in self.found))
        self.assertEqual(self.wrong(), 0)

    def test_a_missing_event_an_additional_one_and_another_value_are_wrong(self):
        del self.found[-1]
        self.assertEqual(self.wrong(), 1)
        self.found.append({**self.events[-1], "index": 99})
        self.assertEqual(self.wrong(), 2)
        self.found[0] = {**self.found[0], "cwd": "/elsewhere"}
        self.assertEqual(self.wrong(), 3)

    def test_a_text_that_is_not_cut_or_cut_elsewhere_is_wrong(self):
        number = next(n for n, event in enumerate(self.found) if "text" in event.get("truncated", {}))
        self.found[number] = {**self.found[number], "text": self.found[number]["text"][:-1]}
        self.assertEqual(self.wrong(), 1)
        self.found[number] = self.events[number]
        self.assertEqual(self.wrong(), 1)

    def test_sums_of_costs_may_differ_in_their_last_digits(self):
        number = next(n for n, event in enumerate(self.found) if "cost_usd" in event)
        self.found[number] = {**self.found[number], "cost_usd": self.found[number]["cost_usd"] + 1e-12}
        self.assertEqual(self.wrong(), 0)
        self.found[number] = {**self.found[number], "cost_usd": self.found[number]["cost_usd"] + 1e-6}
        self.assertEqual(self.wrong(), 1)


if __name__ == "__main__":
    unittest.main()
