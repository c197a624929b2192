"""Faults 110 to 115: what Codex, Copilot CLI and Pi do to their own transcripts."""
import json
import os
import unittest

from fault_case import held_events
from mutation_case import MutationCase, contents
from support.harness import earshot, indexing_deadline_s, wait_for
from support.programs import SESSIONS, CodexEventsSession, CodexSession, CopilotSession, OldPiSession
from support.transcripts import append, compress, unpack


class ProgramFaults(MutationCase):
    def setUp(self):
        super().setUp()
        self.roots = {program: os.path.join(self.home, "roots", program) for program in SESSIONS}
        for path in self.roots.values():
            os.makedirs(path)

    def begin(self, *args):
        super().begin(*args, roots=[f"{program}:{program}={path}" for program, path in self.roots.items()])

    def stream_of(self, session):
        return session.stream()

    def new(self, kind, *prompts, **more):
        """A session with these turns, all delivered."""
        session = kind(self.roots[kind.program], **more)
        for prompt in prompts:
            session.turn(prompt)
        self.sessions.append(session)
        self.settle()
        return session

    def cursor(self, session):
        """stream:cursor of the last event that the client holds."""
        last = json.loads(held_events(self.client)[session.stream()][-1])
        return f"{session.stream()}:{last['cursor']}"

    def resume(self, cursor):
        """A client that resumes from there and is live."""
        client = self.daemon.client()
        client.subscribe(id="resumed", after=[cursor])
        client.wait_frame(type="bookmark", id="resumed", complete=True)
        return client

    def restart(self, *args):
        """Another daemon with the same state, and a client that starts with its snapshot."""
        self.daemon.stop()
        sessions = self.sessions
        self.begin(*args)
        self.sessions = sessions

    def prompts(self, client, session):
        return [json.loads(text).get("prompt") for text in held_events(client).get(session.stream(), []) if json.loads(text)["type"] == "turn.started"]

    def assert_resumed(self, client, session, known):
        """Asserts that a client that resumed after this many events has all later ones, and no reset."""
        expected = self.daemon.replay(session.path)[session.stream()][known:]
        try:
            client.wait(lambda: held_events(client).get(session.stream(), []) == expected, f"{len(expected)} events of {session.stream()}")
        finally:
            self.assert_same_events(expected, held_events(client).get(session.stream(), []), session.stream())
        self.assertEqual(client.all(type="reset"), [])

    def assert_reset(self, client, session, reason="rewritten"):
        """Asserts that a client that resumed was reset first, and holds nothing of the old history: only events of the file as it is now."""
        reset = client.find(type="reset", stream=session.stream())
        self.assertEqual((reset and reset["reason"], reset and reset["id"]), (reason, "resumed"), client.raw[-5:])
        now_there = self.daemon.replay(session.path)[session.stream()]
        client.wait(lambda: held_events(client).get(session.stream(), now_there)[-1] == now_there[-1], "the last event")
        held = held_events(client).get(session.stream(), [])
        self.assert_same_events(now_there[len(now_there) - len(held) :], held, session.stream())
        before = [frame for frame in client.frames[: client.frames.index(reset)] if "cursor" in frame and frame.get("stream") == session.stream()]
        self.assertEqual(before, [])

    # --- Codex

    def test_201_a_fork_that_copies_its_parent_s_history_emits_only_its_own_events(self):
        self.begin()
        parent = CodexEventsSession(self.roots["codex"])
        parent.started_ago_s = 100
        parent.turn("one")
        parent.turn("two")
        self.sessions.append(parent)
        self.settle()
        known = len(held_events(self.client)[parent.stream()])
        fork = parent.fork()
        fork.turn("three")
        self.sessions.append(fork)
        self.settle()
        self.assertEqual((self.prompts(self.client, parent), self.prompts(self.client, fork)), (["one", "two"], ["three"]))
        self.assertEqual(self.client.find(type="session.started", stream=fork.stream())["continues"], parent.session)
        cursors, known = [self.cursor(parent), self.cursor(fork)], [known, len(held_events(self.client)[fork.stream()])]
        parent.turn("four")
        fork.turn("five")
        self.settle()
        for is_restarted in (False, True):
            if is_restarted:
                self.restart()
            for session, cursor, count, prompt in zip((parent, fork), cursors, known, ("four", "five")):
                client = self.resume(cursor)
                self.assert_resumed(client, session, count)
                self.assertEqual(self.prompts(client, session), [prompt])
        calls = [frame["call"] for frame in self.client.all(type="tool.invoked")]
        self.assertEqual(len(calls), len(set(calls)))

    def test_201_a_fork_that_is_written_in_pieces_emits_only_its_own_events(self):
        self.begin()
        parent = CodexEventsSession(self.roots["codex"])
        parent.started_ago_s = 100
        parent.turn("one")
        self.sessions.append(parent)
        self.settle()
        whole = parent.fork()
        data = contents(whole.path)
        os.unlink(whole.path)
        step = len(data) // 40
        for at in range(0, len(data), step):
            append(whole.path, data[at : at + step])
            self.metrics.wait_bytes(self.known_bytes([parent.path]) + min(at + step, len(data)))
        self.assertEqual(self.client.all(stream=whole.stream(), type="turn.started"), [])
        whole.turn("two")
        self.sessions.append(whole)
        self.settle()
        self.assertEqual(self.prompts(self.client, whole), ["two"])

    def known_bytes(self, paths):
        return sum(os.path.getsize(path) for path in paths)

    def test_201_a_subagent_that_inherits_its_parent_s_history_emits_only_its_own_events(self):
        self.begin()
        parent = self.new(CodexSession, "one")
        parent.prompt("let one look")
        call, agent = parent.spawn()
        agent.is_begun = True
        agent.append(agent.meta(), *parent.copied())
        agent.append(agent.event("thread_settings_applied", thread_id=agent.thread, thread_settings={}))
        agent.turn("look")
        parent.spawn_finished(agent)
        parent.reply()
        self.sessions.append(agent)
        self.settle()
        self.assertEqual((self.prompts(self.client, parent), self.prompts(self.client, agent)), (["one", "let one look"], ["look"]))
        self.assertEqual({frame["session"] for frame in self.client.all(stream=agent.stream()) if "cursor" in frame}, {parent.session})
        cursor, known = self.cursor(agent), len(held_events(self.client)[agent.stream()])
        agent.turn("look again")
        self.settle()
        self.restart()
        self.assert_resumed(self.resume(cursor), agent, known)

    def migrate(self, session):
        """As `codex migrate-rollouts --apply`: a rewritten copy is renamed over the rollout."""
        copy = os.path.join(self.home, "migrated")
        migrated = session.migrated(copy)
        os.rename(copy, session.path)
        migrated.path = session.path
        self.sessions[self.sessions.index(session)] = migrated
        return migrated

    def test_202_a_migrated_rollout_is_reset(self):
        self.begin()
        session = self.new(CodexEventsSession, "first", "second")
        cursor, inode = self.cursor(session), os.stat(session.path).st_ino
        migrated = self.migrate(session)
        self.client.wait(lambda: self.resets(session), "the reset")
        self.settle()
        self.assertEqual(self.resets(session), ["replaced"])  # another file
        self.assertNotEqual(os.stat(session.path).st_ino, inode)
        self.assertEqual(json.loads(held_events(self.client)[session.stream()][0])["dialect"], "codex-paginated")
        client = self.resume(cursor)
        self.assert_reset(client, migrated)
        migrated.turn("third")
        self.settle()
        client.wait_frame(type="turn.finished", turn=3)
        self.assert_reset(client, migrated)
        self.assert_continues(migrated, resets=1)

    def test_202_a_rollout_that_is_migrated_while_the_daemon_is_down_is_reset_on_resume(self):
        self.begin()
        session = self.new(CodexEventsSession, "first", "second")
        cursor = self.cursor(session)
        self.daemon.stop()
        migrated = self.migrate(session)
        self.begin()
        client = self.resume(cursor)
        self.assert_reset(client, migrated)
        migrated.turn("third")
        client.wait_frame(type="turn.finished", turn=3)
        self.assert_reset(client, migrated)

    def test_203_an_archived_rollout_goes_on_in_the_archive(self):
        self.begin()
        session = self.new(CodexSession, "first", "second")
        cursor, path, stream, inode = self.cursor(session), session.path, session.stream(), os.stat(session.path).st_ino
        session.archive()
        archived = session.stream()
        self.client.wait_frame(type="stream.renamed", session=session.session, to=archived, **{"from": stream})
        self.assertEqual(archived, f"codex/{os.path.basename(path).removesuffix('.jsonl')}")
        self.assertEqual(list(self.daemon.replay(session.path)), [archived])
        frame = self.client.wait(lambda: self.session_frame(session), "the session")
        self.client.wait(lambda: self.shown_streams(session) == [archived], "the archived stream")
        self.assertEqual(frame["program"], "codex")
        client = self.resume(cursor)
        client.wait_frame(type="stream.renamed", to=archived, **{"from": stream})
        self.assertEqual([frame for frame in client.frames if "cursor" in frame or frame["type"] == "reset"], [])
        session.unarchive(path)
        self.assertEqual(os.stat(path).st_ino, inode)
        self.client.wait_frame(type="stream.renamed", to=stream, **{"from": archived})
        self.client.wait(lambda: self.shown_streams(session) == [stream], "the first name again")
        again = self.resume(cursor)  # the bytes are those that the cursor proves
        session.turn("third")
        again.wait_frame(type="turn.finished", turn=3)
        self.assertEqual(self.prompts(again, session), ["third"])
        self.assertEqual(again.all(type="reset"), [])
        self.client.wait_frame(type="turn.finished", turn=3)
        self.assertEqual(self.prompts(self.client, session), ["first", "second", "third"])
        self.assertEqual(self.client.all(type="stream.removed"), [])
        self.assertEqual(self.metrics.troubles(), {})

    def session_frame(self, session):
        """What a new client receives; None: the session is not known."""
        client = self.daemon.client()
        frame = next((frame for frame in client.subscribe(all=True) if frame["session"] == session.session), None)
        client.close()  # polls that keep theirs would reach the limit of connections
        return frame

    def shown_streams(self, session):
        frame = self.session_frame(session)
        return [each.rpartition(":")[0] for each in frame["cursors"]] if frame else []

    def test_204_a_rollout_that_a_newer_program_continues_is_not_reset(self):
        self.begin()
        session = self.new(CodexEventsSession, "first")
        cursor, known = self.cursor(session), len(held_events(self.client)[session.stream()])
        session.version = "0.150.0"
        session.append(session.meta())  # another first line of the same thread
        session.turn("second")
        session.append(session.record("world_state", full=True, state={}))
        paginated = CodexSession(session.root, thread=session.thread)  # no version does this; what is known is read all the same
        paginated.path, paginated.is_begun = session.path, True
        paginated.turn("third")
        self.settle()
        self.assertEqual(self.prompts(self.client, session), ["first", "second", "third"])
        self.assertEqual([frame["version"] for frame in self.client.all(type="session.updated") if "version" in frame], ["0.150.0"])
        self.assertEqual(len(self.client.all(type="session.started")), 1)
        self.assertEqual(len(self.client.all(type="tool.finished")), 3)
        self.assert_resumed(self.resume(cursor), session, known)
        self.restart()
        self.assert_resumed(self.resume(cursor), session, known)

    # --- Pi

    def upgrade(self, session):
        """As Pi does when it loads a file of format 1: truncates and writes it. It looks like growth by 82 bytes."""
        before, inode, data = os.path.getsize(session.path), os.stat(session.path).st_ino, session.upgraded()
        with open(session.path, "wb") as file:
            file.write(data)
        self.assertEqual((os.path.getsize(session.path) - before, os.stat(session.path).st_ino), (82, inode))

    def old_session(self):
        """A session of format 1 with one turn, all delivered."""
        session = OldPiSession(self.roots["pi"])
        session.prompt("say old")
        session.reply("old")
        self.sessions.append(session)
        self.settle()
        return session

    def test_205_a_file_that_pi_rewrites_in_place_in_a_newer_format_is_reset(self):
        self.assert_upgrade_is_noticed("both")

    def test_205_a_rewrite_that_looks_like_growth_is_noticed_by_inotify_alone(self):
        self.assert_upgrade_is_noticed("inotify")

    def test_205_a_rewrite_that_looks_like_growth_is_noticed_by_the_sweep_alone(self):
        self.assert_upgrade_is_noticed("sweep")

    def assert_upgrade_is_noticed(self, watch):
        self.begin("--watch", watch, "--sweep", "1s")
        session = self.old_session()
        cursor = self.cursor(session)
        old = held_events(self.client)[session.stream()]
        with self.stopped():  # it sees only that the file is longer
            self.upgrade(session)
        self.client.wait(lambda: self.resets(session), "the reset")
        self.settle()
        self.assertEqual(self.resets(session), ["rewritten"])
        new = held_events(self.client)[session.stream()]
        self.assertEqual([json.loads(text)["type"] for text in new], [json.loads(text)["type"] for text in old])
        self.assertNotIn(json.loads(old[-1])["cursor"], [json.loads(text)["cursor"] for text in new])
        client = self.resume(cursor)
        self.assert_reset(client, session)
        session.continued().turn("say new")
        self.settle()
        client.wait_frame(type="turn.finished", turn=2)
        self.assert_reset(client, session)
        self.assertEqual(self.prompts(self.client, session), ["say old", "say new"])
        self.assertEqual(self.metrics.troubles(), {})

    def test_205_rewritten_and_continued_between_two_checks_is_reset(self):
        self.begin()
        session = self.old_session()
        cursor = self.cursor(session)
        with self.stopped():
            self.upgrade(session)
            session.continued().turn("say new")
        self.client.wait(lambda: self.resets(session), "the reset")
        self.settle()
        self.assertEqual(self.resets(session), ["rewritten"])
        self.assertEqual(self.prompts(self.client, session), ["say old", "say new"])
        self.assert_reset(self.resume(cursor), session)

    def test_205_rewritten_while_the_daemon_is_down_is_reset_on_resume(self):
        self.begin()
        session = self.old_session()
        cursor = self.cursor(session)
        self.daemon.stop()
        self.upgrade(session)
        self.begin()
        client = self.resume(cursor)
        self.assert_reset(client, session)
        session.continued().turn("say new")
        client.wait_frame(type="turn.finished", turn=2)
        self.assert_reset(client, session)

    # --- Copilot CLI

    def test_206_a_session_that_was_copied_after_itself_emits_each_event_once(self):
        self.begin()
        session = self.new(CopilotSession, "first", "second")
        cursor, known = self.cursor(session), len(held_events(self.client)[session.stream()])
        once, before = self.cursor(session), contents(session.path)
        half = self.daemon.replay(session.path)[session.stream()][known // 2]
        append(session.path, before)
        session.turn("third")
        self.settle()
        self.assertEqual(self.prompts(self.client, session), ["first", "second", "third"])
        self.assertEqual(len(self.client.all(type="session.started")), 1)
        self.assertEqual(self.resets(session), [])
        middle = f"{session.stream()}:{json.loads(half)['cursor']}"
        for is_restarted in (False, True):
            if is_restarted:
                self.restart()
            self.assert_resumed(self.resume(cursor), session, known)
            self.assert_resumed(self.resume(middle), session, known // 2 + 1)
        self.assertEqual(once, cursor)

    def test_206_a_session_that_is_copied_into_another_s_file_changes_nothing_of_either(self):
        self.begin()
        session, other = self.new(CopilotSession, "first"), self.new(CopilotSession, "of the other")
        append(session.path, contents(other.path))
        session.turn("second")
        self.settle()
        self.assertEqual(self.prompts(self.client, session), ["first", "of the other", "second"])
        self.assertEqual({frame["session"] for frame in self.client.all(stream=session.stream()) if "cursor" in frame}, {session.session})
        self.assertEqual(self.prompts(self.client, other), ["of the other"])

    # 133: compressed rollouts

    def earshot(self, *args):
        return earshot(*args, "--state", self.state, home=self.home)

    def wait_indexed(self, word):
        wait_for(lambda: self.earshot("search", word, "--json").returncode == 0, f"{word} in the index", indexing_deadline_s)

    def tokens_used(self):
        result = earshot("usage", "--root", f"codex:{self.roots['codex']}", "--json", home=self.home)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)["total"]["total"]

    def compressed_session(self):
        session = self.new(CodexSession, "lighthouse", "second")
        used = {"input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 100}
        session.append(session.event("token_count", info={"total_token_usage": used, "last_token_usage": used, "model_context_window": 258400}))
        self.settle()
        self.wait_indexed("lighthouse")
        self.assertEqual(self.tokens_used(), 1100)
        return session

    def assert_is_history(self, session):
        """Numbers, the index and the session's text are those of the rollout, and nothing complains."""
        self.assertEqual(self.tokens_used(), 1100)
        self.wait_indexed("lighthouse")
        self.assertIn("second", self.earshot("show", session.session).stdout)
        self.assertEqual(self.client.all(type="stream.removed") + self.client.all(type="reset"), [])
        self.assertNotIn("cannot", self.earshot("doctor").stdout)

    def test_133_a_rollout_that_is_compressed_stays_and_goes_on_when_it_is_resumed(self):
        self.begin()
        session = self.compressed_session()
        compress(session.path)
        self.assert_is_history(session)
        unpack(session.path)
        session.turn("third")
        self.settle()
        self.assertEqual(self.prompts(self.client, session), ["lighthouse", "second", "third"])
        self.assert_is_history(session)

    def test_133_a_rollout_that_was_compressed_before_the_start_is_history(self):
        self.begin()
        session = self.compressed_session()
        known = len(held_events(self.client)[session.stream()])
        first = self.cursor(session)
        compress(session.path)
        self.restart()
        self.assert_is_history(session)
        resumed = self.resume(first)
        unpack(session.path)
        session.turn("third")
        self.assert_resumed(resumed, session, known)

    def test_133_a_client_receives_the_events_of_a_compressed_rollout(self):
        self.begin()
        session = self.compressed_session()
        expected = held_events(self.client)[session.stream()]
        compress(session.path)
        self.restart()
        client = self.daemon.client()
        client.subscribe(id="all", after=[session.stream() + ":"])
        client.wait_frame(type="bookmark", id="all", complete=True)
        self.assertEqual(held_events(client)[session.stream()], expected)

    def test_133_a_compressed_rollout_that_is_damaged_is_reported(self):
        self.begin()
        session = self.compressed_session()
        compress(session.path)
        self.daemon.stop()
        with open(session.path + ".zst", "r+b") as file:
            file.write(b"no frame")
        self.begin()
        wait_for(lambda: "damaged" in self.earshot("status").stdout, "the report of `earshot status`")
        self.assertIn("1 compressed transcript below", self.earshot("doctor").stdout)
        usage = earshot("usage", "--root", f"codex:{self.roots['codex']}", home=self.home)
        self.assertIn("the compressed file is damaged or incomplete", usage.stderr)


if __name__ == "__main__":
    unittest.main()
