#!/usr/bin/env python3
"""Seeds known faults, one at a time, and checks that the tests detect them.

usage: mutants.py [--jobs N] [--release] [NAME]      each mutant, or those whose name contains NAME
       mutants.py --check                            only checks that every patch applies and every killer exists; quick

Each NN-name.patch in this directory is a mutant; its first line describes it. It is applied to a copy of the sources (build/mutants/tree), where
its KILLERS are built and run: each must pass without the mutant, and at least one must fail with it. The build is optimised for compile time;
--release uses the release flags, which is faster with a warm compiler cache (CMAKE_CXX_COMPILER_LAUNCHER).
Prints a line per mutant. Exit code 1: a mutant survived, a patch does not apply, or a killer fails without a mutant.
"""
import argparse
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
TOP = os.path.dirname(TESTS)
sys.path.insert(0, TESTS)
import fault_readme_test  # noqa: E402  lists the tests of a file
import dependencies  # noqa: E402

NOT_SOURCES = {"node_modules", "dist", *dependencies.GENERATED}
TREE = os.path.join(TOP, "build", "mutants", "tree")
# Without assertions, as in the release build: only a test may detect a mutant. Slow-to-compile files are not optimised.
QUICK = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -DNDEBUG -D_FORTIFY_SOURCE=2"]
RELEASE = ["-DCMAKE_BUILD_TYPE=Release"]
killer_seconds_max = 240                    # a slower killer counts as hanging: the mutant is detected
said_lines_max = 40                         # of the output of an unexpected failure

SIMULATOR = ("sim", "1 400")  # arguments: first seed, number of runs

# mutant → the tests that must detect it: (file, test), or the simulator.
KILLERS = {
    "01-truncation-by-size-only": [
        ("unit/tail/follower_test.cpp", "fault 25: truncated, then grown past the offset between two checks, is a reset"),
        ("unit/tail/follower_test.cpp", "fault 28: an edit of the same length in the middle is a reset"),
        SIMULATOR,
    ],
    "02-identity-by-head-only": [
        ("unit/tail/follower_test.cpp", "fault 28: an edit of the same length in the middle is a reset"),
        SIMULATOR,
    ],
    "03-partial-line-emitted": [
        ("unit/core/transcript_test.cpp", "an unterminated line is not read, even if it is valid JSON"),
        ("unit/tail/followed_file_test.cpp", "fault 2: an unterminated line yields no event and counts as pending"),
        SIMULATOR,
    ],
    "04-offset-of-a-continuation": [
        ("unit/core/transcript_property_test.cpp", "small sessions, split at every byte"),
        ("unit/tail/followed_file_test.cpp", "fault 4: a line in two writes has the offset of its first byte"),
        SIMULATOR,
    ],
    "05-overflow-ignored": [
        ("unit/watch/watchers_test.cpp", "an overflow of the queue is reported as a change of everything"),
    ],
    "06-scan-before-watch": [
        ("unit/tail/discovery_test.cpp", "a directory is watched before it is scanned: a file created in between is found without a hint"),
    ],
    "07-resume-without-the-mark": [
        ("unit/serve/stream/resume_test.cpp", "a cursor that does not match gets a reset and its session, never an event"),
        SIMULATOR,
    ],
    "08-origin-by-suffix": [
        ("unit/serve/http/message_test.cpp", "over TCP the Host is a loopback name with our port, and the Origin is ours or absent"),
    ],
    "09-redaction-on-raw-text": [
        ("unit/core/redaction_test.cpp", "JSON is redacted decoded and rewritten only where something was replaced"),
        ("unit/redact/event_redaction_test.cpp", "a canary in a tool's input, however it is written"),
    ],
    "10-redaction-on-chunks": [
        ("unit/redact/event_redaction_test.cpp", "a cut at any byte of a canary shows nothing of it"),
    ],
    "11-results-by-order": [
        ("unit/core/assembler_tools_test.cpp", "a call and its result are paired by id"),
    ],
    "12-proof-without-the-address": [
        ("unit/serve/http/router_test.cpp", "fault 87: the daemon proves that it has the token, for one nonce and its own endpoint"),
    ],
    "13-unread-responses-unbounded": [
        ("unit/serve/websocket/session_test.cpp", "fault 91: unread responses are bounded in total"),
    ],
    "14-handlers-outlive-the-server": [
        ("unit/serve/websocket/session_test.cpp", "fault 97: handlers that run or are destroyed after the server use nothing of it"),
    ],
    "15-dead-process-unnoticed": [
        ("unit/status/session_processes_test.cpp", "fault 105: an open turn has ended when its process has exited"),
        ("unit/status/session_processes_test.cpp", "fault 105: a session is not ended while a process runs in its directory"),
    ],
    "16-one-thread-for-hanging-calls": [
        ("unit/base/bounded_calls_test.cpp", "fault 80: a call that does not return is abandoned, further calls fail at once until it returns"),
    ],
    "17-open-calls-unbounded": [
        ("unit/core/assembler_limits_test.cpp", "fault 85: a session's memory grows by its hashes only, and what is dropped is counted"),
        ("unit/core/assembler_limits_test.cpp", "fault 85: the oldest open call is abandoned, and the turn can still end"),
    ],
    "18-service-without-hub": [
        ("unit/config/options_test.cpp", "FAULTS 84: an installed service runs with every option of the table that was given"),
    ],
}


class Broken(Exception):
    """A problem that prevents testing the mutants."""


def patches():
    return {os.path.basename(path)[:-len(".patch")]: path for path in sorted(glob.glob(os.path.join(HERE, "*.patch")))}


def git_apply(tree, patch, *options):
    """Applies a patch; returns None or the error. GIT_CEILING_DIRECTORIES hides an enclosing repository, which git would otherwise use."""
    done = subprocess.run(["git", "apply", *options, patch], cwd=tree, capture_output=True, text=True,
                          env={**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(tree)})
    return None if done.returncode == 0 else done.stderr.strip()


def problems():
    found = patches()
    found_problems = []
    for name, patch in found.items():
        with open(patch, encoding="utf-8") as file:
            if not re.match(r"# \w", file.readline()):
                found_problems.append(f"{name}: the first line must describe the mutant (`# …`)")
        if why := git_apply(TOP, patch, "--check"):
            found_problems.append(f"{name}: the patch does not apply: update it ({why})")
        if not KILLERS.get(name):
            found_problems.append(f"{name}: mutants.py lists no killer")
    for name, killers in KILLERS.items():
        if name not in found:
            found_problems.append(f"{name}: killers, but no patch")
        found_problems += [f"{name}: there is no test {test!r} in {path}" for path, test in killers
                 if path != "sim" and test not in fault_readme_test.tests_of(path)]
    return found_problems


def sentence(killer):
    path, test = killer
    return f"sim {test}" if path == "sim" else f"{program_of(killer)} \"{test}\""


def program_of(killer):
    return "sim" if killer[0] == "sim" else "unit_" + killer[0].split("/")[1]


def copy_sources():
    """Copies the sources. Unchanged files are not touched, so that they are not built again."""
    wanted = set()
    for folder, folders, names in os.walk(TOP):
        folders[:] = [name for name in folders if name != ".git" and name not in NOT_SOURCES]
        for name in names:
            source = os.path.join(folder, name)
            relative = os.path.relpath(source, TOP)
            copy = os.path.join(TREE, relative)
            wanted.add(copy)
            if os.path.isfile(source) and not (os.path.isfile(copy) and filecmp.cmp(source, copy, shallow=False)):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(source, copy)
    for folder, folders, names in os.walk(TREE):
        folders[:] = [name for name in folders if name not in NOT_SOURCES]
        for name in names:
            if (copy := os.path.join(folder, name)) not in wanted:
                os.unlink(copy)


def indented_tail(output):
    return "\n".join("    " + line for line in output.splitlines()[-said_lines_max:])


class Build:
    def __init__(self, jobs, release):
        self.jobs, self.flags = jobs, RELEASE if release else QUICK
        self.folder = os.path.join(TREE, "build", "release" if release else "quick")

    def make(self, killers):
        """Builds the killers; returns None or the compiler's output."""
        if not os.path.exists(os.path.join(self.folder, "build.ninja")):
            done = subprocess.run(["cmake", "-S", TREE, "-B", self.folder, "-G", "Ninja", "-DEARSHOT_PAGE=plain", *self.flags], capture_output=True, text=True)
            if done.returncode != 0:
                raise Broken(f"cmake fails:\n{indented_tail(done.stderr)}")
        targets = sorted({program_of(killer) for killer in killers})
        done = subprocess.run(["ninja", "-C", self.folder, "-j", str(self.jobs), *targets], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout

    def command(self, killer):
        path, test = killer
        tests = os.path.join(self.folder, "tests")
        if path == "sim":
            return [os.path.join(tests, "sim", "sim"), *test.split()]
        return [os.path.join(tests, program_of(killer)), re.sub(r"([,\[\]\\])", r"\\\1", test)]

    def run(self, killer):
        """(how it failed, or None if it passed; its output)"""
        try:
            done = subprocess.run(self.command(killer), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=killer_seconds_max)
        except subprocess.TimeoutExpired as late:
            return f"hung for {killer_seconds_max} s", (late.stdout or b"").decode(errors="replace")
        output = done.stdout.decode(errors="replace")
        if done.returncode < 0:
            return f"signal {-done.returncode}", output
        if done.returncode > 0:
            return "failed", output
        # Catch succeeds if no test has the name.
        return ("ran nothing", output) if killer[0] != "sim" and "All tests passed" not in output else (None, output)


def report(text):
    print(text, flush=True)


def unmutated(names, build):
    start = time.monotonic()
    killers = dict.fromkeys(killer for name in names for killer in KILLERS[name])
    copy_sources()
    if output := build.make(killers):
        raise Broken(f"the sources do not build without a mutant:\n{indented_tail(output)}")
    built = time.monotonic() - start
    for killer in killers:
        how, output = build.run(killer)
        if how:
            raise Broken(f"{sentence(killer)} fails without a mutant ({how}): fix that first\n{indented_tail(output)}")
    report(f"{len(killers)} killers pass without a mutant  (built in {built:.0f} s, run in {time.monotonic() - start - built:.0f} s)")


def judge(name, patch, build):
    """Whether a killer detected the mutant."""
    start = time.monotonic()
    if why := git_apply(TREE, patch):
        raise Broken(f"{name}: the patch does not apply: update it ({why})")
    try:
        if output := build.make(KILLERS[name]):
            raise Broken(f"{name}: the mutant does not build: update the patch\n{indented_tail(output)}")
        results = [(killer, build.run(killer)[0]) for killer in KILLERS[name]]
    finally:
        copy_sources()
    took = f"  {time.monotonic() - start:.0f} s"
    killed = [sentence(killer) + ("" if how == "failed" else f" ({how})") for killer, how in results if how]
    missed = [sentence(killer) for killer, how in results if not how]
    report(f"{'killed   ' if killed else 'SURVIVED '} {name}{took}")
    for word, all_of in (("by", killed), ("not by", missed)):
        for one in all_of:
            report(f"            {word} {one}")
    return bool(killed)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    arguments.add_argument("--release", action="store_true")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("name", nargs="?", default="")
    arguments = arguments.parse_args()
    if found_problems := problems():
        sys.exit("\n".join(found_problems))
    if arguments.check:
        return report(f"{len(KILLERS)} mutants: every patch applies, every killer exists")
    chosen = {name: patch for name, patch in patches().items() if arguments.name in name}
    if not chosen:
        sys.exit(f"no mutant matches '{arguments.name}': {', '.join(patches())}")
    start = time.monotonic()
    try:
        build = Build(arguments.jobs, arguments.release)
        unmutated(chosen, build)
        survivors = [name for name, patch in chosen.items() if not judge(name, patch, build)]
    except Broken as broken:
        sys.exit(str(broken))
    report(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed in {time.monotonic() - start:.0f} s")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
