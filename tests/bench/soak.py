#!/usr/bin/env python3
"""Runs a real daemon under mixed load for a given time and checks that it loses, repeats and leaks nothing.

Writers (torn writes, bursts, subagents, rotation, truncation, rewriting, deletion) and clients (WebSocket over TCP and the Unix socket, filtered,
stalled, slow, `deliver: state`, /v1/events) connect and disconnect; the daemon is restarted in the first quarter. At each checkpoint the writers
pause, and every client must have received the events that `earshot replay` prints. At the end memory, descriptors, watches and bytes read are checked.

Exit codes: 0 no problem; 1 events were lost or repeated, or a limit was exceeded (see the table); 2 usage.
"""
import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
os.environ.setdefault("EARSHOT_BUILD", os.path.join(TOP, "build", "release"))
from support.harness import Daemon, wait_for  # noqa: E402
from soak_metrics import Sampler, Samples, growth_allowed, mebibytes  # noqa: E402
from soak_subscribers import Subscribers  # noqa: E402
from soak_received import position  # noqa: E402
from soak_writers import Writers  # noqa: E402

tick_s = 0.05
sample_s, progress_s = 1.0, 10.0
settle_s_max = 240  # per checkpoint: remaining differences are lost or duplicated events
slow_every = 6      # checkpoints; slow readers stay slow in between and fall far behind
reread_share = 1.02  # of the bytes that may be read: lines that arrive before an edit is noticed are read again
problems_max = 20   # differences that are printed; the rest is counted
# stall_ms: a stalled client is dropped within a checkpoint; the others allow a resume that names every stream
CONFIG = "[limits]\nstall = \"8s\"\ntarget_bytes = 1048576\nrequest_bytes = 1048576\nrequests = 100000\n"


class Soak:
    def __init__(self, options):
        self.options, self.chance = options, random.Random(options.seed)
        self.home = tempfile.mkdtemp(prefix="earshot-soak-", dir="/tmp")
        self.root = os.path.join(self.home, "claude")
        for folder in ("claude/projects", "claude/sessions", "run"):
            os.makedirs(os.path.join(self.home, folder))
        self.config = os.path.join(self.home, "earshot.toml")
        with open(self.config, "w") as file:
            file.write(CONFIG)
        self.daemon, self.sampler, self.run_number = None, None, 0
        self.samples = Samples(options.out)
        self.lost = self.doubled = self.disordered = self.checkpoints = 0
        self.problems, self.base = [], None
        self.terminal = sys.stderr.isatty()

    def start(self):
        self.run_number += 1
        self.writers.ledger.readable += self.writers.bytes_on_disk()
        daemon = Daemon([self.root], os.path.join(self.home, "state"), self.home, ("--config", self.config, "--log-level", "warn"),
                        runtime=os.path.join(self.home, "run"))
        self.daemon = daemon.wait_ready()
        self.sampler = Sampler(daemon, self.run_number)

    def sample(self):
        seen = self.sampler.sample()
        self.samples.add(seen)
        return seen

    def stop(self):
        """Stops the daemon with SIGTERM."""
        daemon, self.daemon = self.daemon, None
        self.sampler.close()
        daemon.stop()
        daemon.process.stdout.close()
        daemon.log.close()

    def run(self):
        options = self.options
        self.writers = Writers(self.root, options.writers, options.lines, self.chance)
        self.start()
        self.subscribers = None
        try:
            self.sampler.metrics.wait_indexed()  # so that the index's descriptors are among those at the start
            self.base = self.sample()
            self.base_directories = self.writers.directories()
            self.subscribers = Subscribers(self, options.clients, self.chance)
            self.work(options.minutes * 60)
            self.finish()
        except AssertionError as failed:
            self.problems.append(str(failed))
        finally:
            if self.subscribers:
                self.subscribers.leave()
            if self.daemon:
                self.stop()

    def work(self, seconds):
        began = self.began = last = time.monotonic()
        restarts = [seconds / 4 * (n + 1) / self.options.restarts for n in range(self.options.restarts)]
        checkpoint_s = self.options.checkpoint
        next_sample, next_progress, next_check = began, began + progress_s, began + checkpoint_s
        while (now := time.monotonic()) < began + seconds:
            self.writers.tick(min(now - last, 1.0))
            self.subscribers.tick(min(now - last, 1.0) or tick_s)
            last = now
            if now >= next_sample:
                self.sample()
                next_sample = now + sample_s
            if now >= next_progress:
                self.progress(now - began)
                next_progress = now + progress_s
            if restarts and now >= began + restarts[0]:
                restarts.pop(0)
                self.sample()
                self.stop()
                self.writers.tick(tick_s)  # while the daemon is down
                self.start()
            if now >= next_check:
                self.checkpoint(slow_too=self.checkpoints % slow_every == slow_every - 1)
                last = time.monotonic()
                next_check = last + checkpoint_s
            if reason := self.daemon.exit_reason():
                raise AssertionError(reason + self.daemon.log_tail())
            time.sleep(tick_s)
        self.checkpoint(slow_too=True)

    # checks

    def expected(self):
        """stream → [(offset, index, hash of the text, type)], from `earshot replay`"""
        events = {}
        if self.writers.transcripts():
            for stream, texts in self.daemon.replay(self.root).items():
                frames = [json.loads(text) for text in texts]
                events[stream] = [(*position(frame["cursor"]), hash(text), frame["type"]) for frame, text in zip(frames, texts)]
        return events

    def checkpoint(self, slow_too):
        """Pauses the writers until every client has exactly the events of the files, or the time is up."""
        self.writers.pause()
        checked = self.subscribers.wake(slow_too)
        expected = self.expected()

        def differs():
            for subscriber in checked:
                if not subscriber.is_connected or not subscriber.received.ready:
                    return True
                if subscriber.received.stale(expected) if subscriber.checks_state() else subscriber.received.differences(expected):
                    return True
            return False

        try:
            wait_for(lambda: not differs() or time.sleep(0.1), "the clients", settle_s_max, self.daemon.exit_reason)
        except AssertionError:
            if self.daemon.exit_reason():
                raise
            self.report_differences(checked, expected)
        self.watches()
        for subscriber in checked:
            subscriber.received.settle(expected)
        self.checkpoints += 1

    def report_differences(self, checked, expected):
        for subscriber in checked:
            if not subscriber.is_connected or not subscriber.received.ready:
                why = f": {subscriber.done.exception()!r}" if subscriber.done.done() else ""
                self.problem(f"checkpoint {self.checkpoints}: {subscriber.name}: received no snapshot{why}")
                self.lost += 1
            elif subscriber.checks_state():
                for stream in subscriber.received.stale(expected):
                    self.lost += 1
                    self.problem(f"checkpoint {self.checkpoints}: {subscriber.name}: no session frame with the end of {stream}")
            else:
                for stream, (lost, doubled, disordered) in subscriber.received.differences(expected).items():
                    self.lost, self.doubled, self.disordered = self.lost + lost, self.doubled + doubled, self.disordered + disordered
                    self.problem(f"checkpoint {self.checkpoints}: {subscriber.name}: {stream}: {lost} lost, {doubled} duplicated, base "
                                 f"{getattr(subscriber.received.streams.get(stream), 'base', None)}" + (", out of order" if disordered else ""))

    def problem(self, text):
        if len(self.problems) < problems_max:
            self.problems.append(text)

    def watches(self):
        allowed = self.base["watches"] + self.writers.directories() - self.base_directories
        try:
            wait_for(lambda: self.sampler.sample()["watches"] <= allowed or time.sleep(0.1), f"{allowed} inotify watches", settle_s_max, self.daemon.exit_reason)
        except AssertionError:
            self.problem(f"inotify watches: {self.sampler.sample()['watches']}, expected at most {allowed}")

    def finish(self):
        """Disconnects all clients and checks the limits: descriptors must return to their number at the start, plus open transcripts."""
        self.sample()
        self.growth = self.samples.growth("rest")
        self.rss_growth = self.samples.growth("rss")
        self.subscribers.leave()

        def held(sample=None):
            self.end = sample or self.sampler.sample()
            return self.end["descriptors"] - self.end["open_files"] - min(self.end["process_watches"], 1)  # one process is registered

        allowed = held(self.base)
        try:
            wait_for(lambda: held() <= allowed or time.sleep(0.1), "the descriptors", settle_s_max, self.daemon.exit_reason)
        except AssertionError:
            self.problem(f"descriptors: {held()} without transcripts and clients, {allowed} at the start")
        self.samples.add(self.end)
        grown, seconds = (self.growth["a_second"] * self.growth["seconds"], self.growth["seconds"]) if self.growth else (0, 0)
        if grown > growth_allowed(seconds):
            self.problem(f"memory: {mebibytes(grown)} more in {seconds:.0f} s, without the live log; allowed: {mebibytes(growth_allowed(seconds))}")
        if self.samples.total("read") > self.readable():
            self.problem(f"{self.samples.total('read')} bytes of transcripts were read, expected at most {self.readable()}")
        if self.end["problems"]:
            self.problem(f"/v1/health names {self.end['problems']} problems: {self.sampler.metrics.troubles()}")
        for subscriber in self.subscribers.all:
            for error in subscriber.received.errors[:3]:
                self.problem(f"{subscriber.name}: {error}")

    def readable(self):
        return round(self.writers.ledger.readable * reread_share)

    # output

    def progress(self, seconds):
        seen = self.samples.all[-1]
        events, resets, connects, _ = self.subscribers.totals()
        line = (f"{int(seconds) // 60}:{int(seconds) % 60:02}  {self.writers.ledger.lines} lines, {events} events, {resets} resets, {connects} connections, "
                f"{self.checkpoints} checkpoints, {self.lost} lost, {self.doubled} duplicated, RSS {mebibytes(seen['rss'])} "
                f"({mebibytes(seen['rest'])} without the log), {seen['descriptors']} descriptors, {seen['cpu_s']:.1f} s CPU")
        print(f"\r\x1b[K{line[:shutil.get_terminal_size().columns - 1]}" if self.terminal else line, end="" if self.terminal else "\n",
              file=sys.stderr, flush=True)

    def summary(self):
        events, resets, connects, lags = self.subscribers.totals() if self.subscribers else (0, 0, 0, 0)
        total, ledger = self.samples.total, self.writers.ledger
        seconds = max(time.monotonic() - self.began, 0.001)
        growth = {f"{name}_{what}": round(found[what] if what != "a_second" else found[what] * 3600) for name, found in
                  (("rss", self.rss_growth), ("rest", self.growth)) if found for what in ("start", "end", "a_second")}
        growth = {name.replace("a_second", "slope_an_hour"): value for name, value in growth.items()}
        return {"minutes": round(seconds / 60, 2), "lines": ledger.lines, "bytes_written": ledger.written, "acts": ledger.acts, "restarts": self.run_number - 1,
                "checkpoints": self.checkpoints, "events": events, "resets": resets, "connections": connects, "lagged": lags, "lost": self.lost,
                "doubled": self.doubled, "out_of_order": self.disordered, **growth, "judged_seconds": round(self.growth["seconds"]) if self.growth else 0,
                "rss_max": max(s["rss"] for s in self.samples.all), "descriptors_start": self.base["descriptors"], "descriptors_end": self.end["descriptors"],
                "open_transcripts_end": self.end["open_files"], "watches_start": self.base["watches"], "watches_end": self.end["watches"],
                "cpu_s": round(total("cpu_s"), 2), "cpu_percent": round(100 * total("cpu_s") / seconds, 2), "bytes_read": total("read"),
                "bytes_readable": self.readable(), "process_read": total("process_read"), "catch_ups": total("catch_ups"),
                "verifications": total("verifications"), "sent": total("sent"), "problems": self.problems, "samples": self.samples.path}

    growth = rss_growth = None
    began = 0.0
    end = {"descriptors": 0, "open_files": 0, "watches": 0}


def table(found):
    def size(name):
        return mebibytes(found[name]) if name in found else "not measured: too short"

    return [
        ("minutes, restarts, checkpoints", f"{found['minutes']}, {found['restarts']}, {found['checkpoints']}"),
        ("lines written", f"{found['lines']} ({mebibytes(found['bytes_written'])})"),
        ("file operations", ", ".join(f"{name} {count}" for name, count in sorted(found["acts"].items()))),
        ("events received", found["events"]),
        ("resets received", found["resets"]),
        ("connections, catch-ups, lagged", f"{found['connections']}, {found['catch_ups']}, {found['lagged']}"),
        ("lost", found["lost"]),
        ("duplicated", found["doubled"]),
        ("out of order", found["out_of_order"]),
        (f"RSS over {found['judged_seconds']} s: start, end, per hour", f"{size('rss_start')}, {size('rss_end')}, {size('rss_slope_an_hour')}"),
        ("RSS without the live log", f"{size('rest_start')}, {size('rest_end')}, {size('rest_slope_an_hour')}"),
        ("RSS maximum", size("rss_max")),
        ("descriptors: start, end (transcripts)", f"{found['descriptors_start']}, {found['descriptors_end']} ({found['open_transcripts_end']})"),
        ("inotify watches: start, end", f"{found['watches_start']}, {found['watches_end']}"),
        ("CPU", f"{found['cpu_s']} s, {found['cpu_percent']} %"),
        ("transcript bytes read, of the allowed", f"{mebibytes(found['bytes_read'])} of {mebibytes(found['bytes_readable'])}"),
        ("all bytes read, relative to written", f"{mebibytes(found['process_read'])}, {found['process_read'] / max(found['bytes_written'], 1):.1f}x"),
        ("sent", size("sent")),
        ("samples", found["samples"]),
    ]


def parsed(argv):
    parser = argparse.ArgumentParser(prog="./dev bench soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="EARSHOT_BUILD names the build (default: build/release).")
    parser.add_argument("--minutes", type=float, default=10, metavar="N", help="duration, including checkpoints (default: 10)")
    parser.add_argument("--writers", type=int, default=20, metavar="N", help="growing sessions (default: 20)")
    parser.add_argument("--lines", type=float, default=200, metavar="N", help="lines per second of all writers (default: 200)")
    parser.add_argument("--clients", type=int, default=10, metavar="N", help="concurrent clients at most (default: 10)")
    parser.add_argument("--checkpoint", type=float, default=30, metavar="SECONDS", help="time between comparisons with the files (default: 30)")
    parser.add_argument("--restarts", type=int, default=2, metavar="N", help="restarts of the daemon, in the first quarter (default: 2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random operations (default: 1)")
    parser.add_argument("--out", metavar="FILE", help="file for the samples, as JSON lines (default: build/soak-DATE.jsonl)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    options = parser.parse_args(argv)
    for name in ("minutes", "writers", "lines", "clients", "checkpoint"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be above 0")
    if options.restarts < 0:
        parser.error("--restarts must be 0 or more")
    options.out = options.out or os.path.normpath(os.path.join(TOP, "build", time.strftime("soak-%Y%m%d-%H%M%S.jsonl")))
    return options


def main(argv=None):
    options = parsed(argv)
    if not os.path.isdir("/proc/self/fdinfo"):
        sys.exit("soak: /proc is not available, from which memory and descriptors are read: run it on Linux")
    soak = Soak(options)
    try:
        soak.run()
        found = soak.summary()
    finally:
        shutil.rmtree(soak.home, ignore_errors=True)
    if soak.terminal:
        print(file=sys.stderr)
    if soak.options.json:
        print(json.dumps(found))
    else:
        rows = table(found)
        width = max(len(what) for what, _ in rows)
        print("\n".join(f"{what.ljust(width)}  {figure}" for what, figure in rows))
    for problem in found["problems"]:
        print(f"soak: {problem}", file=sys.stderr)
    sys.exit(1 if found["problems"] or found["lost"] or found["doubled"] or found["out_of_order"] else 0)


if __name__ == "__main__":
    main()
