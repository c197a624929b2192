"""Transcripts are rewritten while the daemon, the hub or the broker is down: afterwards the hub has each event of the files once."""
import glob
import json
import os
import shutil
import time
import unittest

from support.harness import wait_for
from support.programs import CodexSession
from support.transcripts import SessionWithSiblingAgents, append, rewrite
from support.team import TeamCase

LONG_AGO_S = 90 * 24 * 3600


class RewrittenTranscripts(TeamCase):
    def wait_published(self, daemon):
        """Waits until the broker has acknowledged everything the daemon had to publish."""
        wait_for(lambda: (team := self.health(daemon)["team"])["open"] and team["on_the_way"] == 0 and team["waiting_bytes"] == 0 and team, "everything to be published")

    def wiped_and_rewritten(self, change):
        broker, hub, ada = self.one_host()
        one = self.session(ada)
        for text in ("first", "second", "third"):
            one.turn(text)
        self.assert_hub_complete(hub)
        ada.stop()
        hub.stop()
        broker.wipe()
        rewrite(one.path, lambda text: change(text.splitlines(keepends=True)))
        hub = self.hub(broker)
        self.wait_team(hub, open=1)
        self.host("ada", broker)
        one.turn("after")
        self.assert_hub_serves(hub, self.assert_hub_complete(hub))

    def test_a_wiped_store_and_a_shorter_history(self):
        self.wiped_and_rewritten(lambda lines: b"".join(lines[:5]))

    def test_a_wiped_store_and_a_longer_history(self):
        self.wiped_and_rewritten(lambda lines: b"".join(lines[:5]) + lines[5].replace(b"second", b"x" * 40_000))

    def test_a_wiped_store_and_the_same_history_is_not_sent_to_clients_again(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "first", "second")
        client = hub.subscriber()
        broker.wipe()
        one.turn("third")
        client.wait_frame(type="turn.finished", turn=3)
        self.assert_hub_complete(hub)
        self.assertFalse(client.find(type="reset"))
        self.assertEqual(len(client.all(type="turn.finished")), 1)

    def test_a_cold_transcript_that_is_replaced_by_a_longer_one(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "first", "second")
        ada.stop()
        long_ago = time.time() - LONG_AGO_S
        os.utime(one.path, (long_ago, long_ago))
        ada = self.host("ada", broker)
        self.wait_published(ada)
        with open(one.path, "rb") as file:
            text = file.read()
        with open(one.path + ".tmp", "wb") as file:
            file.write(text.replace(b"first", b"another history") + b'{"type":"x"}\n' * 20)
        os.replace(one.path + ".tmp", one.path)
        one.turn("after")
        self.assert_hub_complete(hub)

    def test_a_cold_transcript_rewritten_at_the_same_length_while_the_daemon_is_down(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "first", "second")
        ada.stop()
        with open(one.path, "r+b") as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace(b"first", b"1stly"))
        later = time.time() + 3600
        os.utime(one.path, (later, later))  # much later than its last event
        ada = self.host("ada", broker, args=("--recent", "0s"))
        wait_for(lambda: "1stly" in str(self.hub_events(hub)), "the other history")
        self.assert_hub_complete(hub)

    def test_a_transcript_deleted_while_its_daemon_is_down(self):
        broker, hub, ada = self.one_host()
        one, other = self.published_pair(hub, ada)
        ada.stop()
        os.unlink(other.path)
        self.host("ada", broker)
        one.turn("continues")
        wait_for(lambda: len([k for k, v in self.hub_events(hub).items() if v]) == 1, "one stream at the hub")
        self.assert_hub_complete(hub)

    def test_a_missing_root_removes_nothing_from_the_hub(self):
        broker, hub, ada = self.one_host()
        one = self.session(ada)
        one.turn("stays")
        expected = self.assert_hub_complete(hub)
        ada.stop()
        os.rename(ada.root, ada.root + ".unmounted")
        again = self.host("ada", broker)
        self.wait_published(again)
        again.stop()
        self.assertEqual(set(self.hub_events(hub)), set(expected))
        shutil.rmtree(ada.root)
        os.rename(ada.root + ".unmounted", ada.root)
        self.host("ada", broker)
        one.turn("continues")
        self.assert_hub_complete(hub)

    def test_a_missing_root_of_another_program_removes_nothing_from_the_hub(self):
        broker = self.broker()
        hub = self.hub(broker)
        root = os.path.join(self.home, "ada", "codex")
        one = CodexSession(root)
        one.turn("stays")
        ada = self.host("ada", broker, args=("--root", f"codex:{root}"))
        self.wait_published(ada)
        stream = ("ada", one.stream("codex"))
        wait_for(lambda: self.hub_events(hub).get(stream), "the stream at the hub")
        ada.stop()
        os.rename(root, root + ".unmounted")
        again = self.host("ada", broker, args=("--root", f"codex:{root}"))
        self.wait_published(again)
        again.stop()
        self.assertTrue(self.hub_events(hub).get(stream))
        os.rename(root + ".unmounted", root)
        self.host("ada", broker, args=("--root", f"codex:{root}"))
        one.turn("continues")
        wait_for(lambda: "continues" in str(self.hub_events(hub)), "the next turn at the hub")
        prompts = [event["prompt"] for event in self.hub_events(hub)[stream] if event["type"] == "turn.started"]
        self.assertEqual(prompts, ["stays", "continues"])

    def test_an_archived_transcript_stays_at_the_hub_when_its_daemon_restarts(self):
        broker = self.broker()
        hub = self.hub(broker)
        codex = os.path.join(self.home, "ada", "codex")
        one, other = CodexSession(codex), CodexSession(codex)
        for session in (one, other):
            session.turn("stays")
        one.archive()  # its stream's name does not tell in which directory it is
        ada = self.host("ada", broker, args=("--root", f"codex:{codex}", "--recent", "1h"))
        expected = {("ada", session.stream("codex")) for session in (one, other)}
        wait_for(lambda: {key for key, events in self.hub_events(hub).items() if events} == expected, "both streams at the hub")
        self.wait_published(ada)
        ada.stop()
        os.utime(one.path, (1_600_000_000, 1_600_000_000))  # not among the streams that the daemon reads at start
        again = self.host("ada", broker, args=("--root", f"codex:{codex}", "--recent", "1h"))
        other.turn("continues")
        wait_for(lambda: "continues" in str(self.hub_events(hub)), "the next turn at the hub")
        self.wait_published(again)
        self.assertEqual({key for key, events in self.hub_events(hub).items() if events}, expected)

    def test_a_transcript_that_is_moved_away_and_back(self):
        broker, hub, ada = self.one_host()
        one = self.session(ada)
        one.turn("a")
        for _ in range(3):
            self.assert_hub_complete(hub)
            os.rename(one.path, one.path + ".away")
            wait_for(lambda: not any(self.hub_events(hub).values()), "the hub to remove it")
            os.rename(one.path + ".away", one.path)
        self.assert_hub_complete(hub)

    def test_a_subagent_whose_first_line_is_malformed_stays_one_stream(self):
        broker, hub, ada = self.one_host()
        one = SessionWithSiblingAgents(ada.root, "/home/ada/api")
        one.prompt("go")
        _, _, sub = one.agent()
        append(sub.path, b"this is not json\n")
        one.reply("published after the broken line")
        wait_for(lambda: "published after the broken line" in str(self.hub_events(hub)), "the event after the broken line")
        sub.prompt("sub")
        sub.reply("ok", stop_reason="end_turn")
        # Its first event is published before its session is known.
        wanted = {stream: [json.loads(line)["cursor"] for line in lines] for (_, stream), lines in self.published().items()}
        wait_for(lambda: {stream: [event["cursor"] for event in events] for (_, stream), events in self.hub_events(hub).items()} == wanted, "all events of both streams")

    def test_events_that_a_crash_cut_off_the_hub_s_file_are_fetched_again(self):
        broker, hub, ada = self.one_host()
        one = self.published_session(hub, ada, "a")
        hub.stop()  # every message is acknowledged
        [path] = glob.glob(os.path.join(hub.files, "*", "*.jsonl"))
        os.truncate(path, os.path.getsize(path) - 7)
        hub = self.hub(broker)
        one.turn("b")
        self.assert_hub_serves(hub, self.assert_hub_complete(hub))

    def test_two_hubs_with_one_consumer_name_do_not_split_the_events(self):
        broker = self.broker()
        one = self.hub(broker, name="one")
        self.wait_team(one, open=1)
        other = self.hub(broker, name="other")
        other.wait_log(r"another hub fetches as `hub`: give one of the two another name, with `durable`")
        ada = self.host("ada", broker)
        self.session(ada).turn("to the first one")
        self.assert_hub_complete(one)
        self.assertEqual(self.health(one)["team"]["opened"], 1)
        one.stop()
        self.wait_team(other, open=1)
        self.assert_hub_complete(other)

    def test_a_message_that_the_stream_refuses_does_not_stop_publishing(self):
        broker = self.broker()
        first = self.hub(broker, name="first")
        self.wait_team(first, open=1)
        first.stop()
        admin = self.nats_connection(broker)
        kept = admin.publish("$JS.API.STREAM.INFO.earshot", b"")["config"]
        self.assertNotIn("error", admin.publish("$JS.API.STREAM.UPDATE.earshot", {**kept, "max_msg_size": 3_000}))
        hub = self.hub(broker)
        ada = self.host("ada", broker)
        one = self.session(ada)
        one.turn("x" * 200_000)
        one.turn("after it")
        wanted = [json.loads(line)["cursor"] for line in sum(self.published().values(), []) if len(line) < 2_000]
        wait_for(lambda: [event["cursor"] for event in sum(self.hub_events(hub).values(), [])] == wanted, "all events except the one that is too long")
        ada.wait_log(r"exceeds the size limit of the stream; skipped")
        self.assertEqual(self.health(ada)["team"]["opened"], 1)


if __name__ == "__main__":
    unittest.main()
