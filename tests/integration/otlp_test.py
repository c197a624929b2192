"""The OpenTelemetry exporter against a collector that decodes what it receives with another implementation's message types."""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import pytest

from support.endpoints import curl
from support.harness import corpus, earshot, wait_for
from support.otlp import OtlpCase, Receiver, attributes, expected_spans, host_of, metric, missing, received_spans
from support.recordings import scenarios
from support.team import TeamCase
from support.transcripts import Registry, Session, rewrite

SECRET = "the lighthouse keeper's diary"


def calls_of_agents(*roots):
    """(session, agent) → call, from the files beside the transcripts of subagents."""
    found = {}
    for root in roots:
        for path in glob.glob(os.path.join(root, "**", "agent-*.meta.json"), recursive=True):
            with open(path) as file:
                meta = json.load(file)
            session = os.path.basename(os.path.dirname(os.path.dirname(path)))
            found[session, os.path.basename(path)[len("agent-"):-len(".meta.json")]] = meta.get("toolUseId")
    return found


def chats(receiver):
    """Counter of the identities of the received chats."""
    return collections.Counter(span.identity() for span in receiver.spans() if span.identity()[0] == "chat")


@unittest.skipIf(missing(), missing())
class Otlp(OtlpCase):
    def expected(self, daemon, *roots):
        roots = roots or (self.root,)
        return expected_spans(daemon.replay(*roots), calls_of_agents(*roots))

    def expected_chats(self, daemon):
        """Counter of chat identities, from the events of finished turns."""
        usage = collections.Counter()
        for lines in daemon.replay(self.root).values():
            events = [json.loads(line) for line in lines]
            finished = {e["turn"] for e in events if e["type"] == "turn.finished"}
            for e in events:
                if e["type"] == "usage.updated" and "input" in e and e["turn"] in finished:
                    usage["chat", e["message"], e["input"] + e["cache_read"] + e["cache_write"], e["output"]] += 1
        return usage

    def write_turns(self, session=None):
        """Turns of all shapes: a tool, a failed tool, a question, subagents, an interrupted turn; and an open one."""
        session = session or Session(self.root)
        session.turn("hello")
        session.prompt("fail")
        session.result(session.tool_call("Bash", {"command": "false"}), "exit 1", error=True)
        session.result(session.tool_call("AskUserQuestion", {"questions": [{"question": "Which lamp?"}]}), "the left one")
        session.reply("Failed.", stop_reason="end_turn")
        session.prompt("look around")
        call, agent, own = session.agent()
        own.turn("look")
        session.agent_result(call, agent)
        session.reply("Fine.", stop_reason="end_turn")
        session.prompt("open")
        session.tool_call("Bash", {"command": "sleep 60"})
        return session

    def test_each_turn_tool_subagent_and_wait_is_one_span(self):
        self.write_turns()
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        expected = self.expected(daemon)
        self.assertEqual({each.identity[0] for each in expected}, {"turn", "tool", "agent", "wait"})
        self.assert_exported(receiver, expected)
        self.assertEqual({request["headers"]["content-type"] for request in receiver.received()}, {"application/x-protobuf"})
        spans = receiver.spans()
        self.assertEqual({span.host for span in spans}, {daemon.host})
        by_id = {span.id: span for span in spans}
        for span in spans:  # one trace per turn, with its subagents
            if span.parent in by_id:
                self.assertEqual(span.trace, by_id[span.parent].trace)
        own = [span for span in spans if "/subagents/" in span.attributes.get("earshot.stream", "")]
        self.assertEqual([by_id[span.parent].name for span in own], ["invoke_agent general-purpose"])

    def test_new_events_are_exported_and_a_restart_repeats_nothing(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        session = self.write_turns()
        self.assert_exported(receiver, self.expected(daemon))
        self.stop_exported(daemon)
        session.turn("while it was stopped")
        daemon = self.exporting(receiver)
        session.turn("afterwards")
        self.assert_exported(receiver, self.expected(daemon))

    def test_a_subagent_that_may_be_read_before_its_call_belongs_to_it_and_one_without_a_call_is_a_trace_of_its_own(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        session = Session(self.root)
        session.turn("hello")
        call = "toolu_later"
        own = session.agent_transcript("early", call, "look")
        own.turn("look")
        session.prompt("look around")
        session.assistant({"type": "tool_use", "id": call, "name": "Agent", "input": {"description": "look", "subagent_type": "general-purpose"}})
        session.agent_result(call, "early")
        session.reply("Fine.", stop_reason="end_turn")
        orphan = session.agent_transcript("orphan", "toolu_nobody", "stray")
        orphan.turn("stray")
        expected = self.expected(daemon)
        parents = {each.identity[1].rpartition("/")[2]: each.parent for each in expected if each.identity[0] == "turn" and "/subagents/" in each.identity[1]}
        self.assertEqual(parents, {"agent-early": ("agent", "early", "general-purpose"), "agent-orphan": None})
        self.assert_exported(receiver, expected)

    def test_chats_have_the_tokens_of_their_messages(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        self.write_turns()
        self.assert_exported(receiver, self.expected(daemon))
        expected = self.expected_chats(daemon)
        wait_for(lambda: chats(receiver).total() >= expected.total(), "the chats")
        self.assertEqual(chats(receiver), expected)
        one = next(span for span in receiver.spans() if span.identity()[0] == "chat")
        self.assertEqual((one.kind, one.attributes["gen_ai.provider.name"], one.name), (3, "anthropic", "chat claude-opus-5-5"))

    def test_two_exporters_write_the_same_ids(self):
        self.write_turns()
        first, second = self.receiver(), self.receiver()
        daemon = self.exporting(first)
        expected = self.expected(daemon)
        self.assert_exported(first, expected)
        daemon.stop()
        os.remove(os.path.join(self.state, "otlp.json"))
        daemon = self.exporting(second)
        self.assert_exported(second, expected)
        ids = [sorted((span.trace, span.id, span.parent, span.name) for span in each.spans()) for each in (first, second)]
        self.assertEqual(*ids)

    def test_the_meta_view_contains_no_text_and_the_full_view_does(self):
        session = Session(self.root)
        session.prompt(SECRET)
        session.result(session.tool_call("Bash", {"command": SECRET, "description": SECRET}), SECRET)
        call, agent, own = session.agent(SECRET)
        own.turn(SECRET, SECRET)
        session.agent_result(call, agent, SECRET)
        session.reply(SECRET, stop_reason="end_turn")
        for view in ("meta", "full"):
            with self.subTest(view=view):
                receiver = self.receiver()
                daemon = self.exporting(receiver, settings=f'view = "{view}"\nlogs = true\n', state=os.path.join(self.home, view),
                                        environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})
                self.assert_exported(receiver, self.expected(daemon))
                wait_for(lambda: receiver.received("/v1/logs") and receiver.received("/v1/metrics"), "logs and metrics")
                daemon.stop()
                for path in ("/v1/traces", "/v1/logs"):
                    raw = "".join(request["raw"] for request in receiver.received(path))
                    self.assertEqual(SECRET in raw, view == "full", path)
                self.assertNotIn(SECRET, "".join(request["raw"] for request in receiver.received("/v1/metrics")))

    def test_each_event_is_one_log_record_if_asked_for(self):
        receiver = self.receiver()
        self.write_turns()
        daemon = self.exporting(receiver, settings="logs = true\ntraces = false\nmetrics = false\n")
        events = collections.Counter(json.loads(line)["cursor"] for lines in daemon.replay(self.root, view="meta").values() for line in lines)

        def cursors():
            records = [record for request in receiver.received("/v1/logs") for each in request["resourceLogs"]
                       for scope in each["scopeLogs"] for record in scope["logRecords"]]
            return collections.Counter(json.loads(record["body"]["stringValue"])["cursor"] for record in records)

        wait_for(lambda: not events - cursors(), "the log records")
        self.assertEqual(cursors(), events)
        self.assertEqual(receiver.received(), [])

    def test_metrics_add_up_to_the_spans(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver, environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})
        self.write_turns()
        spans = self.expected(daemon)
        self.assert_exported(receiver, spans)
        tokens = sum(chat[3] * count for chat, count in self.expected_chats(daemon).items())

        def total(name, value, label=None):
            """The sum over the points of a metric, or those with this label, in the last request."""
            return sum(value(point) for request in receiver.received("/v1/metrics")[-1:] for resource in request["resourceMetrics"]
                       for scope in resource["scopeMetrics"] for metric in scope["metrics"] if metric["name"] == name
                       for kind in ("sum", "gauge", "histogram") for point in metric.get(kind, {}).get("dataPoints", [])
                       if label is None or label in attributes(point).items())

        def of_page(name):
            page = curl(daemon, "/metrics", unix=True)[2].decode()
            return sum(float(value) for value in re.findall(rf"(?m)^{name}\{{.*\}} (\S+)$", page))

        def count(point):
            return int(point["count"])

        def value(point):
            return point["asDouble"]

        def same_usage():
            tokens, cost = (total(name, value) for name in ("earshot.tokens", "earshot.cost"))
            return tokens == of_page("earshot_tokens_total") > 0 and cost > 0 and round(cost - of_page("earshot_cost_usd_total"), 6) == 0

        def totals():
            return {"tools": total("earshot.tool.duration", count),
                    "turns": total("earshot.turn.duration", count, ("earshot.agent.kind", "main")),
                    "turns of subagents": total("earshot.turn.duration", count, ("earshot.agent.kind", "subagent")),
                    "waits": total("earshot.wait.duration", count),
                    "tokens by request": total("gen_ai.client.token.usage", lambda p: p["sum"], ("gen_ai.token.type", "output"))}

        kinds = collections.Counter(each.identity[0] for each in spans.elements())
        of_subagents = sum(each.identity[0] == "turn" and "/subagents/" in each.identity[1] for each in spans.elements())
        expected = {"tools": kinds["tool"], "turns": kinds["turn"] - of_subagents, "turns of subagents": of_subagents, "waits": kinds["wait"],
                    "tokens by request": tokens}
        self.assertTrue(all(expected.values()), expected)
        try:
            wait_for(lambda: totals() == expected, "the totals")
        except AssertionError:
            self.assertEqual(totals(), expected)
        wait_for(same_usage, "the tokens and the cost of /metrics")
        self.assertGreaterEqual(total("earshot.sessions", value), 1)
        daemon.stop()
        old = len(receiver.received("/v1/metrics"))
        daemon = self.exporting(receiver, environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})  # what was there before does not count again
        client = daemon.subscriber()
        wait_for(lambda: len(receiver.received("/v1/metrics")) > old, "metrics")
        Session(self.root).turn("afterwards")
        client.wait_frame(type="turn.finished")
        wait_for(lambda: of_page("earshot_cost_usd_total") > 0, "its cost")
        wait_for(same_usage, "the same tokens and cost")

    def test_the_metrics_since_the_last_interval_are_sent_at_the_stop(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver, environment={"OTEL_METRIC_EXPORT_INTERVAL": "3600000"})
        self.write_turns()
        self.assert_exported(receiver, self.expected(daemon))
        self.assertEqual(receiver.received("/v1/metrics"), [])
        daemon.stop()

        def names():
            return {each["name"] for request in receiver.received("/v1/metrics") for resource in request["resourceMetrics"]
                    for scope in resource["scopeMetrics"] for each in scope["metrics"]}

        wait_for(lambda: {"earshot.tool.duration", "earshot.tokens", "earshot.cost"} <= names(), "the metrics")

    def waiting_session(self, daemon):
        """A session that waits for permission to use a tool: its transcript, its registry entry, the call."""
        client = daemon.subscriber()
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.prompt("hello")
        call = session.tool_call("Bash", {"command": "make"})
        client.wait_frame(type="tool.invoked", call=call)
        registry.set_status("waiting", "permission prompt")
        client.wait_frame(type="status", state="waiting", reason="permission")
        return session, registry, call

    def assert_wait_belongs_to_its_turn(self, daemon, receiver, session, registry, call):
        """Ends the wait and the turn."""
        client = daemon.subscriber()
        client.wait_frame(type="session", session=session.session)
        registry.set_status("busy")
        client.wait(lambda: (s := client.all(type="status")) and s[-1]["state"] == "working", "the end of the wait")
        session.result(call)
        session.reply("Done.", stop_reason="end_turn")
        spans = wait_for(lambda: (s := receiver.spans()) and {"turn", "wait"} <= {x.identity()[0] for x in s} and s, "the turn and the wait")
        turn, = (span for span in spans if span.identity()[0] == "turn")
        wait = [span for span in spans if span.identity()[0] == "wait"]
        self.assertEqual([(w.name, w.parent, w.trace) for w in wait], [("earshot.wait permission", turn.id, turn.trace)])
        self.assertGreaterEqual(wait[0].end_ms, wait[0].start_ms)

    def test_a_wait_for_permission_is_a_span_of_the_turn(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        self.assert_wait_belongs_to_its_turn(daemon, receiver, *self.waiting_session(daemon))

    def test_a_wait_that_is_open_at_a_restart_is_a_span_of_its_turn(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver)
        waiting = self.waiting_session(daemon)
        daemon.stop()
        self.assert_wait_belongs_to_its_turn(self.exporting(receiver), receiver, *waiting)

    def test_after_kills_of_both_sides_each_span_arrives_and_at_most_once_more_for_each(self):
        receiver = self.receiver()
        session = Session(self.root)
        daemon = self.exporting(receiver)
        kills = 3
        for n in range(kills):
            session.turn(f"before {n}")
            wait_for(lambda: received_spans(receiver.spans()) and metric(daemon, "earshot_otlp_exported_total") > 0, "some spans")
            call = session.tool_call("Bash", {"command": "sleep"})  # a turn that is open at the kill
            daemon.process.kill()
            daemon.process.wait()
            receiver.kill()
            session.result(call)
            session.reply("Done.", stop_reason="end_turn")
            session.turn(f"while both were away {n}")
            daemon = self.exporting(receiver)
            receiver.start()
        self.assert_exported(receiver, self.expected(daemon), copies=1 + kills)

    def test_a_collector_that_was_away_gets_everything(self):
        receiver = self.receiver()
        daemon = self.exporting(receiver, settings="metrics = false\n")  # their requests are reported on their own
        receiver.kill()
        self.write_turns()
        wait_for(lambda: metric(daemon, "earshot_otlp_retries_total") >= 2, "retries")
        self.assertEqual(metric(daemon, "earshot_otlp_open"), 0)
        self.assertIn("[otlp]", curl(daemon, "/v1/health", unix=True)[2].decode())
        receiver.start()
        self.assert_exported(receiver, self.expected(daemon))
        wait_for(lambda: metric(daemon, "earshot_otlp_open") == 1, "the state")
        log = daemon.stderr().decode()
        self.assertEqual((log.count("; retrying"), log.count("accepts the data again")), (1, 1), log)

    def test_answers_that_ask_for_patience_are_retried_and_others_are_counted(self):
        for behaviour in ({"status": 503, "headers": {"Retry-After": "1"}, "times": 2}, {"status": 429, "times": 1}, {"cut": True, "times": 2},
                          {"status": 403, "times": 1}, {"status": 404, "times": 1}):
            with self.subTest(**behaviour):
                receiver = self.receiver()
                receiver.control(**behaviour)
                daemon = self.exporting(receiver, settings="metrics = false\n", state=os.path.join(self.home, str(receiver.port)))
                self.write_turns()
                self.assert_exported(receiver, self.expected(daemon))
                self.assertGreaterEqual(metric(daemon, "earshot_otlp_retries_total"), behaviour["times"])
                self.assertEqual(metric(daemon, "earshot_otlp_dropped_total"), 0)
                daemon.stop()

    def test_a_wrong_token_is_replaced_without_a_restart(self):
        def write_token(token):
            with open(os.open(os.path.join(self.home, "headers"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(f"Authorization: Bearer {token}\n")

        write_token("old")
        receiver = self.receiver()
        receiver.control(token="Bearer new")
        daemon = self.exporting(receiver, settings='headers_file = "headers"\n')
        self.write_turns()
        wait_for(lambda: metric(daemon, "earshot_otlp_retries_total") > 0, "a refusal")
        self.assertIn("HTTP 401", curl(daemon, "/v1/health", unix=True)[2].decode())
        write_token("new")
        self.assert_exported(receiver, self.expected(daemon))
        self.assertEqual(metric(daemon, "earshot_otlp_dropped_total"), 0)

    def test_a_request_that_is_too_long_is_split(self):
        receiver = self.receiver()
        receiver.control(limit=2500)
        self.write_turns()
        daemon = self.exporting(receiver, settings="metrics = false\n")
        self.assert_exported(receiver, self.expected(daemon))
        self.assertEqual(metric(daemon, "earshot_otlp_dropped_total"), 0)
        self.assertGreater(len(receiver.received()), 1)
        self.assertGreater(receiver.requests(), len(receiver.received()))
        daemon.stop()
        other = self.receiver()
        other.control(limit=20)  # no span is that short
        daemon = self.exporting(other, settings="metrics = false\n", state=os.path.join(self.home, "other"))
        sent = len({span.id for span in receiver.spans()})
        wait_for(lambda: metric(daemon, "earshot_otlp_dropped_total") == sent, "the refusal of each span")
        self.assertEqual(other.received(), [])

    def test_a_refused_request_is_counted_and_not_repeated(self):
        receiver = self.receiver()
        session = Session(self.root)
        session.turn("refused")
        receiver.control(status=400, body="no such tenant", times=1)
        daemon = self.exporting(receiver)
        wait_for(lambda: metric(daemon, "earshot_otlp_dropped_total") > 0, "the refusal")
        self.assertEqual(receiver.spans(), [])
        self.assertIn("no such tenant", curl(daemon, "/v1/health", unix=True)[2].decode())
        receiver.control(partial=1, times=1)
        session.turn("partly rejected")
        wait_for(lambda: metric(daemon, "earshot_otlp_rejected_total") == 1, "the rejection")
        session.turn("accepted")
        wait_for(lambda: any(span.attributes.get("earshot.turn") == 3 for span in receiver.spans()), "the third turn")
        self.assertEqual({span.attributes["earshot.turn"] for span in receiver.spans() if "earshot.turn" in span.attributes}, {2, 3})

    def test_a_collector_that_hangs_delays_no_client_and_memory_stays_bounded(self):
        receiver = self.receiver()
        receiver.control(hang=True)
        daemon = self.exporting(receiver, settings='view = "full"\n', environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "3600000"})
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("first")
        wait_for(lambda: receiver.requests() > 0, "a request")
        for n in range(1, 3001):
            session.turn(f"{n} " + "x" * 2000)
            if n % 100 == 0:  # a client that does not read meanwhile would be sent `lagged`
                client.wait(lambda: len(client.all(type="turn.finished")) > n, "every event, although the collector does not answer")
        most = 2 * (512 << 10) + (256 << 10)  # two batches and the last event
        self.assertLess(metric(daemon, "earshot_otlp_pending_bytes"), most)
        self.assertGreater(metric(daemon, "earshot_otlp_lag_seconds"), 0)
        receiver.kill()  # the request ends
        receiver.start()
        self.assert_exported(receiver, self.expected(daemon))

    def test_variables_are_used_and_the_file_wins(self):
        receiver = self.receiver()
        session = Session(self.root)
        session.turn("hello")
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                       "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b,x-key=k", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
                       "OTEL_SERVICE_NAME": "lamp"}
        daemon = self.configured('[otlp]\nretain = "36500d"\n', environment=environment)
        self.assert_exported(receiver, self.expected(daemon))
        request = receiver.received()[0]
        self.assertEqual((request["headers"]["content-type"], request["headers"]["x-tenant"], request["headers"]["x-key"]),
                         ("application/x-protobuf", "a b", "k"))
        resource = {a["key"]: a["value"]["stringValue"] for a in request["resourceSpans"][0]["resource"]["attributes"]}
        self.assertEqual((resource["service.name"], resource["deployment.environment"], resource["host.name"]), ("lamp", "test", daemon.host))
        daemon.stop()
        other = self.receiver()
        headers = os.path.join(self.home, "headers")
        with open(os.open(headers, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("# of the collector\nAuthorization: Bearer abc\n")
        daemon = self.exporting(other, settings='headers_file = "headers"\n', environment=environment | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
                                state=os.path.join(self.home, "other"))
        self.assert_exported(other, self.expected(daemon))
        headers = other.received()[0]["headers"]
        self.assertEqual((headers["content-type"], headers["authorization"], headers.get("x-key")), ("application/x-protobuf", "Bearer abc", None))

    def test_mistakes_in_the_configuration_are_named(self):
        readable = os.path.join(self.home, "readable")
        with open(readable, "w") as file:
            file.write("Authorization: Bearer abc\n")
        broken = os.path.join(self.home, "broken")
        with open(os.open(broken, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("lamplighter without a name\n")
        endpoint = 'endpoint = "http://127.0.0.1:9"\n'
        for text, code, message in (
                ('endpoint = "ftp://collector"\n', 2, "must be the address of a collector"),
                (endpoint + 'protocol = "http/json"\n', 2, "earshot.toml:3: `protocol` is no key any more: it is always http/protobuf"),
                (endpoint + 'header_file = "x"\n', 2, "did you mean `headers_file`"),
                (endpoint + 'headers_file = "readable"\n', 1, "others can read it"),
                (endpoint + 'headers_file = "broken"\n', 1, "broken:1: must be"),
                (endpoint + 'headers_file = "missing"\n', 1, "there is no such file"),
                (endpoint + 'tls_ca = "missing.pem"\n', 1, "tls_ca"),
                (endpoint + 'tls_ca = "readable"\n', 1, "contains no certificate")):
            with self.subTest(text=text):
                daemon = self.configured(f"[otlp]\n{text}", ready=False)
                self.assertEqual(daemon.wait_exit(), code)
                stderr = daemon.stderr().decode()
                self.assertIn(message, stderr)
                self.assertNotIn("lamplighter", stderr)  # a header is a secret

    def test_variables_that_cannot_be_used_stop_nothing(self):
        collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        for environment, message, is_exporting in (
                (collector | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL: `grpc`", False),
                (collector | {"OTEL_EXPORTER_OTLP_HEADERS": "lamplighter"}, "OTEL_EXPORTER_OTLP_HEADERS: must be", False),
                (collector | {"OTEL_RESOURCE_ATTRIBUTES": "lamplighter"}, "OTEL_RESOURCE_ATTRIBUTES: must be", True)):
            with self.subTest(**environment):
                daemon = self.configured("", environment=environment)
                self.assertEqual("earshot_otlp" in curl(daemon, "/metrics", unix=True)[2].decode(), is_exporting)
                daemon.stop()
                log = daemon.stderr().decode()
                self.assertIn(message, log)
                self.assertNotIn("lamplighter", log)  # a header is a secret

    def test_without_an_endpoint_nothing_is_exported(self):
        daemon = self.configured("[otlp]\nlogs = true\n")
        self.assertNotIn("earshot_otlp", curl(daemon, "/metrics", unix=True)[2].decode())

    def test_over_https_only_a_collector_with_a_certificate_of_the_authority_receives_anything(self):
        cert, key = (os.path.join(self.home, name) for name in ("collector.pem", "collector.key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                        "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        receiver = self.receiver(cert, key)
        self.write_turns()
        settings = f'[otlp]\nendpoint = "https://127.0.0.1:{receiver.port}/"\nretain = "36500d"\n'
        daemon = self.configured(settings)
        wait_for(lambda: metric(daemon, "earshot_otlp_retries_total") > 0, "a failed attempt")
        self.assertEqual(metric(daemon, "earshot_otlp_exported_total"), 0)
        daemon.stop()
        daemon = self.configured(settings + 'tls_ca = "collector.pem"\n')
        self.assert_exported(receiver, self.expected(daemon))

    def test_old_spans_are_not_exported(self):
        receiver = self.receiver()
        session = Session(self.root)
        session.turn("old")
        rewrite(session.path, lambda content: re.sub(rb'"timestamp":"\d{4}', b'"timestamp":"2020', content))
        daemon = self.configured(f'[otlp]\nendpoint = "http://127.0.0.1:{receiver.port}"\n')
        session.turn("new")
        wait_for(lambda: any(span.attributes.get("earshot.turn") == 2 for span in receiver.spans()), "the new turn")
        self.assertGreater(metric(daemon, "earshot_otlp_expired_total"), 0)
        self.assertNotIn(1, [span.attributes.get("earshot.turn") for span in receiver.spans()])


@unittest.skipIf(missing(), missing())
class OtlpHub(TeamCase):
    def test_a_hub_exports_the_turns_of_all_hosts_once(self):
        receiver = Receiver(self.home)
        self.addCleanup(receiver.kill)
        broker = self.broker()
        hub = self.hub(broker, top=f'[otlp]\nendpoint = "http://127.0.0.1:{receiver.port}"\n', environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})
        sessions = {}
        for name in ("ada", "bob"):
            sessions[name] = self.session(self.host(name, broker, view="meta"))
            sessions[name].turn(SECRET)

        def turns():
            return collections.Counter((span.host, span.attributes["gen_ai.conversation.id"]) for span in receiver.spans()
                                       if span.identity()[0] == "turn")

        wait_for(lambda: len(turns()) == len(sessions), "the turn of each host")
        for name, session in sessions.items():
            session.turn(SECRET)
        expected = {(name, f"{session.session}@{name}"): 2 for name, session in sessions.items()}
        wait_for(lambda: sum(turns().values()) >= 2 * len(sessions), "the second turn of each host")
        self.assertEqual(turns(), expected)
        tools = [span for span in receiver.spans() if span.identity()[0] == "tool"]
        self.assertEqual({span.name for span in tools}, {"execute_tool Bash"})
        self.assertEqual(len({span.id for span in tools}), len(tools))

        def turns_of_metrics():
            """(host of the resource, of the point) → turns, of the last request."""
            return {(host_of(resource), attributes(point)["host.name"]): int(point["count"])
                    for request in receiver.received("/v1/metrics")[-1:] for resource in request["resourceMetrics"] for scope in resource["scopeMetrics"]
                    for each in scope["metrics"] if each["name"] == "earshot.turn.duration" for point in each["histogram"]["dataPoints"]}

        wait_for(lambda: turns_of_metrics() == {(name, name): 2 for name in sessions}, "the turns of each host as metrics")


@unittest.skipIf(missing(), missing())
@unittest.skipUnless(corpus(), "the recorded sessions are not installed")
@pytest.mark.all
class OtlpCorpus(OtlpCase):
    def test_every_recorded_session_gives_the_spans_of_its_events(self):
        roots = {}
        for name, folder in scenarios().items():
            tree = os.path.join(folder, "tree")
            if os.path.isdir(tree):
                roots[name] = os.path.join(self.home, name)
                shutil.copytree(tree, roots[name])
        public = os.path.join(self.home, "public")
        os.makedirs(os.path.join(public, "projects", "-home-public"))
        for n, path in enumerate(sorted(glob.glob(os.path.join(corpus(), "public", "**", "*.jsonl"), recursive=True))):
            head = earshot("replay", path, home=self.home).stdout
            if {json.loads(line)["program"] for line in head.split("\n") if '"type":"session.started"' in line} == {"claude-code"}:
                shutil.copy(path, os.path.join(public, "projects", "-home-public", f"00000000-0000-4000-8000-{n:012}.jsonl"))
        roots["public"] = public
        places = {"codex": "sessions/2026/11/22/rollout-2026-11-22T00-00-00-{id}.jsonl", "copilot": "session-state/{id}/events.jsonl",
                  "pi": "sessions/--home-public--/2026-11-22T00-00-00-000Z_{id}.jsonl"}
        for program, place in places.items():
            roots[program] = os.path.join(self.home, program)
            for n, path in enumerate(sorted(glob.glob(os.path.join(corpus(), program, "**", "*.jsonl"), recursive=True))):
                to = os.path.join(roots[program], place.format(id=f"00000000-0000-4000-8000-{n:012}"))
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(path, to)
        for folder, _, names in os.walk(self.home):
            for name in names:
                os.utime(os.path.join(folder, name))
        receiver = self.receiver()
        daemon = self.exporting(receiver, roots=[f"{name if name in places else 'claude-code'}:{name}={path}" for name, path in roots.items()])
        expected = expected_spans(daemon.replay(*roots.values()), calls_of_agents(*roots.values()))
        self.assertGreater(sum(expected.values()), 1000)
        self.assert_exported(receiver, expected)
