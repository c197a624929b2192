"""Full-text search: building the index, its size, queries, and what it costs the event loop meanwhile and afterwards."""
import contextlib
import http.client
import json
import os
import time
import urllib.parse
import uuid

from generate import prompt_line, write_sessions
from lab import memory, project, until_indexed
from rows_start import idling, session_bytes, sessions
from support.endpoints import curl

SIZE = "868 MB"
queries, appends, rounds = 20, 350, 3
# What is asked, with %d for the number of a session: rare and frequent words, beginnings, phrases, exclusions, filters, nothing found.
QUERIES = ({"q": "needle%d"}, {"q": "cache"}, {"q": "cach warm"}, {"q": '"the build is green"'}, {"q": "green -red"}, {"q": "needle%d -absent"}, {"q": "absentword"},
           {"q": '"words plain in"'}, {"q": "cache", "kind": "prompt"}, {"q": "build", "project": "*/nowhere"}, {"q": "log needle%d"}, {"q": "修复%d"})


class Client:
    """One connection for all requests."""

    def __init__(self, daemon):
        self.http = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        self.headers = {"Authorization": f"Bearer {daemon.token}"}

    def seconds(self, path, **query):
        """How long one request takes, up to the last byte of its answer."""
        began = time.perf_counter()
        self.http.request("GET", path + (f"?{urllib.parse.urlencode(query)}" if query else ""), headers=self.headers)
        answer = self.http.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} {query} got {answer.status}: {body.decode()}")
        return time.perf_counter() - began


def health(daemon):
    return json.loads(curl(daemon, "/v1/health", unix=True)[2])["search"]


def write_tree(lab, root):
    """Generated sessions, each with one prompt of its own words; returns their paths."""
    paths = write_sessions(root, lab.rounds(sessions, 40), lab.limited_size(session_bytes))
    for number, path in enumerate(paths):
        with open(path, "a") as file:
            file.write(prompt_line(os.path.basename(path)[:-len(".jsonl")], 1_000_000, f"needle{number} in the log: 修复{number}号服务器的错误"))
    return paths


def latencies(lab, daemon, root, floor, tag):
    return lab.program("latency", daemon.port, daemon.token, project(root), floor, tag, lab.rounds(appends, 50), 1, 1, 1)["append"]["live"]


@contextlib.contextmanager
def daemon_with(lab, root, on):
    with lab.daemon(root, config=f"search = {'true' if on else 'false'}\n[limits]\nconnections = 20000\n") as daemon:
        yield daemon


def search(lab, add):
    builds, sizes, peaks, while_building, while_off, idle = [], [], [], [], [], []
    with lab.scratch("search") as root, lab.scratch("floor") as floor:
        lab.say(f"writing {sessions:,} sessions")
        paths = write_tree(lab, root)
        size = sum(map(os.path.getsize, paths))
        note = "" if size > 0.9 * session_bytes else f"scaled to {size / 1e6:.0f} MB"
        for n in range(lab.rounds(rounds)):
            lab.say(f"append without search, round {n + 1}")
            with daemon_with(lab, root, False) as daemon:
                while_off.append(latencies(lab, daemon, root, floor, uuid.uuid4()))
            lab.say(f"append while the index is built, round {n + 1}")
            with daemon_with(lab, root, True) as daemon:
                while_building.append(latencies(lab, daemon, root, floor, uuid.uuid4()))
                if not lab.quick and not health(daemon)["building"]:
                    raise RuntimeError("the index was built before the appends were measured")
        lab.say("building the index")
        began = time.monotonic()
        with daemon_with(lab, root, True) as daemon:
            until_indexed(daemon)
            built = health(daemon)
            builds.append(time.monotonic() - began)
            sizes.append(built["bytes"])
            peaks.append(memory(daemon, "VmHWM"))
            lab.say(f"queries in {built['documents']:,} documents")
            client = Client(daemon)
            times = sorted(client.seconds("/v1/search", **{name: value.replace("%d", str(n * 7 % len(paths))) for name, value in query.items()})
                           for n in range(lab.rounds(queries, 3)) for query in QUERIES)
            empty = sorted(client.seconds("/v1/health") for _ in range(20))[10]
            idle.append(idling(lab, daemon))
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))]  # noqa: E731
    add(f"search, {SIZE}: building the index", builds, scale=size / session_bytes, note=note)
    add(f"search, {SIZE}: size of the index", sizes, scale=size / session_bytes, note=note)
    add(f"search, {SIZE}: peak memory while it is built", peaks, [lab.empty_server()], note=note)
    add(f"search, {SIZE}: a query, p50", [at(0.5)], [empty], note=note)
    add(f"search, {SIZE}: a query, p99", [at(0.99)], [empty], note=note)
    for percentile in ("p50", "p99"):
        add(f"append while {SIZE} are indexed, {percentile}", [one[percentile] for one in while_building], [one[percentile] for one in while_off], note=note)
    add(f"search, {SIZE}: CPU in 20 s afterwards", idle, note="in 1 s" if lab.quick else "")
