#!/usr/bin/env python3
"""Runs the fuzz targets, two at a time, and prints a line per target: runs, speed, coverage, result.

usage: run_fuzzers.py [--jobs N] [NAME]      only the targets whose name contains NAME

Each target runs for FUZZ_SECONDS (60), starting with the corpus in the tree and the one that earlier runs found, which is
stored in build/fuzz/corpus. Inputs that crash a target are stored in build/fuzz.
Edges are those of the code that the target links, not of all of earshot.
With FUZZ_COVERAGE=1 the corpus is then run through the `cover` build, and line and region coverage is printed per file.
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
input_seconds_max = 10  # per input; a slower input is a failure: parsing takes bounded time
rss_mb_max = 2048
output_lines_max = 60   # of a failed target

# The files that each target tests: their coverage is printed.
COVERED = {
    "fuzz_lines": ["daemon/core/transcript.cpp", "daemon/core/cursor.cpp"],
    "fuzz_walk": ["daemon/core/line_*.?pp"],
    "fuzz_transcript": ["daemon/core/*.cpp", "daemon/agents/claude_code/re*.cpp"],
    "fuzz_dialect": ["daemon/core/assembler.cpp", "daemon/agents/*/re*.cpp", "daemon/core/event_json.cpp"],
    "fuzz_json": ["daemon/base/json_*.cpp", "daemon/base/text_filter.cpp", "daemon/core/event_json.cpp", "daemon/base/text.cpp"],
    "fuzz_query": ["daemon/core/cursor.cpp", "daemon/base/text.cpp", "daemon/serve/stream/subscription.cpp", "daemon/serve/http/message.cpp"],
    "fuzz_message": ["daemon/serve/stream/subscription.cpp", "daemon/serve/stream/frames.cpp"],
    "fuzz_wire": ["daemon/serve/http/*.cpp", "daemon/serve/websocket/*.?pp", "daemon/serve/stream/*.cpp"],
    "fuzz_options": ["daemon/config/*.cpp", "daemon/serve/limits.cpp"],
    "fuzz_status": ["daemon/agents/claude_code/pending_prompt.cpp", "daemon/status/status.cpp", "daemon/agents/claude_code/evidence.cpp"],
    "fuzz_hub": ["daemon/team/relayed_reader.cpp", "daemon/team/payload.cpp"],
    "fuzz_redact": ["daemon/redact/*.cpp", "daemon/base/json_rewrite.cpp"],
    "fuzz_frame": ["clients/common/*.cpp", "clients/cli/event_formatter.cpp", "clients/cli/session_summary.cpp", "daemon/base/display_text.cpp"],
}


def program(build, target):
    return os.path.join(build, "tests", "fuzz", target)


def corpora(target):
    """[the corpus of earlier runs, which grows; the corpus in the tree]"""
    found_corpus = os.path.join(BUILD, "corpus", target)
    os.makedirs(found_corpus, exist_ok=True)
    return [folder for folder in (found_corpus, os.path.join(FUZZ, "corpus", target)) if os.path.isdir(folder)]


def dictionary(target):
    path = os.path.join(FUZZ, "dict", target + ".dict")
    return ["-dict=" + path] if os.path.exists(path) else []


def fuzz(target, seconds, seed=None):
    """Returns None, or the output of a failed target. With a seed it starts from the corpus in the tree only, so that the run is reproducible."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [scratch, *corpora(target)[1:]] if seed else corpora(target)
        return run(target, seconds, [*([f"-seed={seed}"] if seed else []), *dictionary(target), *folders])


def run(target, seconds, more):
    command = [program(BUILD, target), f"-max_total_time={seconds}", f"-timeout={input_seconds_max}", f"-rss_limit_mb={rss_mb_max}",
               f"-artifact_prefix={os.path.join(BUILD, target)}-", "-print_final_stats=1", *more]
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=BUILD)
    took = time.monotonic() - begun
    output = done.stdout
    runs = int(found[1]) if (found := re.search(r"number_of_executed_units: (\d+)", output)) else 0
    edges = sum(int(n) for n in re.findall(r"\((\d+) inline 8-bit counters\)", output))
    covered = max([int(n) for n in re.findall(r"\bcov: (\d+)", output)], default=0)
    features = max([int(n) for n in re.findall(r"\bft: (\d+)", output)], default=0)
    share = f"{100 * covered / edges:.1f} %" if edges else "?"
    ok = done.returncode == 0 and runs > 0
    print(f"  {'ok' if ok else 'FAIL':4}  {target}: {runs} runs, {runs / max(took, 0.001):.0f}/s, "
          f"{covered} of {edges} edges ({share}), {features} features", flush=True)
    return None if ok else f"{target} (exit {done.returncode})\n" + "\n".join(output.splitlines()[-output_lines_max:])


def cover(target):
    """Prints line and region coverage of the target's files for its corpus."""
    scratch = os.path.join(COVER, target + ".profraw")
    profile = os.path.join(COVER, target + ".profdata")
    inputs = [os.path.join(folder, name) for folder in corpora(target) for name in sorted(os.listdir(folder))]
    for at in range(0, len(inputs), 1000):  # limited by the length of a command line
        subprocess.run([program(COVER, target), f"-timeout={input_seconds_max}", *inputs[at:at + 1000]], check=True, cwd=COVER,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LLVM_PROFILE_FILE": f"{scratch}.{at}"})
    raw = glob.glob(scratch + ".*")
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", *raw, "-o", profile], check=True)
    for path in raw:
        os.unlink(path)
    files = sorted({path for aim in COVERED[target] for path in glob.glob(os.path.join(TOP, aim))})
    report = subprocess.run(["llvm-cov-19", "report", program(COVER, target), "-instr-profile=" + profile, *files],
                            capture_output=True, text=True, check=True).stdout
    print(f"  {target}:  lines, regions")
    for line in report.splitlines():
        if found := re.match(r"(\S+)\s+\d+\s+\d+\s+(\S+%)\s+\d+\s+\d+\s+\S+%\s+\d+\s+\d+\s+(\S+%)", line):
            print(f"    {found[3]:>8} {found[2]:>8}  {found[1]}", flush=True)


def main():
    arguments = sys.argv[1:]
    jobs = 2
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    targets = [target for target in COVERED if not arguments or arguments[0] in target]
    if not targets:
        sys.exit(f"no fuzz target matches '{arguments[0]}': {' '.join(COVERED)}")
    seconds = int(os.environ.get("FUZZ_SECONDS", "60"))
    print(f"\n== fuzz: {len(targets)} targets, {seconds} s each, {jobs} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        broken = [output for output in pool.map(lambda target: fuzz(target, seconds), targets) if output]
    if os.environ.get("FUZZ_COVERAGE") == "1" and shutil.which("llvm-cov-19"):
        for target in targets:
            cover(target)
    for output in broken:
        print(f"\nFAILED: {output}")
    print(f"{len(targets) - len(broken)} passed, {len(broken)} failed, 0 skipped")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
