"""The dashboard in a browser under load. clients/dashboard/test/load.test.mjs measures; its frames are compared with those of an empty page."""
import os
import re
import subprocess

import browser
from lab import build
from spec import EMPTY_PAGE, ROWS
from typescript import DASHBOARD, SDK, compile_typescript

rounds = 2


def measured():
    """{what: seconds}"""
    done = subprocess.run(["node", "--test", "--test-reporter=tap", "test/load.test.mjs"], cwd=DASHBOARD, capture_output=True, text=True,
                          env={**os.environ, "EARSHOT_BUILD": os.path.abspath(build()), "EARSHOT_CHROMIUM": browser.program()})
    if done.returncode != 0:
        raise RuntimeError(f"load.test.mjs failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {what: float(seconds) for what, seconds in re.findall(r"^ *# (.+): ([0-9.e+-]+) s$", done.stdout, re.MULTILINE)}


def page(lab, add):
    if not browser.program():
        raise RuntimeError("chromium is not installed: run ./dev deps")
    for directory in (SDK, DASHBOARD):
        compile_typescript(directory)
    runs = []
    for _ in range(lab.rounds(rounds)):
        lab.say("the dashboard under load")
        runs.append(measured())
    for row in (row for row in ROWS if row.group == "page"):
        floors = [run["an empty page: between frames, p95"] for run in runs] if row.floor == EMPTY_PAGE else []
        add(row.what, [run[row.what] for run in runs], floors)
