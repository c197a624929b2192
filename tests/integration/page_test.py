"""The page at `/` in a real browser: properties of both the dashboard and the plain page, whichever this build has."""
import contextlib
import http.server
import json
import os
import socket
import threading
import time
import unittest

import browser
from support.endpoints import HttpCase, curl
from support.harness import wait_for
from support.transcripts import Registry, Session

CODE_SECONDS = 60  # how long a one-time code is valid


class Impostor(http.server.BaseHTTPRequestHandler):
    """Another user's program on the daemon's port. Its page registers a service worker that answers every later visit; both may be cached."""

    WORKER = "/other/w.js?" + "x" * 10000  # longer than a request that the daemon reads
    PAGE = f"""<!doctype html><title>impostor</title><script>
        navigator.serviceWorker.register({json.dumps(WORKER)}, {{scope: "/", updateViaCache: "none"}})
            .then(() => navigator.serviceWorker.ready).then(() => document.title += ", registered")</script>"""
    SCRIPT = """onactivate = () => clients.claim();
        onfetch = (event) => event.request.mode == "navigate" &&
            event.respondWith(new Response("<title>impostor's worker</title>", {headers: {"Content-Type": "text/html"}}))"""

    def do_GET(self):
        body = self.SCRIPT if self.path == self.WORKER else self.PAGE
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path == self.WORKER else "text/html")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Cache-Control", "max-age=31536000, immutable")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class ImpostorServer(http.server.ThreadingHTTPServer):
    def __init__(self, port):
        super().__init__(("127.0.0.1", port), Impostor)
        self.connections = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @classmethod
    def listen(cls, port):
        """None while another program uses the port."""
        try:
            return cls(port)
        except OSError:
            return None

    def process_request(self, request, address):
        self.connections.append(request)
        super().process_request(request, address)

    def close(self):
        """As when the process ends: the browser has opened connections that it has not used yet."""
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@unittest.skipUnless(browser.program(), "chromium is not installed: run ./dev deps")
class Page(HttpCase):
    def open(self, daemon, path="/", code=False):
        page = browser.Browser(self.home)
        self.addCleanup(page.close)
        if code:
            self.sign_in(page, daemon)
        else:
            page.navigate(f"http://127.0.0.1:{daemon.port}{path}")
        return page

    def sign_in(self, page, daemon):
        """With another code if this machine was too slow for the first."""
        while True:
            created = time.monotonic()
            page.navigate(self.code(daemon))
            state = wait_for(lambda: (page.text("#state") or "").strip().replace("Connecting…", ""), "an answer to the code")
            if "already used" not in state or time.monotonic() - created < CODE_SECONDS:
                return
            page.errors.clear()  # the refusal

    def code(self, daemon):
        return json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])["url"]

    def test_a_page_with_a_code_shows_live_sessions(self):
        daemon = self.start()
        session = Session(self.root, cwd="/home/ada/api")
        hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
        session.prompt(hostile)
        registry = Registry(self.root, session.session, self.process())  # without a process the session soon ends
        registry.set_status("busy")
        page = self.open(daemon, code=True)
        page.wait_text("#state", "Live")
        page.wait_text("#sessions", hostile)
        page.wait_text("#sessions", "/home/ada/api")
        self.assertEqual(page.evaluate("document.title"), "earshot")
        self.assertEqual(page.evaluate("location.href"), f"http://127.0.0.1:{daemon.port}/")  # without the code
        self.assertEqual(page.evaluate("document.cookie + Object.keys({...localStorage, ...sessionStorage}).join()"), "")
        page.wait_text("#sessions .status", "working")
        session.reply("All done.", stop_reason="end_turn")
        registry.set_status("idle")
        state = "document.querySelector('#sessions .status').dataset.state"  # in both pages: the dashboard displays a recent one as done
        wait_for(lambda: page.evaluate(state) == "idle", "idle")
        page.wait_text("#sessions", "All done.")
        other = self.held_open(Session(self.root, cwd="/home/ada/web"))
        other.prompt("a second one")
        page.wait_text("#sessions", "a second one")
        page.evaluate("location.reload()")
        page.wait_text("#sessions", "a second one")  # the browser has stored its key
        self.assertEqual(page.errors, [])
        if where := os.environ.get("EARSHOT_SCREENSHOT"):
            page.screenshot(where)

    def test_a_page_without_a_code_explains_how_to_sign_in(self):
        page = self.open(self.start())
        page.wait_text("#state", "Not signed in")
        page.wait_text("#help", "earshot open")
        self.assertEqual(page.errors, [])

    def test_a_used_code_is_reported(self):
        daemon = self.start()
        first = self.open(daemon)
        first.wait_text("#state", "Not signed in")
        url = self.code(daemon)
        first.navigate(url)
        first.wait_text("#state", "Live")
        second = self.open(daemon, "/#" + url.split("#")[1])
        second.wait_text("#state", "already used")
        self.assertEqual(second.evaluate("location.hash"), "")

    def test_the_sign_in_survives_a_restart_and_ends_with_the_token(self):
        daemon = self.start()
        page = self.open(daemon, code=True)
        page.wait_text("#state", "Live")
        daemon.stop()
        page.wait_text("#state", "Retrying")
        again = self.start_again(daemon)
        page.wait_text("#state", "Live")
        curl(again, "/v1/token/rotate", "-X", "POST", unix=True)
        page.wait_text("#state", "signed out")
        page.navigate(self.code(again))
        page.wait_text("#state", "Live")
        curl(again, "/v1/browsers/revoke", "-d", '{"all":true}', unix=True)
        page.wait_text("#state", "signed out")

    def test_144_the_service_worker_of_an_impostor_does_not_survive_the_daemon_s_return(self):
        daemon = self.start()
        page = self.open(daemon, code=True)
        page.wait_text("#state", "Live")
        daemon.stop()
        bookmark = f"http://127.0.0.1:{daemon.port}/"
        impostor = wait_for(lambda: ImpostorServer.listen(daemon.port), "a free port")
        self.addCleanup(impostor.server_close)
        title = lambda: page.evaluate("document.title")
        page.navigate(bookmark)
        wait_for(lambda: title() == "impostor, registered", "the registration")
        page.navigate(bookmark + "?session=1#fragment")
        wait_for(lambda: title() == "impostor's worker", "the worker")
        impostor.close()
        self.start_again(daemon)
        page.navigate("about:blank")
        page.navigate(bookmark + "?session=1#fragment")
        page.wait_text("#state", "Live")
        registrations = "navigator.serviceWorker.getRegistrations().then((all) => [all.length, String(navigator.serviceWorker.controller)])"
        wait_for(lambda: page.evaluate(registrations) == [0, "null"], "no worker")
        page.navigate(bookmark)
        page.wait_text("#state", "Live")

    def test_the_page_cannot_connect_to_other_servers(self):
        daemon, other = self.start(), self.start(state=os.path.join(self.home, "other"))
        page = self.open(daemon)
        page.wait_text("#state", "Not signed in")
        blocked = page.evaluate(f"fetch('http://127.0.0.1:{other.port}/healthz', {{mode: 'no-cors'}}).then(() => 'reached', () => 'blocked')")
        self.assertEqual(blocked, "blocked")
        self.assertEqual(page.evaluate("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch { return 'refused' } })()"), "refused")
        wait_for(lambda: any("Content Security Policy" in text for text in page.errors), "the browser's error")
