"""What the OpenTelemetry exporter does with transcripts that go away, return or are rewritten."""
import collections
import os
import unittest

from support.harness import wait_for
from support.otlp import OtlpCase, expected_spans, missing
from support.transcripts import Session, compress, rewrite, unpack


def turns(receiver):
    """(turn, span id) of each received span of a turn."""
    return [(span.attributes["earshot.turn"], span.id) for span in receiver.spans() if span.identity()[0] == "turn"]


@unittest.skipIf(missing(), missing())
class OtlpTranscripts(OtlpCase):
    def exported_turns(self, *prompts, **more):
        """A session whose turns were exported."""
        receiver = self.receiver()
        session = Session(self.root)
        daemon = self.exporting(receiver, **more)
        for prompt in prompts:
            session.turn(prompt)
        self.assert_exported(receiver, expected_spans(daemon.replay(self.root)))
        return receiver, session, daemon

    def assert_turns(self, receiver, counts, copies=1):
        """Waits for the spans with these numbers of turns, by their ids; none is sent more than `copies` times."""
        wait_for(lambda: collections.Counter(turn for turn, _ in set(turns(receiver))) == counts, f"turns {counts}")
        sent = collections.Counter(span.id for span in receiver.spans())
        self.assertLessEqual(max(sent.values()), copies, sent.most_common(3))

    def test_a_transcript_that_goes_away_and_returns_is_not_exported_twice(self):
        receiver, session, daemon = self.exported_turns("one", "two")
        client = daemon.subscriber()
        client.wait_frame(type="session", session=session.session)
        away = os.path.join(self.home, "away.jsonl")
        os.rename(session.path, away)
        client.wait_frame(type="stream.removed")
        os.rename(away, session.path)
        session.turn("three")
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 1})

    def test_125_one_that_is_moved_is_not_exported_twice_also_after_a_restart(self):
        receiver, session, daemon = self.exported_turns("one", "two")
        folder = os.path.join(os.path.dirname(session.folder), "-home-ada-tree")
        os.makedirs(folder)
        for number, turn in enumerate(("three", "four")):
            path = os.path.join((folder, session.folder)[number], os.path.basename(session.path))
            os.rename(session.path, path)
            session.path = path
            session.turn(turn)
            self.assert_turns(receiver, {n + 1: 1 for n in range(number + 3)})
            if number == 0:
                self.stop_exported(daemon)
                daemon = self.exporting(receiver)

    def test_125_one_that_is_moved_while_the_daemon_is_stopped_is_not_exported_twice(self):
        receiver, session, daemon = self.exported_turns("one", "two")
        self.stop_exported(daemon)
        path = os.path.join(os.path.dirname(session.folder), "-home-ada-tree", os.path.basename(session.path))
        os.makedirs(os.path.dirname(path))
        os.rename(session.path, path)
        session.path = path
        self.exporting(receiver)
        session.turn("three")
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 1})

    def test_133_one_that_is_compressed_while_the_daemon_is_stopped_is_not_exported_twice(self):
        receiver, session, daemon = self.exported_turns("one", "two")
        self.stop_exported(daemon)
        compress(session.path)
        daemon = self.exporting(receiver)
        unpack(session.path)
        session.turn("three")
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 1})

    def test_one_that_returns_after_a_restart_is_not_exported_twice(self):
        receiver, session, daemon = self.exported_turns("one", "two")
        away = os.path.join(self.home, "away.jsonl")
        self.stop_exported(daemon)
        os.rename(session.path, away)
        daemon = self.exporting(receiver)
        os.rename(away, session.path)
        session.turn("three")
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 1})

    def assert_rewritten_end_is_exported(self, change):
        receiver, session, daemon = self.exported_turns("one", "two", "three")
        self.stop_exported(daemon)
        rewrite(session.path, change)
        self.exporting(receiver)
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 2}, copies=2)

    def test_one_whose_end_was_rewritten_while_the_daemon_was_down_is_exported_again_with_the_same_ids_before_it(self):
        self.assert_rewritten_end_is_exported(lambda content: content.replace(b"three", b"another one"))

    def test_so_is_one_that_was_rewritten_to_the_same_length(self):
        self.assert_rewritten_end_is_exported(lambda content: content.replace(b"three", b"other"))

    def assert_turn_after_a_cut_is_exported(self, former, new):
        receiver, session, daemon = self.exported_turns("one", "two")
        with open(session.path, "rb") as file:
            before, parent = file.read(), session.parent
        session.turn(former)
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 1})
        self.stop_exported(daemon)
        rewrite(session.path, lambda _: before)
        session.parent = parent
        self.exporting(receiver)
        session.turn(new)
        self.assert_turns(receiver, {1: 1, 2: 1, 3: 2}, copies=2)

    def test_after_an_end_that_was_cut_off_while_the_daemon_was_down_a_longer_turn_is_exported(self):
        self.assert_turn_after_a_cut_is_exported("three", "a third one that is longer than the former")

    def test_so_is_a_shorter_one(self):
        self.assert_turn_after_a_cut_is_exported("a third one that is longer than the next", "three")

    def test_of_a_subagent_that_is_rewritten_before_its_call_is_known_the_new_history_is_exported(self):
        receiver, session, daemon = self.exported_turns("one")
        client = daemon.subscriber()
        call, agent = "toolu_later", "early"
        own = session.agent_transcript(agent, call, "look")
        own.turn("a turn that waits for its call")
        client.wait_frame(type="turn.finished", agent=agent)
        with open(own.path, "w"):
            pass
        client.wait_frame(type="reset")
        own.parent = None
        own.turn("new")
        client.wait(lambda: len(client.all(type="turn.finished", agent=agent)) == 2, "the new turn")
        session.prompt("look around")
        session.assistant({"type": "tool_use", "id": call, "name": "Agent", "input": {"description": "look", "subagent_type": "general-purpose"}})
        session.agent_result(call, agent)
        session.reply("Fine.", stop_reason="end_turn")
        self.assert_exported(receiver, expected_spans(daemon.replay(self.root), {(session.session, agent): call}))

    def test_one_that_is_exported_again_counts_in_the_metrics_once(self):
        receiver, session, daemon = self.exported_turns("one", "two", environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})
        rewrite(session.path, lambda content: content.replace(b"two", b"another one"))
        session.turn("three")
        self.assert_turns(receiver, {1: 1, 2: 2, 3: 1}, copies=2)
        sent = len(receiver.received("/v1/metrics"))
        wait_for(lambda: len(receiver.received("/v1/metrics")) > sent + 1, "metrics of these spans")
        points = [point for resource in receiver.received("/v1/metrics")[-1]["resourceMetrics"] for scope in resource["scopeMetrics"]
                  for each in scope["metrics"] if each["name"] == "earshot.turn.duration" for point in each["histogram"]["dataPoints"]]
        self.assertEqual([int(point["count"]) for point in points], [3])

    def test_a_rewritten_transcript_is_exported_anew(self):
        receiver = self.receiver()
        session = Session(self.root)
        daemon = self.exporting(receiver)
        session.turn("one")
        self.assert_exported(receiver, expected_spans(daemon.replay(self.root)))
        before = {span.id for span in receiver.spans()}
        with open(session.path, "w"):
            pass
        session.parent = None
        session.turn("two")
        wait_for(lambda: any(span.id not in before and span.identity()[0] == "turn" for span in receiver.spans()), "the new turn")
