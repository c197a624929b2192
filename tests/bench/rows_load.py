"""Append to subscriber while the daemon is under other load. The floor is measured under the same load."""
import json
import os
import sys
import time

from generate import write_sessions
from lab import HERE, bench, project, until_idle

appends, rounds = 600, 3
backfill_rate = 200_000_000     # bytes a second
catch_up_bytes = 100 << 20
stalled, crowd = 100, 1000
flood_rate = 10_000_000         # bytes a second that the stalled clients do not read
sessions = 20                   # live sessions in a snapshot
LOAD = (sys.executable, os.path.join(HERE, "load.py"))
BACKFILL, STALLING = "append during a 200 MB/s backfill and a catch-up", "append while 100 clients stall"
CROWDING, READY = "append while 1,000 subscribe at once", "1,000 subscribe at once: all ready"


def load(lab, add):
    for measure, what in ((backfill, BACKFILL), (stalling, STALLING), (crowding, CROWDING)):
        if add.selects(what) or measure is crowding and add.selects(READY):
            with lab.scratch("load") as root, lab.scratch("floor") as floor:
                write_sessions(root, sessions, sessions * 50_000)
                measure(lab, add, root, floor)


def appending(lab, add, daemon, root, floor, what):
    got = []
    for n in range(lab.rounds(rounds)):
        lab.say(f"{what}, round {n + 1}")
        got.append(lab.program("latency", daemon.port, daemon.token, project(root), floor, n, lab.rounds(appends, 100), 0, 0, 1)["append"])
    for percentile in ("p50", "p99"):
        add(f"{what}, {percentile}", [one["live"][percentile] for one in got], [one["floor"][percentile] for one in got])


def backfill(lab, add, root, floor):
    """One stream grows at full speed while a client reads another one from its beginning."""
    lab.say("writing the stream to catch up with")
    made, = write_sessions(os.path.join(root, "old"), 1, lab.limited_size(catch_up_bytes))
    folder = os.path.join(root, "projects", "-home-ada-past")
    os.makedirs(folder)
    past = os.path.join(folder, "past.jsonl")
    os.rename(made, past)
    with lab.daemon(root) as daemon:
        name = os.path.basename(root)
        with lab.background([*LOAD, "backfill", os.path.join(folder, "grows.jsonl"), backfill_rate]) as writer, \
                lab.background([*LOAD, "catch-up", daemon.port, daemon.token, f"{name}/-home-ada-past/past"]) as reader:
            time.sleep(0.5)  # both are running
            appending(lab, add, daemon, root, floor, BACKFILL)
        rate, read = json.loads(writer.lines[-1])["rate"], json.loads(reader.lines[-1])
        add.note(BACKFILL, f"{rate / 1e6:.0f} MB/s, {read['rate'] / 1e6:.0f} MB/s")
        if read["bytes"] < os.path.getsize(past) // 100:
            raise RuntimeError("the catch-up read nothing")


def stalling(lab, add, root, floor):
    """Clients that subscribed to everything and do not read, with more data than their sockets hold."""
    flood = os.path.join(root, "projects", "-home-ada-flood")
    os.makedirs(flood)
    with lab.daemon(root) as daemon, lab.background([*LOAD, "stall", daemon.port, daemon.token, stalled]) as clients:
        clients.stdout.readline()
        until_idle(daemon)
        with lab.background([*LOAD, "backfill", os.path.join(flood, "flood.jsonl"), flood_rate]):
            appending(lab, add, daemon, root, floor, STALLING)


def crowding(lab, add, root, floor):
    """Many clients that subscribe at once: each gets the snapshot and none of the measured appends."""
    count = lab.rounds(crowd, 50)
    with lab.daemon(root) as daemon:
        with lab.background([bench("crowd"), daemon.port, daemon.token, count, '{"session":["0*"]}', "again"]) as crowd_process:
            crowd_process.stdout.readline()
            appending(lab, add, daemon, root, floor, CROWDING)
        add(READY, [json.loads(line)["seconds"] for line in crowd_process.lines], note="" if count == crowd else f"{count}")
