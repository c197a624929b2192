"""Startup: options, the configuration file, roots, the demo."""
import os

from support.endpoints import EndpointCase
from support.harness import DaemonCase
from support.transcripts import Session


class Configuration(DaemonCase):
    def refused(self, text):
        """The stderr of a daemon that refuses this configuration."""
        daemon = self.configured(text, ready=False)
        self.assertEqual(daemon.wait_exit(), 2, daemon.stderr())
        return daemon.stderr().decode()

    def test_an_unknown_key_is_reported_with_its_line_and_the_nearest_key(self):
        stderr = self.refused('log_level = "info"\n\nrecnet = "24h"\n')
        for word in ("earshot.toml:3", "recnet", "recent"):
            self.assertIn(word, stderr)

    def test_a_wrong_type_is_reported_with_its_line(self):
        stderr = self.refused("recent = [1, 2]\n")
        for word in ("earshot.toml:1", "recent"):
            self.assertIn(word, stderr)

    def test_a_syntax_error_is_reported_with_its_line(self):
        self.assertIn("earshot.toml:2", self.refused('recent = "1h"\nlog_level = \n'))

    def test_an_invalid_duration_is_refused(self):
        self.assertIn("recent", self.refused('recent = "yesterday"\n'))

    def test_an_unknown_option_is_a_usage_error(self):
        daemon = self.start("--colour", ready=False)
        self.assertEqual(daemon.wait_exit(), 2)
        self.assertIn("--colour", daemon.stderr().decode())

    def test_a_configured_root_is_followed(self):
        other = os.path.join(self.home, "other")
        os.mkdir(other)
        daemon = self.configured(f'root = ["mine={other}"]\n', roots=["ignored=" + self.root])
        client = daemon.subscriber()
        daemon.stop()  # the command line takes precedence
        daemon = self.configured(f'root = ["mine={other}"]\n', roots=())
        client = daemon.subscriber()
        session = Session(other)
        session.prompt("hello")
        self.assertEqual(client.wait_frame(type="session.started")["stream"], f"mine/-home-ada-api/{session.session}")

    def test_two_roots_with_one_name_are_an_error(self):
        daemon = self.start(roots=[f"a={self.root}", f"a={self.home}"], ready=False)
        self.assertEqual(daemon.wait_exit(), 2)
        self.assertIn("a", daemon.stderr().decode())

    def test_an_absent_root_is_logged_and_not_an_error(self):
        daemon = self.start(roots=[self.root, os.path.join(self.home, "nowhere")])
        daemon.wait_log("nowhere")
        client = daemon.subscriber()
        Session(self.root).prompt("hello")
        client.wait_frame(type="turn.started")


class Demo(EndpointCase):
    def test_the_demo_emits_a_session_within_its_first_loop(self):
        daemon = self.start("--demo", roots=())
        programs = ("claude-code", "codex", "copilot", "pi")
        self.assertEqual([(root["name"], root["program"]) for root in self.health(daemon)["roots"]], [(f"demo-{program}", program) for program in programs])
        client = daemon.subscriber()
        seen = lambda type: client.find(type=type)
        client.wait(lambda: all(map(seen, ("session.started", "turn.started", "message.added", "tool.invoked", "tool.finished"))),
                    "the demo's first events")
        client.wait(lambda: any(f["state"] == "waiting" and f.get("reason") == "permission" for f in client.all(type="status")),
                    "the demo's permission prompt")
        client.wait_frame(type="turn.finished")
        daemon.stop()
        left = [name for name in os.listdir(self.home) if name not in ("claude", "state", ".config") and not name.startswith("run-")]
        self.assertEqual(left, [])  # its directory was removed
