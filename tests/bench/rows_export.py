"""What the OpenTelemetry exporter costs: latency from an append to a subscriber, and CPU, with it against without it."""
import contextlib
import http.server
import threading
import time

from lab import cpu_s, metric, project
from support.transcripts import Session

appends, rounds = 500, 10
turns, cpu_rounds, events_of_turn, spans_of_turn = 3000, 5, 7, 4


class Collector(http.server.BaseHTTPRequestHandler):
    """Accepts everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def collector():
    """The [otlp] section for a collector that runs for the block."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f'[otlp]\nendpoint = "http://127.0.0.1:{server.server_port}"\n'
    finally:
        server.shutdown()
        server.server_close()


def until(condition, what, most_s=120):
    """Asks rarely: the answers take CPU time of the daemon."""
    end = time.monotonic() + most_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not after {most_s} s")
        time.sleep(0.1)


def cpu_an_event(lab, config):
    """CPU seconds of the daemon for each event of turns that are appended at once, until everything is exported."""
    count = lab.rounds(turns, 300)
    with lab.scratch("export") as root, lab.daemon(root, config=config) as daemon:
        session = Session(root)
        session.turn("first")
        until(lambda: metric(daemon, "earshot_events_total") >= events_of_turn, "the first turn")
        before, events = cpu_s(daemon), metric(daemon, "earshot_events_total")
        for _ in range(count):
            session.turn("hello")
        until(lambda: metric(daemon, "earshot_events_total") >= events + count * events_of_turn, "every event")
        if config:
            until(lambda: metric(daemon, "earshot_otlp_exported_total") >= (count + 1) * spans_of_turn, "the export")
        return (cpu_s(daemon) - before) / (metric(daemon, "earshot_events_total") - events)


def latencies(lab, section, n):
    """(with the exporter, without it) of two daemons that run at once: appends to one and to the other alternate, so that both meet the same
    machine. Every other round begins with the other one."""
    with (lab.scratch("with") as root, lab.scratch("without") as other_root,
          lab.daemon(root, config=section) as daemon, lab.daemon(other_root, config="") as other):
        first, second = [(daemon, root), (other, other_root)][::1 if n % 2 else -1]
        address = [[each.port, each.token, project(tree)] for each, tree in (first, second)]
        got = lab.program("latency", *address[0], "-", n, lab.rounds(appends, 100), 0, 0, 1, *address[1])["append"]
    return (got["live"], got["floor"]) if n % 2 else (got["floor"], got["live"])


def export(lab, add):
    with collector() as section:
        pairs = []
        for n in range(lab.rounds(rounds, 2)):
            lab.say(f"append to subscriber, with and without the exporter, round {n + 1}")
            pairs.append(latencies(lab, section, n))
        for percentile in ("p50", "p99"):
            add(f"append to subscriber, exported, {percentile}", [one[percentile] for one, _ in pairs], [other[percentile] for _, other in pairs])
        lab.say("CPU of the exporter")
        cpu = [(cpu_an_event(lab, section), cpu_an_event(lab, "")) for _ in range(lab.rounds(cpu_rounds))]
        add("an exported event: CPU", [one for one, _ in cpu], [other for _, other in cpu])
