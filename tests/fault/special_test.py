"""Faults 35 to 43: missing notifications, links, special files, unreadable files, and irrelevant changes."""
import mmap
import os
import shutil
import stat
import subprocess
import unittest

from fault_case import held_events
from support.harness import earshot, wait_for
from mutation_case import MutationCase, contents
from support.transcripts import Session, append

NOT_A_FILE = "not a regular file"


class Special(MutationCase):
    # --- Hard links ---

    def test_35_an_append_through_a_hard_link_elsewhere_is_found_by_the_sweep(self):
        session = Session(self.root)
        session.turn("before")
        hidden, second_link = os.path.join(self.home, "link"), os.path.join(session.folder, "second.jsonl")
        os.link(session.path, hidden)
        self.begin("--sweep", "1s")  # without notifications the file is not swept frequently
        before = len(self.daemon.replay(session.path)[self.stream_of(session)])
        self.write_turn(session, "through the link", hidden)
        self.client.wait_frame(type="turn.started", prompt="through the link")
        os.link(session.path, second_link)  # a second name below the root is not a second stream
        self.write_turn(session, "through the second link", second_link)
        self.client.wait_frame(type="turn.started", prompt="through the second link")
        self.settle_since(session, before)
        self.assertEqual(len(held_events(self.client)), 1, "one file is one stream")
        self.assertEqual(self.client.all(type="reset"), [])

    # --- Symbolic links ---

    def test_36_a_symbolic_link_to_a_file_is_not_followed_wherever_it_points(self):
        self.begin()
        session = self.written()
        outside = os.path.join(self.home, "secret.jsonl")
        append(outside, contents(self.another(session, "outside")))
        for target, name in ((outside, "outside"), (session.path, "inside"), (os.path.basename(session.path), "relative"), ("loop.jsonl", "loop")):
            os.symlink(target, os.path.join(session.folder, f"{name}.jsonl"))
        self.write_turn(session, "still outside", outside)
        moved = os.path.join(self.home, "moved.jsonl")
        os.rename(session.path, moved)
        os.symlink(moved, session.path)  # a followed file becomes a link
        self.client.wait_frame(type="stream.removed", stream=self.stream_of(session))
        self.written("after")
        self.settle()
        os.unlink(session.path)
        os.rename(moved, session.path)
        self.settle()

    def test_37_a_linked_project_directory_is_followed_once_and_loops_end(self):
        far = Session(os.path.join(self.home, "far"), cwd="/home/ada/far")
        far.turn("from far away")
        projects = os.path.join(self.root, "projects")
        os.makedirs(projects)
        os.symlink(far.folder, os.path.join(projects, "-linked"))
        os.symlink(far.folder, os.path.join(projects, "-linked-twice"))
        os.symlink(projects, os.path.join(projects, "-loop"))
        os.symlink("..", os.path.join(projects, "-up"))
        near = Session(self.root)
        near.turn("near")
        os.symlink(projects, os.path.join(near.folder, "deep-loop"))
        os.symlink(os.path.join(self.home, "far"), os.path.join(near.folder, "deep-link"))  # links below a project are not followed
        self.begin()
        far.turn("live from far away")
        near.turn("live from near")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 2, "two turns")
        streams = {f["stream"] for f in self.client.frames if "cursor" in f}
        linked = {f"claude/{name}/{far.session}" for name in ("-linked", "-linked-twice")}
        self.assertEqual(len(streams & linked), 1)
        self.assertEqual(streams - linked, {self.stream_of(near)})
        self.assertEqual(self.metrics.metric("earshot_tail_known_files"), 2)
        os.symlink(os.path.join(self.home, "far", "projects"), os.path.join(projects, "-late"))  # created while the daemon runs
        late = Session(os.path.join(self.home, "far"), cwd="/home/ada/far")
        late.turn("late")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 3, "the third turn")
        self.assertEqual(self.metrics.metric("earshot_tail_known_files"), 3)

    # --- Memory mappings ---

    def test_38_a_write_through_a_memory_mapping_is_found_by_the_sweep(self):
        quiet = Session(self.root)
        quiet.turn("quiet since before the start")
        self.begin("--sweep", "1s")
        session = self.written()
        start = os.path.getsize(session.path)
        lines = contents(self.another(session, "through a mapping"))
        os.truncate(session.path, start + len(lines))  # the size change is notified
        self.metrics.wait_bytes(os.path.getsize(quiet.path) + start + len(lines))
        self.mapped(session.path, start, lines)
        self.client.wait_frame(type="turn.started", prompt="through a mapping")
        self.settle()
        self.assertEqual(self.resets(session), ["rewritten"])  # the NULs at the end became lines
        at = contents(quiet.path).index(b"quiet since")
        self.mapped(quiet.path, at, b"QUIET")
        self.client.wait_frame(type="reset", stream=self.stream_of(quiet))
        self.sessions.append(quiet)
        self.settle()

    def mapped(self, path, at, bytes):
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED) as view:
            view[at : at + len(bytes)] = bytes

    # --- Special files ---

    def replaced(self, *makers):
        self.begin()
        session, other = self.written(), self.written("other")
        kept = session.path + ".kept"
        for make in makers:
            os.rename(session.path, kept)
            make(session.path)
            self.assertEqual(self.metrics.wait_trouble(session.path), NOT_A_FILE)
            other.turn("still delivered")
            self.settle()
            os.rmdir(session.path) if os.path.isdir(session.path) else os.unlink(session.path)
            os.rename(kept, session.path)
            self.settle()
            self.assertEqual(self.metrics.troubles(), {})

    def test_39_a_fifo_or_a_directory_in_its_place_is_reported_and_nothing_hangs(self):
        self.replaced(os.mkfifo, os.mkdir)

    def test_39_a_device_in_its_place_is_reported_and_nothing_hangs(self):
        probe = os.path.join(self.home, "zero")
        zero = lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        try:
            zero(probe)
            open(probe, "rb").close()
        except PermissionError as refused:
            self.skipTest(f"devices cannot be created: {refused}")
        self.replaced(zero)

    def test_39_swapped_with_a_fifo_in_a_race_it_never_hangs(self):
        self.begin()
        session, other = self.written(), self.written("other")
        kept, pipe = session.path + ".kept", session.path + ".pipe"
        os.mkfifo(pipe)
        for n in range(300):
            os.rename(session.path, kept)
            os.rename(pipe, session.path)
            self.write_turn(session, f"swap {n}", kept)
            os.rename(session.path, pipe)
            os.rename(kept, session.path)
            if n % 50 == 0:
                other.turn(f"meanwhile {n}")
                self.client.wait(lambda: any(f["output"] == f"meanwhile {n}" for f in self.client.all(type="tool.finished")), "the other stream")
        self.settle()
        self.metrics.wait(lambda: not self.metrics.troubles(), "no trouble to remain")

    # --- Unreadable ---

    def test_40_a_file_of_mode_000_is_reported_and_continued_when_readable_again(self):
        self.check_mode_000(at_start=True)

    def test_40_a_followed_file_of_mode_000_loses_nothing(self):
        self.check_mode_000(at_start=False)

    def check_mode_000(self, at_start):
        session, other = Session(self.root), Session(self.root, cwd="/home/ada/other")
        session.turn("before the start")
        other.turn("other")
        fd = os.open(session.path, os.O_WRONLY | os.O_APPEND)  # a writer that opened it before
        self.addCleanup(os.close, fd)
        known = earshot("replay", session.path, home=self.home).stdout.count("\n")
        more = self.unprivileged()
        if at_start:
            os.chmod(session.path, 0)
        self.begin(**more)
        for n in range(3):
            os.chmod(session.path, 0)
            if at_start and n == 0:
                self.assertEqual(self.metrics.wait_trouble(session.path), "Permission denied")
            for m in range(2):
                self.write_turn(session, f"sealed {n} {m}", fd)
                other.prompt(f"meanwhile {n} {m}")
                self.client.wait_frame(type="turn.started", prompt=f"meanwhile {n} {m}")
            if at_start and n == 0:
                self.assertEqual([f for f in self.client.all(session=session.session) if "cursor" in f], [])
            os.chmod(session.path, 0o600)
            self.settle_since(session, known)
            self.write_turn(session, f"open {n}", fd)
            self.settle_since(session, known)
        self.metrics.wait(lambda: not self.metrics.troubles(), "no trouble to remain")
        self.assertEqual(self.client.all(type="reset"), [])
        self.assertEqual(self.client.all(type="stream.removed"), [])

    def test_41_an_unreadable_directory_does_not_affect_the_others(self):
        open_one, closed = Session(self.root, cwd="/home/ada/open"), Session(self.root, cwd="/home/ada/closed")
        for session in (open_one, closed):
            session.turn("before")
        more = self.unprivileged()
        os.chmod(closed.folder, 0)
        self.begin(**more)
        self.assertEqual(self.metrics.wait_trouble(closed.folder), "Permission denied")
        open_one.prompt("still delivered")
        self.client.wait_frame(type="turn.started", prompt="still delivered")
        self.assertEqual(list(self.metrics.troubles()), [closed.folder])
        os.chmod(closed.folder, 0o700)
        closed.prompt("readable again")
        self.client.wait_frame(type="turn.started", prompt="readable again", deadline=180)  # retries are up to 60 s apart
        wait_for(lambda: self.metrics.troubles() == {}, "the problem to be solved", deadline=180)

    # --- I/O errors ---

    def failing(self, path, error, calls):
        """Makes these system calls fail for this file during the block."""
        daemon, log = self.daemon, os.path.join(self.home, f"strace-{error}")

        class Failing:
            def __enter__(self):
                self.strace = subprocess.Popen(["strace", "-f", "-p", str(daemon.process.pid), "-o", log, "-P", path, "-e", f"trace={calls}",
                                                "-e", f"inject={calls}:error={error}"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                threads = len(os.listdir(f"/proc/{daemon.process.pid}/task"))
                traced = lambda: sum("TracerPid:\t0\n" not in contents(f"/proc/{daemon.process.pid}/task/{task}/status").decode()
                                     for task in os.listdir(f"/proc/{daemon.process.pid}/task")) == threads
                try:
                    wait_for(traced, "strace to attach", give_up=lambda: self.strace.poll() is not None and self.strace.stderr.read())
                except AssertionError as failed:
                    self.__exit__()
                    if "not permitted" in str(failed) or "Permission" in str(failed):
                        raise unittest.SkipTest(f"tracing is not allowed: {failed}") from None
                    raise
                return log

            def __exit__(self, *_):
                if self.strace.poll() is None:
                    self.strace.terminate()
                self.strace.wait()
                self.strace.stderr.close()

        return Failing()

    def test_42_after_eio_or_estale_reading_continues_at_the_same_offset(self):
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        self.begin()
        session, other = self.written(), self.written("other")
        messages = {"EIO": "Input/output error", "ESTALE": "Stale file handle"}
        for error, calls in (("EIO", "pread64,preadv2"), ("ESTALE", "pread64,preadv2"), ("ESTALE", "openat,pread64,preadv2")):
            with self.failing(session.path, error, calls) as log:
                session.turn(f"during {error}")
                self.assertIn(messages[error], self.metrics.wait_trouble(session.path))
                other.prompt(f"meanwhile {error} of {calls}")
                self.client.wait_frame(type="turn.started", prompt=f"meanwhile {error} of {calls}")
                self.assertIn("(INJECTED)", contents(log).decode())
            self.settle(deadline=180)  # retries are up to 60 s apart
            self.metrics.wait(lambda: not self.metrics.troubles(), "the trouble to end", deadline=180)
        self.assert_continues(session, resets=0)

    # --- Irrelevant changes ---

    def test_43_chmod_touch_and_links_to_it_are_no_events(self):
        self.begin()
        session = self.written()
        verified = self.metrics.metric("earshot_tail_verifications_total")
        for change in (lambda: os.chmod(session.path, 0o640), lambda: os.utime(session.path), lambda: os.utime(session.path, (1, 1)),
                       lambda: os.link(session.path, os.path.join(self.home, "link")), lambda: os.chown(session.path, os.getuid(), os.getgid())):
            change()
        self.metrics.wait(lambda: self.metrics.metric("earshot_tail_verifications_total") > verified, "the change of ctime to be checked")
        self.assert_continues(session, resets=0)

    def test_43_extended_attributes_are_no_events(self):
        self.begin()
        session = self.written()
        verified = self.metrics.metric("earshot_tail_verifications_total")
        self.clock_moved(session.path)
        try:
            os.setxattr(session.path, "user.earshot", b"seen")
        except OSError as refused:
            self.skipTest(f"extended attributes are not available: {refused}")
        self.metrics.wait(lambda: self.metrics.metric("earshot_tail_verifications_total") > verified, "the change of ctime to be checked")
        os.removexattr(session.path, "user.earshot")
        self.assert_continues(session, resets=0)


if __name__ == "__main__":
    unittest.main()
