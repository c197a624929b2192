"""Fan-out of one writer to a thousand subscribers."""
from lab import project

subscribers, rounds = 1000, 5


def fanout(lab, add):
    with lab.scratch("fanout") as root, lab.daemon(root) as daemon:
        for lines in (32, 256):
            lab.say(f"fan-out to {lab.rounds(subscribers, 50):,}, bursts of {lines}")
            got = lab.program("fanout", daemon.port, daemon.token, daemon.process.pid, project(root), lab.rounds(subscribers, 50), lines, lab.rounds(rounds), "{}", "floor")
            for name, figure in (("CPU", "cpu"), ("time", "wall")):
                add(f"fan-out to 1,000, bursts of {lines} lines: {name} an event", [ns * 1e-9 for ns in got["live"][figure]], [ns * 1e-9 for ns in got["floor"][figure]],
                    note="to 50" if lab.quick else "")
