"""Brokers, hosts and hubs are killed, paused, disconnected or lose their data: afterwards the hub has each event of the files once."""
import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from support.harness import TOP, build, http, sanitized, wait_for
from support.team import TeamCase, subject_token


CLOCK = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)

faults_s = 300  # for the events that the writers wrote on a slow machine


class Writers:
    """Sessions that keep writing in the background."""

    def __init__(self, sessions):
        self.sessions, self.running, self.turns = sessions, True, 0
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        while self.running:
            for one in self.sessions:
                one.turn(f"turn {self.turns}")
            self.turns += 1
            time.sleep(0.01 + self.turns / 10_000)  # ever slower: a slow test leaves no mountain of events

    def more(self, turns=5):
        target = self.turns + turns
        wait_for(lambda: self.turns >= target, f"{turns} more turns")

    def stop(self):
        self.running = False
        self.thread.join()


class Faults(TeamCase):
    def team(self, hosts=2, sessions=2, more="", **given):
        broker = self.broker(**given)
        hub = self.hub(broker, more=more)
        daemons = [self.host(f"host{n}", broker) for n in range(hosts)]
        writers = Writers([self.session(d, f"/home/ada/p{n}") for d in daemons for n in range(sessions)])
        self.addCleanup(writers.stop)
        self.wait_team(hub, appended=20)
        return broker, hub, writers

    def test_a_killed_broker(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            broker.kill()
            writers.more()
            broker.start()
            self.wait_team(hub, open=1, deadline=faults_s)
            writers.more()
        writers.stop()
        self.assert_hub_serves(hub, self.assert_hub_complete(hub, deadline=faults_s))

    def test_a_paused_broker_does_not_delay_local_clients(self):
        broker, hub, writers = self.team(hosts=1)
        daemon = self.hosts["host0"]
        broker.pause()
        local = daemon.subscriber()
        before = local.count()
        local.wait(lambda: local.count() > before + 200, "local events")
        wait_for(lambda: self.health(daemon)["team"]["open"] == 0, "the publisher to drop the connection")
        broker.resume()
        writers.more()
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)

    def test_a_wiped_store(self):
        broker, hub, writers = self.team()
        broker.wipe()
        writers.more()
        self.wait_team(hub, opened=2, deadline=faults_s)
        broker.wipe()
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)
        # A hub that starts now receives everything from the new store.
        other = self.hub(broker, name="other", more='durable = "other"')
        self.assert_hub_complete(other, deadline=faults_s)

    def test_a_killed_host(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            self.hosts["host0"].process.kill()
            self.hosts["host0"].wait_exit()
            writers.more()
            self.hosts["host0"] = self.host("host0", broker)
            writers.more()
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)

    def test_a_killed_hub(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            hub.process.kill()
            hub.wait_exit()
            writers.more()
            hub = self.hub(broker)
            writers.more()
        writers.stop()
        self.assert_hub_serves(hub, self.assert_hub_complete(hub, deadline=faults_s))

    def test_a_paused_hub(self):
        broker, hub, writers = self.team()
        hub.process.send_signal(signal.SIGSTOP)
        writers.more(20)
        hub.process.send_signal(signal.SIGCONT)
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)

    def test_a_hub_whose_files_are_deleted(self):
        broker, hub, writers = self.team()
        writers.stop()
        self.assert_hub_complete(hub)
        hub.stop()
        shutil.rmtree(os.path.dirname(hub.files))
        self.assert_hub_complete(self.hub(broker), deadline=faults_s)

    def test_a_line_that_a_crash_left_incomplete(self):
        broker, hub, writers = self.team()
        hub.process.kill()
        hub.wait_exit()
        for path in glob.glob(os.path.join(hub.files, "*", "*.jsonl")):
            with open(path, "r+b") as file:
                file.truncate(max(0, os.path.getsize(path) - 7))  # a file that was just created is empty
        writers.stop()
        # The cut events were acknowledged, so no host sends them again: they may be missing, but no event is duplicated or incomplete.
        hub = self.hub(broker)
        self.wait_team(hub, open=1)
        for events in self.hub_events(hub).values():
            cursors = [e["cursor"] for e in events]
            self.assertEqual(len(cursors), len(set(cursors)))

    def test_broker_host_and_hub_killed_together(self):
        broker, hub, writers = self.team(hosts=3)
        for _ in range(2):
            broker.kill()
            self.hosts["host1"].process.kill()
            self.hosts["host1"].wait_exit()
            writers.more()
            hub.process.kill()
            hub.wait_exit()
            broker.start()
            self.hosts["host1"] = self.host("host1", broker)
            hub = self.hub(broker)
            writers.more()
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)

    def test_two_daemons_with_one_host_name(self):
        broker = self.broker()
        hub = self.hub(broker)
        first = self.host("twin", broker)
        one = self.published_session(hub, first, "first")
        second = self.host("twin", broker, root=os.path.join(self.home, "second", "claude"), state=os.path.join(self.home, "second", "state"))
        second.wait_log(r"another daemon publishes as host `twin`: give one of the two another name")
        self.session(second).turn("not published")
        self.hosts["twin"] = first
        one.turn("continues")
        self.assert_hub_complete(hub)

    def test_a_host_name_is_taken_over_from_a_stopped_daemon(self):
        broker = self.broker()
        hub = self.hub(broker)
        first = self.host("twin", broker)
        self.session(first).turn("first")
        self.assert_hub_complete(hub)
        first.stop()
        second = self.host("twin", broker, root=os.path.join(self.home, "second", "claude"), state=os.path.join(self.home, "second", "state"))
        self.session(second).turn("second")
        wait_for(lambda: self.health(second)["team"]["open"] == 1, "the host name to be released")
        wait_for(lambda: sum(map(len, self.hub_events(hub).values())) > len(sum(self.published().values(), [])), "both hosts' events")

    def test_more_hosts_than_the_limit(self):
        broker = self.broker()
        hub = self.hub(broker, more="hosts = 2")
        for name in ("one", "two"):
            self.session(self.host(name, broker)).turn(name)
        self.assert_hub_complete(hub)
        taken = dict(self.hosts)
        self.session(self.host("three", broker)).turn("three")
        self.wait_team(hub, hosts_refused=1)
        self.hosts = taken
        self.assert_hub_complete(hub)

    def test_host_1001_is_refused_at_the_default_limit(self):
        broker = self.broker()
        hub = self.hub(broker)
        self.wait_team(hub, open=1)
        one = self.nats_connection(broker)
        for n in range(1001):
            self.wait_team(hub, received=n) if n % 250 == 0 else None
            host, stream = f"host{n:04}", f"claude/-srv/{n:04}"
            answer = one.publish(f"earshot.v1.{host}.{subject_token('claude/-srv')}.{n:04}",
                                 {"type": "session.started", "host": host, "stream": stream, "session": f"{n:04}", "cursor": f"10.1.{n:016x}", "turn": 0, "program": "claude-code", "dialect": "claude-code", "cwd": "/srv"})
            self.assertIn("seq", answer)
        self.wait_team(hub, received=1001)
        health = self.health(hub)
        self.assertEqual({n: health["team"][n] for n in ("hosts", "files", "appended", "hosts_refused", "unsound")},
                         {"hosts": 1000, "files": 1000, "appended": 1000, "hosts_refused": 1, "unsound": 0})
        self.assertIn("1000", next(t["reason"] for t in health["problems"] if t["path"] == "[hub]"))
        self.assertEqual({e["host"] for events in self.hub_events(hub).values() for e in events}, {f"host{n:04}" for n in range(1000)})

    def test_forged_messages_affect_only_their_sender(self):
        broker, hub, ada = self.one_host()
        one = self.session(ada)
        client = hub.subscriber()
        one.prompt("go")
        client.wait_frame(type="status", host="ada", state="working")
        self.assert_hub_complete(hub)
        attacker = self.nats_connection(broker)
        valid = {"type": "session.started", "host": "eve", "stream": "claude/p/s", "session": "s", "cursor": "10.1.00000000000000ff", "turn": 0, "program": "claude-code", "dialect": "claude-code"}
        mine = f"earshot.v1.eve.p.s.{subject_token('claude/p/s')}"
        stream = next(name for host, name in self.published() if host == "ada")
        forgeries = [{**valid, "host": "ada"}, {**valid, "host": "ada", "stream": stream, "session": one.session}, {**valid, "stream": "../../../../tmp/x"},
                {**valid, "host": "../eve"}, {**valid, "stream": ""}, {**valid, "cursor": "x"}, [valid], 7,
                {"type": "stream.removed", "host": "ada", "stream": stream}, {"type": "reset", "host": "ada", "stream": stream},
                b"", b"{", b"\xff\xfe{}", b"[" * 100_000, b'{"type":' + b'{"a":' * 5000]
        for forged in forgeries:
            self.assertIn("seq", attacker.publish(mine, forged))
        self.wait_team(hub, unsound=len(forgeries))
        # A host cannot publish status for another host, and a name that looks like a path is only a name.
        seen = len(client.frames)
        for subject in ("earshot.status.v1.eve.s", "earshot.status.v1.eve"):
            attacker.publish(subject, {"type": "status", "host": "ada", "session": one.session, "state": "idle", "source": "registry"})
            attacker.publish(subject, {"type": "host", "host": "ada", "owner": "x", "instance": "y"})
        up = "claude/../../../x"
        self.assertIn("seq", attacker.publish(f"earshot.v1.eve.{subject_token('..')}.s.{subject_token(up)}", {**valid, "stream": up}))
        hostile = {**valid, "cursor": "20.1.00000000000000ff", "type": "session.updated", "title": "<script>\u0000\u202e\n\u001b[31m"}
        del hostile["program"], hostile["dialect"]
        lacking = {**hostile, "cursor": "30.1.00000000000000ff", "type": "turn.finished", "tools": "many"}
        attacker.publish(mine, valid)
        attacker.publish(mine, hostile)
        attacker.publish(mine, lacking)  # lacks required fields
        client.wait_frame(type="session.updated", host="eve")
        self.wait_team(hub, files=3)
        self.assertEqual(client.find(type="session.updated", host="eve")["title"], hostile["title"])
        one.turn("continues")
        client.wait_frame(type="turn.finished", host="ada")
        self.assertFalse(client.find(type="turn.finished", host="eve"))
        self.assertFalse([f for f in client.frames[seen:] if f["type"] == "status" and f["host"] == "ada" and f["state"] == "idle" and f["source"] == "registry"])
        self.assertEqual(self.hub_events(hub)["eve", up][0]["cursor"], valid["cursor"])
        self.assertEqual(sorted(os.listdir(hub.files)), ["ada", "eve"])
        self.assertEqual([h["name"] for h in self.health(hub)["hosts"]], ["ada"])

    def test_fault_88_a_host_that_floods_is_bounded_and_does_not_delay_others(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "first")
        client = hub.subscriber()
        eve = self.nats_connection(broker)

        def event(n, stream="claude/p/s", session="s", **more):
            return {"type": "session.updated", "host": "eve", "stream": stream, "session": session, "cursor": f"{n}.1.{n:016x}", "turn": 0, "title": "x", **more}

        def status(n):
            return f"earshot.status.v1.eve.s{n}", {"type": "status", "host": "eve", "session": f"s{n}", "state": "idle", "source": "registry"}

        # Names of sessions: above the limit of a host the oldest one is dropped.
        eve.publish_all([("earshot.status.v1.eve", {"type": "host", "host": "eve", "owner": "x", "instance": "y"})])
        wait_for(lambda: any(h["name"] == "eve" and h["online"] for h in self.health(hub)["hosts"]), "eve to be online")
        sessions = 15_000
        eve.publish_all(status(n) for n in range(sessions))
        client.wait_frame(type="status", session=f"s{sessions - 1}@eve")
        wait_for(lambda: self.live_sessions(hub) <= 2100, "the hub to forget sessions", give_up=hub.exit_reason)
        # Long names.
        long = "claude/p/" + "n" * 10_000
        for stream, session in ((long, "s"), ("claude/p/s", "s" * 1000)):
            eve.publish(f"earshot.v1.eve.p.s.{subject_token('claude/p/s')}", event(1, stream, session))
        self.wait_team(hub, unsound=2)
        # Forged predecessors: those that arrive while the file is to be rewritten anyway cost no rewrite, others are limited.
        mine = f"earshot.v1.eve.p.s.{subject_token('claude/p/s')}"
        eve.publish(mine, event(10))
        for n in range(400):
            eve.publish(mine, event(100 + n), **{"Earshot-After": f"10.1.{10:016x}"})
        wait_for(lambda: (team := self.health(hub)["team"])["restarted"] + team["repairs_refused"] >= 399, "the forged messages", give_up=hub.exit_reason)
        one.turn("second")
        client.wait_frame(type="turn.finished", host="ada")

    def live_sessions(self, hub):
        status, text = http(hub.port, "GET /metrics HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", f"Authorization: Bearer {hub.token}")
        self.assertEqual(status, 200)
        return sum(int(n) for n in re.findall(r"^earshot_sessions{[^}]*} (\d+)", text, re.MULTILINE))

    def test_fault_99_a_stop_while_the_broker_is_paused(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "first")
        broker.pause()
        # These two are connecting: the kernel accepts the connection, the broker says nothing.
        fresh = [self.hub(broker, name="fresh", more='durable = "fresh"'), self.host("bob", broker)]
        one.turn("while the broker is paused")
        for daemon in (*fresh, hub, ada):
            daemon.process.send_signal(signal.SIGTERM)
            wait_for(daemon.exit_reason, "it to stop")

    def test_a_simulated_team_loses_no_events(self):
        """A small run of the load in protocol/TEAM.md."""
        done = subprocess.run([sys.executable, os.path.join(TOP, "tests/bench/team_load.py"), "--hosts", "20", "--sessions", "3", "--rate", "200", "--subscribers", "4", "--seconds", "2"],
                              capture_output=True, text=True, env={**os.environ, "EARSHOT_BUILD": build()})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["hub"]["files"], 60)
        self.assertGreater(found["published"]["acked"], 60)

    def test_an_event_of_the_largest_size(self):
        broker, hub, ada = self.one_host()
        one = self.session(ada)
        one.prompt("go")
        todos = [{"content": f"{n} " + "x" * 1000, "status": "pending", "activeForm": "y" * 1000} for n in range(1500)]
        one.result(one.tool_call("TodoWrite", {"todos": todos}), "ok", details={"oldTodos": [], "newTodos": todos})
        one.turn("after it")
        wanted = sorted(json.loads(line)["cursor"] for line in sum(self.published().values(), []))
        wait_for(lambda: sorted(e["cursor"] for e in sum(self.hub_events(hub).values(), [])) == wanted, "all events")
        longest = max(len(json.dumps(e)) for e in sum(self.hub_events(hub).values(), []))
        self.assertLessEqual(longest, 512 << 10)

    def test_transcripts_with_times_of_other_centuries(self):
        broker = self.broker()
        hub = self.hub(broker)
        for name, times in (("past", "2001-01-01T00:00:00.000Z"), ("future", "2099-01-01T00:00:00.000Z")):
            one = self.session(self.host(name, broker))
            plain = one.record
            one.record = lambda *a, plain=plain, times=times, **more: {**plain(*a, **more), "timestamp": times}
            one.turn(name)
        self.assert_hub_serves(hub, self.assert_hub_complete(hub))

    @unittest.skipUnless(CLOCK, "libfaketime is not installed (Debian: faketime)")
    @unittest.skipIf(sanitized(build()), "a sanitized program does not run with libfaketime")
    def test_hosts_whose_clocks_are_years_apart(self):
        broker = self.broker()
        hub = self.hub(broker)
        sessions = []
        for name, clock in (("past", "-900d"), ("future", "+900d")):
            sessions.append(self.session(self.host(name, broker, prefix=("env", f"LD_PRELOAD={CLOCK}", f"FAKETIME={clock}", "DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"))))
        for one in sessions:
            one.turn("first")
        self.assert_hub_serves(hub, self.assert_hub_complete(hub))
        hosts = wait_for(lambda: len(all := self.health(hub)["hosts"]) == 2 and [host["online"] for host in all] == [True, True] and all, "both hosts")
        for host in hosts:  # measured by the broker's clock
            last_seen = datetime.datetime.fromisoformat(host["last_seen"].replace("Z", "+00:00"))
            self.assertLess(abs((datetime.datetime.now(datetime.timezone.utc) - last_seen).days), 1)
        broker.kill()
        for one in sessions:
            one.turn("second")
        broker.start()
        self.assert_hub_complete(hub, deadline=faults_s)

    def test_the_documented_permissions_let_a_host_publish_only_as_itself(self):
        with open(os.path.join(TOP, "protocol", "TEAM.md")) as page:
            shown = page.read()
        lists = re.search(r"RELAY_DEV7: \{\n(.*?)\n  \}\n", shown, re.DOTALL)[1]
        users = "".join(f'{{ user: {name}, password: secret, permissions: {{ {lists.replace("dev7", name)} }} }}\n' for name in ("ada", "bob"))
        broker = self.broker(authorization=f"authorization {{ timeout: 120, users: [ {users} {{ user: hub, password: secret }} ] }}")

        def url(name):
            return broker.url.replace("//", f"//{name}:secret@")

        hub = self.hub(broker, url=url("hub"))
        ada = self.host("ada", broker, url=url("ada"), more="read = true")
        one = self.published_session(hub, ada, "hers")
        ada.stop()
        one.turn("while it was away")
        self.hosts["ada"] = self.host("ada", broker, url=url("ada"), more="read = true")
        self.assert_hub_complete(hub)
        client = hub.subscriber()
        place = next(frame for frame in client.frames if frame["type"] == "session")["cursors"][0]
        client.send(type="read", id="r", stream=place.rpartition(":")[0], cursor=place.rpartition(":")[2])
        client.wait_frame(type="record", id="r")
        # Bob's daemon claims to be ada2: the broker refuses it.
        impostor = self.host("ada2", broker, url=url("bob"))
        impostor.wait_log(r"relay: .*retrying")
        self.session(impostor).turn("not published")
        del self.hosts["ada2"]
        one.turn("continues")
        self.assert_hub_complete(hub)
        # Bob can neither read Ada's subjects nor change the hub's consumer.
        bob = self.nats_connection(broker, user="bob", password="secret")
        for subject in ("_INBOX.>", "_INBOX_ada.>", "earshot.v1.>", "earshot.status.v1.ada", ">"):
            self.assertIn(b"Permissions Violation", bob.error_for(f"SUB {subject} 7"), subject)
        for subject in ("$JS.API.CONSUMER.DELETE.earshot.hub", "$JS.API.STREAM.PURGE.earshot", "$JS.API.STREAM.DELETE.earshot", "earshot.v1.ada.p.s.x", "earshot.status.v1.ada",
                        "$JS.API.CONSUMER.CREATE.earshot.last_bob.earshot.v1.ada.>", "$JS.API.CONSUMER.CREATE.earshot.hub.earshot.v1.bob.>",
                        "$JS.API.CONSUMER.DURABLE.CREATE.earshot.hub", "$JS.API.STREAM.MSG.GET.earshot", "earshot.read.v1.ada"):
            self.assertIn(b"Permissions Violation", bob.error_for(f"PUB {subject} 2\r\n{{}}"), subject)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "a network partition needs root and ip (Debian: iproute2)")
    def test_a_network_partition(self):
        space, inside, outside = f"ear{os.getpid()}", f"ei{os.getpid()}", f"eo{os.getpid()}"

        def ip(*words):
            subprocess.run(["ip", *words], check=True, capture_output=True)

        self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", outside], capture_output=True)
        try:
            ip("netns", "add", space)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
            ip("-n", space, "link", "show")  # fails in a chroot, whose / is no mount point
        except subprocess.CalledProcessError as failed:
            self.skipTest(f"network namespaces are not available: {failed.stderr.decode()}")
        ip("addr", "add", "10.213.77.1/30", "dev", outside)
        ip("link", "set", outside, "up")
        ip("-n", space, "addr", "add", "10.213.77.2/30", "dev", inside)
        ip("-n", space, "link", "set", inside, "up")
        broker = self.broker(address="10.213.77.2", prefix=("ip", "netns", "exec", space))
        wait_for(broker.answers, "nats-server")
        hub = self.hub(broker)
        writers = Writers([self.session(self.host(f"host{n}", broker)) for n in range(2)])
        self.addCleanup(writers.stop)
        self.wait_team(hub, appended=20)
        ip("link", "set", outside, "down")
        wait_for(lambda: self.health(self.hosts["host0"])["team"]["open"] == 0, "the publisher to notice")
        writers.more()
        ip("link", "set", outside, "up")
        writers.more()
        writers.stop()
        self.assert_hub_complete(hub, deadline=faults_s)


if __name__ == "__main__":
    unittest.main()
