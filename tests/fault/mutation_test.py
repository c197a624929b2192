"""Faults 24 to 43: what happens to a file that is followed, other than growing."""
import json
import mmap
import os
import shutil
import signal
import stat
import subprocess
import unittest

from fault import FaultCase, told
from figures import Figures
from harness import earshot, wait_for
from sessions import Session, append

NOT_A_FILE = "not a regular file"


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class Mutation(FaultCase):
    def begin(self, *args, **more):
        self.daemon = self.start(*args, **more)
        self.client = self.daemon.subscriber()
        self.figures = Figures(self.daemon)
        self.addCleanup(self.figures.close)
        self.sessions = []  # whose every event the client was told

    def stream_of(self, session):
        return f"claude/{os.path.basename(session.folder)}/{session.session}"

    def written(self, *prompts):
        """A session with these turns, all of them told."""
        session = Session(self.root)
        for prompt in prompts or ("first", "second"):
            session.turn(prompt)
        self.sessions.append(session)
        self.settle()
        return session

    def settle(self):
        """Every session that has a transcript now, and nothing else."""
        there = [session.path for session in self.sessions if os.path.isfile(session.path) and not os.path.islink(session.path)]
        return self.settled(self.daemon, self.client, *there)

    def settle_since(self, session, known):
        """The same for one that had so many events when the client came."""
        stream = self.stream_of(session)
        expected = self.daemon.replay(session.path)[stream][known:]
        self.client.wait(lambda: len(told(self.client).get(stream, [])) >= len(expected), f"{len(expected)} events of {stream}", deadline=60)
        self.same(expected, told(self.client)[stream], stream)

    def write_prompt(self, session, text, where):
        """A prompt that goes into the transcript by another way: a path, or an open descriptor."""
        line = json.dumps(session.record("user", {"role": "user", "content": text})).encode() + b"\n"
        append(where, line) if isinstance(where, str) else os.write(where, line)

    def another(self, session, *prompts):
        """A file elsewhere that could be this session's, with another history."""
        other = Session(os.path.join(self.home, "elsewhere"), session=session.session)
        for prompt in prompts or ("another past", "and more of it"):
            other.turn(prompt)
        return other.path

    def stopped(self):
        """The daemon looks at nothing until the block ends: all that is done there lies between two looks."""
        daemon = self.daemon

        class Stopped:
            def __enter__(self):
                daemon.process.send_signal(signal.SIGSTOP)
                wait_for(lambda: "State:\tT" in contents(f"/proc/{daemon.process.pid}/status").decode(), "the daemon to stop")

            def __exit__(self, *_):
                daemon.process.send_signal(signal.SIGCONT)

        return Stopped()

    def clock_moved(self, path):
        """Waits until what happens now has another change time than what happened last: some kernels' clocks for files are coarse."""
        scratch = os.path.join(self.home, "clock")

        def later():
            with open(scratch, "w"):
                pass
            return os.stat(scratch).st_ctime_ns > os.stat(path).st_ctime_ns

        wait_for(later, "the file system's clock")

    def poke(self, path, old, new):
        """Overwrites the first place where `old` stands, in place."""
        self.assertEqual(len(old), len(new))
        at = contents(path).index(old)
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, new, at)
        os.close(fd)

    def resets(self, session):
        return [f["reason"] for f in self.client.all(type="reset", stream=self.stream_of(session))]

    def goes_on(self, session, resets):
        """The stream lives, and so often it has been another history."""
        session.turn("and on")
        self.settle()
        self.assertEqual(len(self.resets(session)), resets, self.client.all(type="reset"))
        self.assertEqual(self.client.all(type="stream.removed"), [])
        self.assertEqual(self.figures.troubles(), {})

    # --- Written anew ---

    def test_24_a_file_truncated_to_nothing_and_rewritten_is_reset(self):
        self.begin()
        session = self.written()
        for n in range(5):
            other = contents(self.another(session, f"life {n}"))
            shutil.rmtree(os.path.join(self.home, "elsewhere"))
            with open(session.path, "wb") as file:  # O_TRUNC
                self.client.wait(lambda: len(self.resets(session)) == n + 1, "the reset")
                file.write(other)
            self.settle()
        self.goes_on(session, resets=5)

    def test_25_truncated_and_grown_past_the_offset_between_two_looks_is_reset(self):
        self.begin()
        session = self.written()
        before = os.path.getsize(session.path)
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(contents(self.another(session, *(f"other {n}" for n in range(5)))))
            self.assertGreater(os.path.getsize(session.path), before)
        self.settle()
        self.goes_on(session, resets=1)

    def test_25_rewritten_to_the_very_same_size_between_two_looks_is_reset(self):
        self.begin()
        session = self.written("same size A")
        text = contents(session.path)
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(text.replace(b"same size A", b"same size B"))
            self.assertEqual(os.path.getsize(session.path), len(text))
        self.client.wait_frame(type="reset")
        self.settle()
        self.goes_on(session, resets=1)

    def test_26_truncated_at_each_byte_withdraws_exactly_what_lay_beyond(self):
        self.begin()
        session = Session(self.root)
        session.prompt("one")
        session.says("two", stop_reason="end_turn")
        self.sessions.append(session)
        whole = self.settle()[self.stream_of(session)]
        ends = [int(json.loads(text)["cursor"].split(".")[0]) for text in whole]
        size = os.path.getsize(session.path)
        fd = os.open(session.path, os.O_WRONLY)
        self.addCleanup(os.close, fd)
        for at in reversed(range(size)):
            os.ftruncate(fd, at)
            left = [text for text, end in zip(whole, ends) if end <= at]
            self.client.wait(lambda: len(self.resets(session)) == size - at and len(told(self.client).get(self.stream_of(session), [])) >= len(left),
                             f"the history of {at} bytes")
            self.same(left, told(self.client).get(self.stream_of(session), []), f"truncated to {at} bytes")
        self.goes_on(session, resets=size)

    def test_27_rewritten_with_the_first_line_kept_is_reset(self):
        self.begin()
        session = self.written()
        first = contents(session.path).partition(b"\n")[0] + b"\n"
        with self.stopped():
            with open(session.path, "wb") as file:
                file.write(first + contents(self.another(session, *(f"other {n}" for n in range(5)))))
        self.settle()
        self.goes_on(session, resets=1)

    def test_28_an_edit_of_one_byte_in_the_middle_is_reset(self):
        self.begin()
        session = self.written("first", "second", "x" * 9000)  # farther back than what is compared at each append
        self.clock_moved(session.path)
        self.poke(session.path, b'"first"', b'"fIrst"')
        self.client.wait_frame(type="reset", reason="rewritten")
        self.settle()
        self.assertIn("fIrst", [f.get("prompt") for f in self.client.all(type="turn.started")])
        self.goes_on(session, resets=1)

    def test_28_an_edit_hidden_by_an_append_is_noticed_when_somebody_resumes(self):
        self.begin()
        session = self.written("first", "second", "x" * 9000)
        with self.stopped():
            self.poke(session.path, b'"first"', b'"fIrst"')
            session.turn("hides it")
        last = self.client.wait_frame(type="turn.finished", turn=4)
        resumed = self.daemon.client()
        resumed.subscribe(after=[f"{self.stream_of(session)}:{last['cursor']}"])
        resumed.wait_frame(type="reset", stream=self.stream_of(session), reason="rewritten")
        self.settle()  # and whoever was there all the time is put right as well
        session.turn("and on")
        self.settled(self.daemon, resumed, session.path)
        self.settle()

    def test_29_an_edit_that_restores_the_modification_time_is_reset(self):
        self.begin()
        session = self.written("first", "second", "x" * 9000)
        self.clock_moved(session.path)
        before = os.stat(session.path)
        with self.stopped():
            self.poke(session.path, b'"first"', b'"fIrst"')
            os.utime(session.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(os.stat(session.path).st_mtime_ns, before.st_mtime_ns)
        self.client.wait_frame(type="reset", reason="rewritten")
        self.settle()
        self.goes_on(session, resets=1)

    # --- Another file under its name ---

    def test_30_a_grown_copy_renamed_over_it_goes_on_without_a_reset(self):
        self.begin()
        session = self.written()
        for n in range(5):
            copy = session.path + ".part"
            shutil.copy(session.path, copy)
            if n % 2:  # or the same content
                self.write_prompt(session, f"from the copy {n}", copy)
            os.rename(copy, session.path)
            self.settle()
        self.goes_on(session, resets=0)

    def test_31_a_file_with_other_content_renamed_over_it_is_reset(self):
        self.begin()
        session = self.written()
        for n, prompts in enumerate((("short",), tuple(f"longer {n}" for n in range(9)), ("short again",)), 1):
            os.rename(self.another(session, *prompts), session.path)
            self.client.wait(lambda: len(self.resets(session)) == n, "the reset")
            self.settle()
        self.goes_on(session, resets=3)

    def test_32_deleted_and_recreated_is_a_new_history_whichever_inode_it_gets(self):
        self.begin()
        session = self.written()
        for n in range(60):
            shutil.rmtree(os.path.join(self.home, "elsewhere"), ignore_errors=True)
            life = contents(self.another(session, f"life {n}", "x" * (n % 7 * 400)))
            with self.stopped() if n % 3 == 0 else open(os.devnull):  # seen, or as fast as can be
                os.unlink(session.path)
                append(session.path, life)
            if n % 2:
                self.settle()
        self.settle()
        self.assertEqual(self.figures.troubles(), {})
        session.turn("and on")
        self.settle()

    # --- Gone ---

    def test_33_a_file_unlinked_while_it_is_written_is_read_to_its_end(self):
        self.begin()
        session = self.written()
        fd = os.open(session.path, os.O_WRONLY | os.O_APPEND)
        os.unlink(session.path)
        for n in range(3):
            self.write_prompt(session, f"unlinked {n}", fd)
            self.client.wait_frame(type="turn.started", prompt=f"unlinked {n}")
        os.close(fd)
        self.client.wait_frame(type="stream.removed", stream=self.stream_of(session))
        self.settle()
        self.assertEqual(self.client.all(type="reset"), [])
        self.assertEqual(self.figures.troubles(), {})

    def test_34_a_thousand_old_transcripts_swept_away_are_removed_and_no_error(self):
        lines = contents(self.another(Session(self.root), "old"))
        old = [Session(self.root, cwd=f"/home/ada/p{n % 20}") for n in range(1000)]
        for session in old:
            append(session.path, lines)
            os.utime(session.path, (1_600_000_000, 1_600_000_000))
        self.begin()
        fresh = [Session(self.root, cwd=f"/home/ada/p{n}") for n in range(20)]
        for session in fresh:
            session.turn("fresh")
        self.sessions = fresh
        self.settle()
        self.assertEqual(self.figures.metric("earshot_tail_known_files"), 1020)
        for session in old + fresh[1:]:
            os.unlink(session.path)
        self.figures.wait(lambda: self.figures.metric("earshot_tail_known_files") == 1, "1,019 files to be gone")
        self.settle()
        self.assertEqual({f["stream"] for f in self.client.all(type="stream.removed")}, {self.stream_of(session) for session in fresh[1:]})
        self.assertEqual(self.figures.troubles(), {})
        self.assertEqual([f for f in self.client.frames if f["type"] in ("error", "reset")], [])
        self.assertNotIn("warn", self.daemon.stderr().decode())

    # --- No notification ---

    def test_35_what_is_appended_through_a_hard_link_elsewhere_is_found_by_the_sweep(self):
        session = Session(self.root)
        session.turn("before")
        hidden, beside = os.path.join(self.home, "link"), os.path.join(session.folder, "beside.jsonl")
        os.link(session.path, hidden)
        self.begin("--sweep", "1s")  # nothing has rung for this file: it is not among those that are looked at often
        before = len(self.daemon.replay(session.path)[self.stream_of(session)])
        self.write_prompt(session, "through the link", hidden)
        self.client.wait_frame(type="turn.started", prompt="through the link")
        os.link(session.path, beside)  # a second name below the root is no second stream
        self.write_prompt(session, "beside", beside)
        self.client.wait_frame(type="turn.started", prompt="beside")
        self.settle_since(session, before)
        self.assertEqual(len(told(self.client)), 1, "one file is one stream")
        self.assertEqual(self.client.all(type="reset"), [])

    def test_38_what_is_written_through_a_mapping_is_seen_by_the_sweep(self):
        quiet = Session(self.root)
        quiet.turn("quiet since before the start")
        self.begin("--sweep", "1s")
        session = self.written()
        start = os.path.getsize(session.path)
        lines = contents(self.another(session, "through a mapping"))
        os.truncate(session.path, start + len(lines))  # this much is notified
        self.figures.wait_bytes(os.path.getsize(quiet.path) + start + len(lines))
        self.mapped(session.path, start, lines)
        self.client.wait_frame(type="turn.started", prompt="through a mapping")
        self.settle()
        self.assertEqual(self.resets(session), ["rewritten"])  # a tail of NULs has become lines
        at = contents(quiet.path).index(b"quiet since")
        self.mapped(quiet.path, at, b"QUIET")
        self.client.wait_frame(type="reset", stream=self.stream_of(quiet))
        self.sessions.append(quiet)
        self.settle()

    def mapped(self, path, at, bytes):
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED) as view:
            view[at : at + len(bytes)] = bytes

    # --- Links ---

    def test_36_a_symbolic_link_to_a_file_is_not_followed_wherever_it_points(self):
        self.begin()
        session = self.written()
        outside = os.path.join(self.home, "secret.jsonl")
        append(outside, contents(self.another(session, "outside")))
        for target, name in ((outside, "outside"), (session.path, "inside"), (os.path.basename(session.path), "relative"), ("loop.jsonl", "loop")):
            os.symlink(target, os.path.join(session.folder, f"{name}.jsonl"))
        self.write_prompt(session, "still outside", outside)
        moved = os.path.join(self.home, "moved.jsonl")
        os.rename(session.path, moved)
        os.symlink(moved, session.path)  # a followed file becomes a link
        self.client.wait_frame(type="stream.removed", stream=self.stream_of(session))
        again = self.written("after")
        self.settle()
        os.unlink(session.path)
        os.rename(moved, session.path)
        self.settle()

    def test_37_a_linked_project_directory_is_followed_once_and_loops_end(self):
        outside = os.path.join(self.home, "far", "away")
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
        os.symlink(os.path.join(self.home, "far"), os.path.join(near.folder, "deep-link"))  # below a project nothing is followed
        self.begin()
        far.turn("live from far away")
        near.turn("live from near")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 2, "two turns")
        streams = {f["stream"] for f in self.client.frames if "cursor" in f}
        linked = {f"claude/{name}/{far.session}" for name in ("-linked", "-linked-twice")}
        self.assertEqual(len(streams & linked), 1)
        self.assertEqual(streams - linked, {self.stream_of(near)})
        self.assertEqual(self.figures.metric("earshot_tail_known_files"), 2)
        os.symlink(os.path.join(self.home, "far", "projects"), os.path.join(projects, "-late"))  # one that comes while it runs
        late = Session(os.path.join(self.home, "far"), cwd="/home/ada/far")
        late.turn("late")
        self.client.wait(lambda: len(self.client.all(type="turn.finished")) == 3, "the third turn")
        self.assertEqual(self.figures.metric("earshot_tail_known_files"), 3)

    # --- Not a file any more ---

    def replaced(self, *makers):
        self.begin()
        session, other = self.written(), self.written("other")
        kept = session.path + ".kept"
        for make in makers:
            os.rename(session.path, kept)
            make(session.path)
            self.assertEqual(self.figures.wait_trouble(session.path), NOT_A_FILE)
            other.turn("still heard")
            self.settle()
            os.rmdir(session.path) if os.path.isdir(session.path) else os.unlink(session.path)
            os.rename(kept, session.path)
            self.settle()
            self.assertEqual(self.figures.troubles(), {})

    def test_39_a_fifo_or_a_directory_in_its_place_is_said_and_nothing_hangs(self):
        self.replaced(os.mkfifo, os.mkdir)

    def test_39_a_device_in_its_place_is_said_and_never_read(self):
        probe = os.path.join(self.home, "zero")
        zero = lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        try:
            zero(probe)
            open(probe, "rb").close()
        except PermissionError as refused:
            self.skipTest(f"devices cannot be made here: {refused}")
        self.replaced(zero)

    def test_39_swapped_with_a_fifo_in_a_race_it_never_hangs(self):
        self.begin()
        session, other = self.written(), self.written("other")
        kept, pipe = session.path + ".kept", session.path + ".pipe"
        os.mkfifo(pipe)
        for n in range(300):
            os.rename(session.path, kept)
            os.rename(pipe, session.path)
            self.write_prompt(session, f"swap {n}", kept)
            os.rename(session.path, pipe)
            os.rename(kept, session.path)
            if n % 50 == 0:
                other.turn(f"meanwhile {n}")
                self.client.wait(lambda: any(f["output"] == f"meanwhile {n}" for f in self.client.all(type="tool.finished")), "the other stream")
        self.settle()
        self.figures.wait(lambda: not self.figures.troubles(), "no trouble left")

    # --- Not readable ---

    def test_40_a_file_of_mode_000_is_said_and_read_on_from_the_same_place_when_it_may_be(self):
        self.sealed(at_start=True)

    def test_40_a_followed_file_that_is_sealed_and_restored_loses_nothing(self):
        self.sealed(at_start=False)

    def sealed(self, at_start):
        session, other = Session(self.root), Session(self.root, cwd="/home/ada/other")
        session.turn("before the start")
        other.turn("other")
        fd = os.open(session.path, os.O_WRONLY | os.O_APPEND)  # whoever has it open goes on writing
        self.addCleanup(os.close, fd)
        known = earshot("replay", session.path, home=self.home).stdout.count("\n")
        more = self.unprivileged()
        if at_start:
            os.chmod(session.path, 0)
        self.begin(**more)
        for n in range(3):
            os.chmod(session.path, 0)
            if at_start and n == 0:
                self.assertEqual(self.figures.wait_trouble(session.path), "Permission denied")
            for m in range(2):
                self.write_prompt(session, f"sealed {n} {m}", fd)
                other.prompt(f"beside {n} {m}")
                self.client.wait_frame(type="turn.started", prompt=f"beside {n} {m}")
            if at_start and n == 0:
                self.assertEqual([f for f in self.client.all(session=session.session) if "cursor" in f], [])
            os.chmod(session.path, 0o600)
            self.settle_since(session, known)
            self.write_prompt(session, f"open {n}", fd)
            self.settle_since(session, known)
        self.figures.wait(lambda: not self.figures.troubles(), "no trouble left")
        self.assertEqual(self.client.all(type="reset"), [])
        self.assertEqual(self.client.all(type="stream.removed"), [])

    def test_41_one_unreadable_directory_leaves_the_others_alone(self):
        open_one, closed = Session(self.root, cwd="/home/ada/open"), Session(self.root, cwd="/home/ada/closed")
        for session in (open_one, closed):
            session.turn("before")
        more = self.unprivileged()
        os.chmod(closed.folder, 0)
        self.begin(**more)
        self.assertEqual(self.figures.wait_trouble(closed.folder), "Permission denied")
        open_one.prompt("still heard")
        self.client.wait_frame(type="turn.started", prompt="still heard")
        self.assertEqual(list(self.figures.troubles()), [closed.folder])
        os.chmod(closed.folder, 0o700)
        closed.prompt("heard again")
        self.client.wait_frame(type="turn.started", prompt="heard again", deadline=60)
        self.assertEqual(self.figures.troubles(), {})

    # --- The disk ---

    def failing(self, path, error, calls):
        """While the block lasts, these system calls on this file fail so."""
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
                        raise unittest.SkipTest(f"this user may not trace: {failed}") from None
                    raise
                return log

            def __exit__(self, *_):
                if self.strace.poll() is None:
                    self.strace.terminate()
                self.strace.wait()
                self.strace.stderr.close()

        return Failing()

    def test_42_after_eio_or_estale_it_is_read_on_from_the_same_place(self):
        if not shutil.which("strace"):
            self.skipTest("strace is not here: errors of a disk cannot be made")
        self.begin()
        session, other = self.written(), self.written("other")
        said = {"EIO": "Input/output error", "ESTALE": "Stale file handle"}
        for error, calls in (("EIO", "pread64,preadv2"), ("ESTALE", "pread64,preadv2"), ("ESTALE", "openat,pread64,preadv2")):
            with self.failing(session.path, error, calls) as log:
                session.turn(f"during {error}")
                self.assertIn(said[error], self.figures.wait_trouble(session.path))
                other.prompt(f"beside {error} of {calls}")
                self.client.wait_frame(type="turn.started", prompt=f"beside {error} of {calls}")
                self.assertIn("(INJECTED)", contents(log).decode())
            self.settle()
            self.figures.wait(lambda: not self.figures.troubles(), "the trouble to go")
        self.goes_on(session, resets=0)

    # --- Nothing that matters ---

    def test_43_chmod_touch_and_links_to_it_are_no_events(self):
        self.begin()
        session = self.written()
        verified = self.figures.metric("earshot_tail_verifications_total")
        for change in (lambda: os.chmod(session.path, 0o640), lambda: os.utime(session.path), lambda: os.utime(session.path, (1, 1)),
                       lambda: os.link(session.path, os.path.join(self.home, "link")), lambda: os.chown(session.path, os.getuid(), os.getgid())):
            change()
        self.figures.wait(lambda: self.figures.metric("earshot_tail_verifications_total") > verified, "a look that found its change time moved")
        self.goes_on(session, resets=0)

    def test_43_extended_attributes_are_no_events(self):
        self.begin()
        session = self.written()
        verified = self.figures.metric("earshot_tail_verifications_total")
        self.clock_moved(session.path)
        try:
            os.setxattr(session.path, "user.earshot", b"seen")
        except OSError as refused:
            self.skipTest(f"no extended attributes here: {refused}")
        self.figures.wait(lambda: self.figures.metric("earshot_tail_verifications_total") > verified, "a look that found its change time moved")
        os.removexattr(session.path, "user.earshot")
        self.goes_on(session, resets=0)


if __name__ == "__main__":
    unittest.main()
