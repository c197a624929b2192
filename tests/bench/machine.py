"""The machine's description, and its use by other processes during a measurement."""
import hashlib
import os
import platform
import re
import statistics
import time

others_most = 0.10             # of all cores
steal_most = 0.01
calibration_spread_most = 0.15
loops_a_tick = 15


def cpu_name():
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return found[1] if found else platform.machine()


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def described():
    found = {"cpu": cpu_name(), "cores": os.cpu_count(), "memory": memory_bytes(), "kernel": platform.release()}
    return {**found, "id": hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:12]}


def processor_seconds(text):
    """(busy, stolen) of all cores since the machine started, from /proc/stat."""
    numbers = [int(word) for word in re.search(r"^cpu +(.*)$", text, re.MULTILINE)[1].split()]
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, steal = numbers[:8]
    return (user + nice + system + irq + softirq) / tick, steal / tick


def calibration_loop():
    """The same work each time."""
    start = time.perf_counter()
    total = 0
    for n in range(40_000):
        total += n * n
    return time.perf_counter() - start


def verdict(wall, cores, busy, ours, stolen, loops):
    """Shares of the CPU time of all cores, and whether they are too high for reliable figures."""
    loops = sorted(loops)
    middle = statistics.median(loops)
    found = {"others": max(0.0, busy - ours) / (wall * cores), "steal": stolen / (wall * cores),
             "calibration_spread": (loops[len(loops) * 9 // 10] - loops[len(loops) // 10]) / middle if loops else 0.0}
    found["noisy"] = found["others"] > others_most or found["steal"] > steal_most or found["calibration_spread"] > calibration_spread_most
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}


class Noise:
    """Measures from its construction to verdict(). Our own use is that of this process and its finished children."""

    def __init__(self):
        self.start, self.ours, self.stat, self.loops = time.monotonic(), self._ours(), self._stat(), []
        self.tick()

    def _ours(self):
        return sum(os.times()[:4])

    def _stat(self):
        with open("/proc/stat") as file:
            return processor_seconds(file.read())

    def tick(self):
        """Called between measurements: times a fixed loop to see how steady the machine is."""
        self.loops += [calibration_loop() for _ in range(loops_a_tick)]

    def verdict(self):
        (busy, stolen), (busy_before, stolen_before) = self._stat(), self.stat
        return verdict(time.monotonic() - self.start, os.cpu_count(), busy - busy_before, self._ours() - self.ours, stolen - stolen_before, self.loops)
