"""Third-party clients: the protocol page's examples for Node and Python, curl and jq."""
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import unittest

from websockets.utils import accept_key

from support.endpoints import EndpointCase
from support.harness import TOP, clean_environment, deadline_s, earshot, wait_for
from support.transcripts import Session


class Recorder(http.server.ThreadingHTTPServer):
    """A program that is not the daemon. It answers each request with the HMAC of `proof_key`, accepts each WebSocket, and records what it receives."""

    def __init__(self, proof_key, connection):
        self.received = []
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                recorder.received.append(f"{self.requestline}\n{self.headers}")
                if key := self.headers["Sec-WebSocket-Key"]:
                    return self.accept(key)
                nonce = self.path.partition("nonce=")[2]
                proof = hmac.new(proof_key.encode(), (nonce + recorder.address).encode(), hashlib.sha256).hexdigest().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(proof)))
                self.send_header("Connection", connection)
                self.end_headers()
                self.wfile.write(proof)

            def accept(self, key):
                self.send_response(101)
                for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Protocol", "earshot.v1"),
                                    ("Sec-WebSocket-Accept", accept_key(key))):
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = True
                if "Authorization" in self.headers:
                    return
                head = self.rfile.read(2)  # one short frame: `hello`
                length = head[1] & 127 if head else 0
                length = int.from_bytes(self.rfile.read(2), "big") if length == 126 else length
                mask = self.rfile.read(4)
                recorder.received.append(bytes(byte ^ mask[n % 4] for n, byte in enumerate(self.rfile.read(length))).decode())

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def text(self):
        return "\n".join(self.received)

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Programs(EndpointCase):
    def readme(self, name):
        """The example of this name in protocol/README.md."""
        with open(os.path.join(TOP, "protocol", "README.md")) as page:
            return re.search(rf"```\w+\n(?://|#) {re.escape(name)}\n(.*?)```", page.read(), re.DOTALL)[1]

    def follow(self, *command):
        one = Session(self.root)
        one.prompt("begin")
        state = os.path.join(self.home, "xdg", "earshot")
        os.makedirs(state, mode=0o700)
        daemon = self.start(state=state)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**clean_environment(self.home), "XDG_STATE_HOME": os.path.dirname(state), "NODE_PATH": "/usr/share/nodejs"})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        output = []

        def until(text):
            while not any(text in line for line in output):
                line = process.stdout.readline()
                self.assertTrue(line, f"waited for {text!r} after {output}")
                output.append(line.strip())

        until("live")
        one.reply("done", stop_reason="end_turn")
        until("turn 1 completed")
        one.prompt("again")
        until("turn 2 again")
        daemon.stop()
        until("closed 1001")

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_the_node_example_works(self):
        script = os.path.join(self.home, "follow.js")
        with open(script, "w") as file:
            file.write(self.readme("follow.js"))
        self.follow("node", script)

    def test_the_python_example_works(self):
        script = os.path.join(self.home, "follow.py")
        with open(script, "w") as file:
            file.write(self.readme("follow.py"))
        self.follow("/usr/bin/python3", script)

    def assert_keeps_the_token(self, *command):
        """Another program on the port gets no token: neither if its proof is wrong, nor if it closes the connection of a right one."""
        state = os.path.join(self.home, "xdg", "earshot")
        os.makedirs(state, mode=0o700)
        token = "5e" * 32
        with open(os.path.join(state, "token"), "w") as file:
            file.write(token + "\n")
        environment = {**clean_environment(self.home), "XDG_STATE_HOME": os.path.dirname(state), "NODE_PATH": "/usr/share/nodejs"}
        for proof_key, connection in (("another", "keep-alive"), (token, "close")):
            with self.subTest(connection=connection), Recorder(proof_key, connection) as recorder:
                with open(os.path.join(state, "address"), "w") as file:
                    file.write(f"ws://{recorder.address}/v1/ws\n")
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, timeout=deadline_s * 4)
                self.assertIn("GET /v1/proof?nonce=", recorder.text())
                self.assertNotIn(token, recorder.text())

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_153_the_node_example_sends_the_token_to_the_daemon_only(self):
        script = os.path.join(self.home, "follow.js")
        with open(script, "w") as file:
            file.write(self.readme("follow.js"))
        self.assert_keeps_the_token("node", script)

    def test_153_the_python_example_sends_the_token_to_the_daemon_only(self):
        script = os.path.join(self.home, "follow.py")
        with open(script, "w") as file:
            file.write(self.readme("follow.py"))
        self.assert_keeps_the_token("/usr/bin/python3", script)

    def test_curl_and_jq_resume_from_a_cursor(self):
        one = Session(self.root)
        one.turn("first")
        daemon = self.start()
        stream, output = next(iter(daemon.replay(self.root).items()))
        after = f"{stream}:{json.loads(output[0])['cursor']}"
        script = f"""curl -sN --unix-socket {daemon.socket} --get --data-urlencode 'after={after}' 'http://localhost/v1/events?type=turn.*' |
                     jq --unbuffered -c 'select(.cursor) | [.type, .turn]'"""
        process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
        lines = [process.stdout.readline() for _ in range(2)]
        one.turn("second")
        lines += [process.stdout.readline() for _ in range(2)]
        self.assertEqual([json.loads(line) for line in lines],
                         [["turn.started", 1], ["turn.finished", 1], ["turn.started", 2], ["turn.finished", 2]])
        daemon.stop()
        self.assertEqual(process.wait(deadline_s * 4), 0)
        process.stdout.close()

    def test_doctor_reports_a_watch_limit_that_is_too_low(self):
        root = os.path.join(self.home, "claude")
        for n in range(20):
            Session(root, f"/home/ada/p{n}").prompt("hello")
        limited = ["unshare", "--user", "--map-root-user", "sh", "-c", 'echo 8 >/proc/sys/user/max_inotify_watches && exec "$0" "$@"']
        if subprocess.run([*limited, "true"], capture_output=True).returncode != 0:
            self.skipTest("user namespaces with their own limits are not available")
        daemon = self.start(prefix=limited)
        client = daemon.subscriber()
        late = Session(root, "/home/ada/p19")
        late.prompt("found by the sweep")
        client.wait_frame(type="turn.started", prompt="found by the sweep")
        done = earshot("doctor", "--state", self.state, prefix=limited, home=self.home)
        self.assertRegex(done.stdout, r"(?i)watch")
        self.assertIn("max_user_watches", done.stdout)
        self.assertRegex(done.stdout, r"(?i)sweep|scanned")
