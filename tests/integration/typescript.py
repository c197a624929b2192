"""Shared by the tests of clients/sdk and clients/dashboard: compiles TypeScript once and runs Node's test runner."""
import fcntl
import glob
import hashlib
import os
import re
import subprocess

from support.harness import TOP, build

SDK = os.path.join(TOP, "clients", "sdk")
DASHBOARD = os.path.join(TOP, "clients", "dashboard")
line_max, output_max = 2500, 8000  # characters of a failed test's output
tests_seconds_max = 2700  # beside a compilation on two processors


def compile_typescript(directory):
    """Runs tsc unless its output is up to date: other tests may be running that output."""
    sources = sorted(glob.glob(os.path.join(directory, "src", "**"), recursive=True) + glob.glob(os.path.join(directory, "test", "*.ts")))
    digest = hashlib.sha256()
    for path in [*filter(os.path.isfile, sources), os.path.join(directory, "tsconfig.json"), os.path.join(directory, "package-lock.json")]:
        with open(path, "rb") as file:
            digest.update(path.encode() + b"\0" + file.read())
    stamp = os.path.join(directory, "node_modules", ".earshot-compiled")
    with open(stamp, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if file.read() == digest.hexdigest():
            return
        result = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=directory, capture_output=True, text=True, timeout=tests_seconds_max)
        if result.returncode != 0:
            raise AssertionError(result.stdout)
        file.truncate(0)
        file.write(digest.hexdigest())


def failures(tap):
    """Yields the output of each failed test."""
    for match in re.finditer(r"^( *)not ok .*\n(?:\1 .*\n)*", tap, re.MULTILINE):
        if "type: 'suite'" not in match[0] and "subtestsFailed" not in match[0]:
            yield "\n".join(line[:line_max] for line in match[0].splitlines())[:output_max]


def run_node_tests(directory, pattern, **environment):
    """Runs the files sequentially and prints the measurements they report. Returns (number passed, reasons of the skipped)."""
    files = sorted(glob.glob(os.path.join(directory, pattern)))
    try:
        result = subprocess.run(["node", "--test", "--test-reporter=tap", "--test-concurrency=1", *files], cwd=directory, capture_output=True, text=True,
                                timeout=tests_seconds_max, env={**os.environ, "EARSHOT_BUILD": os.path.abspath(build()), **environment})
    except subprocess.TimeoutExpired as hang:
        tap = (hang.stdout or b"").decode(errors="replace")
        raise AssertionError("\n".join([*failures(tap), f"not ended after {tests_seconds_max} s; the last of its output:", tap[-4000:]])) from None
    if result.returncode != 0:
        raise AssertionError("\n".join(failures(result.stdout)) or result.stdout[-4000:] + result.stderr[-2000:])
    for measurement in re.findall(r"^ +# (?!Subtest)(.*\d.*)$", result.stdout, re.MULTILINE):
        print(f"        {measurement}")
    passed = int(re.search(r"^# pass (\d+)", result.stdout, re.MULTILINE)[1])
    return passed, re.findall(r"# SKIP (.*)$", result.stdout, re.MULTILINE)
