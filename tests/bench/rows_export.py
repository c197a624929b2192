"""What the OpenTelemetry exporter costs: latency from an append to a subscriber, and CPU, with it against without it."""
import contextlib
import http.server
import re
import threading

from lab import project
from support.endpoints import curl
from support.harness import wait_for
from support.transcripts import Session

appends, rounds, turns, events_of_turn = 700, 5, 3000, 7


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


def metric(daemon, name):
    """The sum over the labels."""
    page = curl(daemon, "/metrics", unix=True)[2].decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", page, re.MULTILINE))


def cpu_an_event(lab, config):
    """CPU seconds of the daemon for each event of turns that are appended at once, until everything is exported."""
    with lab.scratch("export") as root, lab.daemon(root, config=config) as daemon:
        session = Session(root)
        session.turn("first")
        wait_for(lambda: metric(daemon, "earshot_events_total") >= events_of_turn, "the first turn")
        before, events = metric(daemon, "process_cpu_seconds_total"), metric(daemon, "earshot_events_total")
        for _ in range(lab.rounds(turns, 300)):
            session.turn("hello")
        total = events + lab.rounds(turns, 300) * events_of_turn
        wait_for(lambda: metric(daemon, "earshot_events_total") >= total, "every event")
        if config:
            wait_for(lambda: metric(daemon, "earshot_otlp_pending") == 0 and metric(daemon, "earshot_otlp_exported_total") > lab.rounds(turns, 300), "the export")
        return (metric(daemon, "process_cpu_seconds_total") - before) / (metric(daemon, "earshot_events_total") - events)


def export(lab, add):
    with collector() as section:
        got = {"": [], section: []}
        for n in range(lab.rounds(rounds)):
            for config, values in got.items():
                lab.say(f"append to subscriber, {'with' if config else 'without'} the exporter, round {n + 1}")
                with lab.scratch("latency") as root, lab.scratch("floor") as floor, lab.daemon(root, config=config) as daemon:
                    values.append(lab.program("latency", daemon.port, daemon.token, project(root), floor, n, lab.rounds(appends, 100), 1, 1, 1))
        for what, percentile in (("append to subscriber, exported, p50", "p50"), ("append to subscriber, exported, p99", "p99")):
            add(what, [one["append"]["live"][percentile] for one in got[section]], [one["append"]["live"][percentile] for one in got[""]])
        lab.say("CPU of the exporter")
        cpu = [(cpu_an_event(lab, section), cpu_an_event(lab, "")) for _ in range(lab.rounds(rounds))]
        add("an exported event: CPU", [one for one, _ in cpu], [other for _, other in cpu])
