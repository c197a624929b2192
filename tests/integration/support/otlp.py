"""A collector that tests control, and what it must receive: spans computed from wire events, independently of the exporter."""
import collections
import datetime
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request

from support.endpoints import curl
from support.harness import TOP, DaemonCase, deadline_s, wait_for

NODE_MODULES = os.path.join(TOP, "clients", "sdk", "node_modules")
RECEIVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "otlp_receiver.mjs")


def missing():
    """Why these tests cannot run, or None."""
    if not shutil.which("node"):
        return "node is not installed"
    if not os.path.isdir(os.path.join(NODE_MODULES, "@opentelemetry", "otlp-proto-exporter-base")):
        return "clients/sdk/node_modules has no @opentelemetry/otlp-proto-exporter-base: run ./dev deps"
    return None


class Receiver:
    """A collector on a free port, which stays the same after a restart."""

    def __init__(self, home, *certificate):
        self.certificate = certificate
        self.file = tempfile.mktemp(prefix="otlp-", dir=home)
        self.port = 0
        self.start()

    def start(self):
        # Another program may have taken the port meanwhile: it is tried again.
        def started():
            self.process = subprocess.Popen(["node", RECEIVER, NODE_MODULES, self.file, str(self.port), *self.certificate], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL if self.port else None, text=True)
            line = self.process.stdout.readline()
            if line:
                self.port = int(line)
                return True
            self.kill()
            return False

        wait_for(started, "the collector")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def control(self, **behaviour):
        """Sets what it does with the next requests; returns how many there were."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/control", json.dumps(behaviour).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=deadline_s) as answer:
            return json.load(answer)["requests"]

    def requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/control", timeout=deadline_s) as answer:
            return json.load(answer)["requests"]

    def received(self, path="/v1/traces"):
        """The accepted requests for this path."""
        if not os.path.exists(self.file):
            return []
        with open(self.file, "rb") as file:
            whole = file.read().split(b"\n")[:-1]  # the last line may be incomplete
        return [request for request in map(json.loads, whole) if request["path"] == path]

    def spans(self):
        return [Span(span, host_of(each)) for request in self.received() for each in request.get("resourceSpans", [])
                for scope in each["scopeSpans"] for span in scope["spans"]]


def attributes(of):
    def value(each):
        (kind, content), = each.items()
        if kind == "arrayValue":
            return [value(item) for item in content["values"]]
        return int(content) if kind == "intValue" else content

    return {each["key"]: value(each["value"]) for each in of.get("attributes", [])}


def host_of(resource):
    return attributes(resource["resource"]).get("host.name")


class Span:
    def __init__(self, span, host):
        self.id, self.trace, self.parent = span["spanId"], span["traceId"], span.get("parentSpanId", "")
        self.name, self.host, self.kind = span["name"], host, span["kind"]
        self.start_ms, self.end_ms = int(span["startTimeUnixNano"]) // 1_000_000, int(span["endTimeUnixNano"]) // 1_000_000
        self.is_error = span.get("status", {}).get("code", 0) == 2
        self.attributes = attributes(span)
        self.events = [(event["name"], attributes(event)) for event in span.get("events", [])]

    def identity(self):
        """What names the span, without its ids."""
        has = self.attributes.get
        if "earshot.wait.reason" in self.attributes:
            return ("wait", has("earshot.wait.reason"))
        operation = has("gen_ai.operation.name")
        if operation == "invoke_agent" and "earshot.turn" in self.attributes:
            return ("turn", has("earshot.stream"), has("earshot.turn"))
        if operation == "invoke_agent":
            return ("agent", has("gen_ai.agent.id", ""), has("gen_ai.agent.name", ""))
        if operation == "execute_tool":
            return ("tool", has("gen_ai.tool.call.id"), has("gen_ai.tool.name", ""))
        return ("chat", has("gen_ai.response.id", ""), has("gen_ai.usage.input_tokens"), has("gen_ai.usage.output_tokens"))


Expected = collections.namedtuple("Expected", "identity parent start_ms end_ms is_error")
OPEN = "a span that has not ended"
label_bytes = 256


def label(text):
    return (text or "").encode()[:label_bytes].decode(errors="ignore")


def milliseconds(time):
    """Since 1970; further digits are dropped."""
    epoch = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
    return (datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) - epoch) // datetime.timedelta(milliseconds=1) if time else 0


def expected_spans(replayed, calls_of_agents={}, prompts=("AskUserQuestion", "ExitPlanMode", "request_user_input")):
    """Counter of Expected, from the events of each stream (`earshot replay`). `calls_of_agents`: (session, agent) → call, from other files.

    Chat spans are not among them: see the unit tests. A span without a time is not exported."""
    streams = {stream: [json.loads(line) for line in lines] for stream, lines in replayed.items()}
    agents = {}  # (session, key) → identity of the subagent's span
    for events in streams.values():
        named = {e["call"]: e for e in events if e["type"] == "agent.finished" and "call" in e}
        for e in (e for e in events if e["type"] == "agent.started"):
            end = named.get(e["call"], {})
            subagent = end.get("subagent", e.get("subagent", ""))
            identity = ("agent", label(subagent), label(e.get("agent_type") or end.get("agent_type", "")))
            agents[e["session"], e["call"]] = identity
            if subagent:
                agents[e["session"], subagent] = identity
        for e in (e for e in events if e["type"] == "agent.finished" and e.get("subagent")):
            agents.setdefault((e["session"], e["subagent"]), ("agent", label(e["subagent"]), label(e.get("agent_type", ""))))
    found = collections.Counter()
    for stream, events in streams.items():
        turn, calls, open_agents, time = None, {}, {}, 0
        for e in events:
            time = milliseconds(e.get("time")) or time
            parent = turn and turn[0]
            if e.get("agent") and not (turn and turn[3] == e["agent"]):  # a subagent inside this stream
                parent = next((each[0] for call, each in open_agents.items() if e["agent"] in (each[2], call)), parent)
            if e["type"] == "turn.started":
                above = None
                if e.get("agent"):
                    call = calls_of_agents.get((e["session"], e["agent"]))
                    above = agents.get((e["session"], e["agent"])) or agents.get((e["session"], call))
                turn = (("turn", label(stream), e["turn"]), time, above, e.get("agent"))
            elif e["type"] == "turn.finished" and turn:
                found[Expected(turn[0], turn[2], turn[1], max(time, turn[1]), e["outcome"] == "failed")] += 1
            elif e["type"] == "tool.invoked":
                calls[e["call"]] = (("tool", label(e["call"]), label(e["tool"])), time, parent)
            elif e["type"] == "tool.finished":
                identity, start, above = calls.pop(e["call"], (("tool", label(e["call"]), label(e.get("tool"))), time, parent))
                found[Expected(identity, above, start, max(time, start), e["outcome"] == "error")] += 1
                reason = {"AskUserQuestion": "question", "ExitPlanMode": "plan", "request_user_input": "question"}.get(identity[2])
                if reason and identity[2] in prompts:
                    found[Expected(("wait", reason), identity, start, max(time, start), False)] += 1
            elif e["type"] == "agent.started":
                above = calls[e["call"]][0] if e["call"] in calls else parent
                open_agents[e["call"]] = (agents[e["session"], e["call"]], time, e.get("subagent"), above)
            elif e["type"] == "agent.finished":
                call = e.get("call")
                if call not in open_agents:
                    call = next((c for c, each in open_agents.items() if e.get("subagent") and each[2] == e["subagent"]), None)
                identity = ("agent", label(e.get("subagent", "")), label(e.get("agent_type", "")))
                opened = open_agents.pop(call, (identity, time, None, parent))
                found[Expected(opened[0], opened[3], opened[1], max(time, opened[1]), e["outcome"] == "failed")] += 1
    timed = collections.Counter()
    for each, count in found.items():
        if each.end_ms > 0:
            timed[each._replace(start_ms=each.start_ms or each.end_ms)] += count  # a start without a time
    found = timed
    closed = {each.identity for each in found}
    shown = collections.Counter()
    for each, count in found.items():  # a parent that has not ended has no span yet
        shown[each._replace(parent=OPEN if each.parent and each.parent not in closed else each.parent)] += count
    return shown


def received_spans(spans):
    """The same of received spans, each counted once by its id, chats excepted."""
    by_id = {span.id: span for span in spans}
    found = collections.Counter()
    for span in by_id.values():
        identity = span.identity()
        if identity[0] != "chat":
            above = by_id[span.parent].identity() if span.parent in by_id else OPEN if span.parent else None
            found[Expected(identity, above, span.start_ms, span.end_ms, span.is_error)] += 1
    return found


def metric(daemon, name):
    """The value of a metric without labels."""
    found = re.search(rf"^{name} (\S+)$", curl(daemon, "/metrics", unix=True)[2].decode(), re.MULTILINE)
    return float(found[1]) if found else None


class OtlpCase(DaemonCase):
    def receiver(self, *certificate):
        receiver = Receiver(self.home, *certificate)
        self.addCleanup(receiver.kill)
        return receiver

    def exporting(self, receiver, *args, settings="", **more):
        text = f'[otlp]\nendpoint = "http://127.0.0.1:{receiver.port}"\nretain = "36500d"\n{settings}'
        return self.configured(text, *args, **more)

    def stop_exported(self, daemon):
        """Stops it when the collector has accepted all it was sent; otherwise it may be sent again at the next start."""
        wait_for(lambda: metric(daemon, "earshot_otlp_pending") == 0, "the collector's answers")
        daemon.stop()

    def assert_exported(self, receiver, expected, copies=1):
        """Waits until all expected spans were received, each at most `copies` times, and no others."""
        def complete():
            got = received_spans(receiver.spans())
            return not (expected - got)

        try:
            wait_for(complete, "the spans")
        except AssertionError:
            got = received_spans(receiver.spans())
            self.fail(f"missing: {list((expected - got).items())[:5]}\nunexpected: {list((got - expected).items())[:5]}")
        spans = receiver.spans()
        got = received_spans(spans)
        self.assertEqual(list((got - expected).items())[:5], [])
        sent = collections.Counter(span.id for span in spans)
        self.assertLessEqual(max(sent.values()), copies, sent.most_common(3))
