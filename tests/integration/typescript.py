"""What the tests of clients/sdk and clients/dashboard share: TypeScript that is compiled once, and Node's own tests."""
import fcntl
import glob
import hashlib
import os
import re
import subprocess

from support.harness import TOP, build

SDK = os.path.join(TOP, "clients", "sdk")
DASHBOARD = os.path.join(TOP, "clients", "dashboard")
tests_seconds_max = 540


def compiled(directory):
    """Runs tsc there, unless it did so for just these sources: others may be running what it made."""
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
        done = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=directory, capture_output=True, text=True, timeout=tests_seconds_max)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        file.truncate(0)
        file.write(digest.hexdigest())


def failures(tap):
    """Each test that failed, with what it says of that."""
    for found in re.finditer(r"^( *)not ok .*\n(?:\1 .*\n)*", tap, re.MULTILINE):
        if "type: 'suite'" not in found[0] and "subtestsFailed" not in found[0]:
            yield found[0][:3000]


def node_tests(directory, pattern, **environment):
    """Runs these, one file after the other, and prints the figures that they tell. Returns (passed, skipped with reasons)."""
    files = sorted(glob.glob(os.path.join(directory, pattern)))
    done = subprocess.run(["node", "--test", "--test-reporter=tap", "--test-concurrency=1", *files], cwd=directory, capture_output=True, text=True,
                          timeout=tests_seconds_max, env={**os.environ, "EARSHOT_BUILD": os.path.abspath(build()), **environment})
    if done.returncode != 0:
        raise AssertionError("\n".join(failures(done.stdout)) or done.stdout[-4000:] + done.stderr[-2000:])
    for figure in re.findall(r"^ +# (?!Subtest)(.*\d.*)$", done.stdout, re.MULTILINE):
        print(f"        {figure}")
    passed = int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1])
    return passed, re.findall(r"# SKIP (.*)$", done.stdout, re.MULTILINE)
