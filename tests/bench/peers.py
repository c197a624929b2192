#!/usr/bin/env python3
"""Times earshotd and `earshot usage` beside other programs that read the same transcripts: 2,000 sessions, 885 MB. Run it after `./dev build`.

usage: python3 tests/bench/peers.py [--quick] [--json]

ccusage 18     `ccusage daily --json --offline` adds up the tokens. It is installed from npm into a scratch directory.
earshot usage  the same, `earshot usage --json`; the sums of each day must be equal.
earshotd       from its start until a client has the state of every session; it assembles every event of every transcript.

Rounds alternate; the table shows the median of wall-clock and processor time and the largest resident size. A peer that npm cannot
install is listed as skipped, with the reason.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from generate import write_sessions
from lab import Lab, build, cpu_s, memory
from plain_client import PlainClient

sessions, session_bytes = 2000, 868_000_000
rounds = 3
install_s, run_s = 300, 600
CCUSAGE = "ccusage@18.0.11"
DAY = 'new Date(0).toLocaleDateString("en-CA", {year: "numeric", month: "2-digit", day: "2-digit"})'  # as ccusage names days


def install(folder):
    """Installs ccusage; returns its command, or None and the reason."""
    if not shutil.which("npm"):
        return None, "npm is not installed"
    command = ["npm", "install", "--prefix", folder, "--prefer-offline", "--fetch-retries=1", "--fetch-timeout=30000", "--no-audit", "--no-fund",
               "--loglevel=error", CCUSAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=install_s)
    except subprocess.TimeoutExpired:
        return None, f"npm install took longer than {install_s} s"
    if done.returncode != 0:
        return None, "npm install failed: " + (done.stderr.strip().splitlines() or ["no message"])[0]
    day = subprocess.run(["node", "-p", DAY], capture_output=True, text=True).stdout.strip()
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        return None, f"it needs a Node that writes Canadian dates as YYYY-MM-DD; this one writes {day}"
    return ["node", os.path.join(folder, "node_modules", "ccusage", "dist", "index.js"), "daily", "--json", "--offline"], ""


def run_report(command, root, home):
    """({wall, cpu, rss}, what it prints) of one run over the root."""
    environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "CLAUDE_CONFIG_DIR": root, "LOG_LEVEL": "0"}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        timer = threading.Timer(run_s, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)  # the resources of this process alone
        wall = time.monotonic() - began
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} exited with code {process.returncode}: {err.read().strip()[-300:]}")
        return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss * 1024}, json.load(out)


def tokens_by_day(report):
    """Of ccusage or of `earshot usage`."""
    if "daily" in report:
        return {day["date"]: day["totalTokens"] for day in report["daily"]}
    return {day["day"]: day["total"] for day in report["rows"]}


def run_earshotd(lab, root, count):
    """The same of a daemon that starts."""
    began = time.monotonic()
    with lab.daemon(root) as daemon:
        client = PlainClient(daemon.port, daemon.token)
        client.subscribe()
        shown = client.until(b'"type":"ready"', counted=b'{"type":"session"')
        wall = time.monotonic() - began
        if shown != count:
            raise RuntimeError(f"the snapshot shows {shown} of {count} sessions")
        figures = {"wall": wall, "cpu": cpu_s(daemon), "rss": memory(daemon, "VmHWM")}
        client.close()
    return figures


def measure(lab):
    count = sessions // (20 if lab.quick else 1)
    with lab.scratch("peers") as root, lab.scratch("npm") as packages:
        lab.say(f"writing {count:,} sessions")
        size = sum(map(os.path.getsize, write_sessions(root, count, lab.limited_size(session_bytes))))
        lab.say("installing ccusage")
        ccusage, reason = install(packages)
        reports = {"earshot usage": [os.path.join(build(), "earshot"), "usage", "--json"], **({CCUSAGE: ccusage} if ccusage else {})}
        found = {name: [] for name in ("earshotd", *reports)}
        for n in range(lab.rounds(rounds)):
            lab.say(f"round {n + 1}")
            found["earshotd"].append(run_earshotd(lab, root, count))
            days = []
            for name, command in reports.items():
                figures, report = run_report(command, root, packages)
                found[name].append(figures)
                days.append(tokens_by_day(report))
            if not all(days) or any(each != days[0] for each in days):
                raise RuntimeError(f"the tokens by day are not equal: {days}")
    rows = {name: {key: statistics.median(one[key] for one in runs) for key in runs[0]} for name, runs in found.items()}
    return {"sessions": count, "bytes": size, "rows": rows, "skipped": {} if ccusage else {CCUSAGE: reason}}


def table(found):
    lines = [f"{found['sessions']:,} sessions, {found['bytes'] / 1e6:.0f} MB", f"{'':16}{'time':>10}{'processor':>12}{'memory':>12}"]
    for name, row in found["rows"].items():
        ratios = [f"{row['wall'] / ours['wall']:.1f}x the time of {other}, {row['cpu'] / ours['cpu']:.1f}x the processor time"
                  for other, ours in found["rows"].items() if name == CCUSAGE and other != name]
        lines.append(f"{name:16}{row['wall']:8.2f} s{row['cpu']:10.2f} s{row['rss'] / 2**20:8.0f} MiB")
        lines += [f"{'':18}{ratio}" for ratio in ratios]
    return "\n".join(lines + [f"{name} is skipped: {reason}" for name, reason in found["skipped"].items()])


def main(words):
    if "--help" in words or "-h" in words:
        return print(__doc__.strip())
    if set(words) - {"--quick", "--json"}:
        sys.exit("peers.py: unknown argument; python3 tests/bench/peers.py --help")
    lab = Lab(quick="--quick" in words)
    try:
        found = measure(lab)
    finally:
        lab.close()
    print(json.dumps(found) if "--json" in words else table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
