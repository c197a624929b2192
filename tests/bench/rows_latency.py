"""Latency from an append to a subscriber."""
from lab import project

appends, new_files, bursts, rounds = 700, 25, 2, 3


def latency(lab, add):
    with lab.scratch("latency") as root, lab.scratch("floor") as floor, lab.daemon(root) as daemon:
        got = []
        for n in range(lab.rounds(rounds)):
            lab.say(f"append to subscriber, round {n + 1}")
            got.append(lab.program("latency", daemon.port, daemon.token, project(root), floor, n, lab.rounds(appends, 100), lab.rounds(new_files, 5),
                                   lab.rounds(bursts, 1), 1))
    for what, figure, percentile in (("append to subscriber, p50", "append", "p50"), ("append to subscriber, p99", "append", "p99"),
                                     ("a new session's first event, p50", "new_file", "p50"), ("20,000 lines at once: the last one", "burst", "p50")):
        add(what, [one[figure]["live"][percentile] for one in got], [one[figure]["floor"][percentile] for one in got])
