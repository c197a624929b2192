"""Redirects of webhooks, in a network of our own: there a public address is ours, so that what leads from outside to inside can be tried."""
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from support.harness import DaemonCase, build, clean_environment, deadline_s

PUBLIC, PRIVATE = "198.200.1.1", "10.9.8.7"
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8914
UNSHARED = ("unshare", "--user", "--map-root-user", "--net", "--")


def give_addresses():
    """To the loopback device of this network namespace: it is up, and has these two besides its own."""
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", 0x1 | 0x8 | 0x40))
    for n, address in enumerate((PUBLIC, PRIVATE)):
        place = struct.pack("16sHH4s8x", b"lo:%d" % n, socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(control, SIOCSIFADDR, place)
        fcntl.ioctl(control, SIOCSIFNETMASK, struct.pack("16sHH4s8x", b"lo:%d" % n, socket.AF_INET, 0, b"\xff\xff\xff\xff"))


def within():
    """In the namespace: what became of a notice for each way that it was redirected, as JSON."""
    from support.notifier import Receiver

    give_addresses()
    results = {}
    for name, first, then in (("outside to loopback", PUBLIC, "127.0.0.1"), ("outside to a private address", PUBLIC, PRIVATE),
                              ("outside to outside", PUBLIC, PUBLIC), ("inside to inside", "127.0.0.1", PRIVATE)):
        last = Receiver(address=then)
        door = Receiver((307, {"Location": last.url + "/moved"}), address=first)
        home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        rules = os.path.join(home, "notify.toml")
        with open(rules, "w") as file:
            file.write(f'sinks = ["hook"]\n[sink.hook]\nkind = "json"\nurl = "{door.url}"\ntoken_env = "TOKEN"\n')
        done = subprocess.run([os.path.join(build(), "earshot-notify"), "test", "permission", "--send", "--rules", rules], capture_output=True, text=True,
                              env={**clean_environment(home), "TOKEN": "t0ken"}, timeout=deadline_s * 4)
        results[name] = {"code": done.returncode, "said": done.stderr, "asked": len(door.requests), "reached": len(last.requests),
                         "token": [r["headers"].get("Authorization") for r in door.requests + last.requests]}
        os.unlink(rules)
        os.rmdir(home)
    print(json.dumps(results))


class Redirects(DaemonCase):
    def test_a_redirect_to_this_machine_or_a_private_network_is_refused_unless_the_webhook_is_there_itself(self):
        try:
            able = subprocess.run([*UNSHARED, "true"], capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("unshare is not installed")
        if able.returncode != 0:
            self.skipTest(f"no network namespace of our own: {able.stderr.strip()}")
        done = subprocess.run([*UNSHARED, sys.executable, __file__, "within"], capture_output=True, text=True, timeout=deadline_s * 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)
        for name in ("outside to loopback", "outside to a private address"):
            with self.subTest(way=name):
                got = results[name]
                self.assertEqual((got["asked"], got["reached"], got["code"]), (1, 0, 1), got)
                self.assertIn("a redirect to the private address", got["said"])
        for name in ("outside to outside", "inside to inside"):
            with self.subTest(way=name):
                got = results[name]
                self.assertEqual((got["asked"], got["reached"], got["code"]), (1, 1, 0), got)
                self.assertEqual(got["token"], ["Bearer t0ken", None], "a token is for where the configuration says, only")


if __name__ == "__main__":
    if sys.argv[1:] == ["within"]:
        within()
    else:
        unittest.main()
