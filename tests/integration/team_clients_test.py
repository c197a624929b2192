"""The command line and the notifier as clients of a team hub, with a real broker and daemons of several hosts."""
import json
import os
import signal
import subprocess
import unittest

from support.harness import build, clean_environment, earshot, wait_for
from support.notifier import Notifier, Receiver
from support.transcripts import Registry
from support.team import TeamCase


class HubClients(TeamCase):
    def setUp(self):
        super().setUp()
        self.nats = self.broker()
        self.hub_daemon = self.hub(self.nats)
        self.witness = self.hub_daemon.subscriber()

    def earshot(self, *args, code=0):
        """The output of a command that is connected to the hub."""
        done = earshot(*args, "--state", self.hub_daemon.state, home=self.home)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + (done.stderr if code else "")

    def start_working(self, host, prompt, cwd="/home/ada/api"):
        session = self.session(host, cwd)
        session.prompt(prompt)
        registry = Registry(host.root, session.session, self.process())
        registry.set_status("busy")
        self.wait_status(host, session, "working")
        return session, registry

    def start_waiting(self, host, prompt):
        session, registry = self.start_working(host, prompt)
        call = session.tool_call("Bash", {"command": "make horn"})
        self.witness.wait_frame(type="tool.invoked", call=call)  # or the wait may be known without its call
        registry.set_status("waiting", "permission prompt")
        self.wait_status(host, session, "waiting")
        return session, registry

    def wait_status(self, host, session, state, since=0, **more):
        name = f"{session.session}@{host.host}"

        def newest():
            statuses = [{**f, **f.get("status", {})} for f in list(self.witness.frames)[since:] if f["type"] in ("status", "session") and f.get("session") == name]
            return statuses and statuses[-1]["state"] == state and all(statuses[-1].get(k) == v for k, v in more.items())

        self.witness.wait(newest, f"{name}: {state}")

    def kill(self, host):
        before = len(self.witness.frames)
        host.process.send_signal(signal.SIGKILL)
        host.wait_exit()  # on a busy machine this may take longer than the hub needs to notice
        return before

    def test_a_terminal_of_another_host_is_brought_to_the_front_there(self):
        ada = self.host("ada", self.nats)
        session, _ = self.start_waiting(ada, "mend the lamp")
        self.assertRegex(self.earshot("focus", code=4), rf"api \({session.session[:8]}\w*\) runs on the host ada: run `earshot focus` there")

    def test_the_command_line_shows_each_session_s_host_and_which_hosts_are_offline(self):
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        one, _ = self.start_working(ada, "mend the lamp")
        table = self.earshot("ls")
        self.assertNotIn("HOST", table)  # a single host needs no column
        other, _ = self.start_waiting(bob, "mend the horn")
        table = self.earshot("ls")
        self.assertRegex(table, r"^STATUS +HOST +SESSION")
        self.assertRegex(table, rf"permission +bob +{other.session[:8]} +api")
        self.assertRegex(table, rf"working +ada +{one.session[:8]} +api")
        only = self.earshot("ls", "--host", "ad?")
        self.assertIn(one.session[:8], only)
        self.assertNotIn(other.session[:8], only)
        self.assertEqual([s["host"] for s in json.loads(self.earshot("ls", "--json", "--host", "bob"))], ["bob"])
        self.assertRegex(json.loads(self.earshot("statusline", "--json"))["tooltip"], r"^\S+ bob:api permission[ ▰▱\d%]*: .*make horn.*\n\S+ ada:api: ")

        for name in (f"{one.session}@ada", one.session, one.session[:8], f"{one.session[:8]}@ada"):
            statuses = self.earshot("show", name)
            self.assertIn("mend the lamp", statuses, name)
            self.assertIn(f"{one.session}@ada", statuses, name)
        self.assertIn("no session", self.earshot("show", f"{one.session[:8]}@bob", code=1))
        self.assertIn("mend the horn", self.earshot("show", "last", "--host", "bob"))
        words = earshot("complete", "show", "--state", self.hub_daemon.state, "", home=self.home).stdout
        self.assertEqual({line.partition("\t")[0] for line in words.splitlines()}, {"last", f"{one.session}@ada", f"{other.session}@bob"})
        self.assertRegex(self.earshot("doctor"), r"hosts +2 are online: ada, bob\n")

        tail = subprocess.Popen([os.path.join(build(), "earshot"), "tail", "--pretty", "--state", self.hub_daemon.state], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True, env=clean_environment(self.home))
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        introduced = [tail.stdout.readline(), tail.stdout.readline()]
        self.assertRegex("".join(sorted(introduced, key=lambda line: "bob" in line)), r"(?s)^\S+ ada:api .*working.*\n\S+ bob:api .*needs you: permission")

        mark = self.kill(bob)
        self.wait_status(bob, other, "unknown", mark, reason="host_offline")
        self.assertRegex(tail.stdout.readline(), r"bob:api +\S+ host bob is offline\n")
        self.assertRegex(self.earshot("ls"), rf"offline \d+[smh] +bob +{other.session[:8]}")
        self.assertEqual(json.loads(self.earshot("statusline", "--json"))["waiting"], 0)
        self.assertRegex(self.earshot("show", other.session[:8]), r"· host offline, last seen \w{3} \d+ \w{3} \d{4} \d\d:\d\d:\d\d\n")
        doctor = self.earshot("doctor")
        self.assertRegex(doctor, r"hosts +1 is online: ada\n")
        self.assertRegex(doctor, r"host +bob is offline, last seen \d+[smh] ago, ")
        mark = len(self.witness.frames)
        self.host("bob", self.nats, root=bob.root)
        self.wait_status(bob, other, "waiting", mark)
        self.assertRegex(tail.stdout.readline(), r"bob:api +\S+ host bob is online again\n")
        self.assertRegex(self.earshot("ls"), rf"permission +bob +{other.session[:8]}")

    def rules(self, receiver, more=""):
        return f'sinks = ["hook"]\n[sink.hook]\nkind = "json"\nurl = "{receiver.url}"\ntimeout = "60s"\n{more}'

    def test_a_notice_names_its_host_and_a_known_wait_is_not_repeated_when_the_host_returns(self):
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        receiver, bob_receiver = Receiver(), Receiver()
        self.addCleanup(receiver.close)
        self.addCleanup(bob_receiver.close)
        notifier = Notifier(self, self.hub_daemon.state, self.rules(receiver, f"""
[sink.own]
kind = "json"
url = "{bob_receiver.url}"
[[rule]]
name = "bobs"
status = "waiting"
host = "b*"
hold = "0"
sinks = ["own"]
title = "{{host}}: {{name}}"
[[rule]]
name = "gone"
status = "unknown"
reason = "host_offline"
hold = "0"
sinks = ["own"]
title = "{{host}} is away"
"""))
        self.addCleanup(notifier.finish)
        self.start_waiting(ada, "mend the lamp")
        session, registry = self.start_waiting(bob, "mend the horn")
        titles = lambda of: sorted(n["title"] for n in of.delivered())  # noqa: E731
        wait_for(lambda: titles(receiver) == ["api on ada needs you", "api on bob needs you"], "both waits")
        wait_for(lambda: titles(bob_receiver) == ["bob: api"], "the rule for bob")
        self.assertEqual({n["host"] for n in receiver.delivered()}, {"ada", "bob"})

        mark = self.kill(bob)
        self.wait_status(bob, session, "unknown", mark, reason="host_offline")
        wait_for(lambda: titles(bob_receiver) == ["bob is away", "bob: api"], "the offline notice")
        wait_for(lambda: notifier.decisions(decision="sent", rule="gone"), "the delivery to be recorded")
        notifier.kill()
        notifier.start()
        mark = len(self.witness.frames)
        bob = self.host("bob", self.nats, root=bob.root)
        self.wait_status(bob, session, "waiting", mark)
        registry.set_status("busy")
        self.wait_status(bob, session, "working", mark)
        registry.set_status("waiting", "permission prompt")  # a new wait: any earlier notice has arrived by now
        wait_for(lambda: len(receiver.delivered()) >= 3, "the next wait")
        self.assertEqual(titles(receiver), ["api on ada needs you", "api on bob needs you", "api on bob needs you"])
        wait_for(lambda: len(bob_receiver.delivered()) >= 3, "the rule for bob again")
        self.assertEqual(titles(bob_receiver), ["bob is away", "bob: api", "bob: api"])
        statuses = lambda: sorted(v["title"] for v in notifier.decisions(decision="notified", rule="waiting"))  # noqa: E731
        wait_for(lambda: len(statuses()) >= 3, "the decisions")
        self.assertEqual(statuses(), ["api on ada needs you", "api on bob needs you", "api on bob needs you"])
        self.assertFalse([v for v in notifier.decisions(rule="waiting") if "unknown" in v.get("why", "")])


if __name__ == "__main__":
    unittest.main()
