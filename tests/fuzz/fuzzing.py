#!/usr/bin/env python3
"""Runs the fuzz targets, two at a time, and prints a line for each: runs, speed, coverage, result.

usage: fuzzing.py [--jobs N] [NAME]      only the targets whose name contains NAME

Each runs FUZZ_SECONDS (60). It begins with our seeds and with what earlier runs learnt, which stays in
build/fuzz/corpus; what breaks it is left in build/fuzz, with what it said.
Edges are those of the program that is fuzzed: of the code that the target links, not of all of earshot.
With FUZZ_COVERAGE=1 the corpus is then run once through the `cover` build, and the lines and regions covered are printed, file by file.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

FUZZ = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(FUZZ))
BUILD = os.path.join(TOP, "build", "fuzz")
COVER = os.path.join(TOP, "build", "cover")
input_seconds_max = 10  # for one input; slower is a failure: what is parsed here takes bounded steps
rss_mb_max = 2048
told_lines_max = 60     # of what a broken target said

# What each target aims at: of these files the coverage is printed.
AIMS = {
    "fuzz_lines": ["daemon/core/transcript.cpp", "daemon/core/mark.cpp"],
    "fuzz_transcript": ["daemon/core/*.cpp", "daemon/core/dialects/*.cpp"],
    "fuzz_dialect": ["daemon/core/assembler*.cpp", "daemon/core/dialects/*.cpp", "daemon/core/event_json.cpp"],
    "fuzz_json": ["daemon/core/json_copy.cpp", "daemon/core/event_json.cpp", "daemon/core/utf8.cpp"],
    "fuzz_query": ["daemon/core/cursor.cpp", "daemon/serve/filter.cpp", "daemon/serve/query.cpp", "daemon/serve/event_query.cpp"],
    "fuzz_message": ["daemon/serve/message.cpp", "daemon/serve/with_id.cpp"],
    "fuzz_wire": ["daemon/serve/client*.cpp", "daemon/serve/wire_impl.hpp", "daemon/serve/ordered_stream.hpp", "daemon/serve/routes.cpp",
                  "daemon/serve/request.cpp", "daemon/serve/answer.cpp", "daemon/serve/subscriber.cpp", "daemon/serve/delivery.cpp",
                  "daemon/serve/resume.cpp", "daemon/serve/catch_up.cpp", "daemon/serve/records.cpp", "daemon/serve/session_page.cpp"],
    "fuzz_options": ["daemon/options.cpp", "daemon/options_file.cpp", "daemon/options_users.cpp", "daemon/serve/limits.cpp"],
    "fuzz_status": ["daemon/status/ask.cpp", "daemon/status/decide.cpp", "daemon/status/registry.cpp", "daemon/status/tasks.cpp",
                    "daemon/status/text.cpp", "daemon/tail/meta.cpp"],
    "fuzz_hub": ["daemon/core/dialects/told.cpp", "daemon/core/assembler_told.cpp", "daemon/relay/payload.cpp"],
    "fuzz_redact": ["daemon/redact/*.cpp", "daemon/core/json_copy.cpp", "daemon/core/record_json.cpp"],
    "fuzz_frame": ["clients/link/frame.cpp", "clients/cli/narrator.cpp", "clients/cli/tell*.cpp", "clients/cli/tool_line.cpp",
                   "clients/cli/roster.cpp", "clients/link/text.cpp", "clients/link/wrap.cpp", "clients/link/http.cpp"],
}


def program(build, target):
    return os.path.join(build, "tests", "fuzz", target)


def corpora(target):
    """what earlier runs learnt (which grows), and our seeds"""
    learnt = os.path.join(BUILD, "corpus", target)
    os.makedirs(learnt, exist_ok=True)
    return [folder for folder in (learnt, os.path.join(FUZZ, "corpus", target)) if os.path.isdir(folder)]


def dictionary(target):
    path = os.path.join(FUZZ, "dict", target + ".dict")
    return ["-dict=" + path] if os.path.exists(path) else []


def fuzz(target, seconds, seed=None):
    """None: the target held; otherwise what it said. With a seed it begins at our seeds alone: what it tries then is the same each time."""
    with tempfile.TemporaryDirectory() as forgotten:
        folders = [forgotten, *corpora(target)[1:]] if seed else corpora(target)
        return run(target, seconds, [*([f"-seed={seed}"] if seed else []), *dictionary(target), *folders])


def run(target, seconds, more):
    command = [program(BUILD, target), f"-max_total_time={seconds}", f"-timeout={input_seconds_max}", f"-rss_limit_mb={rss_mb_max}",
               f"-artifact_prefix={os.path.join(BUILD, target)}-", "-print_final_stats=1", *more]
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=BUILD)
    took = time.monotonic() - begun
    said = done.stdout
    runs = int(found[1]) if (found := re.search(r"number_of_executed_units: (\d+)", said)) else 0
    edges = sum(int(n) for n in re.findall(r"\((\d+) inline 8-bit counters\)", said))
    covered = max([int(n) for n in re.findall(r"\bcov: (\d+)", said)], default=0)
    features = max([int(n) for n in re.findall(r"\bft: (\d+)", said)], default=0)
    share = f"{100 * covered / edges:.1f} %" if edges else "?"
    ok = done.returncode == 0 and runs > 0
    print(f"  {'ok' if ok else 'FAIL':4}  {target}: {runs} runs, {runs / max(took, 0.001):.0f}/s, "
          f"{covered} of {edges} edges ({share}), {features} features", flush=True)
    return None if ok else f"{target} (exit {done.returncode})\n" + "\n".join(said.splitlines()[-told_lines_max:])


def cover(target):
    """prints line and region coverage of what the target aims at, after each input of its corpus"""
    scratch = os.path.join(COVER, target + ".profraw")
    profile = os.path.join(COVER, target + ".profdata")
    inputs = [os.path.join(folder, name) for folder in corpora(target) for name in sorted(os.listdir(folder))]
    for at in range(0, len(inputs), 1000):  # a command line is only so long
        subprocess.run([program(COVER, target), f"-timeout={input_seconds_max}", *inputs[at:at + 1000]], check=True, cwd=COVER,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LLVM_PROFILE_FILE": f"{scratch}.{at}"})
    raw = glob.glob(scratch + ".*")
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", *raw, "-o", profile], check=True)
    for path in raw:
        os.unlink(path)
    files = sorted({path for aim in AIMS[target] for path in glob.glob(os.path.join(TOP, aim))})
    report = subprocess.run(["llvm-cov-19", "report", program(COVER, target), "-instr-profile=" + profile, *files],
                            capture_output=True, text=True, check=True).stdout
    print(f"  {target}:  lines, regions")
    for line in report.splitlines():
        if found := re.match(r"(\S+)\s+\d+\s+\d+\s+(\S+%)\s+\d+\s+\d+\s+\S+%\s+\d+\s+\d+\s+(\S+%)", line):
            print(f"    {found[3]:>8} {found[2]:>8}  {found[1]}", flush=True)


def main():
    words = sys.argv[1:]
    jobs = 2
    if words[:1] == ["--jobs"]:
        jobs, words = int(words[1]), words[2:]
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    targets = [target for target in AIMS if not words or words[0] in target]
    if not targets:
        sys.exit(f"no fuzz target is called like '{words[0]}': there are {' '.join(AIMS)}")
    seconds = int(os.environ.get("FUZZ_SECONDS", "60"))
    print(f"\n== fuzz: {len(targets)} targets, {seconds} s each, {jobs} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        broken = [said for said in pool.map(lambda target: fuzz(target, seconds), targets) if said]
    if os.environ.get("FUZZ_COVERAGE") == "1" and shutil.which("llvm-cov-19"):
        for target in targets:
            cover(target)
    for said in broken:
        print(f"\nFAILED: {said}")
    print(f"{len(targets) - len(broken)} passed, {len(broken)} failed, 0 skipped")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
