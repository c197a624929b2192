"""What people look at, when it is a team's hub: `earshot`'s commands and the notifier, beside a real broker, a hub and daemons of several hosts."""
import json
import os
import signal
import subprocess
import unittest

from harness import build, clean_environment, earshot, wait_for
from notifying import Notifier, Receiver
from sessions import Registry
from team import TeamCase

away_s = 60  # a host is away once three of its beats, of 5 s each, were missed


class HubClients(TeamCase):
    def setUp(self):
        super().setUp()
        self.nats = self.broker()
        self.at = self.hub(self.nats)
        self.witness = self.at.subscriber()

    def says(self, *words, code=0):
        """What a command tells of the hub."""
        done = earshot(*words, "--state", self.at.state, home=self.home)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + (done.stderr if code else "")

    def works(self, host, prompt, cwd="/home/ada/api"):
        session = self.session(host, cwd)
        session.prompt(prompt)
        registry = Registry(host.root, session.session, self.process())
        registry.says("busy")
        self.stands(host, session, "working")
        return session, registry

    def waits(self, host, prompt):
        session, registry = self.works(host, prompt)
        session.calls("Bash", {"command": "make horn"})
        registry.says("waiting", "permission prompt")
        self.stands(host, session, "waiting")
        return session, registry

    def stands(self, host, session, state, since=0, **more):
        name = f"{session.session}@{host.host}"

        def newest():
            told = [{**f, **f.get("status", {})} for f in list(self.witness.frames)[since:] if f["type"] in ("status", "session") and f.get("session") == name]
            return told and told[-1]["state"] == state and all(told[-1].get(k) == v for k, v in more.items())

        self.witness.wait(newest, f"{name}: {state}", away_s)

    def kill(self, host):
        host.process.send_signal(signal.SIGKILL)
        host.wait_exit()
        return len(self.witness.frames)

    def test_the_command_line_says_whose_a_session_is_and_which_hosts_are_away(self):
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        one, _ = self.works(ada, "mend the lamp")
        table = self.says("ls")
        self.assertNotIn("HOST", table)  # one host: nobody needs to ask
        other, _ = self.waits(bob, "mend the horn")
        table = self.says("ls")
        self.assertRegex(table, r"^STATUS +HOST +SESSION")
        self.assertRegex(table, rf"permission +bob +{other.session[:8]} +api")
        self.assertRegex(table, rf"working +ada +{one.session[:8]} +api")
        only = self.says("ls", "--host", "ad?")
        self.assertIn(one.session[:8], only)
        self.assertNotIn(other.session[:8], only)
        self.assertEqual([s["host"] for s in json.loads(self.says("ls", "--json", "--host", "bob"))], ["bob"])
        self.assertRegex(json.loads(self.says("statusline", "--json"))["tooltip"], r"^\S+ bob:api permission: .*make horn.*\n\S+ ada:api: ")

        for name in (f"{one.session}@ada", one.session, one.session[:8], f"{one.session[:8]}@ada"):
            told = self.says("show", name)
            self.assertIn("mend the lamp", told, name)
            self.assertIn(f"{one.session}@ada", told, name)
        self.assertIn("no session", self.says("show", f"{one.session[:8]}@bob", code=1))
        self.assertIn("mend the horn", self.says("show", "last", "--host", "bob"))
        self.assertEqual({line.partition("\t")[0] for line in self.says("complete-sessions").splitlines()}, {f"{one.session}@ada", f"{other.session}@bob"})
        self.assertRegex(self.says("doctor"), r"hosts +2 are online: ada, bob\n")

        tail = subprocess.Popen([os.path.join(build(), "earshot"), "tail", "--pretty", "--state", self.at.state], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True, env=clean_environment(self.home))
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        introduced = [tail.stdout.readline(), tail.stdout.readline()]
        self.assertRegex("".join(sorted(introduced, key=lambda line: "bob" in line)), r"(?s)^\S+ ada:api .*working.*\n\S+ bob:api .*needs you: permission")

        mark = self.kill(bob)
        self.stands(bob, other, "unknown", mark, reason="host_offline")
        self.assertRegex(tail.stdout.readline(), r"bob:api +\S+ host bob is offline\n")
        self.assertRegex(self.says("ls"), rf"offline \d+s +bob +{other.session[:8]}")
        self.assertEqual(json.loads(self.says("statusline", "--json"))["waiting"], 0)
        self.assertRegex(self.says("show", other.session[:8]), r"· host offline, last seen \w{3} \d+ \w{3} \d{4} \d\d:\d\d:\d\d\n")
        said = self.says("doctor")
        self.assertRegex(said, r"hosts +1 is online: ada\n")
        self.assertRegex(said, r"host +bob is offline, last seen \d+s ago, ")
        mark = len(self.witness.frames)
        self.host("bob", self.nats, root=bob.root)
        self.stands(bob, other, "waiting", mark)
        self.assertRegex(tail.stdout.readline(), r"bob:api +\S+ host bob is online again\n")
        self.assertRegex(self.says("ls"), rf"permission +bob +{other.session[:8]}")

    def rules(self, receiver, more=""):
        return f'sinks = ["hook"]\n[sink.hook]\nkind = "json"\nurl = "{receiver.url}"\ntimeout = "2s"\n{more}'

    def test_a_notice_says_which_host_and_an_old_wait_is_not_told_again_when_its_host_comes_back(self):
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        receiver, own = Receiver(), Receiver()
        self.addCleanup(receiver.close)
        self.addCleanup(own.close)
        notifier = Notifier(self, self.at.state, self.rules(receiver, f"""
[sink.own]
kind = "json"
url = "{own.url}"
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
        self.waits(ada, "mend the lamp")
        session, registry = self.waits(bob, "mend the horn")
        titles = lambda of: sorted(n["title"] for n in of.taken())  # noqa: E731
        wait_for(lambda: titles(receiver) == ["api on ada needs you", "api on bob needs you"], "both waits", 60)
        wait_for(lambda: titles(own) == ["bob: api"], "his own rule")
        self.assertEqual({n["host"] for n in receiver.taken()}, {"ada", "bob"})

        mark = self.kill(bob)
        self.stands(bob, session, "unknown", mark, reason="host_offline")
        wait_for(lambda: titles(own) == ["bob is away", "bob: api"], "that he is away")
        wait_for(lambda: notifier.verdicts(verdict="sent", rule="gone"), "that it knows what was taken")
        notifier.kill()
        notifier.start()
        mark = len(self.witness.frames)
        bob = self.host("bob", self.nats, root=bob.root)
        self.stands(bob, session, "waiting", mark)
        registry.says("busy")
        self.stands(bob, session, "working", mark)
        registry.says("waiting", "permission prompt")  # another one: whatever was told before it has come by now
        wait_for(lambda: len(receiver.taken()) >= 3, "the next wait", 60)
        self.assertEqual(titles(receiver), ["api on ada needs you", "api on bob needs you", "api on bob needs you"])
        wait_for(lambda: len(own.taken()) >= 3, "his own rule again")
        self.assertEqual(titles(own), ["bob is away", "bob: api", "bob: api"])
        told = [v["title"] for v in notifier.verdicts(verdict="told", rule="waiting")]
        self.assertEqual(sorted(told), ["api on ada needs you", "api on bob needs you", "api on bob needs you"])
        self.assertFalse([v for v in notifier.verdicts(rule="waiting") if "unknown" in v.get("why", "")])


if __name__ == "__main__":
    unittest.main()
