#!/usr/bin/env python3
"""Runs all tests; the last line is `N passed, N failed, N skipped`.

usage: run.py [NAME]

With NAME only the tests whose suite, file or name contains it. EARSHOT_BUILDS lists the builds (default "release asan").
EARSHOT_LATER names a compilation that `./dev test` runs in the background: builds after the first, and the fuzzers, wait for its .status;
if that is not 0, its .log is printed. Unit tests are the programs of ctest; Python tests are the *_test.py files here and one level below.
"""
import concurrent.futures
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(TESTS)
sys.path.insert(0, os.path.join(TESTS, "integration"))  # for support/, which the tests of other directories use too
daemons_at_once = 6     # tests that start a daemon mostly wait
programs_at_once = 2    # unit programs and fuzzers are CPU-bound
unit_seconds_max = 900  # a unit program that takes longer is killed and counts as failed
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.lock = threading.Lock()

    def fail(self, name, count=1):
        self.failed += count
        self.failures.append(name)


def heading(text):
    print(f"\n== {text}", flush=True)


def unit_programs(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [(test["name"], test["command"]) for test in json.loads(listed.stdout)["tests"] if "command" in test]


def run_program(command, directory, seconds_max=unit_seconds_max):
    """(exit code, output). What a crashed program started, like a server, is killed and not waited for."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=directory,
                                   env={**os.environ, **SANITIZERS}, start_new_session=True)
        try:
            code = process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            code = "too slow"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the session that it started with
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def run_unit(build, name, tally):
    run_at_once(unit_programs(build), programs_at_once, lambda each: run_unit_program(build, *each, name, tally))


def run_unit_program(build, program, command, name, tally):
    case = [] if name in program.replace("_", " ") else [f"*{name}*"]
    start = time.monotonic()
    code, output = run_program([*command, *case], build)
    passed, failed = catch_counts(output)
    skipped = len(re.findall(r"^\s*SKIP(?:PED)?\b", output, re.MULTILINE))
    if code != 0 and not failed:
        failed = 1  # crashed before its summary
    if not passed and not failed:
        return  # no test matches the name
    with tally.lock:
        tally.passed += max(0, passed - skipped)
        tally.skipped += skipped
        print(f"  {'FAIL' if failed else 'ok':4}  {program}: {passed} passed, {failed} failed, {skipped} skipped"
              f"  {time.monotonic() - start:.1f} s", flush=True)
        for line in re.findall(r"^\s*SKIP.*$", output, re.MULTILINE):
            print(f"        {line.strip()}")
        if failed:
            tally.fail(f"{os.path.basename(build)} {program} (exit {code})", failed)
            print(output, flush=True)


def catch_counts(output):
    """(passed, failed) test cases, from Catch's summary"""
    if found := re.search(r"All tests passed \(.* in (\d+) test cases?\)", output):
        return int(found[1]), 0
    if found := re.search(r"^test cases:(.*)$", output, re.MULTILINE):
        counts = dict((word, int(number)) for number, word in re.findall(r"(\d+) (passed|failed)", found[1]))
        return counts.get("passed", 0), counts.get("failed", 0)
    return 0, 0


class PrintingResult(unittest.TestResult):
    """Prints a line per finished test, with its name as a sentence."""

    def __init__(self, tally, prefix=""):
        super().__init__()
        self.tally, self.prefix, self.outcome, self.detail = tally, prefix, "", ""

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.detail, self.start = "ok", "", time.monotonic()

    def addError(self, test, err):
        super().addError(test, err)
        self.outcome, self.detail = "FAIL", self.detail + self._exc_info_to_string(err, test)
        if not isinstance(test, unittest.TestCase):  # a class fixture
            self.start = time.monotonic()
            self.stopTest(test)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.outcome, self.detail = "FAIL", self.detail + f"{subtest}\n" + self._exc_info_to_string(err, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome, self.detail = "skip", f"        SKIPPED: {reason}"

    def stopTest(self, test):
        with self.tally.lock:
            print(f"  {self.outcome:4}  {self.prefix}{sentence(test)}  {time.monotonic() - self.start:.1f} s", flush=True)
            if self.outcome != "ok":
                print(self.detail, flush=True)
            if self.outcome == "ok":
                self.tally.passed += 1
            elif self.outcome == "skip":
                self.tally.skipped += 1
            else:
                self.tally.fail(sentence(test))


def sentence(test):
    name = test.id().rsplit(".", 1)[-1]
    return name.removeprefix("test_").replace("_", " ")


def python_files(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith("_test.py"))


def await_later():
    later = os.environ.get("EARSHOT_LATER")
    if not later:
        return
    announced = False
    while not os.path.exists(later + ".status"):
        if not announced:
            heading("waiting for the compilation of the next tests")
        announced = True
        time.sleep(0.5)
    with open(later + ".status") as status:
        if status.read().strip() != "0":
            with open(later + ".log", errors="replace") as log:
                sys.exit(f"the compilation failed:\n{log.read()[-20000:]}")


def chosen_tests(path, name):
    folder, module_name = os.path.dirname(path), os.path.basename(path)[:-3]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    chosen = unittest.TestSuite()
    relative = os.path.relpath(path, TESTS)
    for group in unittest.defaultTestLoader.loadTestsFromModule(module):
        for test in group:
            if name in f"{relative} {test.id()}".replace("_", " ").lower():
                chosen.addTest(test)
    return chosen


def run_python(path, name, tally, at_once=1):
    chosen = chosen_tests(path, name)
    if not chosen.countTestCases():
        return
    heading(os.path.relpath(path, TESTS)[:-3])
    if at_once == 1:
        chosen.run(PrintingResult(tally))
    else:
        run_at_once(chosen, at_once, lambda test: test.run(PrintingResult(tally)))


def run_at_once(tests, at_once, run):
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, tests))


def run_daemons(build, folders, name, tally):
    """Runs the tests of all files concurrently: each starts its own daemon and mostly waits."""
    tests = []
    for path in (path for folder in folders for path in python_files(folder)):
        tests += [(os.path.relpath(path, TESTS)[:-3], test) for test in chosen_tests(path, name)]
    if tests:
        heading(f"tests with a daemon ({os.path.basename(build)})")
        run_at_once(tests, daemons_at_once, lambda each: each[1].run(PrintingResult(tally, each[0] + ": ")))


def main():
    if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(__doc__)
    name = sys.argv[1].replace("_", " ").lower() if len(sys.argv) > 1 else ""
    tally = Tally()
    builds = [os.path.join(TOP, "build", build) for build in os.environ.get("EARSHOT_BUILDS", "release asan").split()]
    folders = [os.path.join(TESTS, folder) for folder in sorted(os.listdir(TESTS)) if os.path.isdir(os.path.join(TESTS, folder))]
    daemons = [folder for folder in folders if os.path.basename(folder) in ("integration", "fault")]  # run once per build
    fuzz = os.path.join(TESTS, "fuzz")  # takes minutes: last, and only in a full run or when named

    for folder in [TESTS, *(folder for folder in folders if folder not in (*daemons, fuzz))]:
        os.environ.pop("EARSHOT_BUILD", None)  # run once, with the programs of the release build
        for path in python_files(folder):
            run_python(path, name, tally)
    for build in builds:
        if build != builds[0]:
            await_later()
        heading(f"unit ({os.path.basename(build)})")
        run_unit(build, name, tally)
        os.environ["EARSHOT_BUILD"] = build
        os.environ.update(SANITIZERS)
        run_daemons(build, daemons, name, tally)
    os.environ.pop("EARSHOT_BUILD", None)
    if not name or "fuzz" in name:
        await_later()
        for path in python_files(fuzz):
            run_python(path, name, tally, programs_at_once)

    print()
    for failure in tally.failures:
        print(f"FAILED: {failure}")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    sys.exit(1 if tally.failed or tally.passed + tally.skipped == 0 else 0)


if __name__ == "__main__":
    main()
