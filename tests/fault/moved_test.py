"""Transcripts that their program moves: a worktree entered or left, a session archived."""
import json
import os
import unittest

from fault_case import FaultCase, held_events
from support.harness import wait_for
from support.team import SERVER, TeamCase
from support.transcripts import Session, append, compress, unpack


def moved_to(session, folder):
    """Moves its transcript to another directory of its root, as Claude Code does for a worktree."""
    path = os.path.join(os.path.dirname(session.folder), folder, os.path.basename(session.path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.rename(session.path, path)
    session.path = path
    return f"claude/{folder}/{session.session}"


class Moved(FaultCase):
    def setUp(self):
        super().setUp()
        self.follow()
        self.session = Session(self.root)
        self.session.turn("first")
        self.client.wait_frame(type="turn.finished", turn=1)
        [self.stream] = held_events(self.client)

    def settle(self):
        self.assert_settled(self.daemon, self.client, self.root)

    def resumed(self, place):
        client = self.daemon.client()
        client.subscribe(id="resumed", after=[place])
        client.wait_frame(type="bookmark", id="resumed", complete=True)
        return client

    def place(self):
        return f"{self.stream}:{json.loads(held_events(self.client)[self.stream][-1])['cursor']}"

    def assert_goes_on(self, client, stream):
        """The client was told the new name of self.stream, received the events of the second turn under it, and no others."""
        client.wait_frame(type="stream.renamed", session=self.session.session, to=stream, **{"from": self.stream})
        client.wait_frame(type="turn.finished", stream=stream, turn=2)
        events = [frame for frame in client.frames if "cursor" in frame]
        self.assertEqual({(frame["stream"], frame["turn"]) for frame in events if frame["type"].startswith("turn.")}, {(stream, 2)})
        self.assertEqual([frame for frame in client.frames if frame["type"] in ("reset", "stream.removed")], [])

    def test_125_a_moved_transcript_goes_on_under_its_new_name(self):
        first = self.place()
        stream = moved_to(self.session, "-home-ada-tree")
        self.session.turn("second")
        self.client.wait_frame(type="stream.renamed", session=self.session.session, to=stream, **{"from": self.stream})
        self.settle()
        self.assertEqual([frame["prompt"] for frame in self.client.all(type="turn.started")], ["first", "second"])
        self.assertEqual(self.client.all(type="stream.removed") + self.client.all(type="reset"), [])
        self.assert_goes_on(self.resumed(first), stream)
        back = moved_to(self.session, os.path.basename(self.session.folder))
        self.assertEqual(back, self.stream)
        self.client.wait_frame(type="stream.renamed", to=back, **{"from": stream})
        self.session.turn("third")
        self.settle()
        self.assertEqual([frame["prompt"] for frame in self.client.all(type="turn.started")], ["first", "second", "third"])

    def test_125_one_that_is_moved_while_the_daemon_is_stopped_goes_on_for_a_client_that_resumes(self):
        first = self.place()
        self.daemon.stop()
        stream = moved_to(self.session, "-home-ada-tree")
        self.session.turn("second")
        self.follow()
        self.assert_goes_on(self.resumed(first), stream)

    def test_125_what_a_fork_repeats_is_not_sent_again(self):
        """As Claude Code forks: first records that name the session, then all that is repeated in one append."""
        self.session.turn("second")
        self.client.wait_frame(type="turn.finished", turn=2)
        fork = Session(self.root)
        append(fork.path, json.dumps({"type": "mode", "mode": "normal", "sessionId": fork.session}).encode() + b"\n")
        with open(self.session.path, "rb") as file:
            append(fork.path, file.read().replace(self.session.session.encode(), fork.session.encode()))
        added = self.client.wait_frame(type="session", session=fork.session)
        self.assertEqual(added["usage"]["output"], 0)  # what it repeats counts for the other session
        fork.turn("third")
        self.client.wait_frame(type="turn.finished", session=fork.session, turn=3)
        events = [frame for frame in self.client.frames if "cursor" in frame and fork.session in frame["stream"]]
        self.assertEqual([frame["prompt"] for frame in events if frame["type"] == "turn.started"], ["third"])
        self.assertEqual({frame["turn"] for frame in events}, {3})
        self.assertEqual(self.client.all(type="reset"), [])

    def test_125_one_that_is_copied_and_removed_goes_on(self):
        folder = os.path.join(os.path.dirname(self.session.folder), "-home-ada-tree")
        os.makedirs(folder)
        with open(self.session.path, "rb") as file:
            text = file.read()
        os.unlink(self.session.path)
        self.session.path = os.path.join(folder, os.path.basename(self.session.path))
        with open(self.session.path, "wb") as file:
            file.write(text)
        self.session.turn("second")
        self.client.wait_frame(type="stream.renamed", **{"from": self.stream})
        self.settle()
        self.assertEqual([frame["prompt"] for frame in self.client.all(type="turn.started")], ["first", "second"])
        self.assertEqual(self.client.all(type="stream.removed") + self.client.all(type="reset"), [])


@unittest.skipUnless(SERVER, "nats-server is not installed")
class Team(TeamCase):
    def begin(self, *prompts):
        self.broker_, self.hub_, self.ada = self.one_host()
        self.session_ = self.published_session(self.hub_, self.ada, *prompts)
        self.client = self.hub_.client()
        self.client.subscribe(id="all", new_streams="beginning")
        self.client.wait_frame(type="turn.finished", turn=len(prompts))
        [self.stream] = {frame["stream"] for frame in self.client.all(type="turn.finished")}

    def assert_goes_on(self, *prompts):
        """The client is told the new name and receives each turn once, also a new one, and what the hub stores is that."""
        renamed = self.client.wait_frame(type="stream.renamed", **{"from": self.stream})
        self.assertIn("-home-ada-tree", renamed["to"])
        self.session_.turn("last")
        prompts += ("last",)
        self.client.wait_frame(type="turn.finished", stream=renamed["to"], turn=len(prompts))
        self.assertEqual([frame["prompt"] for frame in self.client.all(type="turn.started")], list(prompts))
        self.assertEqual(self.client.all(type="stream.removed") + self.client.all(type="reset"), [])
        self.hub_.stop()
        hub = self.hub(self.broker_)
        late = wait_for(lambda: self.prompts_of(hub, renamed["to"]), "the stored events")
        self.assertEqual(late, list(prompts))

    def test_125_a_hub_stores_and_serves_it_under_its_new_name(self):
        self.begin("first", "second")
        for n in range(20):  # some of it waits for the broker while it is moved
            self.session_.turn(f"more {n}")
        moved_to(self.session_, "-home-ada-tree")
        self.assert_goes_on("first", "second", *(f"more {n}" for n in range(20)))

    def test_125_so_does_a_hub_if_it_was_moved_while_the_host_was_stopped(self):
        self.begin("first", "second")
        self.ada.stop()
        moved_to(self.session_, "-home-ada-tree")
        self.session_.turn("third")
        self.host("ada", self.broker_)
        self.assert_goes_on("first", "second", "third")

    def test_133_one_that_is_compressed_while_the_host_was_stopped_is_not_published_again(self):
        self.begin("first", "second")
        self.ada.stop()
        compress(self.session_.path)
        self.host("ada", self.broker_)
        unpack(self.session_.path)
        self.session_.turn("third")
        self.client.wait_frame(type="turn.finished", stream=self.stream, turn=3)
        self.assertEqual([frame["prompt"] for frame in self.client.all(type="turn.started")], ["first", "second", "third"])
        self.assertEqual(self.client.all(type="stream.removed") + self.client.all(type="reset"), [])

    def prompts_of(self, hub, stream):
        """Of the turns that a new client receives of this stream, and of no other one."""
        client = hub.client()
        client.subscribe(id="all", new_streams="beginning")
        client.wait_frame(type="bookmark", id="all", complete=True)
        turns = client.all(type="turn.started")
        self.assertLessEqual({frame["stream"] for frame in turns}, {stream})
        client.close()
        return [frame["prompt"] for frame in turns]


if __name__ == "__main__":
    unittest.main()
