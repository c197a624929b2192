#!/usr/bin/env python3
"""Plays recorded sessions into a monitor, and compares the statuses that it shows with the recorded truth (STATES.md).

    tests/conformance/states.py                           # every recording of the corpus that has a truth, at its own speed
    tests/conformance/states.py RECORDING…                # these directories
    tests/conformance/states.py --only agents --verbose   # those whose path contains it; each interval
    tests/conformance/states.py --restart                 # the monitor is restarted in the middle of each interval
    tests/conformance/states.py --json | jq .rows

Recordings are looked for below EARSHOT_CORPUS, or shared/corpus next to the project. EARSHOT_BUILD names the build (default build/release).
Eight recordings are played at once; the slowest decides how long it takes.

Columns: `right` of `states` intervals; `missing`: the state was never shown in its interval; `wrong`: seconds with a state that is not the
truth, beyond the tolerance; `late p99`: from the newest change of a file or a process to the status, in ms.

Exit codes: 0 every interval is right; 1 one is not; 2 usage, or there is nothing to play.
"""
import argparse
import asyncio
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import websockets  # Debian: python3-websockets

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE))

from recordings import STATES, Player, Recording, added_truth  # noqa: E402

tolerance_ms = 1500  # what a person sees on a screen is written down later, or earlier, than the evidence reaches the disk
played_at_once = 8
settle_s = 4  # after the last change


class Earshot:
    """The monitor: `statuses` are (monotonic time, session, state, reason). Another monitor needs start(), stop() and these."""

    def __init__(self, program, directory):
        self.build = pathlib.Path(os.environ.get("EARSHOT_BUILD", TOP / "build/release"))
        self.root, self.state, self.program = directory / "root", directory / "state", program
        self.statuses, self.process = [], None
        (self.root).mkdir(), (directory / "run").mkdir(mode=0o700)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "XDG_RUNTIME_DIR": str(directory / "run"), "LC_ALL": "C.UTF-8"}

    def start(self):
        self.process = subprocess.Popen([self.build / "earshotd", "--listen", "127.0.0.1:0", "--state", self.state, "--root", f"{self.program.name}:r={self.root}"],
                                        env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        address = self.state / "address"
        end = time.monotonic() + 60
        while not address.exists():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("earshotd did not start")
            time.sleep(0.01)
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.read(address.read_text().strip(), ready)), daemon=True).start()
        ready.wait(60)

    async def read(self, url, ready):
        headers = {"Authorization": f"Bearer {(self.state / 'token').read_text().strip()}"}
        with contextlib.suppress(OSError, websockets.WebSocketException):
            async with websockets.connect(url, extra_headers=headers, subprotocols=["earshot.v1"], max_size=None) as socket:
                await socket.send(json.dumps({"type": "subscribe", "id": "a", "all": True}))
                async for text in socket:
                    frame, now = json.loads(text), time.monotonic()
                    status = frame if frame["type"] == "status" else frame.get("status") if frame["type"] == "session" else None
                    if status:
                        self.statuses.append((now, frame["session"], status["state"], status.get("reason"), frame["type"]))
                    if frame["type"] == "ready":
                        ready.set()

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


def shown_at(statuses, at, session=None):
    """(state, reason) at this time: the most urgent of all sessions, or that of one."""
    last = {}
    for moment, each, state, reason, _ in statuses:
        if moment <= at and (not session or session in each):
            last[each] = (state, reason)
    return max(last.values(), key=lambda each: STATES.index(each[0]), default=("unknown", None))


def score(recording, statuses, changes, start):
    """A row for each interval, and how late each status was, in ms."""
    at_ms = lambda ms: start + ms / 1000
    rows = []
    end = max(changes) + settle_s
    for begin_ms, until_ms, accepted, reason, truth in recording.truth:
        begin, until = at_ms(begin_ms), at_ms(until_ms) if until_ms is not None else end
        fits = lambda shown: shown[0] in accepted and (not reason or shown[1] == reason)
        points = sorted({begin, until, *(moment for moment, *_ in statuses if begin < moment < until)})
        shown = functools.partial(shown_at, statuses, session=truth.get("session"))
        spans = [(a, b, fits(shown(a))) for a, b in zip(points, points[1:], strict=False)]
        evidence = begin if "to" in truth else next((change for change in changes if begin <= change < until), begin)
        is_played = any(begin - tolerance_ms / 1000 <= change < until for change in changes)
        if not is_played and not truth.get("coarse"):
            continue  # nothing that is played shows it: a killed process, a terminal's menu
        lead = max(begin, evidence) + tolerance_ms / 1000
        tail = until - tolerance_ms / 1000
        wrong = sum(max(0.0, min(b, tail) - max(a, lead)) for a, b, is_fit in spans if not is_fit)
        is_shown = any(is_fit for *_, is_fit in spans) or fits(shown(until))
        last = shown(max(begin, until - 0.001))
        is_right = (is_shown if truth.get("coarse") or until - lead < 2 * tolerance_ms / 1000 else is_shown and wrong < 0.2 * (until - begin))
        rows.append({"from": begin_ms, "to": until_ms, "state": "/".join(filter(None, (truth["state"], truth.get("reason")))), "right": is_right,
                     "missing": not is_shown, "wrong_s": 0.0 if truth.get("coarse") else round(wrong, 2), "shown": "/".join(filter(None, last))})
    late, last = [], {}
    for moment, session, state, reason, kind in statuses:
        is_other = last.get(session) != (state, reason)  # else it tells what a prompt led to
        last[session] = state, reason
        if kind == "status" and is_other and (evidence := [change for change in changes if change <= moment]):
            late.append(1000 * (moment - max(evidence)))
    return rows, late


def play(directory, is_restarted):
    recording = Recording(directory)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="states-"))
    monitor = Earshot(recording.program, scratch)
    player = Player(recording, monitor.root)
    stopped = threading.Event()
    try:
        monitor.start()
        start = time.monotonic() + max(0.0, -min(recording.truth[0][0], recording.changes[0]["ms"])) / 1000

        def restart():
            for begin_ms, until_ms, *_ in recording.truth:
                if until_ms is None or stopped.wait(max(0.0, start + (begin_ms + until_ms) / 2000 - time.monotonic())):
                    return
                monitor.stop()
                (monitor.state / "address").unlink(missing_ok=True)
                monitor.start()

        restarts = threading.Thread(target=restart)
        if is_restarted:
            restarts.start()
        player.play(start)
        time.sleep(settle_s)
        stopped.set()
        if is_restarted:
            restarts.join()
        return recording, *score(recording, monitor.statuses, player.made, start)
    finally:
        stopped.set()
        monitor.stop()
        player.close()
        shutil.rmtree(scratch, ignore_errors=True)


def recordings(arguments):
    corpus = pathlib.Path(os.environ.get("EARSHOT_CORPUS", TOP.parent / "shared/corpus"))
    found = [pathlib.Path(each) for each in arguments.recordings]
    if not found:
        added = {row["recording"] for row in added_truth()}
        found = sorted({path.parent for path in corpus.rglob("truth.jsonl")} | {corpus / each for each in added if (corpus / each).is_dir()})
    return [each for each in found if arguments.only in str(each) and is_playable(each)]


def is_playable(directory):
    """What a socket said is not played yet."""
    return any((directory / name).exists() for name in ("timeline.jsonl", "watch.log")) and not (directory / "frames.jsonl").exists()


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    chosen = recordings(arguments)
    if not chosen:
        print("there is no recording with timeline.jsonl and truth.jsonl", file=sys.stderr)
        return 2
    table, details, late = {}, [], {}
    with concurrent.futures.ThreadPoolExecutor(played_at_once) as pool:
        for recording, rows, delays in pool.map(lambda each: play(each, arguments.restart), chosen):
            key = (recording.program.name, recording.version)
            table.setdefault(key, []).extend(rows)
            late.setdefault(key, []).extend(delays)
            details += [{"recording": recording.directory.name, **row} for row in rows]
            if sys.stderr.isatty():
                print(f"\r{recording.directory.name:40}", end="\r", file=sys.stderr)
    summary = [{"program": program, "version": version, "states": len(rows), "right": sum(row["right"] for row in rows),
                "missing": sum(row["missing"] for row in rows), "wrong_s": round(sum(row["wrong_s"] for row in rows), 1),
                "late_p99_ms": round(percentile(late[program, version], 0.99), 1)} for (program, version), rows in sorted(table.items())]
    if arguments.json:
        print(json.dumps({"rows": summary, "intervals": details}, indent=1))
    else:
        print(f"{'program':12} {'version':10} {'right':>9} {'missing':>8} {'wrong':>8} {'late p99':>9}")
        for row in summary:
            print(f"{row['program']:12} {row['version']:10} {row['right']:>4}/{row['states']:<4} {row['missing']:>8} {row['wrong_s']:>6} s {row['late_p99_ms']:>6} ms")
        for row in details:
            if arguments.verbose or not row["right"]:
                print(f"  {'right' if row['right'] else 'WRONG'}  {row['recording']} {row['from']:.0f}–{row['to'] or 0:.0f} ms: {row['state']}; shown: {row['shown']}, "
                      f"wrong for {row['wrong_s']} s")
    return 0 if all(row["right"] for row in details) else 1


if __name__ == "__main__":
    sys.exit(main())
