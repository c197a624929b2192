"""Files that are truncated, rewritten, renamed, deleted, unreadable or absent: once with inotify only and once with the sweep only."""
import ctypes
import json
import os
import shutil
import struct
import sys
import unittest

from support.harness import DaemonCase
from support.transcripts import Registry, Session, append


class Files:
    """The tests. The subclasses select how the daemon watches."""

    watch = ()

    def begin(self):
        self.daemon = self.start("--watch", self.watch, "--sweep", "1s")
        self.client = self.daemon.subscriber()

    def written(self):
        """(a session whose first turn was delivered, its stream)"""
        session = Session(self.root)
        session.turn("first")
        self.client.wait_frame(type="turn.finished", session=session.session)
        return session, f"claude/-home-ada-api/{session.session}"

    def events_since(self, stream, frame):
        """The texts of the stream's events after a frame."""
        at = self.client.frames.index(frame)
        return [text for f, text in zip(self.client.frames[at:], self.client.raw[at:]) if f.get("stream") == stream and "cursor" in f]

    def history_after_reset(self, session, stream):
        reset = self.client.wait_frame(type="reset", stream=stream)
        expected = self.daemon.replay(session.path)[stream]
        self.client.wait(lambda: len(self.events_since(stream, reset)) >= len(expected), "the new history")
        self.assert_same_events(expected, self.events_since(stream, reset), "after the reset")
        self.assertEqual(len(self.client.all(type="reset")), 1)

    def test_a_truncated_and_rewritten_file_is_reset_and_sent_again(self):
        self.begin()
        session, stream = self.written()
        os.truncate(session.path, 0)
        session.parent = None
        session.turn("second life")
        self.history_after_reset(session, stream)

    def test_a_file_rewritten_with_its_first_line_kept_is_reset(self):
        self.begin()
        session, stream = self.written()
        with open(session.path, "rb") as file:
            first = file.readline()
        other = Session(os.path.join(self.home, "elsewhere"), session=session.session)
        for n in range(5):
            other.turn(f"another past {n}")
        with open(other.path, "rb") as file:
            rest = file.read()
        with open(session.path, "wb") as file:
            file.write(first + rest)
        self.history_after_reset(session, stream)

    def test_another_file_renamed_over_it_is_reset(self):
        self.begin()
        session, stream = self.written()
        other = Session(os.path.join(self.home, "elsewhere"), session=session.session)
        other.turn("a replacement")
        os.rename(other.path, session.path)
        self.history_after_reset(session, stream)

    def test_the_same_content_renamed_over_it_is_no_event(self):
        self.begin()
        session, stream = self.written()
        copy = session.path + ".copy"
        shutil.copy(session.path, copy)
        os.rename(copy, session.path)
        session.turn("second")
        self.assert_delivered(self.daemon, self.client, session.path)
        self.assertEqual(self.client.all(type="reset"), [])
        self.assertEqual(self.client.all(type="stream.removed"), [])

    def test_a_transcript_that_another_session_takes_over_is_removed_and_a_new_stream(self):
        self.begin()
        session, stream = self.written()
        renamed = os.path.join(session.folder, "11111111-2222-4333-8444-555555555555.jsonl")
        os.rename(session.path, renamed)
        self.client.wait_frame(type="stream.removed", stream=stream)
        append(renamed, json.dumps(session.record("user", {"role": "user", "content": "under a new name"})).encode() + b"\n")
        self.client.wait_frame(type="turn.started", prompt="under a new name")
        other = "claude/-home-ada-api/11111111-2222-4333-8444-555555555555"
        events, expected = self.client.event_texts()[other], self.daemon.replay(renamed)[other]
        self.assert_same_events(expected[len(expected) - len(events):], events, other)

    def test_a_deleted_transcript_is_removed(self):
        self.begin()
        session, stream = self.written()
        os.unlink(session.path)
        self.client.wait_frame(type="stream.removed", stream=stream)

    def test_a_deleted_session_with_an_unseen_turn_is_not_sent_again(self):
        self.begin()
        session, stream = self.written()
        session.turn("finished while nobody looks")
        self.client.wait_frame(type="session", session=session.session, unseen=True)
        os.unlink(session.path)
        removed = self.client.wait_frame(type="stream.removed", stream=stream)
        self.written()  # what the removal causes was sent before it
        after = self.client.frames[self.client.frames.index(removed):]
        self.assertEqual([f for f in after if f.get("session") == session.session and f["type"] == "session"], [])

    def test_a_deleted_project_is_removed(self):
        self.begin()
        (_, first), (_, second) = self.written(), self.written()
        shutil.rmtree(os.path.join(self.root, "projects"))
        self.client.wait_frame(type="stream.removed", stream=first)
        self.client.wait_frame(type="stream.removed", stream=second)
        again = Session(self.root)
        again.turn("back again")
        self.assert_delivered(self.daemon, self.client, again.path)

    def test_touching_and_chmod_are_no_events(self):
        self.begin()
        session, stream = self.written()
        os.utime(session.path)
        os.chmod(session.path, 0o640)
        session.turn("second")
        self.assert_delivered(self.daemon, self.client, session.path)
        self.assertEqual(self.client.all(type="reset"), [])

    def test_an_absent_root_is_picked_up_when_it_appears(self):
        absent = os.path.join(self.home, "later", "claude2")
        daemon = self.start("--watch", self.watch, roots=[self.root, absent])
        daemon.wait_log("claude2")
        client = daemon.subscriber()
        session = Session(absent)
        session.turn("here at last")
        self.assert_delivered(daemon, client, session.path)

    def test_files_that_are_not_transcripts_are_ignored(self):
        self.begin()
        session, _ = self.written()
        for name in ("history.jsonl", "agent-aprompt_suggestion-1.jsonl", "agent-acompact-1.jsonl", "notes.txt",
                     f"{session.session}/subagents/workflows/run/journal.jsonl"):
            append(os.path.join(session.folder, name), json.dumps(session.record("user", {"role": "user", "content": name})).encode() + b"\n")
        target = os.path.join(self.home, "secret.jsonl")
        append(target, json.dumps(session.record("user", {"role": "user", "content": "through a link"})).encode() + b"\n")
        os.symlink(target, os.path.join(session.folder, "link.jsonl"))
        os.mkfifo(os.path.join(session.folder, "pipe.jsonl"))
        session.turn("second")
        self.assert_delivered(self.daemon, self.client, session.path)
        self.assertEqual({f["stream"] for f in self.client.frames if "cursor" in f}, {f"claude/-home-ada-api/{session.session}"})

    def test_names_that_are_not_utf8_work(self):
        self.begin()
        session, _ = self.written()
        path = os.fsencode(session.folder) + b"/odd\xff:%.jsonl"
        shutil.copy(os.fsencode(session.path), path)
        self.client.wait(lambda: self.client.all(stream="claude/-home-ada-api/odd%FF%3A%25", type="turn.finished"), "the odd stream")


class FilesByInotify(Files, DaemonCase):
    watch = "inotify"


class FilesBySweep(Files, DaemonCase):
    watch = "sweep"


class Permissions(DaemonCase):
    def test_an_unreadable_directory_and_file_are_reported_and_the_rest_works(self):
        open_session, closed, sealed = (Session(self.root, cwd=f"/home/ada/{name}") for name in ("open", "closed", "sealed"))
        for session in (open_session, closed, sealed):
            session.turn("before")
        os.chmod(closed.folder, 0o000)
        os.chmod(sealed.path, 0o000)
        daemon = self.start(**self.unprivileged())
        daemon.wait_log("-home-ada-closed")
        client = daemon.subscriber()
        open_session.prompt("still delivered")
        client.wait_frame(type="turn.started", prompt="still delivered")
        os.chmod(closed.folder, 0o700)
        os.chmod(sealed.path, 0o600)
        closed.prompt("readable again")
        sealed.prompt("readable too")
        client.wait_frame(type="turn.started", prompt="readable again")
        client.wait_frame(type="turn.started", prompt="readable too")


class Opens:
    """The names that are opened in some directories, from inotify."""

    def __init__(self, *directories):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for directory in directories:
            if libc.inotify_add_watch(self.fd, os.fsencode(directory), 0x20) < 0:  # IN_OPEN
                raise OSError(ctypes.get_errno(), directory)

    def names(self):
        found = set()
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            while data:
                size = struct.unpack_from("iIII", data)[3]
                found.add(os.fsdecode(data[16 : 16 + size].rstrip(b"\0")))
                data = data[16 + size :]

    def close(self):
        os.close(self.fd)


@unittest.skipUnless(sys.platform == "linux", "opens are observed with inotify")
class Secrets(DaemonCase):
    def test_key_files_are_never_opened(self):
        folders = [os.path.join(self.root, name) for name in ("sessions", "projects/-home-ada-api", "todos", "tasks/one")]
        for folder in folders:
            os.makedirs(folder)
        seen = Opens(*folders)
        self.addCleanup(seen.close)

        def write_keys(name):
            for folder in folders:
                fd = os.open(os.path.join(folder, "before"), os.O_CREAT | os.O_WRONLY)
                os.write(fd, b"secret")
                os.close(fd)
                os.rename(os.path.join(folder, "before"), os.path.join(folder, name))  # so that only other processes open that name

        write_keys("1234.key")
        daemon = self.start()
        client = daemon.subscriber()
        write_keys("99.key")
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.turn("hello")
        self.assert_delivered(daemon, client, session.path)
        client.wait(lambda: any(f.get("state") == "working" for f in client.frames), "the registry's status")
        opened = seen.names()
        self.assertIn(f"{session.session}.jsonl", opened)  # opens are observed
        self.assertEqual([name for name in opened if name.endswith(".key")], [])

    def test_nothing_is_written_below_a_root(self):
        session = Session(self.root)
        session.turn("hello")
        before = self.listing()
        daemon = self.start()
        client = daemon.subscriber(all=True)
        client.wait_frame(type="ready")
        daemon.stop()
        self.assertEqual(self.listing(), before)

    def listing(self):
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in [folder, *(os.path.join(folder, n) for n in names)]:
                info = os.stat(name)
                found[name] = (info.st_size, info.st_mtime_ns, info.st_mode)
        return found
