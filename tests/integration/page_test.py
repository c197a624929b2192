"""The page at `/`, in a real browser: what holds of the dashboard and of the plain one, whichever this build has."""
import json
import os
import unittest

import browser
from support.endpoints import HttpCase, curl
from support.harness import wait_for
from support.transcripts import Session


@unittest.skipUnless(browser.program(), "there is no chromium: ./dev deps installs it")
class Page(HttpCase):
    def open(self, daemon, path="/", code=False):
        page = browser.Browser(self.home)
        self.addCleanup(page.close)
        page.go(self.code(daemon) if code else f"http://127.0.0.1:{daemon.port}{path}")
        return page

    def code(self, daemon):
        return json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])["url"]

    def test_whoever_comes_with_a_code_sees_the_sessions_live(self):
        daemon = self.start()
        session = Session(self.root, cwd="/home/ada/api")
        hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
        session.prompt(hostile)
        page = self.open(daemon, code=True)
        page.wait_text("#state", "Live")
        page.wait_text("#sessions", hostile)
        page.wait_text("#sessions", "/home/ada/api")
        self.assertEqual(page.tell("document.title"), "earshot")
        self.assertEqual(page.tell("location.href"), f"http://127.0.0.1:{daemon.port}/")  # the code has left it
        self.assertEqual(page.tell("Object.values({...sessionStorage}).length"), 1)
        self.assertEqual(page.tell("document.cookie + Object.keys({...localStorage}).join()"), "")
        page.wait_text("#sessions .status", "working")
        session.reply("All done.", stop_reason="end_turn")
        state = "document.querySelector('#sessions .status').dataset.state"  # of either page: the dashboard calls what ended just now done
        wait_for(lambda: page.tell(state) == "idle", "idle")
        page.wait_text("#sessions", "All done.")
        other = Session(self.root, cwd="/home/ada/web")
        other.prompt("a second one")
        page.wait_text("#sessions", "a second one")
        page.tell("location.reload()")
        page.wait_text("#sessions", "a second one")  # the tab knows its token
        self.assertEqual(page.complaints, [])
        if where := os.environ.get("EARSHOT_SCREENSHOT"):
            page.screenshot(where)

    def test_whoever_comes_without_a_code_is_told_what_to_do(self):
        page = self.open(self.start())
        page.wait_text("#state", "Not signed in")
        page.wait_text("#help", "earshot open")
        self.assertEqual(page.complaints, [])

    def test_a_code_that_was_used_is_told_to_be_so(self):
        daemon = self.start()
        url = self.code(daemon)
        curl(daemon, "/v1/token", "-H", "Content-Type: application/json", "-d", json.dumps({"code": url.split("code=")[1]}), token=False)
        page = self.open(daemon, "/#" + url.split("#")[1])
        page.wait_text("#state", "used already")
        self.assertEqual(page.tell("location.hash"), "")

    def test_a_daemon_that_goes_and_comes_again_is_told(self):
        daemon = self.start()
        page = self.open(daemon, code=True)
        page.wait_text("#state", "Live")
        daemon.stop()
        page.wait_text("#state", "gone")
        again = self.start(listen=f"127.0.0.1:{daemon.port}")
        page.wait_text("#state", "Live")
        curl(again, "/v1/token/rotate", "-X", "POST", unix=True)
        page.wait_text("#state", "not good any more")
        self.assertEqual(page.tell("sessionStorage.length"), 0)

    def test_the_page_can_reach_nobody_else(self):
        daemon, other = self.start(), self.start(state=os.path.join(self.home, "other"))
        page = self.open(daemon)
        page.wait_text("#state", "Not signed in")
        blocked = page.tell(f"fetch('http://127.0.0.1:{other.port}/healthz', {{mode: 'no-cors'}}).then(() => 'reached', () => 'blocked')")
        self.assertEqual(blocked, "blocked")
        self.assertEqual(page.tell("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch { return 'refused' } })()"), "refused")
        wait_for(lambda: any("Content Security Policy" in text for text in page.complaints), "the browser's complaint")
