"""The curves: what is varied, and how each point is measured."""
import collections
import os
import statistics
import time

import generate
from lab import cpu_s, memory, project, raise_descriptor_limit, until_idle
from rows_memory import write_stream, write_streams
from rows_start import cold_tree

Curve = collections.namedtuple("Curve", "name title x x_unit y y_unit says measure")
appends, warm_ups, rounds = 500, 100, 3   # warm_ups as bench_latency has them
burst_lines = 32
descriptors_spare = 200                    # of a process, besides its clients
cold_directories = 1000
mean_session = 434_000


def sizes(lab, *all):
    """The points to measure: in a quick run the lower half, but at least three."""
    return all[:max(3, len(all) // 2)] if lab.quick else all


def medians(got, row, percentile):
    return statistics.median(one[row][percentile] for one in got)


def appending(lab, daemon, root, streams, tag):
    """Several rounds of bench_latency: (results, CPU seconds of the daemon per append)."""
    with lab.scratch("floor") as floor:
        before, many = cpu_s(daemon), lab.rounds(rounds)
        got = [lab.program("latency", daemon.port, daemon.token, project(root), floor, f"{tag}-{n}", appends, 0, 0, streams)["append"] for n in range(many)]
        return got, (cpu_s(daemon) - before) / many / (appends + warm_ups)


def latency_streams(lab, notes):
    series = {"p50": [], "p99": [], "floor p50": []}
    for count in sizes(lab, 1, 10, 100, 1000, 10_000):
        lab.say(f"latency with {count:,} live streams")
        with lab.scratch("streams") as root:
            growing = min(count, appends)  # the streams that get the appends
            write_streams(root, count - growing, 4)
            for number in range(growing):
                write_stream(os.path.join(project(root), f"stream-{number}.jsonl"), count + number, 4)
            with lab.daemon(root) as daemon:
                got, _ = appending(lab, daemon, root, growing, count)
            for name, row, percentile in (("p50", "live", "p50"), ("p99", "live", "p99"), ("floor p50", "floor", "p50")):
                series[name].append((count, medians(got, row, percentile)))
    return series


def fanout_subscribers(lab, notes):
    filters = {"every event": "{}", "with a filter": '{"type":["message.*"]}'}
    series = {name: [] for name in filters}
    most = raise_descriptor_limit() - descriptors_spare
    for count in sizes(lab, 1, 10, 100, 1000, 3000, 10_000):
        if count > most:
            notes.append(f"The hard limit of {most + descriptors_spare:,} descriptors a process ends the curve before {count:,} subscribers.")
            break
        for name, filter in filters.items():
            lab.say(f"fan-out to {count:,} subscribers, {name}")
            with lab.scratch("fanout") as root, lab.daemon(root) as daemon:
                got = lab.program("fanout", daemon.port, daemon.token, daemon.process.pid, project(root), count, burst_lines, lab.rounds(rounds), filter, "alone")
            series[name].append((count, statistics.median(got["live"]["cpu"]) * 1e-9 * got["events"] * count))
    return series


def cold_points(lab, notes, kept={}):
    """[(files, memory, seconds until ready)] of one growing tree; measured once for both curves."""
    if lab.quick not in kept:
        kept[lab.quick] = cold_points_of(lab)
    notes += kept[lab.quick][1]
    return kept[lab.quick][0]


def cold_points_of(lab):
    found, known, notes = [], 0, []
    with lab.scratch("cold") as root:
        for count in sizes(lab, 1000, 10_000, 100_000, 1_000_000):
            free = os.statvfs(root).f_favail
            if 0 < free < 2 * count:
                notes.append(f"The disk's free inodes ({free:,}) end the curve before {count:,} files.")
                break
            lab.say(f"{count:,} cold files")
            cold_tree(root, count, min(cold_directories, count), first=known)
            known = count
            began = time.monotonic()
            with lab.daemon(root) as daemon:
                ready = time.monotonic() - began
                until_idle(daemon)
                found.append((count, memory(daemon), ready))
    notes.append(f"Real files of one line, in {cold_directories:,} directories.")
    return found, notes


def memory_cold(lab, notes):
    with lab.scratch("none") as none, lab.daemon(none) as daemon:
        until_idle(daemon)
        empty = memory(daemon)
    points = cold_points(lab, notes)
    return {"resident": [(count, resident) for count, resident, _ in points], "of the files": [(count, max(1, resident - empty)) for count, resident, _ in points]}


def start_cold(lab, notes):
    return {"ready": [(count, ready) for count, _, ready in cold_points(lab, notes)]}


def memory_live(lab, notes):
    points = []
    for count in sizes(lab, 1, 10, 100, 1000, 10_000):
        lab.say(f"memory with {count:,} live streams")
        with lab.scratch("live") as root:
            write_streams(root, count, 20)
            with lab.daemon(root) as daemon:
                until_idle(daemon)
                points.append((count, memory(daemon)))
    empty = points[0][1]
    return {"resident": points, "of the streams": [(count, resident - empty) for count, resident in points[1:] if resident > empty]}


def start_bytes(lab, notes):
    series = {"ready": [], "floor: reading it": []}
    for size in sizes(lab, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000):
        lab.say(f"start with {size // 1_000_000:,} MB")
        with lab.scratch("start") as root:
            real = sum(map(os.path.getsize, generate.write_sessions(root, max(1, size // mean_session), size)))
            ready, floors = [], []
            for _ in range(lab.rounds(rounds)):
                floors.append(lab.program("floor", "read", root)["seconds"])
                began = time.monotonic()
                with lab.daemon(root):
                    ready.append(time.monotonic() - began)
        series["ready"].append((real, statistics.median(ready)))
        series["floor: reading it"].append((real, statistics.median(floors)))
    return series


def append_size(lab, notes):
    series = {"p50": [], "p99": [], "CPU an append": []}
    for size in sizes(lab, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000):
        lab.say(f"appends to a transcript of {size // 1_000_000:,} MB")
        with lab.scratch("large") as root:
            written, = generate.write_sessions(os.path.join(root, "made"), 1, size)
            real = os.path.getsize(written)
            os.rename(written, os.path.join(project(root), "stream-0.jsonl"))
            with lab.daemon(root) as daemon:
                until_idle(daemon)
                appending(lab, daemon, root, 1, f"{size}-first")  # a file read within seconds of its last change is verified once more
                until_idle(daemon)
                got, cpu = appending(lab, daemon, root, 1, size)
        for name, value in (("p50", medians(got, "live", "p50")), ("p99", medians(got, "live", "p99")), ("CPU an append", cpu)):
            series[name].append((real, value))
    return series


CURVES = (
    Curve("latency-streams", "Append to subscriber, against live streams", "live streams", "", "time", "s",
          "Appends go round among (at most 500 of) the streams.", latency_streams),
    Curve("fanout-subscribers", "A burst of 32 lines, against subscribers", "subscribers", "", "CPU of the daemon a burst", "s",
          "A line gives two events; the filter takes one of them.", fanout_subscribers),
    Curve("memory-cold", "Memory, against cold files", "cold files", "", "resident memory", "B", "A cold file is known by its name and its stat.", memory_cold),
    Curve("start-cold", "Start, against cold files", "cold files", "", "until ready", "s", "One stat a file.", start_cold),
    Curve("memory-live", "Memory, against live streams", "live streams", "", "resident memory", "B", "Each has twenty records.", memory_live),
    Curve("start-bytes", "Start, against the bytes of recent sessions", "bytes", "B", "until ready", "s", "All are read and folded once.", start_bytes),
    Curve("append-size", "An append, against the transcript's size", "bytes of the transcript", "B", "time an append", "s",
          "Nothing grows with the file once it is folded: the exponent is about 0.", append_size),
)
