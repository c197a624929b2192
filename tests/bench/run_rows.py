"""Measures the selected rows, group by group, and returns a report."""
import os
import re
import time

import machine
import report
import rows_export
import rows_fairness
import rows_fanout
import rows_fold
import rows_latency
import rows_load
import rows_memory
import rows_page
import rows_search
import rows_stall
import rows_start
import spec
from lab import Lab, build

MEASURES = {"latency": rows_latency.latency, "export": rows_export.export, "load": rows_load.load, "fairness": rows_fairness.fairness, "loop_stall": rows_stall.stall, "fanout": rows_fanout.fanout,
            "fold": rows_fold.fold, "huge": rows_fold.huge,
            "start": rows_start.start, "cold": rows_start.cold, "search": rows_search.search, "memory": rows_memory.memory_rows, "page": rows_page.page}


class Adder:
    """Collects results: add(what, rounds, floors). Rows that were not selected are dropped."""

    def __init__(self, wanted):
        self.specs, self.rows, self.skipped = {row.what: row for row in wanted}, {}, []

    def __call__(self, what, figures, floors=(), scale=1.0, note=""):
        if what in self.specs:
            self.rows[what] = report.row(self.specs[what], figures, floors, scale, note)

    def selects(self, begins):
        """Whether a selected row begins so. Others need not be measured."""
        return any(what.startswith(begins) for what in self.specs)

    def note(self, what, text):
        for row in self.rows.values():
            if row["what"].startswith(what):
                row["note"] = text

    def skip(self, why):
        self.skipped.append(why)


def build_info():
    """The measured build."""
    with open(os.path.join(build(), "CMakeCache.txt")) as cache:
        text = cache.read()

    def of(name):
        return (re.search(rf"^{name}(?::\w+)?=(.*)$", text, re.MULTILINE) or ("", ""))[1]

    return {"version": of("CMAKE_PROJECT_VERSION"), "type": of("CMAKE_BUILD_TYPE")}


def run_rows(wanted, quick=False):
    """Measures these rows; returns the report."""
    began, noise, add, lab, seconds = time.monotonic(), machine.Noise(), Adder(wanted), Lab(quick), {}
    try:
        for group in spec.GROUPS:
            if any(row.group == group for row in wanted):
                at = time.monotonic()
                try:
                    MEASURES[group](lab, add)
                except (RuntimeError, AssertionError, OSError) as failed:
                    add.skip(f"{group}: {failed}")
                seconds[group] = round(time.monotonic() - at, 1)
                noise.tick()
    finally:
        lab.say.end()
        lab.close()
    rows = [add.rows[row.what] for row in wanted if row.what in add.rows]
    return {"format": 1, "machine": machine.described(), "build": build_info(), "when": time.strftime("%Y-%m-%d %H:%M:%S %z"), "quick": quick,
            "seconds": round(time.monotonic() - began, 1), "group_seconds": seconds, "noise": noise.verdict(), "rows": rows, "skipped": add.skipped}
