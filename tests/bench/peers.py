#!/usr/bin/env python3
"""Times earshotd beside other programs that read the same transcripts: 2,000 sessions, 885 MB. Run it after `./dev build`.

usage: python3 tests/bench/peers.py [--quick] [--json]

ccusage 18    `ccusage daily --json --offline` adds up the tokens. It is installed from npm into a scratch directory.
earshotd      from its start until a client has the state of every session; it assembles every event of every transcript.

Rounds alternate; the table shows the median of wall-clock and processor time and the largest resident size. A peer that npm cannot
install is listed as skipped, with the reason.
"""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

from generate import write_sessions
from lab import Lab, cpu_s, memory
from plain_client import PlainClient

sessions, session_bytes = 2000, 868_000_000
rounds = 3
install_s, run_s = 300, 600
CCUSAGE = "ccusage@18.0.11"


def install(folder):
    """Installs ccusage; returns its command, or None and the reason."""
    if not shutil.which("npm"):
        return None, "npm is not installed"
    command = ["npm", "install", "--prefix", folder, "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", CCUSAGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=install_s)
    if done.returncode != 0:
        return None, "npm install failed: " + (done.stderr.strip().splitlines() or ["no message"])[0]
    return ["node", os.path.join(folder, "node_modules", "ccusage", "dist", "index.js"), "daily", "--json", "--offline"], ""


def run_ccusage(command, root, home):
    """{wall, cpu, rss} of one run over the root."""
    environment = {**os.environ, "HOME": home, "CLAUDE_CONFIG_DIR": root, "LOG_LEVEL": "0"}
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["/usr/bin/env", "--", *command], capture_output=True, text=True, timeout=run_s, env=environment)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0 or json.loads(done.stdout)["totals"]["totalTokens"] == 0:
        raise RuntimeError(f"ccusage exited with code {done.returncode} or found no tokens: {done.stderr.strip()[-300:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "rss": after.ru_maxrss * 1024}


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
        command, reason = install(packages)
        found = {"earshotd": [], CCUSAGE: []}
        for n in range(lab.rounds(rounds)):
            lab.say(f"round {n + 1}")
            found["earshotd"].append(run_earshotd(lab, root, count))
            if command:
                found[CCUSAGE].append(run_ccusage(command, root, packages))
    rows = {name: {key: statistics.median(one[key] for one in runs) for key in runs[0]} for name, runs in found.items() if runs}
    return {"sessions": count, "bytes": size, "rows": rows, "skipped": {} if command else {CCUSAGE: reason}}


def table(found):
    lines = [f"{found['sessions']:,} sessions, {found['bytes'] / 1e6:.0f} MB", f"{'':16}{'time':>10}{'processor':>12}{'memory':>12}"]
    ours = found["rows"]["earshotd"]
    for name, row in found["rows"].items():
        ratio = "" if row is ours else f"   {row['wall'] / ours['wall']:.1f}x the time of earshotd, {row['cpu'] / ours['cpu']:.1f}x the processor time"
        lines.append(f"{name:16}{row['wall']:8.2f} s{row['cpu']:10.2f} s{row['rss'] / 2**20:8.0f} MiB{ratio}")
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
