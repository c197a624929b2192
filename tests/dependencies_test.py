"""The dependency rules hold, and violations of them are found."""
import os
import shutil
import tempfile
import unittest

import dependencies


class Tree(unittest.TestCase):
    def test_the_dependency_rules_hold(self):
        self.assertEqual(dependencies.violations(dependencies.TOP), [])


class Seeded(unittest.TestCase):
    """Each violation is written into an empty tree and must be the only one."""

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="earshot-dependencies-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.top)
        for folder in ("daemon", "clients"):
            os.mkdir(os.path.join(self.top, folder))

    def violations_of(self, path, text):
        whole_path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(whole_path), exist_ok=True)
        with open(whole_path, "w") as file:
            file.write("// one line above\n" + text + "\n")
        found = dependencies.violations(self.top)
        os.unlink(whole_path)
        return found

    def assert_found(self, path, text):
        new = self.violations_of(path, text)
        self.assertEqual(len(new), 1, (path, text, new))
        self.assertTrue(new[0].startswith(path), new)

    def test_includes_against_the_direction_are_found(self):
        for module, name in (("base", "core/event.hpp"), ("core", "agents/agent.hpp"), ("agents", "tail/tail.hpp"), ("watch", "core/event.hpp"),
                             ("redact", "core/event.hpp"), ("models", "agents/agent.hpp"), ("core", "models/model_table.hpp"), ("tail", "status/status.hpp"), ("status", "tail/stream.hpp"), ("tail", "serve/server.hpp"),
                             ("serve", "team/publisher.hpp"), ("serve", "config/options.hpp"), ("team", "config/options.hpp"), ("core", "daemon.hpp"),
                             ("agents/claude_code", "tail/tail.hpp"), ("serve/http", "team/publisher.hpp")):
            with self.subTest(module=module, name=name):
                self.assert_found(f"daemon/{module}/seeded.cpp", f'#include "{name}"')

    def test_libraries_that_base_and_core_may_not_use_are_found(self):
        for module in ("base", "core"):
            for name in ("boost/asio.hpp", "spdlog/spdlog.h", "openssl/sha.h", "curl/curl.h"):
                with self.subTest(module=module, name=name):
                    self.assert_found(f"daemon/{module}/seeded.cpp", f"#include <{name}>")
        for name in ("sys/stat.h", "unistd.h", "re2/re2.h"):
            with self.subTest(name=name):
                self.assert_found("daemon/core/seeded.cpp", f"#include <{name}>")

    def test_permitted_includes_are_not_reported(self):
        for path, text in (("daemon/base/seeded.cpp", "#include <simdjson.h>\n#include <re2/re2.h>\n#include <utf8proc.h>\n#include <unistd.h>\n#include <sys/stat.h>"),
                           ("daemon/core/seeded.cpp", '#include <xxhash.h>\n#include "base/text.hpp"'), ("daemon/team/seeded.cpp", '#include "serve/server.hpp"'),
                           ("daemon/seeded.cpp", '#include "config/options.hpp"'), ("clients/cli/seeded.cpp", '#include "base/quantities.hpp"\n#include "version/version.hpp"'),
                           ("clients/cli/replay_seeded.cpp", '#include "core/transcript.hpp"\n#include "redact/redactor.hpp"'),
                           ("daemon/serve/seeded.cpp", '#include "models/model_table.hpp"'), ("clients/cli/usage_seeded.cpp", '#include "models/model_table.hpp"')):
            with self.subTest(path=path):
                self.assertEqual(self.violations_of(path, text), [])

    def test_clients_that_include_modules_of_the_daemon_are_found(self):
        self.assert_found("clients/cli/seeded.cpp", '#include "serve/server.hpp"')
        self.assert_found("clients/cli/seeded.cpp", '#include "core/transcript.hpp"')
        self.assert_found("clients/cli/replay_seeded.cpp", '#include "tail/tail.hpp"')
        self.assert_found("clients/notifier/replay.cpp", '#include "core/transcript.hpp"')

    def test_clients_that_include_each_other_are_found(self):
        for module, name in (("common", "cli/style.hpp"), ("common", "notifier/notice.hpp"), ("cli", "notifier/notice.hpp"), ("notifier", "cli/style.hpp")):
            with self.subTest(module=module, name=name):
                self.assert_found(f"clients/{module}/seeded.cpp", f'#include "{name}"')

    def test_names_of_an_agent_program_outside_its_directory_are_found(self):
        self.assert_found("daemon/serve/seeded.cpp", 'bool old = dialect == "claude-flat";')
        self.assert_found("daemon/core/seeded.cpp", 'auto name = "claude-messages";')
        self.assert_found("daemon/tail/seeded.cpp", 'auto result = record["toolUseResult"];')
        self.assert_found("daemon/core/seeded.cpp", 'auto side = record["isSidechain"];')
        self.assert_found("clients/cli/seeded.cpp", 'auto parent = record["parentUuid"];')
        self.assert_found("daemon/status/seeded.cpp", 'auto start = entry["procStart"];')
        self.assert_found("daemon/serve/seeded.cpp", 'auto home = path / ".claude";')
        self.assert_found("daemon/status/seeded.cpp", 'auto root = getenv("CLAUDE_CONFIG_DIR");')
        self.assert_found("daemon/core/seeded.cpp", 'auto program = "claude-code";')
        self.assertEqual(self.violations_of("daemon/agents/claude_code/seeded.cpp", 'auto parent = record["parentUuid"];'), [])

    def test_unknown_modules_and_misplaced_files_are_found(self):
        self.assert_found("daemon/attic/seeded.cpp", "int x;")
        self.assert_found("daemon/tail/utils.hpp", "int x;")
        self.assert_found("misc", "")

    def test_comments_are_ignored(self):
        self.assertEqual(self.violations_of("daemon/core/seeded.cpp", "// as in claude-flat\n/* #include <unistd.h>\n#include \"tail/tail.hpp\" */\n"
                                             "#include <vector>\n#include <simdjson.h>"), [])
