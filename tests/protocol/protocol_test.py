#!/usr/bin/python3
"""Checks the contract against itself and against the frames that the programs of EARSHOT_BUILD send."""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
import self_test  # noqa: E402
from support.harness import DaemonCase, build, clean_environment, corpus, wait_for  # noqa: E402
from schemas import Schemas  # noqa: E402
from validate import NotAFrame, Validator, parse  # noqa: E402

SOURCE = HERE.parents[1]
SCHEMAS = Schemas()
PROBLEMS_SHOWN_MAX = 20  # of an invalid replay
EXPECTED = ".events.jsonl"  # suffix of the events expected of a fixture
NO_TRANSCRIPTS = {"timeline.jsonl", "history.jsonl", "journal.jsonl"}
NODE_MODULES = (SOURCE / "clients/dashboard/node_modules", SOURCE / "clients/sdk/node_modules", pathlib.Path("/usr/share/nodejs"))


def problems_of_replay(path, view):
    """Replays one transcript; returns the problems of its events and their number."""
    command = [os.path.join(build(), "earshot"), "replay", "--host", "dev7", "--view", view, str(path)]
    done = subprocess.run(command, capture_output=True, check=True)
    validator = Validator(SCHEMAS, view=view, complete=True, connection=False)
    problems, count = [], 0
    for number, line in enumerate(done.stdout.splitlines(), 1):
        count += 1
        try:
            problems += [f"{path}: event {number}: {p}: {line[:300]!r}" for p in validator.problems(parse(line))]
        except NotAFrame as error:
            problems.append(f"{path}: event {number}: {error}: {line[:300]!r}")
    return problems, count


class Contract(unittest.TestCase):
    def test_schemas_vectors_asyncapi_and_readme_agree(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = self_test.run()
        self.assertEqual(code, 0, output.getvalue())


class Replay(unittest.TestCase):
    def assert_replays_are_valid(self, directory, views):
        paths = sorted(p for p in directory.rglob("*.jsonl") if p.name not in NO_TRANSCRIPTS and not p.name.endswith(EXPECTED))
        self.assertTrue(paths, f"no transcripts below {directory}")
        problems, events = [], 0
        for path in paths:
            for view in views:
                found, count = problems_of_replay(path, view)
                problems += found
                events += count
        self.assertGreater(events, 0)
        self.assertEqual(problems[:PROBLEMS_SHOWN_MAX], [], f"{len(problems)} problems in {events} events")

    def test_expected_events_of_the_fixtures_are_valid(self):
        paths = sorted((SOURCE / "tests/golden").rglob("*" + EXPECTED))
        self.assertTrue(paths, "no expected events")
        problems = []
        for path in paths:
            validator = Validator(SCHEMAS, complete=True, connection=False)
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                # The prefix hash depends on every byte before it: the files have a star in its place.
                frame = parse(re.sub(r'("cursor":"\d+\.\d+\.)\*"', r'\g<1>' + "0" * 16 + '"', line))
                problems += [f"{path.name}:{number}: {problem}" for problem in validator.problems(frame)]
        self.assertEqual(problems[:PROBLEMS_SHOWN_MAX], [])

    def test_events_of_the_fixtures_are_valid(self):
        self.assert_replays_are_valid(SOURCE / "tests/golden", ("full", "meta"))

    def test_events_of_recorded_sessions_are_valid(self):
        if not corpus():
            self.skipTest("the recorded corpus is not installed")
        self.assert_replays_are_valid(pathlib.Path(corpus()), ("full",))


class Examples(DaemonCase):
    """Runs the example programs of README.md."""

    SESSION = "5f1d2c3b-0a9e-4d8c-8b7a-6c5d4e3f2a1b"

    def example(self, language):
        text = (SOURCE / "protocol/README.md").read_text("utf-8")
        return next(block for found, block, _ in self_test.fences(text) if found == language)

    def assert_follows_a_turn(self, command, environment):
        daemon = self.start(state=os.path.join(self.home, "earshot"))
        environment = {**clean_environment(self.home), "XDG_STATE_HOME": self.home, **environment}
        output = os.path.join(self.home, "output.txt")
        with open(output, "wb") as out:
            follower = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=self.home)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)

        def printed(expected):
            text = pathlib.Path(output).read_text("utf-8")
            if follower.poll() is not None and expected not in text:
                raise AssertionError(f"the example ended with {follower.returncode}:\n{text}")
            return expected in text
        wait_for(lambda: printed("live\n"), "the example to be live")
        project = pathlib.Path(self.root, "projects", "-home-ada-lighthouse")
        project.mkdir(parents=True)
        common = f'"sessionId":"{self.SESSION}","version":"2.1.330","cwd":"/home/ada/lighthouse","isSidechain":false,'
        (project / f"{self.SESSION}.jsonl").write_text(
            '{"parentUuid":null,"type":"user","uuid":"6f5e4d3c-0001-4000-8000-000000000001","timestamp":"2026-03-14T09:26:53.589Z",'
            + common + '"message":{"role":"user","content":"Why 20 s?"}}\n'
            '{"parentUuid":"6f5e4d3c-0001-4000-8000-000000000001","type":"assistant","uuid":"6f5e4d3c-0002-4000-8000-000000000002",'
            '"timestamp":"2026-03-14T09:26:55.001Z",' + common + '"message":{"id":"msg_01","role":"assistant","model":"m",'
            '"content":[{"type":"text","text":"It is 30."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}}\n')
        wait_for(lambda: printed(f"{self.SESSION} turn 1 Why 20 s?\n"), "the turn to start")
        wait_for(lambda: printed(f"{self.SESSION} turn 1 completed\n"), "the turn to finish")
        daemon.stop()
        wait_for(lambda: printed("closed 1001\n"), "the example to report that the connection closed")

    def test_the_python_example_follows_a_turn(self):
        path = pathlib.Path(self.home, "follow.py")
        path.write_text(self.example("python"), "utf-8")
        self.assert_follows_a_turn(["/usr/bin/python3", str(path)], {})

    def test_the_node_example_follows_a_turn(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        modules = [os.environ["NODE_PATH"]] if "NODE_PATH" in os.environ else [str(m) for m in NODE_MODULES if m.is_dir()]
        environment = {"NODE_PATH": os.pathsep.join(modules)}
        probe = subprocess.run(["node", "-e", "require('ws')"], env={**os.environ, **environment},
                               stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            self.skipTest("there is no package ws for node (NODE_PATH)")
        path = pathlib.Path(self.home, "follow.js")
        path.write_text(self.example("js"), "utf-8")
        self.assert_follows_a_turn(["node", str(path)], environment)


if __name__ == "__main__":
    unittest.main()
