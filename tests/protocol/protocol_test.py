#!/usr/bin/python3
"""The contract, against itself and against what the programs really send. The programs are those of EARSHOT_BUILD."""
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
from harness import Case, build, clean_environment, corpus, wait_for  # noqa: E402
from schemas import Schemas  # noqa: E402
from validate import NotAFrame, Validator, parse  # noqa: E402

SOURCE = HERE.parents[1]
SCHEMAS = Schemas()
problems_shown_max = 20  # of a replay that is not valid: the first ones tell enough
EXPECTED = ".events.jsonl"  # beside a fixture: the events that it must give
NO_TRANSCRIPTS = {"timeline.jsonl", "history.jsonl", "journal.jsonl"}
NODE_MODULES = (SOURCE / "clients/dashboard/node_modules", SOURCE / "clients/sdk/node_modules", pathlib.Path("/usr/share/nodejs"))


def problems_of_replay(path, view):
    """What is wrong with the events of one transcript, told from its first byte."""
    command = [os.path.join(build(), "earshot"), "replay", "--host", "dev7", "--view", view, str(path)]
    done = subprocess.run(command, capture_output=True, check=True)
    validator = Validator(SCHEMAS, view=view, whole=True, connection=False)
    found, count = [], 0
    for number, line in enumerate(done.stdout.splitlines(), 1):
        count += 1
        try:
            found += [f"{path}: event {number}: {p}: {line[:300]!r}" for p in validator.problems(parse(line))]
        except NotAFrame as error:
            found.append(f"{path}: event {number}: {error}: {line[:300]!r}")
    return found, count


class Contract(unittest.TestCase):
    def test_schemas_vectors_asyncapi_and_readme_agree(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = self_test.run()
        self.assertEqual(code, 0, said.getvalue())


class Replay(unittest.TestCase):
    def replays_are_valid(self, directory, views):
        paths = sorted(p for p in directory.rglob("*.jsonl") if p.name not in NO_TRANSCRIPTS and not p.name.endswith(EXPECTED))
        self.assertTrue(paths, f"no transcripts below {directory}")
        wrong, events = [], 0
        for path in paths:
            for view in views:
                found, count = problems_of_replay(path, view)
                wrong += found
                events += count
        self.assertGreater(events, 0)
        self.assertEqual(wrong[:problems_shown_max], [], f"{len(wrong)} problems in {events} events")

    def test_events_that_our_fixtures_must_give_are_what_the_contract_says(self):
        paths = sorted((SOURCE / "tests/golden").rglob("*" + EXPECTED))
        self.assertTrue(paths, "no expected events")
        wrong = []
        for path in paths:
            validator = Validator(SCHEMAS, whole=True, connection=False)
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                # A mark depends on every byte before it: the files have a star in its place.
                frame = parse(re.sub(r'("cursor":"\d+\.\d+\.)\*"', r'\g<1>' + "0" * 16 + '"', line))
                wrong += [f"{path.name}:{number}: {problem}" for problem in validator.problems(frame)]
        self.assertEqual(wrong[:problems_shown_max], [])

    def test_events_of_our_own_fixtures_are_what_the_contract_says(self):
        self.replays_are_valid(SOURCE / "tests/golden", ("full", "meta"))

    def test_events_of_recorded_sessions_are_what_the_contract_says(self):
        if not corpus():
            self.skipTest("the recorded corpus is not here")
        self.replays_are_valid(pathlib.Path(corpus()), ("full",))


class Examples(Case):
    """The programs in README.md are cut out and run."""

    SESSION = "5f1d2c3b-0a9e-4d8c-8b7a-6c5d4e3f2a1b"

    def example(self, language):
        text = (SOURCE / "protocol/README.md").read_text("utf-8")
        return next(block for found, block, _ in self_test.fences(text) if found == language)

    def follows_a_turn(self, command, environment):
        daemon = self.start(state=os.path.join(self.home, "earshot"))
        environment = {**clean_environment(self.home), "XDG_STATE_HOME": self.home, **environment}
        heard = os.path.join(self.home, "heard.txt")
        with open(heard, "wb") as out:
            follower = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=self.home)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)

        def said(words):
            text = pathlib.Path(heard).read_text("utf-8")
            if follower.poll() is not None and words not in text:
                raise AssertionError(f"the example ended with {follower.returncode}:\n{text}")
            return words in text
        wait_for(lambda: said("live\n"), "the example to be live")
        project = pathlib.Path(self.root, "projects", "-home-ada-lighthouse")
        project.mkdir(parents=True)
        common = f'"sessionId":"{self.SESSION}","version":"2.1.330","cwd":"/home/ada/lighthouse","isSidechain":false,'
        (project / f"{self.SESSION}.jsonl").write_text(
            '{"parentUuid":null,"type":"user","uuid":"6f5e4d3c-0001-4000-8000-000000000001","timestamp":"2026-03-14T09:26:53.589Z",'
            + common + '"message":{"role":"user","content":"Why 20 s?"}}\n'
            '{"parentUuid":"6f5e4d3c-0001-4000-8000-000000000001","type":"assistant","uuid":"6f5e4d3c-0002-4000-8000-000000000002",'
            '"timestamp":"2026-03-14T09:26:55.001Z",' + common + '"message":{"id":"msg_01","role":"assistant","model":"m",'
            '"content":[{"type":"text","text":"It is 30."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}}\n')
        wait_for(lambda: said(f"{self.SESSION} turn 1 Why 20 s?\n"), "the turn to start")
        wait_for(lambda: said(f"{self.SESSION} turn 1 completed\n"), "the turn to finish")
        daemon.stop()
        wait_for(lambda: said("closed 1001\n"), "the example to hear that the daemon stops")

    def test_the_python_example_follows_a_turn(self):
        path = pathlib.Path(self.home, "follow.py")
        path.write_text(self.example("python"), "utf-8")
        self.follows_a_turn(["/usr/bin/python3", str(path)], {})

    def test_the_node_example_follows_a_turn(self):
        if not shutil.which("node"):
            self.skipTest("node is not here")
        modules = [os.environ["NODE_PATH"]] if "NODE_PATH" in os.environ else [str(m) for m in NODE_MODULES if m.is_dir()]
        environment = {"NODE_PATH": os.pathsep.join(modules)}
        probe = subprocess.run(["node", "-e", "globalThis.WebSocket ?? require('ws')"], env={**os.environ, **environment},
                               stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            self.skipTest("node has no WebSocket of its own and finds no package ws (NODE_PATH)")
        path = pathlib.Path(self.home, "follow.js")
        path.write_text(self.example("js"), "utf-8")
        self.follows_a_turn(["node", str(path)], environment)


if __name__ == "__main__":
    unittest.main()
