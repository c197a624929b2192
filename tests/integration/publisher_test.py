"""Daemons publish to JetStream and a hub serves the events, with a real nats-server."""
import datetime
import hashlib
import json
import os
import signal
import unittest
import urllib.parse

from support.harness import http, wait_for
from support.transcripts import Session, rewrite
from support.team import TeamCase


class Publisher(TeamCase):
    def test_a_hub_serves_the_events_of_two_hosts(self):
        broker = self.broker()
        hub = self.hub(broker)
        ada, bob = self.host("ada.example", broker), self.host("bob", broker)
        client = hub.subscriber()
        one, other = self.session(ada), self.session(bob, "/home/bob/web")
        one.turn("first"), other.turn("second"), one.turn("third")
        expected = self.assert_hub_complete(hub)
        self.assertEqual({host for host, _ in expected}, {"ada.example", "bob"})
        client.wait_frame(type="turn.finished", host="bob")
        client.wait(lambda: len(client.all(type="turn.finished", host="ada.example")) == 2, "both turns")
        started = client.find(type="turn.started", host="bob")
        self.assertEqual(started["session"], f"{other.session}@bob")
        self.assertEqual(started["prompt"], "second")
        self.assert_hub_serves(hub, expected)
        of_bob = hub.client()
        frames = of_bob.subscribe(filter={"host": ["b?b"]})
        self.assertEqual([f["session"] for f in frames], [f"{other.session}@bob"])
        self.assertEqual(frames[0]["project"], "/home/bob/web")
        self.assertEqual(frames[0]["turn"]["outcome"], "completed")

    def test_messages_are_cloud_events_whose_source_names_host_and_stream(self):
        broker, hub, ada = self.one_host()
        session = self.session(ada, "/home/ada/api docs")
        session.turn("hello")
        self.assert_hub_complete(hub)
        [(_, stream)] = self.published()
        connection = self.nats_connection(broker)
        headers = connection.last_headers("earshot", "earshot.v1.ada.>")
        self.assertEqual((headers["ce-specversion"], headers["ce-type"]), ("1.0", "dev.earshot.turn.finished"))
        source = urllib.parse.urlsplit(headers["ce-source"])
        self.assertEqual((source.scheme, source.netloc, urllib.parse.unquote(source.path)), ("earshot", "ada", "/" + stream))
        self.assertEqual(headers["ce-id"], headers["Nats-Msg-Id"])
        datetime.datetime.fromisoformat(headers["ce-time"].replace("Z", "+00:00"))
        self.assertEqual(connection.last_headers("earshot_status", "earshot.status.v1.ada")["ce-source"], "earshot://ada")

    def test_existing_transcripts_are_published_once_across_a_restart(self):
        broker = self.broker()
        hub = self.hub(broker)
        root = os.path.join(self.home, "ada", "claude")
        os.makedirs(root)
        ada = self.host("ada", broker, root=root)
        one = self.published_session(hub, ada, "while it runs")
        ada.stop()
        one.turn("while it is away")
        self.session(ada, "/home/ada/other").turn("new")
        ada = self.host("ada", broker, root=root)
        one.turn("again")
        self.assert_hub_complete(hub)

    def test_a_host_publishes_the_meta_view_by_default(self):
        broker = self.broker()
        hub = self.hub(broker)
        config = self.write("plain.toml", f'[relay]\nurl = "{broker.url}"\n')
        root = os.path.join(self.home, "plain", "claude")
        os.makedirs(root)
        daemon = self.start("--config", config, roots=[root], state=os.path.join(self.home, "plain", "state"), host="plain")
        daemon.root = root
        self.hosts["plain"] = daemon
        self.session(daemon).turn("the word lighthouse stays here")
        expected = self.assert_hub_complete(hub, view="meta")
        self.assertNotIn("lighthouse", str(expected))
        self.assert_hub_serves(hub, expected)

    def test_statuses_name_their_host_and_an_offline_host_is_marked(self):
        broker, hub, ada = self.one_host()
        one = self.held_open(self.session(ada))
        client = hub.subscriber()
        one.prompt("go")
        client.wait_frame(type="status", host="ada", session=f"{one.session}@ada", state="working")
        client.wait_frame(type="turn.started", prompt="go")  # the hub has its events too
        ada.process.send_signal(signal.SIGKILL)
        ada.wait_exit()
        away = client.wait_frame(type="status", host="ada", session=f"{one.session}@ada", state="unknown", reason="host_offline")
        self.assertIn("since", away)
        self.assertFalse(self.health(hub)["hosts"][0]["online"])
        # A host's old messages do not mark it online, neither after a reconnect nor after a restart of the hub.
        seen = len(client.frames)
        broker.kill()
        broker.start()
        self.wait_team(hub, opened=2)
        hub.stop()
        self.assertFalse([f for f in client.frames[seen:] if f["type"] == "status" and f.get("reason") != "host_offline"])
        hub = self.hub(broker)
        client = hub.client()
        [session] = client.subscribe()
        self.assertEqual((session["status"]["state"], session["status"]["reason"]), ("unknown", "host_offline"))
        client.wait_frame(type="status", state="unknown", reason="host_offline", since=away["since"])
        self.assertFalse([f for f in client.frames if f["type"] == "status" and f.get("reason") != "host_offline"])
        # When the host is back, its session has its own status again.
        self.host("ada", broker)
        client.wait(lambda: client.all(type="status")[-1].get("reason") != "host_offline", "ada to be online again")

    def test_a_rewritten_transcript_starts_over_at_the_hub(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "before", "and more")
        rewrite(one.path, lambda text: b"".join(text.splitlines(keepends=True)[:2]).replace(b"before", b"rewritten"))
        one.turn("after")
        self.assert_hub_complete(hub)

    def test_a_transcript_rewritten_while_its_daemon_is_down(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "before")
        ada.stop()
        rewrite(one.path, lambda text: text.replace(b"before", b"another history"))
        ada = self.host("ada", broker)
        one.turn("after")
        self.assert_hub_complete(hub)

    def test_a_removed_transcript_is_removed_from_the_hub(self):
        broker, hub, ada = self.one_host()
        one, other = self.published_pair(hub, ada)
        os.unlink(other.path)
        wait_for(lambda: len([k for k, v in self.hub_events(hub).items() if v]) == 1, "one stream at the hub")
        self.assert_hub_complete(hub)

    def test_a_hub_user_sees_only_the_granted_hosts_and_projects(self):
        token = "s3cret" * 8
        hashed = hashlib.sha256(token.encode()).hexdigest()
        broker = self.broker()
        hub = self.hub(broker, more=f'[hub.users.ada]\ntoken_sha256 = "{hashed}"\nhosts = ["ada"]\nprojects = ["/home/ada/*"]\nview = "full"\n'
                                    f'[hub.users.eve]\ntoken_sha256 = "{hashlib.sha256(b"other").hexdigest()}"\n')
        ada, bob = self.host("ada", broker), self.host("bob", broker)
        seen = hub.client(token=token)
        seen.subscribe()
        meta = hub.client(token="other")
        meta.subscribe()
        self.session(ada, "/home/ada/api").turn("hers"), self.session(ada, "/srv/secret").turn("not shown"), self.session(bob, "/home/ada/b").turn("his")
        self.assert_hub_complete(hub)
        self.assert_hub_serves(hub, self.published())
        seen.wait_frame(type="turn.finished", host="ada")
        meta.wait(lambda: len(meta.all(type="turn.finished")) == 3, "all turns in the meta view")
        self.assertEqual({f["prompt"] for f in seen.frames if f["type"] == "turn.started"}, {"hers"})
        self.assertEqual({f["host"] for f in seen.frames if "session" in f}, {"ada"})
        self.assertNotIn("hers", str(meta.frames))
        status, text = http(hub.port, "GET /v1/sessions?all=true HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", f"Authorization: Bearer {token}")
        self.assertEqual(status, 200)
        self.assertIn("/home/ada/api", text)
        self.assertNotIn("secret", text.partition("\r\n\r\n")[2])
        for path, wanted in (("/v1/health", 403), ("/metrics", 403)):
            self.assertEqual(http(hub.port, f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", f"Authorization: Bearer {token}")[0], wanted)
        hub.wait_log(r"audit: ada from 127\.0\.0\.1:\d+ requests /v1/ws and receives full")
        hub.wait_log(r"audit: eve from 127\.0\.0\.1:\d+ requests /v1/ws and receives meta")
        self.assertEqual(http(hub.port, "GET /v1/sessions HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", "Authorization: Bearer wrong")[0], 401)
        hub.wait_log(r"audit: anonymous from 127\.0\.0\.1:\d+ requests /v1/sessions and receives nothing")

    def test_a_record_is_read_only_where_its_host_allows_it(self):
        broker = self.broker()
        hub = self.hub(broker)
        ada, bob = self.host("ada", broker, more="read = true"), self.host("bob", broker)
        long = "begin " + "x" * 100_000 + " end"
        one, other = self.session(ada), self.session(bob)
        one.prompt(long), other.prompt(long)
        client = hub.subscriber()
        self.assert_hub_complete(hub)
        started = {host: self.first(hub, host) for host in ("ada", "bob")}
        client.send(type="read", id="r", stream=started["ada"]["stream"], cursor=started["ada"]["cursor"])
        client.wait(lambda: any(f["type"] == "record" and f["part"] == f["parts"] for f in client.frames), "the record")
        text = "".join(f["data"] for f in client.frames if f["type"] == "record")
        self.assertEqual(json.loads(text)["message"]["content"], long)
        client.send(type="read", id="n", stream=started["bob"]["stream"], cursor=started["bob"]["cursor"])
        client.wait_frame(type="error", id="n", code="not_allowed")
        ada.stop()
        client.send(type="read", id="o", stream=started["ada"]["stream"], cursor=started["ada"]["cursor"])
        client.wait_frame(type="error", id="o", code="host_offline", retry=True)

    def first(self, hub, host):
        """The first turn.started event of a host."""
        client = hub.client()
        frames = client.subscribe(id="f", filter={"host": [host]})
        client.subscribe(id="g", snapshot=False, after=[place.rpartition(":")[0] + ":" for f in frames for place in f["cursors"]])
        return client.wait_frame(type="turn.started", host=host)

    def test_without_a_broker_local_delivery_works(self):
        config = self.write("away.toml", '[relay]\nurl = "nats://127.0.0.1:9"\n')
        daemon = self.start("--config", config)
        daemon.wait_log(r"relay: .*retrying")
        client = daemon.subscriber()
        one = Session(self.root, "/home/ada/api")
        one.turn("hello")
        client.wait_frame(type="turn.finished")


if __name__ == "__main__":
    unittest.main()
