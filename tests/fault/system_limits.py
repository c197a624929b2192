"""Changes the system below the daemon: limits in a user namespace, and preloaded libraries (preload/) that intercept system calls.
Where the machine does not allow it, the test is skipped with the reason."""
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
    """Why this command cannot run here; empty if it can."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=deadline_s)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    return "" if done.returncode == 0 else f"{' '.join(command)}: {done.stderr.strip()}"


def limited(**limits):
    """A command prefix: runs in a user namespace with these limits of /proc/sys/user."""
    script = "; ".join(f"echo {value} > /proc/sys/user/{name}" for name, value in limits.items())
    if reason := refusal("unshare", "-Ur", "sh", "-ec", script):
        raise unittest.SkipTest(f"user namespaces with their own limits are not available: {reason}")
    return ("unshare", "-Ur", "sh", "-ec", script + '; exec "$@"', "sh")


def descriptors(limit):
    """A command prefix: limits the number of file descriptors."""
    if reason := refusal("prlimit", f"--nofile={limit}:{limit}", "true"):
        raise unittest.SkipTest(reason)
    return ("prlimit", f"--nofile={limit}:{limit}")


def compiled(case, name, *options):
    program = os.path.join(case.home, f"{name}.built")
    if reason := refusal("cc", "--version"):
        raise unittest.SkipTest(f"no C compiler: {reason}")
    source = os.path.join(HERE, "preload", name + ".c")
    done = subprocess.run(["cc", "-O1", "-fno-builtin", *options, "-o", program, source, "-ldl"], capture_output=True, text=True)
    case.assertEqual(done.returncode, 0, done.stderr)
    return program


def preloaded(case, name, **environment):
    """A command prefix: preloads preload/<name>.c and sets these variables."""
    return ("env", *(f"{key}={value}" for key, value in environment.items()), f"LD_PRELOAD={preload_value(case, name, os.path.join(build(), 'earshotd'))}")


def preload_value(case, name, program):
    """LD_PRELOAD for preload/<name>.c. The sanitizer's library, if the program uses it, must be the first one."""
    library = compiled(case, name, "-shared", "-fPIC")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return " ".join([*re.findall(r"=> (\S*/libasan\.so\S*)", linked), library])


class Notifications:
    """An inotify instance on some directories, to see what the kernel reported."""

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
