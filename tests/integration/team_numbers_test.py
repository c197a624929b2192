"""What a hub shows that events do not contain: a host's numbers and clock, the hub's own marks of seen sessions, and its public address."""
import datetime
import json
import unittest

from support.endpoints import curl
from support.harness import wait_for
from support.team import TeamCase, subject_token

WINDOW = 123_456  # of no model in the table


def host_time(behind_s):
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=behind_s)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TeamNumbers(TeamCase):
    def last(self, client, session):
        frames = client.all(type="session", session=session)
        return frames[-1] if frames else {}

    def test_a_hub_shows_the_numbers_that_a_status_line_gave_the_host(self):
        broker, hub, ada = self.one_host(view="meta")
        client = hub.subscriber()
        session = self.session(ada)
        session.turn("hello")
        name = f"{session.session}@ada"
        client.wait_frame(type="turn.finished", session=name)
        line = {"session_id": session.session, "context_window": {"context_window_size": WINDOW},
                "rate_limits": {"seven_day": {"used_percentage": 41, "resets_at": 4_000_000_000}}}
        self.assertEqual(curl(ada, "/v1/statusline", "--data-binary", json.dumps(line), unix=True)[0], 204)
        frame = client.wait(lambda: self.last(client, name).get("usage", {}).get("context_window") == WINDOW and self.last(client, name), "the numbers at the hub")
        self.assertEqual(frame["limits"][0]["windows"], [{"name": "seven_day", "used_percent": 41, "window_minutes": 10080, "resets_at": "2096-10-02T07:06:40.000Z"}])
        metrics = curl(hub, "/metrics", unix=True)[2].decode()
        self.assertIn('earshot_limit_used_ratio{host="ada",program="claude-code",limit="claude",window="seven_day"} 0.41', metrics)
        self.assertIn('earshot_tokens_total{host="ada",program="claude-code",model="claude-opus-5-5",kind="output"} 24', metrics)
        hub.stop()
        hub = self.hub(broker)
        client = hub.subscriber()
        client.wait(lambda: self.last(client, name).get("limits"), "the numbers after a restart of the hub")

    def test_a_host_s_clock_that_is_off_is_shown(self):
        broker, hub, _ = self.one_host()
        wait_for(lambda: any(h["name"] == "ada" and h["online"] for h in self.health(hub).get("hosts", [])), "the broker's streams")
        client = hub.subscriber()
        connection = self.nats_connection(broker)

        def beat(host, behind_s):
            return connection.publish(f"earshot.status.v1.{host}", {"type": "host", "host": host, "owner": "o", "instance": "i", "time": host_time(behind_s), "beat_ms": 5000})

        for host, behind_s in (("eve", -120), ("fay", 0)):
            connection.publish(f"earshot.status.v1.{host}.s1", {"type": "status", "host": host, "session": "s1", "state": "idle", "source": "registry", "since": host_time(behind_s)})
            beat(host, behind_s)
            common = {"host": host, "stream": "claude/p/s1", "session": "s1", "time": host_time(behind_s)}
            usage = {"input": 1, "output": 2, "cache_read": 0, "cache_write": 0}
            for n, event in enumerate(({"type": "session.started", "turn": 0, "program": "claude-code", "dialect": "claude-code"}, {"type": "turn.started", "turn": 1, "origin": "human"},
                                       {"type": "turn.finished", "turn": 1, "outcome": "completed", "tools": 0, "usage": usage}), 1):
                answer = connection.publish(f"earshot.v1.{host}.p.s1.{subject_token('claude/p/s1')}", {**event, **common, "cursor": f"{n}0.1.00000000000000ff"})
                self.assertIn("seq", answer)
        frame = client.wait(lambda: next((f for f in client.all(type="session", session="s1@eve") if "clock_offset_ms" in f), None), "the offset")
        self.assertGreaterEqual(frame["clock_offset_ms"], -120_000)
        self.assertLess(frame["clock_offset_ms"], -60_000)

        def is_exact():
            """The smallest of several offsets counts: one beat may have been on its way for seconds."""
            beat("fay", 0)
            return self.last(client, "s1@fay") and "clock_offset_ms" not in self.last(client, "s1@fay")

        client.wait(is_exact, "the other host, without an offset")

    def test_a_hub_keeps_its_own_marks(self):
        _, hub, ada = self.one_host()
        client = hub.subscriber()
        session = self.session(ada)
        session.turn("hello")
        name = f"{session.session}@ada"
        client.wait(lambda: self.last(client, name).get("unseen"), "an unseen session at the hub")
        self.assertEqual(curl(ada, "/v1/seen", "--data-binary", json.dumps({"session": session.session}), unix=True)[0], 204)
        self.assertTrue(self.last(client, name)["unseen"])
        self.assertEqual(curl(hub, "/v1/seen", "--data-binary", json.dumps({"session": session.session}), unix=True)[0], 404)
        self.assertEqual(curl(hub, "/v1/seen", "--data-binary", json.dumps({"session": name}), unix=True)[0], 204)
        client.wait(lambda: "unseen" not in self.last(client, name), "a seen session at the hub")
        self.assertEqual(curl(hub, "/v1/process?session=" + name, unix=True)[0], 404)

    def test_the_public_address_is_in_welcome(self):
        broker = self.broker()
        hub = self.hub(broker, more='url_public = "https://hub.example"')
        self.assertEqual(hub.subscriber().wait_frame(type="welcome")["url"], "https://hub.example/")
        other = self.hub(broker, name="other", more='durable = "other"')
        self.assertNotIn("url", other.subscriber().wait_frame(type="welcome"))


if __name__ == "__main__":
    unittest.main()
