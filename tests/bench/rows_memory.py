"""Memory per item: the difference between two daemons, divided by the number of items."""
import os
import subprocess

from lab import bench, memory, metric, project, until_idle, until_indexed
from rows_start import cold_tree
from plain_client import PlainClient, certificate, context_trusting

subscribers, tls_subscribers = 1000, 400
cold_files = 50_000
streams, records_few, records_many = 1000, 4, 404
log_bytes = 40 << 20          # enough events to fill the live log twice
long_line_bytes = 15 << 20
LINE = '{"parentUuid":null,"isSidechain":false,"type":"user","uuid":"%08x-0000-4000-8000-%012x","timestamp":"2026-01-01T00:00:00.000Z",' \
       '"sessionId":"%08x","version":"2.1.330","cwd":"/home/ada/bench","message":{"role":"user","content":"%s"}}\n'


def write_stream(path, number, records, text="again"):
    with open(path, "w") as file:
        file.write("".join(LINE % (number, n, number, text) for n in range(records)))


def write_streams(root, count, records, text="again"):
    """Writes recent streams that differ only in the number of records."""
    for number in range(count):
        folder = os.path.join(root, "projects", f"-home-ada-live-{number // 100}")
        os.makedirs(folder, exist_ok=True)
        write_stream(os.path.join(folder, f"{number:08x}.jsonl"), number, records, text)


def resident(lab, root, *args):
    with lab.daemon(root, *args) as daemon:
        until_indexed(daemon)
        until_idle(daemon)
        return memory(daemon)


def memory_rows(lab, add):
    for measure, *whats in ((subscriber, "an idle subscriber"), (subscriber_tls, "an idle subscriber with TLS"), (cold_file, "a cold file"),
                            (live_stream, "a live stream", "a uuid"), (live_log, "the live log"), (long_line, "kept after")):
        if any(map(add.selects, whats)):
            measure(lab, add)


def subscriber(lab, add):
    count = lab.rounds(subscribers, 100)
    with lab.scratch("subscribers") as root, lab.daemon(root) as daemon:
        lab.say(f"{count:,} idle subscribers")
        until_idle(daemon)
        before = memory(daemon)
        with lab.background([bench("crowd"), daemon.port, daemon.token, count, "{}", "hold"]) as crowd:
            crowd.stdout.readline()
            until_idle(daemon)
            used = memory(daemon) - before
        floor = lab.program("fanout", "idle", count)["bytes"]
    add("an idle subscriber", [used / count], [floor])


def subscriber_tls(lab, add):
    count = lab.rounds(tls_subscribers, 20)
    with lab.scratch("tls") as root:
        cert, key = certificate(lab.fresh("certificate"), subprocess.run)
        config = f'tls_cert = "{cert}"\ntls_key = "{key}"\nremote_view = "full"\n[limits]\nconnections = 20000\n'
        with lab.daemon(root, config=config) as daemon:
            lab.say(f"{count:,} idle subscribers with TLS")
            context = context_trusting(cert)
            PlainClient(daemon.port, daemon.token, context).close()  # excludes one-time costs
            until_idle(daemon)
            before = memory(daemon)
            clients = []
            for _ in range(count):
                clients.append(PlainClient(daemon.port, daemon.token, context))
                clients[-1].subscribe()
            for client in clients:
                client.until(b'"type":"ready"')
            until_idle(daemon)
            add("an idle subscriber with TLS", [(memory(daemon) - before) / count])
            for client in clients:
                client.close()


def cold_file(lab, add):
    count = lab.rounds(cold_files, 1000)
    with lab.scratch("none") as none, lab.scratch("cold") as root:
        lab.say(f"{count:,} cold files in 100 directories")
        cold_tree(none, 100, 100)
        cold_tree(root, count + 100, 100)
        add("a cold file", [(resident(lab, root) - resident(lab, none)) / count])


def live_stream(lab, add):
    count = lab.rounds(streams, 50)
    with lab.scratch("one") as one, lab.scratch("few") as few, lab.scratch("many") as many:
        lab.say(f"{count:,} live streams")
        write_streams(one, 1, records_many)  # excludes one-time costs, such as parsers
        write_streams(few, count, records_few)
        write_streams(many, count, records_many)
        first, small, large = (resident(lab, root) for root in (one, few, many))
    uuid = max(0.0, (large - small) / count / (records_many - records_few))
    add("a live stream, without its uuids", [(small - first) / count - uuid * records_few], note=f"of {count:,}")
    add("a uuid of a live stream", [uuid])


def live_log(lab, add):
    with lab.scratch("log") as root, lab.daemon(root) as daemon:
        lab.say("the live log, full")
        client = PlainClient(daemon.port, daemon.token)
        client.subscribe(filter={"type": ["session.started"]})
        client.until(b'"type":"ready"')
        write_streams(root, 4, lab.rounds(log_bytes, 24 << 20) // 4 // 3500, text="w" * 3000)
        until_idle(daemon)
        add("the live log, full", [metric(daemon, "earshot_log_bytes")])
        client.close()


def long_line(lab, add):
    with lab.scratch("long") as root, lab.daemon(root) as daemon:
        path = os.path.join(project(root), "long.jsonl")
        with open(path, "w") as file:
            file.write(LINE % (1, 1, 1, "short"))
        until_idle(daemon)
        before = memory(daemon)
        with open(path, "a") as file:
            file.write(LINE % (1, 2, 1, "w" * long_line_bytes))
        until_idle(daemon)
        add("kept after a line of 15 MiB", [memory(daemon) - before])
