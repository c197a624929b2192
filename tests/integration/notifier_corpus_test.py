"""Recorded sessions, played live, give exactly the expected notices, each once.

Skipped where the recorded sessions are not installed (EARSHOT_CORPUS, or shared/corpus next to the project).
"""
import collections
import json
import unittest

import pytest

from support.harness import DaemonCase, corpus, wait_for
from support.notifier import Notifier, Receiver, hook_rules
from support.recordings import Playback, registry_changes

held_ms = 300  # a wait that lasted at least this long in the recording must be notified; a shorter one may be
delays = 4   # of the machine, of which a wait is to outlast so many in addition
long_ms = 30_000


def waits(scenario):
    """session → the durations in ms of the waits in its registry file"""
    found = collections.defaultdict(list)
    open_waits = {}
    for path, ms, fields in registry_changes(scenario):
        if path in open_waits:
            session, since = open_waits.pop(path)
            found[session].append(ms - since)
        if fields.get("status") == "waiting" and fields.get("waitingFor") in ("permission prompt", "input needed"):
            open_waits[path] = (fields["sessionId"], ms)
    return found


@pytest.mark.all
@unittest.skipUnless(corpus(), "the recorded sessions are not installed")
class CorpusNotices(DaemonCase):
    def test_recorded_sessions_played_live_give_exactly_the_expected_notices(self):
        playback = Playback(self)
        daemon = self.start(roots=playback.root_arguments())
        receiver = Receiver()
        self.addCleanup(receiver.close)
        rules = "defaults = false\n" + hook_rules(receiver).split("[[rule]]")[0]
        for kind, condition, hold in (("waiting", 'status = "waiting"\nreason = ["permission", "question", "plan"]', "0"),
                                      ("failed", 'on = "turn.finished"\noutcome = "failed"', "5s"),
                                      ("finished", 'on = "turn.finished"\noutcome = "completed"\nduration = ">30s"', "5s")):
            rules += f'[[rule]]\nname = "{kind}"\n{condition}\nhold = "{hold}"\ntitle = "{kind} {{session}}"\n'
        notifier = Notifier(self, self.state, rules)
        self.addCleanup(notifier.finish)
        late_ms = playback.run(daemon, deadline=300)
        must, may = self.expected(playback, daemon, held_ms + delays * late_ms)
        got = lambda: self.count_notices(receiver)
        wait_for(lambda: got() >= must or sum(got().values()) > sum((must + may).values()), f"{sum(must.values())} notices")
        # Delayed notices are due by now, or were answered.
        wait_for(lambda: not notifier.saved()["held"], "the delayed notices")
        self.assertEqual(must - got(), collections.Counter(), "missing notices")
        self.assertEqual(got() - (must + may), collections.Counter(), "unexpected notices")
        self.assertGreaterEqual(sum((must + may).values()), 4)
        print(f"        {len(playback.scenarios)} sessions recorded, {sum(got().values())} notices: {dict(collections.Counter(k for k, _ in got().elements()))}", flush=True)

    def count_notices(self, receiver):
        """(rule, session) → count; grouped notices are counted separately"""
        found = collections.Counter()
        seen = set()
        for notice in receiver.delivered():
            self.assertNotIn(notice["id"], seen, "sent twice")
            seen.add(notice["id"])
            lines = [notice["title"]] if "session" in notice else notice["body"].splitlines()
            self.assertFalse(any(line.startswith("and ") for line in lines), "a truncated group")
            for line in lines:
                rule, session = line.split()[:2]
                found[rule, session] += 1
        return found

    def expected(self, playback, daemon, shortest_ms):
        must, may = collections.Counter(), collections.Counter()
        for scenario in playback.scenarios.values():
            for session, held in waits(scenario).items():
                for ms in held:
                    (must if ms >= shortest_ms else may)["waiting", session] += 1
        for lines in daemon.replay(*playback.roots.values()).values():
            events = [json.loads(line) for line in lines]
            for n, event in enumerate(events):
                if event["type"] != "turn.finished" or "agent" in event:
                    continue
                kind = "failed" if event["outcome"] == "failed" else \
                    "finished" if event["outcome"] == "completed" and event.get("duration_ms", 0) > long_ms else None
                if kind is None:
                    continue
                after = next((e for e in events[n + 1:] if e["type"] == "turn.started"), None)
                (may if after else must)[kind, event["session"]] += 1
        return must, may


if __name__ == "__main__":
    unittest.main()
