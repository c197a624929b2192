"""A headless browser, controlled by the DevTools protocol: only what the page's tests need."""
import asyncio
import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request

import websockets

from support.harness import deadline_s, loop, wait_for


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, home):
        profile = tempfile.mkdtemp(prefix="browser-", dir=home)
        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--window-size=900,640", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": home}, start_new_session=True)
        try:
            self._connect(os.path.join(profile, "DevToolsActivePort"))
        except BaseException:
            self._kill()
            raise

    def _connect(self, active):
        wait_for(lambda: os.path.exists(active) and open(active).read().count("\n") >= 1, "the browser")
        with open(active) as file:
            port = file.readline().strip()
        pages = wait_for(lambda: [p for p in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json")) if p["type"] == "page"], "a page")
        self.ids, self.replies, self.errors = itertools.count(1), {}, []
        self.socket = loop.run(self._open(pages[0]["webSocketDebuggerUrl"]))
        self.reader = loop.start(self._read())
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    async def _open(self, url):
        return await websockets.connect(url, max_size=None, compression=None, ping_interval=None, open_timeout=deadline_s * 4)

    async def _read(self):
        async for text in self.socket:
            message = json.loads(text)
            if "id" in message:
                self.replies.pop(message["id"]).set_result(message)
            elif message["method"] == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", text))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(message["params"]["entry"]["text"])

    async def _call(self, method, params):
        id = next(self.ids)
        self.replies[id] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"id": id, "method": method, "params": params}))
        return await self.replies[id]

    def call(self, method, **params):
        reply = loop.run(self._call(method, params))
        if "error" in reply:
            raise AssertionError(f"{method}: {reply['error']}")
        return reply["result"]

    def navigate(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression in the page, or None if it throws or the page is being loaded."""
        try:
            result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except AssertionError as failed:
            if "execution context" in str(failed) or "navigated" in str(failed):
                return None
            raise
        return None if "exceptionDetails" in result else result["result"].get("value")

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def wait_text(self, selector, part):
        try:
            return wait_for(lambda: part in (self.text(selector) or ""), f"{part!r} in {selector}", deadline=deadline_s * 2)
        except AssertionError as failed:
            raise AssertionError(f"{failed}; the page shows {self.text('body')!r}; errors: {self.errors}") from None

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        loop.run(self.socket.close())
        self.reader.result(deadline_s)
        self._kill()

    def _kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # its own process group
        self.process.wait()
