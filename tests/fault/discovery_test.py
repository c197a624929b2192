"""Faults 44 to 60: files and directories that appear, disappear and move, and notifications that are lost, late or missing."""
import json
import os
import shutil
import signal
import sys
import time
import unittest

import pytest

import fault_case
from fault_case import held_events
from support.endpoints import EndpointCase, curl
from support.harness import build, earshot, timeout_factor, sanitized, wait_for
from system_limits import IN_Q_OVERFLOW, Notifications, descriptors, limited, preloaded
from support.programs import encoded_lines
from support.transcripts import Session, append, now

by_notification = ("--watch", "inotify")  # without the sweep


class DiscoveryCase(fault_case.FaultCase, EndpointCase):

    def begin(self, *args, **more):
        self.daemon = self.start(*args, **more)
        self.client = self.daemon.subscriber()
        return self.daemon

    def session(self, *parts, cwd="/home/ada/api"):
        """A session whose transcript is in this directory below projects/."""
        session = Session(self.root, cwd=cwd)
        session.folder = os.path.join(self.projects, *parts)
        session.path = os.path.join(session.folder, f"{session.session}.jsonl")
        return session

    @property
    def projects(self):
        return os.path.join(self.root, "projects")

    def settle(self):
        return self.assert_settled(self.daemon, self.client, self.root)

    def wait_removed(self, stream):
        return self.client.wait_frame(type="stream.removed", stream=stream)

    def metric(self, name):
        lines = curl(self.daemon, "/metrics", unix=True)[2].decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def assert_no_trouble(self):
        health = self.health(self.daemon)
        self.assertEqual((health["problems"], health["watch"]["problem"]), ([], ""))


class Links(DiscoveryCase):
    def tree(self, name):
        """A directory with a session, whose transcript's path is the same in each, and one of its own."""
        for path, session in (("-same", "00000000-0000-4000-8000-000000000126"), (f"-{name}", f"{name}-session")):
            each = Session(self.root)
            each.session, each.folder = session, os.path.join(self.home, name, "projects", path)
            each.path = os.path.join(each.folder, f"{session}.jsonl")
            each.prompt(f"of the {name}")
        return os.path.join(self.home, name)

    def point(self, link, target):
        os.symlink(target, f"{link}.new")
        os.replace(f"{link}.new", link)

    def check(self, link, *args):
        """`link`, on the way to the root, is pointed elsewhere and back."""
        first, second = self.tree("first"), self.tree("second")
        self.point(link, first)
        self.begin(*args)
        for tree, other in ((second, first), (first, second)):
            name, before = os.path.basename(tree), os.path.basename(other)
            seen = len(self.client.all(type="turn.started", prompt=f"of the {name}"))
            removed = len(self.client.all(type="stream.removed"))
            self.point(link, tree)
            self.client.wait(lambda: self.client.all(type="stream.removed")[removed:], f"the end of what is in the {before}")
            self.client.wait(lambda: len(self.client.all(type="turn.started", prompt=f"of the {name}")) == seen + 2, f"the prompts of the {name}")
            append(os.path.join(tree, "projects", f"-{name}", f"{name}-session.jsonl"), encoded_lines([
                {"type": "user", "uuid": f"{name}-again", "sessionId": f"{name}-session", "timestamp": now(),
                 "message": {"role": "user", "content": f"again in the {name}"}}]))
            self.client.wait_frame(type="turn.started", prompt=f"again in the {name}")
        self.assert_no_trouble()

    def test_126_a_root_that_is_a_link_is_followed_elsewhere(self):
        os.rmdir(self.root)
        self.check(self.root, *by_notification)

    def test_126_a_link_that_a_root_leads_to_is_followed_elsewhere(self):
        os.rmdir(self.root)
        os.mkdir(os.path.join(self.home, "far"))
        link = os.path.join(self.home, "far", "link")
        os.symlink(link, self.root)
        self.check(link)


class Directories(DiscoveryCase):
    def test_44_a_file_in_directories_made_at_once_is_found(self):
        self.begin(*by_notification)
        for n in range(1000 // timeout_factor()):
            self.session(f"p{n}", "q", "r").prompt(f"prompt {n}")
        self.assertEqual(len(self.settle()), 1000 // timeout_factor())
        self.assertEqual(self.client.all(type="reset"), [])

    def test_45_a_renamed_directory_s_streams_go_on_under_their_new_names(self):
        self.begin(*by_notification)
        session = self.session("before")
        session.turn("first")
        old, new = (f"claude/{name}/{session.session}" for name in ("before", "after"))
        self.client.wait_frame(type="turn.finished", stream=old)
        with open(session.path, "ab", buffering=0) as writer:  # keeps writing after its directory was renamed
            os.rename(session.folder, os.path.join(self.projects, "after"))
            session.path = os.path.join(self.projects, "after", f"{session.session}.jsonl")
            for n in range(20):
                record = session.record("user", {"role": "user", "content": f"while it moves {n}"})
                writer.write(json.dumps(record).encode() + b"\n")
        self.client.wait_frame(type="stream.renamed", to=new, **{"from": old})
        self.settle()
        self.assertEqual(self.client.all(type="stream.removed"), [])
        streams = [f.get("stream", f.get("to")) for f in self.client.frames if "cursor" in f or f["type"] == "stream.renamed"]
        last_old = max(n for n, stream in enumerate(streams) if stream == old)
        self.assertNotIn(new, streams[:last_old])
        session.prompt("after the rename")
        self.settle()

    def test_46_a_directory_moved_out_of_the_tree_is_no_longer_followed(self):
        self.begin()
        session, stays = self.session("moved"), self.session("stays")
        for each in (session, stays):
            each.turn("first")
        self.settle()
        watches = self.health(self.daemon)["watch"]["inotify_watches"]
        outside = os.path.join(self.home, "outside")
        os.rename(session.folder, outside)
        self.wait_removed(f"claude/moved/{session.session}")
        self.assertEqual(self.health(self.daemon)["watch"]["inotify_watches"], watches - 1)
        session.path = os.path.join(outside, f"{session.session}.jsonl")
        looks = self.metric("earshot_tail_looks_total")
        session.turn("not delivered")
        stays.prompt("still delivered")
        self.settle()
        self.assertEqual(self.client.all(prompt="not delivered"), [])
        self.assertGreater(self.metric("earshot_tail_looks_total"), looks)

    def test_47_a_root_that_is_deleted_and_recreated_is_watched_again(self):
        shutil.rmtree(self.root)
        self.begin(*by_notification)
        for n in range(5):
            wait_for(lambda: [t for t in self.health(self.daemon)["problems"] if t["path"] == self.root], "the missing root to be reported")
            session = self.session("p")
            session.turn(f"life {n}")
            self.settle()
            self.assert_no_trouble()
            shutil.rmtree(self.root)
            self.wait_removed(f"claude/p/{session.session}")

    def test_53_many_deletions_and_recreations_end_in_the_current_state(self):
        for watch in ("inotify", "sweep"):
            with self.subTest(watch=watch):
                self.begin("--watch", watch)
                for n in range(200):
                    session = self.session("p", "deeper")
                    session.turn(f"storm {n}")
                    other = self.session("p")
                    other.prompt(f"storm {n}")
                    if n % 20 == 0:  # some are delivered before they are deleted
                        self.client.wait_frame(type="turn.started", session=other.session)
                    shutil.rmtree(os.path.join(self.projects, "p"))
                session.turn("what is left")
                self.settle()
                session.turn("after the storm")
                self.settle()
                self.assert_no_trouble()
                self.daemon.stop()
                shutil.rmtree(self.projects)

    def test_57_working_directories_with_one_encoded_name_are_distinguished_by_their_records(self):
        paths = ("/home/a/b", "/home/a.b")
        sessions = [Session(self.root, cwd=cwd) for cwd in paths]
        self.assertEqual(sessions[0].folder, sessions[1].folder)
        self.begin()
        narrow = [self.daemon.subscriber(filter={"project": [cwd]}) for cwd in paths]
        for session in sessions:
            session.turn(f"in {session.cwd}")
        self.settle()
        for client, session in zip(narrow, sessions):
            self.assert_settled(self.daemon, client, session.path)
        shown = {f["session"]: f["project"] for f in self.daemon.client().subscribe()}
        self.assertEqual(shown, {session.session: session.cwd for session in sessions})

    def test_58_one_session_id_in_two_directories_is_two_streams_and_subagents_stay_separate(self):
        self.begin()
        first = Session(self.root, cwd="/home/ada/one")
        second = Session(self.root, cwd="/home/ada/two", session=first.session)
        first.prompt("one")
        second.prompt("two")
        call, agent, transcript = first.agent("Look around")
        transcript.prompt("Look around")
        # Complete when it is found: a copy with the agent's name may be found before the agent's transcript, whose former name it is then.
        complete = os.path.join(self.home, "workflows")
        os.makedirs(os.path.join(complete, "run1"))
        shutil.copy(transcript.path, os.path.join(complete, "run1", "agent-w1.jsonl"))
        os.rename(complete, os.path.join(os.path.dirname(transcript.path), "workflows"))
        first.prompt("still one")
        self.assertEqual(len(self.settle()), 4)
        own = f"claude/-home-ada-one/{first.session}"
        for stream, agents in ((own, {None}), (f"claude/-home-ada-two/{first.session}", {None}),
                               (f"{own}/subagents/agent-{agent}", {agent}), (f"{own}/subagents/workflows/run1/agent-w1", {"w1"})):
            self.assertEqual({f.get("agent") for f in self.client.frames if f.get("stream") == stream and "cursor" in f}, agents, stream)
        self.assertEqual({f["session"] for f in self.client.frames if "cursor" in f}, {first.session})
        self.assertEqual([f["prompt"] for f in self.client.all(type="turn.started", stream=own)], ["one", "still one"])

    def test_59_a_file_that_vanishes_between_listing_and_opening_is_no_trouble(self):
        at_start = Session(self.root, session="vanishing-at-start")
        at_start.turn("never read")
        self.begin(prefix=preloaded(self, "vanish"))
        self.assertFalse(os.path.exists(at_start.path))
        stays = Session(self.root)
        for n in range(50):
            vanishing = Session(self.root, session=f"vanishing-{n}")
            vanishing.turn("never read")
            stays.turn(f"turn {n}")
            wait_for(lambda: not os.path.exists(vanishing.path), "the daemon to open it")
        returning = Session(self.root, session="vanishing-returns")  # it exists when examined, and not when opened
        path, returning.path = returning.path, os.path.join(self.home, "complete.jsonl")  # nothing is written while it is renamed
        returning.turn("read after all")
        os.rename(returning.path, path)
        self.client.wait_frame(type="turn.finished", session="vanishing-returns")
        self.settle()
        self.assert_no_trouble()
        self.assertNotIn(b"vanishing", self.daemon.stderr())


class Names(DiscoveryCase):
    def test_55_a_name_that_is_not_utf8_works_percent_encoded(self):
        self.begin()
        session = Session(self.root)
        session.turn("first")
        folder = os.fsencode(self.projects) + b"/d\xc3\x28"
        os.mkdir(folder)
        path = folder + b"/\xff.jsonl"
        shutil.copy(os.fsencode(session.path), path)
        self.settle()
        stream = "claude/d%C3(/%FF"
        self.assertIn(stream, held_events(self.client))
        cursors = [f"{stream}:{self.client.all(stream=stream)[0]['cursor']}"]
        again = self.daemon.client()
        again.subscribe(after=cursors)  # the name resolves to the file
        again.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual([f["cursor"] for f in again.all(stream=stream)], [f["cursor"] for f in self.client.all(stream=stream)[1:]])
        os.unlink(path)
        self.wait_removed(stream)

    def test_56_names_with_control_characters_are_escaped_in_every_output(self):
        longest = "x" * (255 - len(".jsonl"))
        hostile = "a\n\x1b[31mred\x7f"
        sessions = [Session(self.root, session=name) for name in (longest, hostile)]
        for session in sessions:
            session.turn("first")
        folder = os.path.join(self.projects, "p\r\x1b]0;title\x07")
        os.mkdir(folder)
        os.mkfifo(os.path.join(folder, hostile + ".jsonl"))
        self.begin("--log-level", "debug")
        for session in sessions:
            session.turn("second")
        names = {f"claude/-home-ada-api/{longest}", "claude/-home-ada-api/a%0A%1B[31mred%7F"}
        self.client.wait(lambda: {f["stream"] for f in self.client.all(type="turn.finished", turn=2)} == names, "both streams")
        again = self.daemon.client()
        again.subscribe(after=[f"{stream}:" for stream in names])
        again.wait_frame(type="bookmark", id="a", complete=True)
        self.assert_settled(self.daemon, again, *(session.path for session in sessions))
        self.assertEqual([t["path"] for t in self.health(self.daemon)["problems"]], [os.path.join(folder, hostile + ".jsonl")])
        shown = self.daemon.wait_log("not a regular file") and self.daemon.stderr().decode()
        for command in (("ls",), ("ls", "--json"), ("show", longest), ("doctor",), ("replay", sessions[1].path)):
            done = earshot(*command, "--state", self.state, home=self.home)
            self.assertNotIn("Traceback", done.stderr)
            shown += done.stdout + done.stderr
        self.assertIn("red", shown)
        for control in "\r\x1b\x07\x7f":
            self.assertNotIn(control, shown)
        self.assertNotIn("a\n", shown.replace("\nclaude\n", ""))


class Limits(DiscoveryCase):
    def test_48_after_a_queue_overflow_everything_is_checked(self):
        with open("/proc/sys/fs/inotify/max_queued_events") as limit:
            queued_max = int(limit.read())
        if queued_max > 100_000:
            self.skipTest(f"the kernel's queue holds {queued_max} notifications: too many to fill it here")
        sessions = [self.session(name) for name in ("p", "q")]
        deleted = self.session("p")
        for session in (*sessions, deleted):
            session.turn("before")
        self.begin(*by_notification)
        self.client.subscribe(id="b", after=[f"claude/{os.path.basename(s.folder)}/{s.session}:" for s in (*sessions, deleted)])
        self.settle()
        notifications = Notifications(*(session.folder for session in sessions))
        self.addCleanup(notifications.close)
        self.daemon.process.send_signal(signal.SIGSTOP)
        files = [os.open(session.path, os.O_WRONLY | os.O_APPEND) for session in sessions]
        for n in range(queued_max // 2 + 1000):  # alternating: the kernel merges equal consecutive events
            for file in files:
                os.write(file, b"\n")
        for file in files:
            os.close(file)
        self.assertTrue(any(mask & IN_Q_OVERFLOW for mask in notifications.masks()), "no notification was lost")
        for session in sessions:
            session.turn("not delivered")
        os.unlink(deleted.path)
        self.session("new", "deep", "down").turn("not delivered either")
        os.makedirs(os.path.join(self.projects, "empty"))
        self.daemon.process.send_signal(signal.SIGCONT)
        self.settle()
        self.wait_removed(f"claude/p/{deleted.session}")
        self.session("empty").turn("its directory is watched")
        self.settle()

    def test_49_beyond_the_watch_limit_files_are_swept_and_one_warning_is_logged(self):
        sessions = [self.session(f"p{n}") for n in range(30)]
        for session in sessions:
            session.turn("before")
        self.begin(prefix=limited(max_inotify_watches=8))
        watch = self.health(self.daemon)["watch"]
        self.assertEqual(watch["inotify_watches"], 8)
        self.assertIn("max_user_watches", watch["problem"])
        for session in sessions:
            session.turn("after")
        late = self.session("late", "deep")
        late.turn("new directory")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == len(sessions) + 1, "every turn", deadline=60)
        self.assertEqual(self.daemon.stderr().count(b"max_user_watches"), 1)
        self.assertEqual(self.health(self.daemon)["watch"]["problem"].count("max_user_watches"), 1)
        for session in sessions[2:]:  # frees watches for the other directories
            shutil.rmtree(session.folder)
        wait_for(lambda: not self.health(self.daemon)["watch"]["problem"], "the trouble to end", deadline=60)
        self.assertGreaterEqual(self.health(self.daemon)["watch"]["inotify_watches"], 5)
        self.session("late", "deep").turn("watched again")
        self.client.wait_frame(type="turn.started", prompt="watched again")

    def test_50_without_an_inotify_instance_files_are_swept_and_a_warning_is_logged(self):
        exhaust = "import ctypes, os, sys\nwhile ctypes.CDLL(None).inotify_init1(0) >= 0: pass\nos.execvp(sys.argv[1], sys.argv[1:])"
        self.begin(prefix=(*limited(max_inotify_instances=8), sys.executable, "-c", exhaust))
        watch = self.health(self.daemon)["watch"]
        self.assertEqual(watch["inotify_watches"], 0)
        self.assertIn("max_user_instances", watch["problem"])
        self.assertEqual(self.daemon.stderr().count(b"max_user_instances"), 1)
        session = self.session("p", "q")
        session.turn("not delivered")
        self.client.wait_frame(type="turn.finished", deadline=60)
        session.turn("at the short interval")
        self.settle()

    def test_51_few_descriptors_are_enough_for_many_files(self):
        sessions = [self.session(f"p{n % 100}") for n in range(5000 // timeout_factor())]
        for session in sessions[::2]:
            session.prompt("before")
        self.begin(prefix=descriptors(64))
        self.client.subscribe(id="b", after=[f"claude/p{n % 100}/{sessions[n].session}:" for n in range(0, len(sessions), 2)], snapshot=False)
        for session in sessions:
            session.prompt("after")
        self.assertEqual(len(self.settle()), len(sessions))
        self.assertLessEqual(self.metric("earshot_tail_open_files"), 16)
        self.assert_no_trouble()

    def test_51_at_most_256_transcripts_are_open(self):
        sessions = [self.session("p") for _ in range(600)]
        self.begin()
        most = 0
        for turn in range(2):
            for n, session in enumerate(sessions):
                session.prompt(f"turn {turn}")
                if n % 50 == 0:
                    most = max(most, self.transcripts_open())
            # Before settle(): unused files are closed after a minute.
            most = max(most, wait_for(lambda: (count := self.transcripts_open()) > 100 and count, "100 open transcripts", give_up=self.daemon.exit_reason))
            self.settle()
            most = max(most, self.transcripts_open())
        # Files are kept open until the least recently used one is closed; the search index reads one more at a time, and so does a verification.
        self.assertLessEqual(most, 256 + 2)

    def transcripts_open(self):
        folder, count = f"/proc/{self.daemon.process.pid}/fd", 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, name)).endswith(".jsonl")
            except FileNotFoundError:
                pass  # closed since it was listed
        return count

    def test_52_a_mount_that_never_notifies_is_detected_and_swept(self):
        self.begin(prefix=preloaded(self, "no_notify"))
        self.assert_no_trouble()
        sessions = [self.session(f"p{n}") for n in range(4)]
        for session in sessions:
            session.turn("not delivered")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 4, "the first sweep", deadline=200)
        for session in sessions:  # an unnotified change shortens the interval
            session.turn("swept")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 8, "the next sweep", deadline=100)
        wait_for(lambda: "does not report changes" in self.health(self.daemon)["watch"]["problem"], "the mount to be reported")
        for session in sessions:
            session.turn("at the short interval")
        self.settle()
        for n in range(10):  # a new directory is found by the next pass over all
            start = time.monotonic()
            self.session(f"late{n}").turn(f"swept, too {n}")
            self.client.wait_frame(type="turn.started", prompt=f"swept, too {n}", deadline=100)
            if time.monotonic() - start < 40:
                break  # on a slow machine this takes longer in spite of the short interval
        else:
            self.fail("the passes are not at the short interval")
        self.settle()


class Many(DiscoveryCase):
    @pytest.mark.all
    def test_54_a_hundred_thousand_files_in_ten_thousand_directories_need_little_memory(self):
        directories = 10_000 // timeout_factor()
        if sanitized(build()):
            memory_max = None  # a sanitizer's memory is not the daemon's
        else:
            memory_max = 100 << 20
        line = b'{"type":"user","uuid":"u0","sessionId":"s","cwd":"/w","message":{"role":"user","content":"long ago"}}\n'
        for n in range(directories):
            folder = os.path.join(self.projects, f"p{n:05}")
            os.makedirs(folder)
            at = os.open(folder, os.O_RDONLY)
            for each in range(10):
                file = os.open(f"s{each}.jsonl", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at)
                os.write(file, line)
                os.utime(file, (1_600_000_000, 1_600_000_000))
                os.close(file)
            os.close(at)
        self.daemon = self.start_with_much()
        self.client = self.daemon.subscriber()
        root = self.health(self.daemon)["roots"][0]
        self.assertEqual((root["transcripts"], root["live"]), (directories * 10, 0))
        watches = self.health(self.daemon)["watch"]
        self.assertEqual((watches["inotify_watches"] > directories, watches["problem"]), (True, ""))
        grown = []
        for n in range(0, directories, directories // 100):
            grown.append(os.path.join(self.projects, f"p{n:05}", f"s{n % 10}.jsonl"))
            append(grown[-1], line.replace(b"u0", b"u1").replace(b"long ago", b"now"))
        self.client.wait(lambda: len(self.client.all(type="turn.started", prompt="now")) == len(grown), "every file that grew")
        self.assertEqual(self.client.all(prompt="long ago"), [])
        self.assertEqual(self.health(self.daemon)["roots"][0]["live"], len(grown))
        with open(f"/proc/{self.daemon.process.pid}/status") as status:
            peak = next(int(text.split()[1]) << 10 for text in status if text.startswith("VmHWM"))
        if memory_max:
            self.assertLessEqual(peak, memory_max)


if __name__ == "__main__":
    unittest.main()
