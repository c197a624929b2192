"""What a test does to the system below the daemon: limits in a namespace of its own, and small libraries (preload/) that stand between the
daemon and the system's calls. Where this machine cannot do it, the test is skipped out loud with the reason."""
import ctypes
import functools
import os
import re
import struct
import subprocess
import unittest

from support.harness import build, deadline_s

HERE = os.path.dirname(os.path.abspath(__file__))
IN_MODIFY, IN_Q_OVERFLOW = 0x2, 0x4000


@functools.cache
def refusal(*command):
    """Why this command cannot be run here; empty when it can."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=deadline_s)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    return "" if done.returncode == 0 else f"{' '.join(command)}: {done.stderr.strip()}"


def limited(**limits):
    """The beginning of a command that runs with these limits of /proc/sys/user, in a user namespace."""
    script = "; ".join(f"echo {value} > /proc/sys/user/{name}" for name, value in limits.items())
    if reason := refusal("unshare", "-Ur", "sh", "-ec", script):
        raise unittest.SkipTest(f"no user namespace with limits of its own: {reason}")
    return ("unshare", "-Ur", "sh", "-ec", script + '; exec "$@"', "sh")


def descriptors(limit):
    """The beginning of a command that has this many file descriptors and no more."""
    if reason := refusal("prlimit", f"--nofile={limit}:{limit}", "true"):
        raise unittest.SkipTest(reason)
    return ("prlimit", f"--nofile={limit}:{limit}")


def compiled(case, name, *options):
    into = os.path.join(case.home, f"{name}.built")
    if reason := refusal("cc", "--version"):
        raise unittest.SkipTest(f"no C compiler: {reason}")
    source = os.path.join(HERE, "preload", name + ".c")
    done = subprocess.run(["cc", "-O1", "-fno-builtin", *options, "-o", into, source, "-ldl"], capture_output=True, text=True)
    case.assertEqual(done.returncode, 0, done.stderr)
    return into


def preloaded(case, name, **environment):
    """The beginning of a command that runs with preload/<name>.c between it and the system, and with these variables."""
    library = compiled(case, name, "-shared", "-fPIC")
    linked = subprocess.run(["ldd", os.path.join(build(), "earshotd")], capture_output=True, text=True).stdout
    first = re.findall(r"=> (\S*/libasan\.so\S*)", linked)  # the sanitizer's own library insists on being the first one
    return ("env", *(f"{key}={value}" for key, value in environment.items()), "LD_PRELOAD=" + " ".join([*first, library]))


class Notifications:
    """The kernel's own word on some directories, from an instance that nobody reads until the end."""

    def __init__(self, *directories, mask=IN_MODIFY):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for directory in directories:
            if libc.inotify_add_watch(self.fd, os.fsencode(directory), mask) < 0:
                raise OSError(ctypes.get_errno(), directory)

    def masks(self):
        found = []
        while True:
            try:
                data = os.read(self.fd, 1 << 20)
            except BlockingIOError:
                return found
            while data:
                _, mask, _, size = struct.unpack_from("iIII", data)
                found.append(mask)
                data = data[16 + size:]

    def close(self):
        os.close(self.fd)
