"""The walls stand, and would be seen to fall."""
import os
import shutil
import tempfile
import unittest

import dependencies


class Walls(unittest.TestCase):
    def test_the_walls_stand(self):
        self.assertEqual(dependencies.violations(dependencies.TOP), [])


class Seeded(unittest.TestCase):
    """Each of these, put into a copy, is caught; the copy has no other fault than those that the tree has."""

    def setUp(self):
        self.copy = tempfile.mkdtemp(prefix="earshot-walls-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.copy)
        for folder in ("daemon", "clients"):
            shutil.copytree(os.path.join(dependencies.TOP, folder), os.path.join(self.copy, folder), ignore=shutil.ignore_patterns("node_modules", "dist"))
        self.before = set(dependencies.violations(self.copy))

    def caught(self, path, text):
        whole = os.path.join(self.copy, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as file:
            file.write("// one line above\n" + text + "\n")
        new = [found for found in dependencies.violations(self.copy) if found not in self.before]
        self.assertEqual(len(new), 1, (path, text, new))
        self.assertTrue(new[0].startswith(path.split("/")[0] if "/" not in path else path), new)
        os.unlink(whole)

    def test_includes_against_the_grain(self):
        for room, name in (("core", "tail/stream.hpp"), ("watch", "core/event.hpp"), ("tail", "status/status.hpp"), ("status", "tail/stream.hpp"),
                           ("tail", "serve/hub.hpp"), ("serve", "relay/hub.hpp"), ("serve", "options.hpp"), ("core", "demo.hpp")):
            with self.subTest(room=room, name=name):
                self.caught(f"daemon/{room}/seeded.cpp", f'#include "{name}"')

    def test_core_and_the_outside(self):
        for name in ("sys/stat.h", "unistd.h", "boost/asio.hpp", "spdlog/spdlog.h", "openssl/sha.h"):
            with self.subTest(name=name):
                self.caught("daemon/core/seeded.cpp", f"#include <{name}>")

    def test_clients_and_the_daemon(self):
        self.caught("clients/cli/seeded.cpp", '#include "serve/hub.hpp"')
        self.caught("clients/cli/seeded.cpp", '#include "core/transcript.hpp"')
        self.caught("clients/notifier/replay.cpp", '#include "core/transcript.hpp"')

    def test_clients_and_one_another(self):
        for room, name in (("link", "cli/narrator.hpp"), ("link", "notifier/notice.hpp"), ("cli", "notifier/notice.hpp"), ("notifier", "cli/narrator.hpp")):
            with self.subTest(room=room, name=name):
                self.caught(f"clients/{room}/seeded.cpp", f'#include "{name}"')

    def test_dialects_and_places(self):
        self.caught("daemon/serve/seeded.cpp", 'bool old = dialect == "claude-flat";')
        self.caught("daemon/core/seeded.cpp", 'auto name = "claude-messages";')
        self.caught("daemon/attic/seeded.cpp", "int x;")
        self.caught("daemon/tail/utils.hpp", "int x;")
        self.caught("misc", "")

    def test_what_is_only_said_in_a_comment_is_no_violation(self):
        path = os.path.join(self.copy, "daemon/core/seeded.cpp")
        with open(path, "w") as file:
            file.write('// as in claude-flat\n/* #include <unistd.h>\n#include "tail/tail.hpp" */\n#include <vector>\n#include <simdjson.h>\n')
        self.assertEqual(set(dependencies.violations(self.copy)), self.before)
