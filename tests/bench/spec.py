"""The rows of the benchmark table: name, unit, floor and budget."""
import dataclasses

MS, MIB = 1e-3, 1 << 20


@dataclasses.dataclass(frozen=True)
class Spec:
    what: str                   # the row's unique name
    unit: str                   # s, B or B/s
    group: str                  # rows measured together: rows_*.py
    floor: str = ""             # name of the comparison value
    most: float = None          # budgets: of the figure,
    least: float = None
    ratio_most: float = None    # of figure / floor (with `gain`: floor / figure)
    ratio_least: float = None
    gain: bool = False          # the ratio is floor / figure
    better: str = "less"
    scales: bool = False        # the budget scales with the size of the input

    def ratio(self, figure, floor):
        return floor / figure if self.gain else figure / floor


BARE, DOM, EMPTY_PAGE = "inotify, pread, send", "simdjson's parse_many on one thread", "an empty page"
ROWS = (
    Spec("append to subscriber, p50", "s", "latency", BARE, ratio_most=1.4),
    Spec("append to subscriber, p99", "s", "latency", BARE, ratio_most=1.5),
    Spec("a new session's first event, p50", "s", "latency", BARE, most=5 * MS),
    Spec("20,000 lines at once: the last one", "s", "latency", BARE, ratio_most=2.0),

    Spec("append to subscriber, exported, p50", "s", "export", "without the exporter", ratio_most=1.02),
    Spec("append to subscriber, exported, p99", "s", "export", "without the exporter"),
    Spec("an exported event: CPU", "s", "export", "without the exporter"),

    Spec("append during a 200 MB/s backfill and a catch-up, p50", "s", "load", BARE, ratio_most=3.0),
    Spec("append during a 200 MB/s backfill and a catch-up, p99", "s", "load", BARE, ratio_most=1.2),
    Spec("append while 100 clients stall, p50", "s", "load", BARE),
    Spec("append while 100 clients stall, p99", "s", "load", BARE),
    Spec("append while 1,000 subscribe at once, p50", "s", "load", BARE),
    Spec("append while 1,000 subscribe at once, p99", "s", "load", BARE, most=3 * MS),
    Spec("1,000 subscribe at once: all ready", "s", "load"),
    Spec("2,000 cursors resumed at once: memory more", "B", "fairness", most=64 * MIB),
    Spec("2,000 cursors resumed at once: an append to another session, p99", "s", "fairness", most=10 * MS),
    Spec("2,000 cursors resumed at once, all reset: an append to another session, p99", "s", "fairness", most=10 * MS),
    Spec("10 clients with 192 patterns over 20,000 sessions: memory more", "B", "fairness"),
    Spec("10 clients with 192 patterns over 20,000 sessions: an append, p99", "s", "fairness"),

    Spec("longest turn: nothing happens", "s", "loop_stall"),
    Spec("longest turn: a broken line of 16 MB", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: 15,000 hard links made", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: 15,000 hard links removed", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: a directory is removed with 320 MB unread", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: 20,000 cold files, /metrics", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: 20,000 cold files, /v1/health", "s", "loop_stall", most=10 * MS),
    Spec("longest turn: 20,000 cold files, /v1/sessions?all=true", "s", "loop_stall", most=10 * MS),

    Spec("fan-out to 1,000, bursts of 32 lines: CPU an event", "s", "fanout", "a Beast write each", ratio_least=40, gain=True),
    Spec("fan-out to 1,000, bursts of 32 lines: time an event", "s", "fanout", "a Beast write each", ratio_least=25, gain=True),
    Spec("fan-out to 1,000, bursts of 256 lines: CPU an event", "s", "fanout", "a Beast write each", ratio_least=40, gain=True),
    Spec("fan-out to 1,000, bursts of 256 lines: time an event", "s", "fanout", "a Beast write each", ratio_least=25, gain=True),

    Spec("bytes to events, recorded", "B/s", "fold", DOM, ratio_least=0.75, better="more"),
    Spec("bytes to events, recorded, two threads", "B/s", "fold", DOM, ratio_least=1.1, better="more"),
    Spec("bytes to events, generated as recorded", "B/s", "fold", DOM, ratio_least=0.75, better="more"),
    Spec("bytes to events, generated as recorded, two threads", "B/s", "fold", DOM, ratio_least=1.1, better="more"),
    Spec("bytes to events, generated 2.1.330", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, generated 2.1.330, two threads", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, codex", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, codex, two threads", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, copilot", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, copilot, two threads", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, pi", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, pi, two threads", "B/s", "fold", DOM, better="more"),
    Spec("bytes to events, short lines", "B/s", "fold", DOM, ratio_least=0.5, better="more"),
    Spec("a 1.4 GB transcript: folded", "s", "huge", "reading it", most=0.8, scales=True),
    Spec("a 1.4 GB transcript: peak memory", "B", "huge", "an empty Asio server", most=64 * MIB),

    Spec("start, 2,000 sessions, 868 MB: ready", "s", "start", "reading it", most=0.5, scales=True),
    Spec("start, 2,000 sessions, 868 MB: all snapshots sent", "s", "start", "reading it", most=0.5, scales=True),
    Spec("start, 2,000 sessions, 868 MB: peak memory", "B", "start", "an empty Asio server", most=64 * MIB),
    Spec("start, 2,000 sessions of 2.1.330, 868 MB: all snapshots sent", "s", "start", "reading it", most=0.5, scales=True),
    Spec("start, 2,000 sessions of codex, 868 MB: all snapshots sent", "s", "start", "reading it", scales=True),
    Spec("start, 2,000 sessions of copilot, 868 MB: all snapshots sent", "s", "start", "reading it", scales=True),
    Spec("start, 2,000 sessions of pi, 868 MB: all snapshots sent", "s", "start", "reading it", scales=True),
    Spec("idle, 2,000 sessions: CPU in 20 s", "s", "start", most=10 * MS),  # one clock tick, the resolution of top
    Spec("start, 100,000 cold files in 10,000 directories", "s", "cold", "statx of each", ratio_most=2.0),
    Spec("100,000 cold files in 10,000 directories: memory", "B", "cold", "an empty Asio server", most=100 * MIB),

    Spec("search, 868 MB: building the index", "s", "search", scales=True),
    Spec("search, 868 MB: size of the index", "B", "search", most=1 << 30, scales=True),
    Spec("search, 868 MB: peak memory while it is built", "B", "search", "an empty Asio server", most=128 * MIB),
    Spec("search, 868 MB: a query, p50", "s", "search", "an empty request", most=50 * MS),
    Spec("search, 868 MB: a query, p99", "s", "search", "an empty request", most=2.0),
    Spec("append while 868 MB are indexed, p50", "s", "search", "with search = false", ratio_most=1.1),
    Spec("append while 868 MB are indexed, p99", "s", "search", "with search = false", ratio_most=1.5),
    Spec("search, 868 MB: CPU in 20 s afterwards", "s", "search", most=10 * MS),

    Spec("an idle subscriber", "B", "memory", "an idle Beast session", most=8 << 10),
    Spec("an idle subscriber with TLS", "B", "memory", most=96 << 10),
    Spec("a cold file", "B", "memory", most=256),
    Spec("a live stream, without its uuids", "B", "memory", most=8 << 10),
    Spec("a uuid of a live stream", "B", "memory", most=12),
    Spec("the live log, full", "B", "memory", most=16 * MIB),
    Spec("kept after a line of 15 MiB", "B", "memory", most=1 * MIB),  # checks that the buffer is freed

    Spec("page: first paint in a new tab, p50", "s", "page"),
    Spec("page: first paint in an open tab, p50", "s", "page"),
    Spec("page, 1,000 sessions and 1,000 events a second: between frames, p95", "s", "page", EMPTY_PAGE),
    Spec("page, 1,000 sessions and 1,000 events a second: longest task", "s", "page"),
    Spec("page, 1,000 sessions and 1,000 events a second: main thread in a second", "s", "page"),
    Spec("page, 10,000 sessions of 1,000 hosts: all shown", "s", "page"),
    Spec("page, 10,000 sessions of 1,000 hosts: between frames, p95", "s", "page", EMPTY_PAGE),
    Spec("page, 10,000 sessions of 1,000 hosts: longest task", "s", "page"),
    Spec("page, 10,000 sessions of 1,000 hosts: main thread in a second", "s", "page"),
    Spec("page, a long session, scrolled: between frames, p95", "s", "page", EMPTY_PAGE),
    Spec("page, a long session, scrolled: longest task", "s", "page"),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))


def chosen(name):
    """The rows of the group with this name, or those whose name contains it."""
    name = name.lower()
    return [row for row in ROWS if row.group == name] or [row for row in ROWS if name in row.what.lower()]
