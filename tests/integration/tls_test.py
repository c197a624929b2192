"""Access from other machines: TLS, explicit configuration, the meta view by default."""
import asyncio
import json
import os
import re
import socket
import ssl
import subprocess

from support.endpoints import EndpointCase, TlsClient, curl
from support.harness import CommandLines, build, clean_environment, deadline_s, earshot, loop, sanitized, wait_for
from support.notifier import Notifier, Receiver, hook_rules
from support.transcripts import Session


class Tls(EndpointCase):
    def certificate(self, name="localhost", others=",DNS:dev7.example,IP:127.0.0.1"):
        paths = os.path.join(self.home, "cert.pem"), os.path.join(self.home, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}{others}", "-keyout", paths[1], "-out", paths[0]],
                       check=True, capture_output=True)
        os.chmod(paths[1], 0o600)
        return paths

    def encrypted(self, more='remote_view = "full"\n', certificate=(), **given):
        cert, _ = self.certificate(*certificate)
        daemon = self.configured(f'tls_cert = "cert.pem"\ntls_key = "key.pem"\n{more}', **given)
        daemon.trust = ssl.create_default_context(cafile=cert)
        return daemon

    def tls(self, daemon, **given):
        client = TlsClient(daemon, **given)
        daemon.clients.append(client)
        return client

    def https(self, daemon, target, *args, **more):
        return curl(daemon, target, "--cacert", os.path.join(self.home, "cert.pem"), *args, scheme="https", **more)

    def test_websocket_and_http_are_served_over_tls(self):
        daemon = self.encrypted()
        self.assertRegex(daemon.url, r"^wss://127\.0\.0\.1:\d+/v1/ws$")
        with open(os.path.join(self.state, "address")) as file:
            self.assertEqual(file.read().strip(), daemon.url)
        self.assertEqual(self.https(daemon, "/healthz", token=False)[2], b"ok\n")
        self.assertEqual(self.https(daemon, "/v1/sessions", token=False)[0], 401)
        self.assertEqual(self.https(daemon, "/v1/sessions")[0], 200)
        self.assertIn(f"wss://127.0.0.1:{daemon.port}", self.https(daemon, "/")[1]["content-security-policy"])
        code = json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])
        self.assertTrue(code["url"].startswith(f"https://127.0.0.1:{daemon.port}/#code="))
        client = self.tls(daemon)
        self.assertEqual(client.wait_frame(type="welcome")["view"], "full")
        client.subscribe()
        session = Session(self.root)
        session.turn("secret")
        self.assert_delivered(daemon, client, session.path)

    def test_147_handshakes_of_an_address_are_limited(self):
        daemon = self.encrypted()

        def is_refused():
            for _ in range(200):
                socket.create_connection(("127.0.0.1", daemon.port), timeout=deadline_s).close()
            return 'earshot_refusals_total{reason="too_often"} 0' not in curl(daemon, "/metrics", unix=True)[2].decode()

        wait_for(is_refused, "a connection that is closed before its handshake")

    def test_97_a_stop_during_a_handshake_ends_cleanly(self):
        daemon = self.encrypted()
        silent, torn = (socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(2))
        with silent, torn:
            torn.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a ClientHello
            accepted = 'earshot_connections{kind="http",via="tls"} 2'
            wait_for(lambda: accepted in curl(daemon, "/metrics", unix=True)[2].decode(), "both connections")
            daemon.stop()

    def test_bulk_data_arrives_complete_while_pings_are_answered(self):
        daemon = self.encrypted()
        client = self.tls(daemon)
        client.subscribe()
        session = Session(self.root)
        session.prompt("go")

        async def ping():
            await asyncio.wait_for(await client.socket.ping(), deadline_s * 4)

        for _ in range(20):  # 15 MB: less than the live log holds, however slow the client is
            for _ in range(40):
                session.tool_call("Write", {"content": "x" * 3000, "more": ["y" * 3000] * 5})
            loop.run(ping())
        self.assert_delivered(daemon, client, session.path)

    def test_keep_alive_and_the_event_stream_work_over_tls(self):
        daemon = self.encrypted()
        done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n", "--cacert", os.path.join(self.home, "cert.pem"),
                               *[f"https://127.0.0.1:{daemon.port}/healthz"] * 3, *("-o", "/dev/null") * 2], capture_output=True, text=True)
        self.assertEqual(done.stdout.split("\n")[:3], ["200 1", "200 0", "200 0"], done.stderr)
        stream = subprocess.Popen(["curl", "-sSN", "--cacert", os.path.join(self.home, "cert.pem"), "-H", f"Authorization: Bearer {daemon.token}",
                                   f"https://127.0.0.1:{daemon.port}/v1/events"], stdout=subprocess.PIPE)
        self.addCleanup(stream.stdout.close)
        self.addCleanup(stream.kill)
        self.assertEqual(json.loads(stream.stdout.readline())["type"], "ready")
        Session(self.root).prompt("hello")
        while json.loads(stream.stdout.readline())["type"] != "session.started":
            pass  # a status may arrive first
        daemon.stop()
        self.assertIn(b'"turn.started"', stream.stdout.read())
        self.assertEqual(stream.wait(deadline_s * 4), 0)

    def test_only_configured_host_names_are_accepted(self):
        daemon = self.encrypted('remote_view = "full"\nnames = ["dev7.example"]\n')
        self.assertEqual(daemon.url, f"wss://dev7.example:{daemon.port}/v1/ws")
        for host, status in (("dev7.example", 200), ("evil.example", 403), ("127.0.0.1", 200)):
            got = self.https(daemon, "/healthz", "-H", f"Host: {host}:{daemon.port}")[0]
            self.assertEqual(got, status, host)
        origin = ("-H", f"Host: dev7.example:{daemon.port}", "-H")
        self.assertEqual(self.https(daemon, "/healthz", *origin, f"Origin: https://dev7.example:{daemon.port}")[0], 200)
        self.assertEqual(self.https(daemon, "/healthz", *origin, f"Origin: http://dev7.example:{daemon.port}")[0], 403)

    def test_old_tls_and_plain_text_are_refused(self):
        daemon = self.encrypted("[limits]\nhandshake = \"2s\"\ntick = \"20ms\"\n")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", daemon.port)) as raw, self.assertRaises((ssl.SSLError, ConnectionResetError)):
            old.wrap_socket(raw)
        for data in (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\x16\x03\x01", b""):
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=deadline_s * 4) as raw:
                raw.sendall(data)
                answer = b""
                try:
                    while piece := raw.recv(4096):
                        answer += piece
                except ConnectionResetError:
                    pass
                self.assertNotIn(b"HTTP/1.1", answer)
        wait_for(lambda: self.health(daemon)["connections"] == 1, "the connections to close")

    def test_remote_clients_get_the_meta_view_by_default(self):
        daemon = self.encrypted("")
        session = Session(self.root)
        session.prompt("the words of the prompt")
        self.wait_session(daemon, session)
        self.assertNotIn(b"the words of the prompt", self.https(daemon, "/v1/sessions")[2])
        client = self.tls(daemon)
        self.assertEqual(client.wait_frame(type="welcome")["view"], "meta")
        client.subscribe(id="a", wait=False)
        client.wait(lambda: client.find(type="ready") or client.find(type="error"), "a reply")
        self.assertNotIn("the words of the prompt", "".join(client.raw))

    def test_an_idle_subscriber_costs_little(self):
        daemon = self.encrypted()

        def resident():
            return int(re.search(rb"^process_resident_memory_bytes (\d+)$", curl(daemon, "/metrics", unix=True)[2], re.MULTILINE)[1])

        for _ in range(5):
            self.tls(daemon).subscribe()
        before, count = resident(), 60
        for _ in range(count):
            self.tls(daemon).subscribe()
        each = (resident() - before) / count
        if not sanitized(build()):
            self.assertLess(each, 96 * 1024)

    def connection(self, daemon, **given):
        """Options for clients that connect to the daemon over TLS."""
        return ["--connect", given.get("url", daemon.url), "--tls-ca", os.path.join(self.home, "cert.pem"), "--state", self.state]

    def test_the_command_line_connects_over_tls(self):
        daemon = self.encrypted()
        session = Session(self.root)
        session.turn("hello")
        self.wait_session(daemon, session)
        for url in (daemon.url, daemon.url.replace("127.0.0.1", "localhost")):
            for command, output in (("ls", "api"), ("status", "all right"), ("show", "hello")):
                done = earshot(command, *self.connection(daemon, url=url), home=self.home)
                self.assertEqual(done.returncode, 0, done)
                self.assertIn(output, done.stdout)
        tail = CommandLines([os.path.join(build(), "earshot"), "tail", "--json", *self.connection(daemon)], clean_environment(self.home))
        self.addCleanup(tail.close)
        wait_for(lambda: any('"ready"' in line for line in tail.lines), "the snapshot")
        session.prompt("more")
        wait_for(lambda: any('"turn.started"' in line and '"more"' in line for line in tail.lines), "the event")
        self.assertEqual(tail.stop(), 0)

    def test_the_address_file_may_name_a_tls_address(self):
        daemon = self.encrypted()
        os.remove(os.path.join(self.state, "socket"))
        done = earshot("ls", *self.connection(daemon)[2:], home=self.home)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_command_line_verifies_the_certificate(self):
        daemon = self.encrypted(certificate=("other.example", ""))
        trusted = self.connection(daemon)
        for options in (trusted, [*trusted[:2], *trusted[4:]], [*trusted[:3], "nothing.pem", *trusted[4:]]):
            for command in ("ls", "status"):
                done = earshot(command, *options, home=self.home)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done)
                self.assertRegex(done.stderr, "TLS: .*--tls-ca|nothing.pem")
        log = daemon.stderr()
        self.assertNotIn(daemon.token.encode(), log)

    def test_the_notifier_connects_over_tls(self):
        daemon = self.encrypted()
        receiver = Receiver()
        self.addCleanup(receiver.close)
        notifier = Notifier(self, self.state, hook_rules(receiver), args=self.connection(daemon)[:4])
        self.addCleanup(notifier.finish)
        self.assertIn("listening to the daemon", notifier.output())

    def test_a_remote_listener_without_tls_names_the_missing_options(self):
        data = self.start_refused(listen="0.0.0.0:0", code=2)
        for word in ("allow_remote = true", "tls_cert", "tls_key"):
            self.assertIn(word, data)

    def test_an_unusable_certificate_is_an_error(self):
        cert, key = self.certificate()
        path = os.path.join(self.home, "earshot.toml")

        def configured(cert, key):
            with open(path, "w") as file:
                file.write(f'tls_cert = "{cert}"\ntls_key = "{key}"\n')
            return self.start_refused("--config", path)

        os.chmod(key, 0o644)
        self.assertIn("chmod 600 " + key, configured(cert, key))
        os.chmod(key, 0o600)
        self.assertIn("nothing.pem", configured("nothing.pem", key))
        self.assertIn("key.pem", configured(cert, "nothing/key.pem"))
        self.assertIn("cert.pem", configured(path, key).replace(path, "cert.pem"))
        other = os.path.join(self.home, "other")
        os.mkdir(other)
        self.home, home = other, self.home
        foreign = self.certificate()[1]
        self.home = home
        self.assertIn(foreign, configured(cert, foreign))
