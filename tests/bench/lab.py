"""The environment of a measurement: a scratch directory, daemons, the C++ bench programs, and process figures from /proc."""
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
os.environ.setdefault("EARSHOT_BUILD", os.path.join(HERE, "..", "..", "build", "release"))
from support import harness  # noqa: E402
from support.harness import Daemon, build  # noqa: E402


class Lab:
    def __init__(self, quick=False, say=None):
        """`quick`: small sizes and few rounds, to check that everything works."""
        harness.deadline_s = 120  # a million files take long on a busy machine
        self.quick, self.say, self.count = quick, say or Progress(), 0
        self.home = tempfile.mkdtemp(prefix="earshot-bench-", dir=os.environ.get("EARSHOT_BENCH_DIR", "/tmp"))
        raise_descriptor_limit()

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def rounds(self, many, few=1):
        return few if self.quick else many

    def fresh(self, name):
        """A new directory with a unique name."""
        self.count += 1
        path = os.path.join(self.home, f"{name}-{self.count}")
        os.makedirs(path)
        return path

    @contextlib.contextmanager
    def scratch(self, name):
        path = self.fresh(name)
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def limited_size(self, size):
        """The size to use: at most a quarter of the free disk space, and a hundredth in quick runs."""
        return int(min(size / (100 if self.quick else 1), shutil.disk_usage(self.home).free / 4))

    @contextlib.contextmanager
    def daemon(self, root, *args, config="[limits]\nconnections = 20000\n", ready=True, home=None):
        """Runs an earshotd on one root for the block. `home` keeps its state, with the key of the cursors, for the next one."""
        is_kept = home is not None
        home = home or self.fresh("daemon")
        path = os.path.join(home, "earshot.toml")
        with open(path, "w") as file:
            file.write(config)
        daemon = Daemon([root], os.path.join(home, "state"), home, ["--config", path, *args])
        try:
            yield daemon.wait_ready() if ready else daemon
        finally:
            try:
                daemon.stop()
            finally:
                daemon.process.kill()
                daemon.process.stdout.close()
                daemon.log.close()
                if not is_kept:
                    shutil.rmtree(home)

    def program(self, name, *args):
        """Runs a bench program; returns the JSON object that it prints."""
        done = subprocess.run([bench(name), *map(str, args)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"bench_{name}: {done.stderr.strip() or done.returncode}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def background(self, command):
        """Runs a program in the background until its input ends; its output is in `lines` afterwards."""
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.lines = []
        try:
            yield process
        finally:
            process.lines += process.communicate()[0].splitlines()
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command[:2]))} ended with {process.returncode}")

    def empty_server(self):
        with self.background([bench("floor"), "asio"]) as server:
            pass
        return json.loads(server.lines[0])["rss"]


class Progress:
    """Shows the current step on stderr; on a terminal in one line."""

    def __call__(self, what):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{what} …")
        else:
            sys.stderr.write(f"bench: {what}\n")
        sys.stderr.flush()

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def bench(name):
    return os.path.join(build(), "tests", "bench", f"bench_{name}")


def raise_descriptor_limit():
    """Raises the soft limit to the hard one, for this process and its children; returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def memory(daemon, name="VmRSS"):
    """Resident bytes; VmHWM is the peak."""
    with open(f"/proc/{daemon.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024


def cpu_s(daemon):
    """CPU seconds of all threads, with nanosecond resolution."""
    total, tasks = 0, f"/proc/{daemon.process.pid}/task"
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def until_idle(daemon, still_s=0.3, most_s=20):
    """Waits until the daemon uses no CPU, so that its memory is stable."""
    end, before, since = time.monotonic() + most_s, cpu_s(daemon), time.monotonic()
    while time.monotonic() - since < still_s and time.monotonic() < end:
        time.sleep(0.05)
        if (now := cpu_s(daemon)) - before > 0.005:
            since = time.monotonic()
            before = now


def until_indexed(daemon, most_s=1800):
    """Waits until the search index, if there is one, is complete: then its thread has freed what it needed."""
    end = time.monotonic() + most_s
    while metric(daemon, "earshot_search_building") or metric(daemon, "earshot_search_pending_streams"):
        if time.monotonic() > end:
            raise RuntimeError(f"the index is not complete after {most_s} s")
        time.sleep(0.1)


def metric(daemon, name):
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/metrics", headers={"Authorization": f"Bearer {daemon.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + " ", name + "{")))


def age(paths, hours=100):
    """Sets the modification times of files into the past."""
    then = time.time() - hours * 3600
    for path in paths:
        os.utime(path, (then, then))


def project(root):
    """The directory in which the C++ programs write their sessions."""
    path = os.path.join(root, "projects", "-home-ada-bench")
    os.makedirs(path, exist_ok=True)
    return path
