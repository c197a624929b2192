"""The Grafana dashboards and the Prometheus rules of protocol/grafana use metrics and labels that /metrics has."""
import glob
import json
import os
import re
import subprocess

import yaml

from support.endpoints import curl, promtool
from support.harness import wait_for
from support.team import TeamCase
from support.transcripts import Registry

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "protocol", "grafana")
scrape_labels = {"instance", "job"}  # Prometheus adds them
hub_labels = {"host"}                # of metrics of a daemon that a hub shows by host


def dashboards():
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as file:
            yield os.path.basename(path), json.load(file)


def rules():
    with open(os.path.join(folder, "alerts.yaml")) as file:
        return [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]


def expressions():
    """(where, PromQL) of each panel and rule, with Grafana's variables replaced."""
    for name, board in dashboards():
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                text = target["expr"]
                for variable, value in (("$instance", ".*"), ("$__rate_interval", "5m"), ("$__range", "1h")):
                    text = text.replace(variable, value)
                yield f"{name}: {panel['title']}", text
    for rule in rules():
        yield f"alerts.yaml: {rule['alert']}", rule["expr"]


def label_names(expression):
    """metric → the labels that an expression selects, and all that it groups by."""
    selected = {}
    for metric, selectors in re.findall(r"(earshot_\w+)(?:\{([^}]*)\})?", expression):
        selected.setdefault(metric, set()).update(re.findall(r"(\w+)\s*[=!]", selectors))
    grouped = {label.strip() for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in labels.split(",")}
    return selected, grouped


def sample_labels(page):
    """metric → the labels of its samples"""
    found = {}
    for metric, labels in re.findall(r"(?m)^(earshot_\w+)(?:\{(.*)\})? \S+$", page):
        found.setdefault(metric, set()).update(re.findall(r'(\w+)="', labels))
    return found


class Grafana(TeamCase):
    def scraped(self):
        """The metrics of a publishing daemon and of its hub, after everything that they count has happened once."""
        _, hub, ada = self.one_host(more='[otlp]\nendpoint = "http://127.0.0.1:9"')  # a closed port
        client = ada.subscriber()
        session = self.session(ada)
        process = self.process()
        registry = Registry(ada.root, session.session, process)
        session.turn("hello")
        session.prompt("again")
        session.reply("API Error: 529 Overloaded", isApiErrorMessage=True)
        client.wait_frame(type="turn.finished", outcome="failed")
        line = {"session_id": session.session, "context_window": {"context_window_size": 200_000}, "rate_limits": {"five_hour": {"used_percentage": 25}}}
        self.assertEqual(curl(ada, "/v1/statusline", "--data-binary", json.dumps(line), unix=True)[0], 204)
        for state in ("waiting", "busy", "waiting"):
            registry.set_status(state, "permission prompt")
            client.wait_frame(type="status", source="registry", state="waiting" if state == "waiting" else "working")
        self.assert_hub_complete(hub)
        pages = {}

        def has_all():
            for daemon in (ada, hub):
                pages[daemon] = curl(daemon, "/metrics", unix=True)[2].decode()
            wanted = ("earshot_longest_wait_seconds{", "earshot_wait_seconds_total{")
            return all(name in pages[ada] for name in wanted) and 'earshot_longest_wait_seconds{host="ada"' in pages[hub]

        wait_for(has_all, "the waits at the hub")
        return sample_labels(pages[ada]), sample_labels(pages[hub])

    def test_each_metric_and_label_of_the_dashboards_and_alerts_exists(self):
        of_host, of_hub = self.scraped()
        count = 0
        for where, expression in expressions():
            selected, grouped = label_names(expression)
            self.assertTrue(selected, where)
            for metric, labels in selected.items():
                count += 1
                self.assertIn(metric, {**of_host, **of_hub}, where)
                known = of_host.get(metric, set()) | of_hub.get(metric, set())
                self.assertLessEqual(labels, known | scrape_labels, f"{where}: labels of {metric}")
                self.assertLessEqual(grouped, known | scrape_labels | hub_labels, f"{where}: labels of {metric}")
                if "host" in grouped:
                    self.assertIn("host", of_hub.get(metric, set()), f"{where}: {metric} has no host at a hub")
        self.assertGreaterEqual(count, 30)

    def test_dashboards_have_distinct_panels_that_do_not_overlap(self):
        boards = dict(dashboards())
        self.assertEqual(set(boards), {"agents.json", "history.json"})
        self.assertEqual(len({board["uid"] for board in boards.values()}), 2)
        for name, board in boards.items():
            cells = set()
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            for panel in board["panels"]:
                place = panel["gridPos"]
                own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(own & cells, f"{name}: {panel['title']} overlaps")
                self.assertLessEqual(place["x"] + place["w"], 24, f"{name}: {panel['title']}")
                cells |= own

    def test_promtool_accepts_each_expression(self):
        rules_file = {"groups": [{"name": "panels", "rules": [{"record": f"panel_{n}", "expr": text} for n, (_, text) in enumerate(expressions())]}]}
        path = self.write("panels.yaml", yaml.safe_dump(rules_file))
        for file in (path, os.path.join(folder, "alerts.yaml")):
            done = subprocess.run([promtool(), "check", "rules", file], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_alerts_fire_when_they_should_and_only_then(self):
        waits = 'earshot_longest_wait_seconds{instance="dev7", program="codex", reason="permission"}'
        turns = 'earshot_turns_total{instance="dev7", program="codex", outcome="%s"}'
        waiting, is_open = 'earshot_relay_waiting_bytes{instance="dev7"}', 'earshot_relay_open{instance="dev7"}'

        def case(name, series, fires_at, quiet_at):
            labels = {"AgentWaitsForAPerson": {"program": "codex", "reason": "permission", "instance": "dev7", "severity": "info"},
                      "AgentTurnsFail": {"program": "codex", "instance": "dev7", "severity": "warning"}}.get(name, {"instance": "dev7", "severity": "warning"})
            return {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
                    "alert_rule_test": [{"eval_time": fires_at, "alertname": name, "exp_alerts": [{"exp_labels": labels}]},
                                        {"eval_time": quiet_at, "alertname": name, "exp_alerts": []}]}

        tests = [case("AgentWaitsForAPerson", {waits: "0+60x20"}, "11m", "10m"),
                 case("AgentTurnsFail", {turns % "failed": "0+1x3 3x40", turns % "completed": "0+9x40"}, "4m", "30m"),
                 case("RelayLags", {waiting: "4096x30"}, "6m", "4m"),
                 case("RelayLags", {waiting: "4096x9 0 4096x40"}, "8m", "13m"),
                 case("RelayIsDisconnected", {is_open: "1x4 0x20"}, "11m", "8m"),
                 case("ExportFails", {'earshot_otlp_open{instance="dev7"}': "1x4 0x20"}, "16m", "13m")]
        plain = [{"alert": rule["alert"], "expr": rule["expr"], "labels": rule["labels"], **({"for": rule["for"]} if "for" in rule else {})} for rule in rules()]
        self.write("rules.yaml", yaml.safe_dump({"groups": [{"name": "alerts", "rules": plain}]}))  # promtool compares annotations, too
        path = self.write("rules_test.yaml", yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))
        done = subprocess.run([promtool(), "test", "rules", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
