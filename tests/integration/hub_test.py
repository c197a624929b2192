"""What goes wrong between machines: brokers, hosts and hubs that die, sleep, are cut off or lose what they had. Afterwards the hub has what the files say, once each."""
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

from harness import TOP, build, sanitized, wait_for
from team import SERVER, TeamCase, word


CLOCK = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)


class Writers:
    """Sessions that go on and on while something is done to the others."""

    def __init__(self, sessions):
        self.sessions, self.going, self.turns = sessions, True, 0
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        while self.going and self.turns < 3000:
            for one in self.sessions:
                one.turn(f"turn {self.turns}")
            self.turns += 1
            time.sleep(0.01)

    def more(self, turns=5):
        target = self.turns + turns
        wait_for(lambda: self.turns >= target, f"{turns} turns more")

    def end(self):
        self.going = False
        self.thread.join()


class Faults(TeamCase):
    def team(self, hosts=2, sessions=2, more="", **given):
        broker = self.broker(**given)
        hub = self.hub(broker, more=more)
        daemons = [self.host(f"host{n}", broker) for n in range(hosts)]
        writers = Writers([self.session(d, f"/home/ada/p{n}") for d in daemons for n in range(sessions)])
        self.addCleanup(writers.end)
        self.wait_team(hub, appended=20)
        return broker, hub, writers

    def test_the_server_is_killed(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            broker.kill()
            writers.more()
            broker.start()
            self.wait_team(hub, open=1, deadline=40)
            writers.more()
        writers.end()
        self.told(hub, self.equal(hub, deadline=60))

    def test_the_server_sleeps_and_nobody_on_its_hosts_waits(self):
        broker, hub, writers = self.team(hosts=1)
        daemon = self.hosts["host0"]
        broker.pause()
        local = daemon.subscriber()
        before = local.count()
        local.wait(lambda: local.count() > before + 200, "what happens here")
        wait_for(lambda: self.health(daemon)["team"]["open"] == 0, "the relay gives the connection up", 40)
        broker.go_on()
        writers.more()
        writers.end()
        self.equal(hub, deadline=60)

    def test_the_store_is_wiped(self):
        broker, hub, writers = self.team()
        broker.wipe()
        writers.more()
        self.wait_team(hub, opened=2, deadline=40)
        broker.wipe()
        writers.end()
        self.equal(hub, deadline=60)
        # A hub that begins now gets all of it from the new store.
        other = self.hub(broker, name="other", more='durable = "other"')
        self.equal(other, deadline=60)

    def test_a_host_is_killed(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            self.hosts["host0"].process.kill()
            self.hosts["host0"].wait_exit()
            writers.more()
            self.hosts["host0"] = self.host("host0", broker)
            writers.more()
        writers.end()
        self.equal(hub, deadline=60)

    def test_the_hub_is_killed(self):
        broker, hub, writers = self.team()
        for _ in range(3):
            hub.process.kill()
            hub.wait_exit()
            writers.more()
            hub = self.hub(broker)
            writers.more()
        writers.end()
        self.told(hub, self.equal(hub, deadline=60))

    def test_the_hub_sleeps(self):
        broker, hub, writers = self.team()
        hub.process.send_signal(signal.SIGSTOP)
        writers.more(20)
        hub.process.send_signal(signal.SIGCONT)
        writers.end()
        self.equal(hub, deadline=60)

    def test_the_hubs_files_are_thrown_away(self):
        broker, hub, writers = self.team()
        writers.end()
        self.equal(hub)
        hub.stop()
        shutil.rmtree(os.path.dirname(hub.files))
        self.equal(self.hub(broker), deadline=60)

    def test_a_line_that_a_crash_left_in_part(self):
        broker, hub, writers = self.team()
        hub.process.kill()
        hub.wait_exit()
        for path in glob.glob(os.path.join(hub.files, "*", "*.jsonl")):
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) - 7)
        writers.end()
        # What was cut had been acknowledged: the store has it, and nobody sends it again. It is only missed, never doubled or in part.
        hub = self.hub(broker)
        self.wait_team(hub, open=1)
        for events in self.kept(hub).values():
            cursors = [e["cursor"] for e in events]
            self.assertEqual(len(cursors), len(set(cursors)))

    def test_everything_at_once(self):
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
        writers.end()
        self.equal(hub, deadline=90)

    def test_two_daemons_of_one_name(self):
        broker = self.broker()
        hub = self.hub(broker)
        first = self.host("twin", broker)
        one = self.session(first)
        one.turn("first")
        self.equal(hub)
        second = self.host("twin", broker, root=os.path.join(self.home, "second", "claude"), state=os.path.join(self.home, "second", "state"))
        second.wait_log(r"another daemon publishes as host `twin`: give one of the two another name")
        self.session(second).turn("not published")
        self.hosts["twin"] = first
        one.turn("goes on")
        self.equal(hub)

    def test_a_name_is_taken_over_from_one_that_is_gone(self):
        broker = self.broker()
        hub = self.hub(broker)
        first = self.host("twin", broker)
        self.session(first).turn("first")
        self.equal(hub)
        first.stop()
        second = self.host("twin", broker, root=os.path.join(self.home, "second", "claude"), state=os.path.join(self.home, "second", "state"))
        self.session(second).turn("second")
        wait_for(lambda: self.health(second)["team"]["open"] == 1, "the name is free", 40)
        wait_for(lambda: sum(map(len, self.kept(hub).values())) > len(sum(self.published().values(), [])), "both hosts' events")

    def test_more_hosts_than_the_hub_takes(self):
        broker = self.broker()
        hub = self.hub(broker, more="hosts = 2")
        for name in ("one", "two"):
            self.session(self.host(name, broker)).turn(name)
        self.equal(hub)
        taken = dict(self.hosts)
        self.session(self.host("three", broker)).turn("three")
        self.wait_team(hub, hosts_refused=1)
        self.hosts = taken
        self.equal(hub)

    def test_the_thousand_and_first_host(self):
        broker = self.broker()
        hub = self.hub(broker)
        self.wait_team(hub, open=1)
        one = self.anybody(broker)
        for n in range(1001):
            self.wait_team(hub, received=n) if n % 250 == 0 else None
            host, stream = f"host{n:04}", f"claude/-srv/{n:04}"
            answer = one.publish(f"earshot.v1.{host}.{word('claude/-srv')}.{n:04}",
                                 {"type": "session.started", "host": host, "stream": stream, "session": f"{n:04}", "cursor": f"10.1.{n:016x}", "turn": 0, "dialect": "claude-code", "cwd": "/srv"})
            self.assertIn("seq", answer)
        self.wait_team(hub, received=1001)
        health = self.health(hub)
        self.assertEqual({n: health["team"][n] for n in ("hosts", "files", "appended", "hosts_refused", "unsound")},
                         {"hosts": 1000, "files": 1000, "appended": 1000, "hosts_refused": 1, "unsound": 0})
        self.assertIn("1000", next(t["reason"] for t in health["troubles"] if t["path"] == "[hub]"))
        self.assertEqual({e["host"] for events in self.kept(hub).values() for e in events}, {f"host{n:04}" for n in range(1000)})

    def test_a_host_that_lies_is_believed_of_itself_alone(self):
        broker = self.broker()
        hub = self.hub(broker)
        ada = self.host("ada", broker)
        one = self.session(ada)
        client = hub.subscriber()
        one.prompt("go")
        client.wait_frame(type="status", host="ada", state="working")
        self.equal(hub)
        eve = self.anybody(broker)
        honest = {"type": "session.started", "host": "eve", "stream": "claude/p/s", "session": "s", "cursor": "10.1.00000000000000ff", "turn": 0, "dialect": "claude-code"}
        mine = f"earshot.v1.eve.p.s.{word('claude/p/s')}"
        stream = next(name for host, name in self.published() if host == "ada")
        lies = [{**honest, "host": "ada"}, {**honest, "host": "ada", "stream": stream, "session": one.session}, {**honest, "stream": "../../../../tmp/x"},
                {**honest, "host": "../eve"}, {**honest, "stream": ""}, {**honest, "cursor": "x"}, [honest], 7,
                {"type": "stream.removed", "host": "ada", "stream": stream}, {"type": "reset", "host": "ada", "stream": stream},
                b"", b"{", b"\xff\xfe{}", b"[" * 100_000, b'{"type":' + b'{"a":' * 5000]
        for lie in lies:
            self.assertIn("seq", eve.publish(mine, lie))
        self.wait_team(hub, unsound=len(lies))
        # Of what others do it says nothing either; a name that is a path is a name.
        seen = len(client.frames)
        for subject in ("earshot.status.v1.eve.s", "earshot.status.v1.eve"):
            eve.publish(subject, {"type": "status", "host": "ada", "session": one.session, "state": "idle", "source": "registry"})
            eve.publish(subject, {"type": "host", "host": "ada", "owner": "x", "instance": "y"})
        up = "claude/../../../x"
        self.assertIn("seq", eve.publish(f"earshot.v1.eve.{word('..')}.s.{word(up)}", {**honest, "stream": up}))
        hostile = {**honest, "cursor": "20.1.00000000000000ff", "type": "session.updated", "title": "<script>\u0000\u202e\n\u001b[31m"}
        del hostile["dialect"]
        lacking = {**hostile, "cursor": "30.1.00000000000000ff", "type": "turn.finished", "tools": "many"}
        eve.publish(mine, honest)
        eve.publish(mine, hostile)
        eve.publish(mine, lacking)  # clients rely on what it lacks
        client.wait_frame(type="session.updated", host="eve")
        self.wait_team(hub, files=3)
        self.assertEqual(client.find(type="session.updated", host="eve")["title"], hostile["title"])
        one.turn("goes on")
        client.wait_frame(type="turn.finished", host="ada")
        self.assertFalse(client.find(type="turn.finished", host="eve"))
        self.assertFalse([f for f in client.frames[seen:] if f["type"] == "status" and f["host"] == "ada" and f["state"] == "idle" and f["source"] == "registry"])
        self.assertEqual(self.kept(hub)["eve", up][0]["cursor"], honest["cursor"])
        self.assertEqual(sorted(os.listdir(hub.files)), ["ada", "eve"])
        self.assertEqual([h["name"] for h in self.health(hub)["hosts"]], ["ada"])

    def test_a_simulated_team_loses_nothing(self):
        """The load that protocol/TEAM.md shows, in small."""
        done = subprocess.run([sys.executable, os.path.join(TOP, "tests/bench/team_load.py"), "--hosts", "20", "--sessions", "3", "--rate", "200", "--subscribers", "4", "--seconds", "2"],
                              capture_output=True, text=True, env={**os.environ, "EARSHOT_BUILD": build()})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["hub"]["files"], 60)
        self.assertGreater(found["published"]["acked"], 60)

    def test_an_event_of_the_greatest_size(self):
        broker = self.broker()
        hub = self.hub(broker)
        ada = self.host("ada", broker)
        one = self.session(ada)
        one.prompt("go")
        todos = [{"content": f"{n} " + "x" * 1000, "status": "pending", "activeForm": "y" * 1000} for n in range(1500)]
        one.result(one.calls("TodoWrite", {"todos": todos}), "ok", details={"oldTodos": [], "newTodos": todos})
        one.turn("after it")
        wanted = sorted(json.loads(line)["cursor"] for line in sum(self.published().values(), []))
        wait_for(lambda: sorted(e["cursor"] for e in sum(self.kept(hub).values(), [])) == wanted, "all of it")
        longest = max(len(json.dumps(e)) for e in sum(self.kept(hub).values(), []))
        self.assertLessEqual(longest, 512 << 10)

    def test_hosts_whose_clocks_differ(self):
        broker = self.broker()
        hub = self.hub(broker)
        for name, times in (("past", "2001-01-01T00:00:00.000Z"), ("future", "2099-01-01T00:00:00.000Z")):
            one = self.session(self.host(name, broker))
            plain = one.record
            one.record = lambda *a, plain=plain, times=times, **more: {**plain(*a, **more), "timestamp": times}
            one.turn(name)
        self.told(hub, self.equal(hub))

    @unittest.skipUnless(CLOCK, "no other clock can be given to a host (Debian: faketime)")
    @unittest.skipIf(sanitized(build()), "a sanitized program and a clock of its own do not go together")
    def test_hosts_whose_own_clocks_are_years_apart(self):
        broker = self.broker()
        hub = self.hub(broker)
        sessions = []
        for name, clock in (("past", "-900d"), ("future", "+900d")):
            sessions.append(self.session(self.host(name, broker, prefix=("env", f"LD_PRELOAD={CLOCK}", f"FAKETIME={clock}", "DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"))))
        for one in sessions:
            one.turn("first")
        self.told(hub, self.equal(hub))
        hosts = wait_for(lambda: len(all := self.health(hub)["hosts"]) == 2 and all, "both hosts are heard")
        for host in hosts:  # by the broker's clock
            self.assertTrue(host["online"])
            heard = datetime.datetime.fromisoformat(host["heard"].replace("Z", "+00:00"))
            self.assertLess(abs((datetime.datetime.now(datetime.timezone.utc) - heard).days), 1)
        broker.kill()
        for one in sessions:
            one.turn("second")
        broker.start()
        self.equal(hub, deadline=60)

    def test_a_host_publishes_under_its_own_name_alone_with_the_configuration_that_the_page_shows(self):
        with open(os.path.join(TOP, "protocol", "TEAM.md")) as page:
            shown = page.read()
        lists = re.search(r"RELAY_DEV7: \{\n(.*?)\n  \}\n", shown, re.DOTALL)[1]
        users = "".join(f'{{ user: {name}, password: secret, permissions: {{ {lists.replace("dev7", name)} }} }}\n' for name in ("ada", "bob"))
        broker = self.broker(authorization=f"authorization {{ users: [ {users} {{ user: hub, password: secret }} ] }}")

        def url(name):
            return broker.url.replace("//", f"//{name}:secret@")

        hub = self.hub(broker, url=url("hub"))
        ada = self.host("ada", broker, url=url("ada"), more="read = true")
        one = self.session(ada)
        one.turn("hers")
        self.equal(hub)
        ada.stop()
        one.turn("while it was away")
        self.hosts["ada"] = self.host("ada", broker, url=url("ada"), more="read = true")
        self.equal(hub)
        client = hub.subscriber()
        place = next(frame for frame in client.frames if frame["type"] == "session")["cursors"][0]
        client.send(type="read", id="r", stream=place.rpartition(":")[0], cursor=place.rpartition(":")[2])
        client.wait_frame(type="record", id="r")
        # Bob says that he is Ada: the broker does not take it.
        false = self.host("ada2", broker, url=url("bob"))
        false.wait_log(r"relay: .*it is tried again")
        self.session(false).turn("not published")
        del self.hosts["ada2"]
        one.turn("goes on")
        self.equal(hub)
        # Nor does he hear what she publishes, nor disturb who hears it.
        bob = self.anybody(broker, user="bob", password="secret")
        for subject in ("_INBOX.>", "_INBOX_ada.>", "earshot.v1.>", "earshot.status.v1.ada", ">"):
            self.assertIn(b"Permissions Violation", bob.refused(f"SUB {subject} 7"), subject)
        for subject in ("$JS.API.CONSUMER.DELETE.earshot.hub", "$JS.API.STREAM.PURGE.earshot", "$JS.API.STREAM.DELETE.earshot", "earshot.v1.ada.p.s.x", "earshot.status.v1.ada",
                        "$JS.API.CONSUMER.CREATE.earshot.last_bob.earshot.v1.ada.>", "$JS.API.CONSUMER.CREATE.earshot.hub.earshot.v1.bob.>",
                        "$JS.API.CONSUMER.DURABLE.CREATE.earshot.hub", "$JS.API.STREAM.MSG.GET.earshot", "earshot.read.v1.ada"):
            self.assertIn(b"Permissions Violation", bob.refused(f"PUB {subject} 2\r\n{{}}"), subject)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "a cut network needs root and ip (Debian: iproute2)")
    def test_the_network_is_cut(self):
        space, inside, outside = f"ear{os.getpid()}", f"ei{os.getpid()}", f"eo{os.getpid()}"

        def ip(*words):
            subprocess.run(["ip", *words], check=True, capture_output=True)

        self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", outside], capture_output=True)
        try:
            ip("netns", "add", space)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
        except subprocess.CalledProcessError as failed:
            self.skipTest(f"no network namespaces here: {failed.stderr.decode()}")
        ip("addr", "add", "10.213.77.1/30", "dev", outside)
        ip("link", "set", outside, "up")
        ip("-n", space, "addr", "add", "10.213.77.2/30", "dev", inside)
        ip("-n", space, "link", "set", inside, "up")
        broker = self.broker(address="10.213.77.2", prefix=("ip", "netns", "exec", space))
        wait_for(broker.answers, "nats-server")
        hub = self.hub(broker)
        writers = Writers([self.session(self.host(f"host{n}", broker)) for n in range(2)])
        self.addCleanup(writers.end)
        self.wait_team(hub, appended=20)
        ip("link", "set", outside, "down")
        wait_for(lambda: self.health(self.hosts["host0"])["team"]["open"] == 0, "the relay notices", 60)
        writers.more()
        ip("link", "set", outside, "up")
        writers.more()
        writers.end()
        self.equal(hub, deadline=60)


if __name__ == "__main__":
    unittest.main()
