"""Redirects of webhooks, in a network namespace that has a public address, to test redirects from public to private addresses."""
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
    """Brings up the loopback device of this network namespace and adds the two addresses."""
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", 0x1 | 0x8 | 0x40))
    for n, address in enumerate((PUBLIC, PRIVATE)):
        request = struct.pack("16sHH4s8x", b"lo:%d" % n, socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(control, SIOCSIFADDR, request)
        fcntl.ioctl(control, SIOCSIFNETMASK, struct.pack("16sHH4s8x", b"lo:%d" % n, socket.AF_INET, 0, b"\xff\xff\xff\xff"))


def run_in_namespace():
    """Runs in the namespace; prints the result for each kind of redirect as JSON."""
    from support.notifier import Receiver

    give_addresses()
    results = {}
    for name, first, then in (("outside to loopback", PUBLIC, "127.0.0.1"), ("outside to a private address", PUBLIC, PRIVATE),
                              ("outside to outside", PUBLIC, PUBLIC), ("inside to inside", "127.0.0.1", PRIVATE)):
        last = Receiver(address=then)
        first_hop = Receiver((307, {"Location": last.url + "/moved"}), address=first)
        home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        rules = os.path.join(home, "notify.toml")
        with open(rules, "w") as file:
            file.write(f'sinks = ["hook"]\n[sink.hook]\nkind = "json"\nurl = "{first_hop.url}"\ntoken_env = "TOKEN"\n')
        done = subprocess.run([os.path.join(build(), "earshot-notify"), "test", "permission", "--send", "--rules", rules], capture_output=True, text=True,
                              env={**clean_environment(home), "TOKEN": "t0ken"}, timeout=deadline_s * 4)
        results[name] = {"code": done.returncode, "stderr": done.stderr, "asked": len(first_hop.requests), "reached": len(last.requests),
                         "token": [r["headers"].get("Authorization") for r in first_hop.requests + last.requests]}
        os.unlink(rules)
        os.rmdir(home)
    print(json.dumps(results))


class Redirects(DaemonCase):
    def test_a_redirect_from_a_public_to_a_private_address_is_refused(self):
        try:
            able = subprocess.run([*UNSHARED, "true"], capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("unshare is not installed")
        if able.returncode != 0:
            self.skipTest(f"network namespaces are not available: {able.stderr.strip()}")
        done = subprocess.run([*UNSHARED, sys.executable, __file__, "in-namespace"], capture_output=True, text=True, timeout=deadline_s * 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)
        for name in ("outside to loopback", "outside to a private address"):
            with self.subTest(way=name):
                got = results[name]
                self.assertEqual((got["asked"], got["reached"], got["code"]), (1, 0, 1), got)
                self.assertIn("a redirect to the private address", got["stderr"])
        for name in ("outside to outside", "inside to inside"):
            with self.subTest(way=name):
                got = results[name]
                self.assertEqual((got["asked"], got["reached"], got["code"]), (1, 1, 0), got)
                self.assertEqual(got["token"], ["Bearer t0ken", None], "the token is sent only to the configured host")


if __name__ == "__main__":
    if sys.argv[1:] == ["in-namespace"]:
        run_in_namespace()
    else:
        unittest.main()
