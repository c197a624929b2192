"""What is reported to the daemon about a session (a status line, "I have seen it"), and what it says about its process and its page."""
import json
import os
import socket
import subprocess
import threading
import unittest

from support.browser_key import BrowserKey
from support.endpoints import EndpointCase, curl, parse_response
from support.harness import build, deadline_s, earshot, sanitized, wait_for
from support.transcripts import Registry, Session

NOBODY = 65534
WINDOW = 123_456  # of no model in the table


def status_line(session, window=WINDOW, percent=25, **more):
    return {"session_id": session.session, "transcript_path": session.path, "cwd": "/home/ada/api", "model": {"id": "opus", "display_name": "Opus"},
            "workspace": {"current_dir": "/home/ada/api", "project_dir": "/home/ada"}, "version": "2.1.207",
            "cost": {"total_cost_usd": 0.5, "total_duration_ms": 1000},
            "context_window": {"context_window_size": window, "used_percentage": 10},
            "rate_limits": {"five_hour": {"used_percentage": percent, "resets_at": 1_795_000_000}}, **more}


class ReportsCase(EndpointCase):
    def post(self, daemon, path, body, *args, unix=True, **more):
        text = body if isinstance(body, str) else json.dumps(body)
        return curl(daemon, path, "-X", "POST", "--data-binary", text, "-H", "Content-Type: application/json", *args, unix=unix, **more)

    def shown(self, daemon, session):
        sessions = json.loads(curl(daemon, "/v1/sessions", unix=True)[2])["sessions"]
        return next((s for s in sessions if s["session"] == session.session), None)

    def shown_without_status(self, daemon, session):
        """The status changes while the test runs, since no process runs this session: from `idle` to `ended`."""
        return {name: value for name, value in self.shown(daemon, session).items() if name not in ("status", "times")}

    def followed(self, configuration=""):
        """(daemon, client, a session with a finished turn that the daemon has read)"""
        daemon = self.configured(configuration)
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        client.wait_frame(type="turn.finished", session=session.session)
        return daemon, client, session

    def resident(self, daemon):
        with open(f"/proc/{daemon.process.pid}/status") as status:
            return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) << 10


class StatusLine(ReportsCase):
    def test_a_status_line_adds_context_window_and_limits(self):
        daemon, client, session = self.followed()
        other = Session(self.root, cwd="/home/ada/web")
        other.turn("hello")
        client.wait_frame(type="turn.finished", session=other.session)
        status, headers, body = self.post(daemon, "/v1/statusline", status_line(session))
        self.assertEqual((status, body), (204, b""))
        self.assertNotIn("content-length", headers)
        frame = client.wait(lambda: next((f for f in client.all(type="session", session=session.session) if "limits" in f), None), "the frame with limits")
        self.assertEqual(frame["usage"]["context_window"], WINDOW)
        self.assertEqual([{k: v for k, v in limit.items() if k != "time"} for limit in frame["limits"]],
                         [{"limit": "claude", "windows": [{"name": "five_hour", "used_percent": 25, "window_minutes": 300, "resets_at": "2026-11-18T11:06:40.000Z"}]}])
        self.assertEqual(self.shown(daemon, other)["limits"], frame["limits"])
        self.assertNotEqual(self.shown(daemon, other)["usage"].get("context_window"), WINDOW)

    def test_bad_status_lines_are_refused_and_change_nothing(self):
        daemon, _, session = self.followed()
        before = self.shown_without_status(daemon, session)
        for text, reason in (("", b"not a JSON object"), ("[1]", b"not a JSON object"), ("{" * 5000, b"not a JSON object"), ("{}", b"no session"),
                             ('{"session_id":1}', b"no session")):
            status, _, body = self.post(daemon, "/v1/statusline", text)
            self.assertEqual(status, 400, text)
            self.assertIn(reason, body)
        wrong = status_line(session, window=-1, percent="much", cost=[], workspace=7, rate_limits={"five_hour": 7, "seven_day": {"used_percentage": 1e300}})
        self.assertEqual(self.post(daemon, "/v1/statusline", wrong)[0], 204)  # parsed tolerantly: nothing is known
        for session_id in ("x" * 257, "unknown"):
            self.post(daemon, "/v1/statusline", status_line(session) | {"session_id": session_id})
        self.assertEqual(self.shown_without_status(daemon, session), before)

    def test_it_is_for_the_owner_on_the_socket_only(self):
        daemon, _, session = self.followed()
        for token in (True, False):
            self.assertEqual(self.post(daemon, "/v1/statusline", status_line(session), unix=False, token=token)[0], 403)
        self.assertEqual(self.post(daemon, "/v1/statusline", status_line(session), "-H", "Origin: http://localhost")[0], 403)
        self.assertNotIn("limits", self.shown(daemon, session))

    @unittest.skipUnless(os.geteuid() == 0, "only root can connect as another user")
    def test_another_user_is_refused(self):
        daemon, _, session = self.followed()
        os.chmod(daemon.socket, 0o666)
        folder = os.path.dirname(daemon.socket)
        while folder != "/":
            os.chmod(folder, os.stat(folder).st_mode | 0o011)
            folder = os.path.dirname(folder)
        for path, *args in (("/v1/statusline", "--data-binary", json.dumps(status_line(session))), ("/v1/seen", "--data-binary", "{}"),
                            ("/v1/process?session=" + session.session,)):
            done = subprocess.run(["curl", "-sS", "-i", "--max-time", str(deadline_s * 4), "--unix-socket", daemon.socket, *args, "http://localhost" + path],
                                  capture_output=True, user=NOBODY, group=NOBODY, cwd="/")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(parse_response(done.stdout)[0], 403, path)
        self.assertNotIn("limits", self.shown(daemon, session))

    def test_more_than_64_KiB_is_refused_in_bounded_memory(self):
        daemon, _, session = self.followed('[limits]\nclose = "1m"\n')  # the default is too short for a slow client that sends 10 MB
        fits = json.dumps(status_line(session, padding=""))
        fits = json.dumps(status_line(session, padding="x" * ((64 << 10) - len(fits))))
        self.assertEqual(len(fits), 64 << 10)
        before = self.shown_without_status(daemon, session)
        peak = self.resident(daemon)
        path = os.path.join(self.home, "body")
        for body in (fits + " ", json.dumps(status_line(session, padding="x" * (10 << 20)))):
            with open(path, "w") as file:
                file.write(body)
            for chunked in ((), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect:")):
                status, _, text = curl(daemon, "/v1/statusline", "-X", "POST", "--data-binary", "@" + path, *chunked, unix=True)
                self.assertEqual((status, text), (413, b"the body of the request is too long\n"), chunked)
        self.assertEqual(self.shown_without_status(daemon, session), before)
        if not sanitized(build()):
            self.assertLess(self.resident(daemon) - peak, 4 << 20)
        self.assertEqual(self.post(daemon, "/v1/statusline", fits)[0], 204)
        self.assertIn("limits", self.shown(daemon, session))
        self.assertEqual(curl(daemon, "/v1/seen", "-X", "POST", "--data-binary", "@" + path, unix=True)[0], 413)

    def test_ten_megabytes_are_read_to_the_end_before_the_connection_closes(self):
        daemon = self.configured('[limits]\nclose = "1m"\n')  # on a loaded machine the default is too short
        body = b"x" * (10 << 20)
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(deadline_s * 4)
            one.connect(daemon.socket)
            one.sendall(b"POST /v1/statusline HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)  # no broken pipe
            self.assertEqual(one.recv(1 << 16).split(b" ")[1], b"413")

    def test_a_slow_body_gets_408_and_delays_no_other_request(self):
        daemon = self.configured("[limits]\nhandshake = \"2s\"\n")

        def answered():
            """The response; none if a connection was closed as silent before a busy machine sent its request."""
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(deadline_s * 4)
                one.connect(daemon.socket)
                try:
                    one.sendall(b'POST /v1/statusline HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"session_id":')
                    status = curl(daemon, "/healthz", unix=True)[0]
                except (OSError, AssertionError):
                    return None
                self.assertEqual(status, 200)
                return one.recv(1 << 16)

        self.assertEqual(wait_for(answered, "a response").split(b" ")[1], b"408")

    def test_many_status_lines_at_once(self):
        daemon, _, session = self.followed()
        failed = []

        def send(n):
            try:
                self.assertEqual(self.post(daemon, "/v1/statusline", status_line(session, percent=n))[0], 204)
            except AssertionError as error:
                failed.append(error)

        threads = [threading.Thread(target=send, args=[n]) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertIn("limits", self.shown(daemon, session))


class Seen(ReportsCase):
    def unseen(self, daemon, session):
        return self.shown(daemon, session).get("unseen", False)

    def test_a_finished_turn_is_unseen_until_it_was_seen(self):
        daemon, client, session = self.followed()
        client.wait_frame(type="session", session=session.session, unseen=True)
        self.assertTrue(self.unseen(daemon, session))
        self.assertEqual(self.post(daemon, "/v1/seen", {"session": session.session}, unix=False)[0], 204)
        client.wait(lambda: "unseen" not in client.all(type="session", session=session.session)[-1], "the frame without `unseen`")
        self.assertFalse(self.unseen(daemon, session))
        session.turn("again")
        client.wait(lambda: client.all(type="session", session=session.session)[-1].get("unseen"), "the next turn to be unseen")
        session.prompt("and again")
        client.wait(lambda: "unseen" not in client.all(type="session", session=session.session)[-1], "a new turn")

    def test_a_session_that_was_printed_counts_as_seen_except_as_json(self):
        daemon, client, session = self.followed()
        client.wait_frame(type="session", session=session.session, unseen=True)
        for options, unseen in ((("--json",), True), ((), False)):
            shown = earshot("show", session.session, "--state", self.state, *options, home=self.home)
            self.assertEqual(shown.returncode, 0, shown)
            self.assertEqual(self.unseen(daemon, session), unseen, options)

    def test_bad_requests(self):
        daemon, _, session = self.followed()
        self.assertEqual(self.post(daemon, "/v1/seen", {"session": "unknown"})[0], 404)
        for body in ("", "[]", "{}", {"session": 1}):
            self.assertEqual(self.post(daemon, "/v1/seen", body)[0], 400, body)
        self.assertEqual(self.post(daemon, "/v1/seen", {"session": session.session}, unix=False, token=False)[0], 401)
        self.assertTrue(self.unseen(daemon, session))

    def test_a_browser_may_mark_sessions(self):
        daemon, _, session = self.followed()
        code = json.loads(self.post(daemon, "/v1/codes", "")[2])["code"]
        browser = BrowserKey(daemon.port)
        self.assertEqual(browser.register(code)[0], 200)
        self.assertEqual(browser.authorised("POST", "/v1/seen", {"session": session.session})[0], 204)
        self.assertFalse(self.unseen(daemon, session))

    def test_marks_survive_a_restart_and_turns_in_between_are_unseen(self):
        old = Session(self.root)
        old.turn("before the daemon ever ran")
        daemon, client, seen = self.followed()
        unseen, later = Session(self.root), Session(self.root)
        unseen.turn("not looked at")
        later.turn("first")
        for session in (unseen, later):
            client.wait_frame(type="session", session=session.session, unseen=True)
        for session in (seen, later):
            self.post(daemon, "/v1/seen", {"session": session.session})
        self.assertEqual([self.unseen(daemon, s) for s in (old, seen, unseen, later)], [False, False, True, False])
        daemon.stop()
        later.turn("while nothing ran")
        daemon = self.start()
        for session in (old, seen, unseen, later):
            self.wait_session(daemon, session)
        self.assertEqual([self.unseen(daemon, s) for s in (old, seen, unseen, later)], [False, False, True, True])

    def test_a_mark_is_stored_while_the_daemon_runs(self):
        daemon, _, session = self.followed()
        self.post(daemon, "/v1/seen", {"session": session.session})
        path = os.path.join(self.state, "seen.json")

        def stored():
            try:
                with open(path) as file:
                    return session.session in json.load(file)["sessions"]
            except FileNotFoundError:
                return False

        wait_for(stored, "the file of marks")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.start()
        self.wait_session(daemon, session)
        self.assertFalse(self.unseen(daemon, session))

    def test_a_torn_or_foreign_file_is_set_aside(self):
        path = os.path.join(self.state, "seen.json")
        session = Session(self.root)
        session.turn("hello")
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        for garbage in (b"", b'{"seen":1,"begin":1,"sess', b"\x00" * 100, b"x" * (5 << 20)):
            with open(path, "wb") as file:
                file.write(garbage)
            daemon = self.start()
            daemon.wait_log("seen.json is unreadable")
            with open(path + ".torn", "rb") as file:
                self.assertEqual(file.read(), garbage)
            self.wait_session(daemon, session)
            self.assertFalse(self.unseen(daemon, session))
            daemon.stop()
            with open(path) as file:
                self.assertEqual(json.load(file)["sessions"], {})


class Process(ReportsCase):
    def process_of(self, daemon, session):
        return curl(daemon, "/v1/process?session=" + session.session, unix=True)

    def test_the_process_in_the_registry(self):
        daemon, client, session = self.followed()
        self.assertEqual(self.process_of(daemon, session)[0], 404)
        process = self.process()
        Registry(self.root, session.session, process).set_status("idle")
        client.wait_frame(type="status", session=session.session, source="registry")
        status, _, body = self.process_of(daemon, session)
        self.assertEqual((status, json.loads(body)), (200, {"session": session.session, "program": "claude-code", "pid": process.pid, "source": "registry"}))
        process.kill()
        process.wait()
        self.assertEqual(self.process_of(daemon, session)[0], 404)

    def test_bad_requests(self):
        daemon, _, session = self.followed()
        self.assertEqual(curl(daemon, "/v1/process", unix=True)[0], 400)
        self.assertEqual(curl(daemon, "/v1/process?session=", unix=True)[0], 400)
        self.assertEqual(curl(daemon, "/v1/process?session=unknown", unix=True)[0], 404)
        self.assertEqual(curl(daemon, "/v1/process?session=" + session.session)[0], 403)


class PageAddress(ReportsCase):
    def test_welcome_names_the_page(self):
        daemon = self.start()
        self.assertEqual(daemon.subscriber().wait_frame(type="welcome")["url"], f"http://127.0.0.1:{daemon.port}/")
        self.assertEqual(self.unix_client(daemon).wait_frame(type="welcome")["url"], f"http://127.0.0.1:{daemon.port}/")


if __name__ == "__main__":
    unittest.main()
