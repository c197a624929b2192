"""Hub users see only what they are granted, through every endpoint; every connection is written to the audit log."""
import glob
import hashlib
import json
import os
import re
import socket
import time
import unittest

import websockets

from support.browser_key import BrowserKey
from support.harness import deadline_s, http, wait_for
from support.transcripts import Registry, Session, SessionWithSiblingAgents
from support.team import TeamCase

TOKEN, OTHER = "s3cret" * 8, "0ther" * 8
FOREIGN_CURSOR = "200.1.123456789abcdef0"  # matches no file


def user(name, token=TOKEN, **keys):
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f'[hub.users.{name}]\ntoken_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n{lines}'


class KeepAliveConnection:
    """A connection for several requests."""

    def __init__(self, port):
        self.port, self.socket = port, socket.create_connection(("127.0.0.1", port), timeout=deadline_s * 4)
        self.file = self.socket.makefile("rb")

    def request(self, line, token=None, body=b"", **headers):
        head = [f"{line} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
        if token is not None:
            head.append(f"Authorization: Bearer {token}")
        if body:
            head.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        status = int(self.file.readline().split()[1])
        length = 0
        while (line := self.file.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, self.file.read(length).decode()

    def close(self):
        self.file.close()
        self.socket.close()


class Users(TeamCase):
    def team(self, **ada):
        """A broker, and a hub with the user ada, who may see the host ada unless the test overrides it."""
        self.nats = self.broker()
        self.users = user("ada", **{"hosts": ["ada"], "view": "full", **ada})
        return self.hub(self.nats, more=self.users)

    def restarted_cold(self, hub):
        """Restarts the hub with old files, so that it has read none of them."""
        hub.stop()
        old = time.time() - 20 * 86400
        for path in glob.glob(hub.files + "/*/*.jsonl"):
            os.utime(path, (old, old))
        return self.hub(self.nats, more=self.users)

    def connection(self, hub):
        connection = KeepAliveConnection(hub.port)
        self.addCleanup(connection.close)
        return connection

    def hub_with_bob(self, **ada):
        """(a hub with an unread session of the host bob, its stream, its last cursor)"""
        hub, bob = self.team(**ada), self.host("bob", self.nats)
        self.session(bob, "/srv/vault").turn("the secret prompt of bob", "the secret answer of bob")
        self.assert_hub_complete(hub)
        (stream, end), = self.hub_cursors(hub).items()
        return self.restarted_cold(hub), stream, end

    def assert_not_sent(self, client, *texts):
        for text in texts:
            self.assertNotIn(text, "\n".join(client.raw))

    # --- Access to other hosts and projects ---

    def assert_unknown_stream(self, hub, stream, end):
        """Asserts that for any cursor the replies are those for a stream that does not exist."""
        missing = "hub/bob/claude=2F-nothing=2Fnobody"
        for cursor in (FOREIGN_CURSOR, "", end, "0.0.00000000000000ff"):
            with self.subTest(cursor=cursor):
                replies = []
                for name in (missing, stream):
                    seen = hub.client(token=TOKEN)
                    seen.subscribe(id="a", snapshot=False, after=[f"{name}:{cursor}"])
                    end = seen.frames.index(seen.wait_frame(type="bookmark", id="a", complete=True))
                    replies.append([text.replace(name, "NAME") for text in seen.raw[:end + 1] if '"welcome"' not in text])
                    self.assert_not_sent(seen, "secret", '"session":')
                self.assertEqual(*replies)

    def test_resuming_an_unread_session_of_another_host_is_like_a_missing_stream(self):
        hub, stream, end = self.hub_with_bob()
        self.assert_unknown_stream(hub, stream, end)

    def test_resuming_an_unread_session_of_another_project_is_like_a_missing_stream(self):
        hub, stream, end = self.hub_with_bob(hosts=["*"], projects=["/home/ada/*", "-srv-*"])  # the directory's name is not the project
        self.assert_unknown_stream(hub, stream, end)

    def test_resuming_a_read_session_of_another_host_is_like_a_missing_stream(self):
        hub, stream, end = self.hub_with_bob()
        self.hub_cursors(hub)
        self.assert_unknown_stream(hub, stream, end)

    def test_resuming_a_subagent_stream_of_another_project_is_like_a_missing_stream(self):
        hub, bob = self.team(hosts=["*"], projects=["/home/ada/*"]), self.host("bob", self.nats)
        one = SessionWithSiblingAgents(bob.root, "/srv/vault")
        one.prompt("go")
        call, agent, transcript = one.agent()
        transcript.prompt("secret of the agent"), transcript.reply("secret answer", stop_reason="end_turn")
        one.agent_result(call, agent)
        self.assert_hub_complete(hub)
        streams = self.hub_cursors(hub)
        self.assertEqual(len(streams), 2)
        stream, = (name for name in streams if "agent-" in name)
        self.assert_unknown_stream(self.restarted_cold(hub), stream, streams[stream])

    def test_a_granted_session_is_resumed_though_it_was_not_read(self):
        hub = self.team(hosts=["a*"], projects=["/home/ada/*"])
        ada = self.host("ada", self.nats)
        one = self.session(ada)
        one.turn("first"), one.turn("second")
        expected = self.assert_hub_complete(hub)
        (stream, end), = self.hub_cursors(hub).items()
        hub = self.restarted_cold(hub)
        seen = hub.client(token=TOKEN)
        seen.subscribe(id="a", snapshot=False, after=[f"{stream}:"])
        bookmark = seen.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual(seen.count(), sum(map(len, expected.values())))
        self.assertEqual(bookmark["cursors"], [f"{stream}:{end}"])
        hub = self.restarted_cold(hub)
        other = hub.client(token=TOKEN)
        other.subscribe(id="b", snapshot=False, after=[f"{stream}:{FOREIGN_CURSOR}"])
        other.wait_frame(type="bookmark", id="b", complete=True)
        types = [f["type"] for f in other.frames]
        self.assertEqual(types[:2], ["welcome", "ready"])
        self.assertIn("session", types[types.index("reset"):])  # its host's return changes its status, which may be sent before
        self.assertEqual(other.count(), 0)
        self.assertEqual(other.find(type="reset")["reason"], "rewritten")

    def test_the_event_stream_over_http_applies_the_same_limits(self):
        hub, stream, end = self.hub_with_bob()
        with socket.create_connection(("127.0.0.1", hub.port), timeout=deadline_s * 4) as connection:
            connection.sendall(f"GET /v1/events?snapshot=false&after={stream.replace('=', '%3D')}:{FOREIGN_CURSOR} HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\n"
                               f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            got = b""
            while b'"complete":true' not in got:
                piece = connection.recv(65536)
                self.assertTrue(piece, got)
                got += piece
        self.assertIn(b'"reason":"unknown"', got)
        self.assertNotIn(b"secret", got)
        self.assertNotIn(b'"cursors":["', got)

    def pages(self, **ada):
        hub, of_ada, of_bob = self.team(**ada), self.host("ada", self.nats), self.host("bob", self.nats)
        for name in ("2", "5"):
            Session(of_ada.root, "/home/ada/api", name).turn("hers")
        for name in ("1", "3", "4", "6"):  # before, between and after those of ada
            Session(of_bob.root, "/srv/vault", name).turn("secret")
        self.assert_hub_complete(hub)
        connection, after, seen = self.connection(self.restarted_cold(hub)), "", []
        while after is not None:
            status, text = connection.request(f"GET /v1/sessions?all=true&limit=1&after={after}", TOKEN)
            browser = json.loads(text)
            seen.append(([s["session"] for s in browser["sessions"]], browser.get("next")))
            after = browser.get("next")
            self.assertNotIn("secret", text)
        self.assertEqual(seen, [(["2@ada"], "2@ada"), (["5@ada"], None)])

    def test_pages_of_sessions_do_not_reveal_other_hosts(self):
        self.pages(hosts=["ada"])

    def test_pages_of_sessions_do_not_reveal_other_projects(self):
        self.pages(hosts=["*"], projects=["/home/ada/*"])

    def test_pages_of_a_snapshot_and_their_figures_do_not_reveal_other_hosts(self):
        hub, of_ada, of_bob = self.team(), self.host("ada", self.nats), self.host("bob", self.nats)
        for name in ("1", "2", "3"):
            self.held_open(Session(of_ada.root, "/home/ada/api", name)).turn("hers")
            self.held_open(Session(of_bob.root, "/srv/vault", name)).turn("secret")
        self.assert_hub_complete(hub)
        expected = {TOKEN: ["1@ada", "2@ada", "3@ada"], None: [f"{name}@{host}" for name in "123" for host in ("ada", "bob")]}
        for token, sessions in expected.items():
            client = hub.client(token=token)
            client.subscribe(id="p", deliver="state", page=1, wait=False)
            for number in range(len(sessions)):
                client.wait(lambda: len(client.all(type="page")) == number + 1, "a page")
                page = client.all(type="page")[-1]
                self.assertEqual(page["rest"]["sessions"], len(sessions) - number - 1)
                if "next" in page:
                    client.send(type="next_page", id="p", next=page["next"])
            client.wait_frame(type="ready", id="p")
            self.assertEqual(sorted({frame["session"] for frame in client.all(type="session")}), sorted(sessions))
            if token:
                self.assert_not_sent(client, "bob", "secret")

    def test_a_page_with_only_sessions_of_other_hosts_is_empty(self):
        hub, stream, end = self.hub_with_bob()
        self.assertEqual(self.connection(hub).request("GET /v1/sessions?all=true", TOKEN), (200, '{"sessions":[]}\n'))

    def test_a_record_of_another_project_is_not_found_and_a_granted_one_is(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*"])
        ada, bob = self.host("ada", self.nats, more="read = true"), self.host("bob", self.nats, more="read = true")
        self.session(ada).turn("hers"), self.session(bob, "/srv/vault").turn("secret")
        expected = self.assert_hub_complete(hub)
        places = self.hub_cursors(hub)
        hub = self.restarted_cold(hub)
        seen = hub.client(token=TOKEN)
        for stream, end in sorted(places.items()):
            host = stream.split("/")[1]
            seen.send(type="read", id=host, stream=stream, cursor=end)
        seen.send(type="read", id="none", stream="hub/bob/none", cursor=FOREIGN_CURSOR)
        answers = [seen.wait_frame(type="error", id=name) for name in ("bob", "none")]
        self.assertEqual(*({k: v for k, v in answer.items() if k != "id"} for answer in answers))
        seen.wait_frame(type="record", id="ada")
        self.assert_not_sent(seen, "secret")
        self.assertEqual(len(expected), 2)

    def test_fault_101_one_session_id_in_two_project_directories(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*"])
        ada = self.host("ada", self.nats, more="read = true")
        one = self.session(ada)
        twin = Session(ada.root, "/srv/vault", session=one.session)
        other = self.session(ada, "/home/ada/other")
        owner, seen, states = hub.subscriber(), hub.client(token=TOKEN), hub.client(token=TOKEN)
        seen.subscribe(), states.subscribe(deliver="state")
        one.turn("hers"), twin.turn("a secret prompt", "a secret answer")
        self.assert_hub_complete(hub)
        places = self.hub_cursors(hub)
        vault, = (stream for stream in places if "vault" in stream)
        owner.wait_frame(type="turn.finished", stream=vault)
        twin.turn("another secret"), other.turn("after it")
        owner.wait_frame(type="turn.finished", stream=vault, turn=2)
        later = hub.client(token=TOKEN)
        later.subscribe(all=True)  # a snapshot
        later.subscribe(id="resumed", snapshot=False, after=[f"{vault}:{places[vault]}"])
        later.wait_frame(type="bookmark", id="resumed", complete=True)
        later.send(type="read", id="r", stream=vault, cursor=places[vault])
        later.wait_frame(type="error", id="r", code="not_found")
        for client in (seen, states):
            client.wait(lambda: any("/home/ada/other" in text for text in client.raw), "the last session")
        for client in (seen, states):
            self.assert_not_sent(client, "secret", "vault")
        self.assert_not_sent(later, "secret", "/srv/vault")  # the reply to `after` repeats the name of the stream
        for path in ("/v1/sessions?all=true", f"/v1/sessions?session={one.session}@ada"):
            status, text = self.connection(hub).request(f"GET {path}", TOKEN)
            self.assertNotIn("secret", text)
            self.assertNotIn("vault", text)

    def waiting_twin(self, hub):
        """(a host with a session id in two projects that waits in the forbidden one, that transcript, the granted one, the session's registry entry)"""
        ada, owner = self.host("ada", self.nats), hub.subscriber()
        twin = self.session(ada, "/srv/vault")
        twin.prompt("a secret prompt")
        owner.wait_frame(type="turn.started", prompt="a secret prompt")
        one = Session(ada.root, session=twin.session)
        one.turn("hers")
        owner.wait_frame(type="turn.finished", session=f"{twin.session}@ada")
        registry = Registry(ada.root, twin.session, self.process())
        registry.set_status("busy")
        owner.wait_frame(type="tool.invoked", call=twin.tool_call("Bash", {"command": "cat /srv/vault/plan"}))
        registry.set_status("waiting", "permission prompt")
        self.wait_vault_status(owner)
        return ada, twin, one, registry

    def wait_vault_status(self, owner):
        owner.wait(lambda: any("vault/plan" in status.get("detail", "") for status in owner.all(type="status")), "the wait")

    def restricted_clients(self, hub):
        seen, states = hub.client(token=TOKEN), hub.client(token=TOKEN)
        seen.subscribe(), states.subscribe(deliver="state")
        return seen, states

    def assert_nothing_of_the_vault(self, hub, other, clients):
        """Asserts it once these clients of the user have been sent a turn of the other session."""
        other.turn("after it")
        for client in clients:
            client.wait(lambda: any("/home/ada/other" in text and '"type":"session"' in text for text in client.raw), "the last session")
            self.assert_not_sent(client, "secret", "vault")
        status, text = self.connection(hub).request("GET /v1/sessions?all=true", TOKEN)
        self.assertEqual(status, 200)
        self.assertIn("/home/ada/other", text)
        self.assertNotIn("vault", text)
        return text

    def test_149_nothing_is_sent_about_the_removed_transcript_of_another_project(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*"])
        clients = self.restricted_clients(hub)
        ada, twin, one, registry = self.waiting_twin(hub)
        owner = hub.subscriber()
        os.unlink(twin.path)
        owner.wait_frame(type="stream.removed")
        registry.set_status("busy")
        one.turn("hers again")
        clients[0].wait_frame(type="turn.finished", turn=2)
        text = self.assert_nothing_of_the_vault(hub, self.session(ada, "/home/ada/other"), clients)
        self.assertNotIn(twin.session, text)
        for client in clients:
            self.assertFalse(client.find(type="session", session=f"{twin.session}@ada"))

    def test_149_a_status_is_of_all_projects_of_its_session_though_the_hub_has_one_transcript_only(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*"])
        ada, twin, one, registry = self.waiting_twin(hub)
        self.assert_hub_complete(hub)
        hub.stop()
        for path in glob.glob(hub.files + "/*/*vault*"):
            os.unlink(path)  # as if it was older than the hub keeps
        hub = self.hub(self.nats, more=self.users, again=hub)
        clients = self.restricted_clients(hub)
        self.wait_vault_status(hub.subscriber())
        self.assert_nothing_of_the_vault(hub, self.session(ada, "/home/ada/other"), clients)

    def test_changes_to_sessions_of_others_are_not_sent(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*", "-srv-*"])
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        one, other = self.session(ada), self.session(bob, "/srv/vault")
        one.turn("hers"), other.turn("secret")
        self.assert_hub_complete(hub)
        hub = self.restarted_cold(hub)
        owner = hub.client()
        owner.subscribe()
        seen, states = hub.client(token=TOKEN), hub.client(token=TOKEN)
        seen.subscribe(all=True, on_lag="catch_up"), states.subscribe(deliver="state")
        other.turn("more of the secret")
        owner.wait_frame(type="turn.finished", host="bob")
        os.unlink(other.path)
        owner.wait_frame(type="stream.removed")
        one.turn("and hers")
        for client in (seen, states):
            client.wait(lambda: client.find(type="turn.finished", host="ada") or client.find(type="session", host="ada"), "hers")
            self.assert_not_sent(client, "bob", "secret")
        seen.wait_frame(type="turn.finished", host="ada")
        self.assert_not_sent(seen, "bob", "secret")

    def test_a_lagging_user_receives_nothing_of_other_hosts(self):
        self.nats = self.broker()
        self.users = user("ada", hosts=["ada"], view="full")
        hub = self.hub(self.nats, more=self.users, top="[limits]\nlog_bytes = 524288\n")
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        one, other = self.session(ada), self.session(bob, "/srv/vault")
        one.turn("hers"), other.turn("secret")
        self.assert_hub_complete(hub)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(deadline_s * 4)
            slow.connect(("127.0.0.1", hub.port))
            slow.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            owner = hub.subscriber(filter={"type": ["turn.finished"]})  # which keeps up with so small a log
            for n in range(600):
                one.reply("x" * 4000)
                other.reply("secret" * 600)
            one.turn("the end of hers"), other.turn("the end of the secret")
            owner.wait(lambda: all(owner.find(type="turn.finished", host=host, turn=3) for host in ("ada", "bob")), "the last turns")
            os.unlink(other.path)
            owner.wait_frame(type="stream.removed")
            got = b""

            def read_until(text):
                nonlocal got
                while text not in got.partition(b'"lagged"')[2]:
                    piece = slow.recv(1 << 20)
                    self.assertTrue(piece, got[-2000:])
                    got += piece

            read_until(b'"type":"session"')
            one.turn("after")
            read_until(b'"type":"turn.finished"')
        self.assertNotIn(b"secret", got)
        self.assertNotIn(b"bob", got)

    # --- Authentication ---

    def test_the_hash_of_an_empty_token_is_refused(self):
        self.nats = self.broker()
        missing = hashlib.sha256(b"").hexdigest()
        config = self.write("fails.toml", f'[hub]\nurl = "{self.nats.url}"\n[hub.users.ada]\ntoken_sha256 = "{missing}"\n')
        daemon = self.start("--config", config, roots=[], state=os.path.join(self.home, "fails"), ready=False)
        self.assertEqual(daemon.wait_exit(), 2)
        wait_for(lambda: b"the SHA-256 of nothing" in daemon.stderr(), "the reason", give_up=lambda: None)

    def test_each_request_of_a_connection_is_authenticated_separately(self):
        hub, stream, end = self.hub_with_bob()
        connection = self.connection(hub)
        self.assertEqual(connection.request("GET /v1/sessions?all=true", TOKEN), (200, '{"sessions":[]}\n'))
        hub.wait_log(r"audit: ada from 127\.0\.0\.1:\d+ requests /v1/sessions and receives full")
        self.assertEqual(connection.request("GET /v1/health", "wrong")[0], 401)
        hub.wait_log(r"audit: anonymous from 127\.0\.0\.1:\d+ requests /v1/health and receives nothing: the token is wrong")
        self.assertEqual(connection.request("GET /v1/health", hub.token)[0], 200)
        hub.wait_log(r"audit: the owner from 127\.0\.0\.1:\d+ requests /v1/health and receives full")
        self.assertEqual(connection.request("GET /v1/health", TOKEN)[0], 403)
        hub.wait_log(r"audit: ada from 127\.0\.0\.1:\d+ requests /v1/health and receives nothing")
        self.assertEqual(connection.request("GET /v1/health")[0], 401)
        # The owner sees everything, on the same connection.
        connection.socket.sendall(f"GET /v1/events?all=true HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nAuthorization: Bearer {hub.token}\r\n\r\n".encode())
        while b'"type":"ready"' not in (line := connection.file.readline()):
            self.assertTrue(line)
            if b'"type":"session"' in line:
                self.assertIn(b"vault", line)
                break
        else:
            self.fail("the owner sees no session")

    def test_a_second_hello_changes_nothing_and_rotating_the_token_disconnects_no_user(self):
        hub = self.team()
        bob = self.host("bob", self.nats)
        by_header, by_hello, owner = hub.client(token=TOKEN), hub.client(bearer=False), hub.client()
        by_hello.send(type="hello", token=TOKEN, view="full")
        by_hello.wait_frame(type="welcome")
        for client in (by_header, by_hello):
            for token in (hub.token, "wrong", ""):
                errors = len(client.all(type="error"))
                client.send(type="hello", token=token)
                client.wait(lambda: len(client.all(type="error")) > errors, "an error")
            client.send(type="hello", token=TOKEN)
            client.subscribe(all=True)
            self.assertEqual(len(client.all(type="error")), 3)
        status, text = self.connection(hub).request("POST /v1/token/rotate", hub.token)
        self.assertEqual(status, 200)
        hub.token = json.loads(text)["token"]
        self.assertEqual(owner.wait_closed(), 4501)
        fresh = hub.client()
        fresh.subscribe()
        self.session(bob, "/srv/vault").turn("his")
        fresh.wait_frame(type="turn.finished")
        ada = self.host("ada", self.nats)
        self.session(ada).turn("hers")
        for client in (by_header, by_hello):
            client.wait_frame(type="turn.finished", host="ada")
            self.assert_not_sent(client, "bob", "secret")

    def test_a_meta_user_never_receives_text(self):
        hub = self.team(view="meta")
        ada = self.host("ada", self.nats)
        by_header, by_hello = hub.client(token=TOKEN), hub.client(bearer=False)
        by_hello.send(type="hello", token=TOKEN, view="full")
        for client in (by_header, by_hello):
            self.assertEqual(client.wait_frame(type="welcome")["view"], "meta")
            client.subscribe()
        self.session(ada).turn("lighthouse")
        for client in (by_header, by_hello):
            started = client.wait_frame(type="turn.started")
            client.wait_frame(type="turn.finished")
            client.send(type="read", id="r", stream=started["stream"], cursor=started["cursor"])
            client.wait_frame(type="error", id="r", code="not_allowed")
            self.assert_not_sent(client, "lighthouse")
        for path in ("/v1/sessions?view=full", "/v1/sessions"):
            self.assertNotIn("lighthouse", self.connection(hub).request(f"GET {path}", TOKEN)[1])

    # --- Audit log ---

    def audit_lines(self, hub):
        """The audit log without times and ports."""
        stderr = hub.stderr().decode()
        return [re.sub(r"127\.0\.0\.1:\d+", "HERE", line) for line in re.findall(r"audit: (.*)", stderr)]

    def test_every_connection_is_audited_at_any_log_level(self):
        self.team().stop()
        hub = self.hub(self.nats, more=self.users, top='log_level = "error"')
        address = ("127.0.0.1", hub.port)
        expected = []

        def expect(*lines):
            expected.extend(lines)
            wait_for(lambda: len(self.audit_lines(hub)) >= len(expected), f"{lines}", give_up=hub.exit_reason)
            self.assertEqual(self.audit_lines(hub), expected)

        with socket.create_connection(address):
            pass
        expect("anonymous from HERE requests nothing and receives nothing")
        with socket.create_connection(address) as one:
            one.sendall(b"what is this\r\n\r\n")
            one.recv(1000)
        expect("anonymous from HERE requests a refused request and receives nothing")
        http(hub.port, "GET /healthz HTTP/1.1", f"Host: 127.0.0.1:{hub.port}")
        expect("anonymous from HERE requests /healthz and receives nothing")
        http(hub.port, f"GET /v1/ws/{TOKEN}?token={TOKEN} HTTP/1.1", f"Host: 127.0.0.1:{hub.port}")
        expect("anonymous from HERE requests another path and receives nothing")
        http(hub.port, "GET /v1/sessions HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", "Authorization: Basic x")
        expect("anonymous from HERE requests /v1/sessions and receives nothing: the token is wrong")
        right = hub.client(bearer=False)
        expect("anonymous from HERE requests /v1/ws and receives nothing")
        right.send(type="hello", token=TOKEN)
        expect("ada from HERE requests hello and receives full")
        wrong = hub.client(bearer=False)
        wrong.send(type="hello", token="wrong")
        expect("anonymous from HERE requests /v1/ws and receives nothing", "anonymous from HERE requests hello and receives nothing: the token is wrong")
        empty = hub.client(bearer=False)
        empty.send(type="hello")
        expect("anonymous from HERE requests /v1/ws and receives nothing", "anonymous from HERE requests hello and receives nothing: the token is wrong")
        hub.client(token=TOKEN)
        expect("ada from HERE requests /v1/ws and receives full")
        with self.assertRaises(websockets.InvalidStatusCode):
            hub.client(token="wrong")
        expect("anonymous from HERE requests /v1/ws and receives nothing: the token is wrong")
        browser = self.connection(hub)
        self.assertEqual(browser.request("GET /")[0], 200)
        expect("anonymous from HERE requests / and receives nothing")
        connection = self.connection(hub)
        code = json.loads(connection.request("POST /v1/codes", hub.token)[1])["code"]  # valid for a minute
        expect("the owner from HERE requests /v1/codes and receives a one-time code")
        key = BrowserKey(hub.port)
        body = json.dumps(key.registration(code)).encode()
        headers = {"Content_Type": "application/json", "Origin": key.origin}
        expect("anonymous from HERE requests /v1/challenge and receives nothing")
        status, text = browser.request("POST /v1/browsers/register", body=body, **headers)
        key.id = json.loads(text)["browser"]
        self.assertEqual(status, 200)
        expect(f"the bearer of a one-time code from HERE requests /v1/browsers/register and receives the sign-in of browser {key.id} as the owner")
        self.assertEqual(browser.request("POST /v1/browsers/register", body=body, **headers)[0], 401)
        expect("anonymous from HERE requests /v1/browsers/register and receives nothing")
        self.assertEqual(browser.request("GET /v1/sessions", Authorization="Earshot x.y.z")[0], 401)
        expect("anonymous from HERE requests /v1/sessions and receives nothing: the token is wrong")
        stderr = hub.stderr().decode()
        for secret in (TOKEN, hub.token, code):
            self.assertNotIn(secret, stderr)
        self.assertNotIn("?", "".join(self.audit_lines(hub)))

    def test_a_users_browser_has_the_present_rights_of_the_user(self):
        hub = self.team()
        ada, bob = self.host("ada", self.nats), self.host("bob", self.nats)
        self.session(ada).turn("of ada"), self.session(bob).turn("the secret of bob")
        self.assert_hub_complete(hub)
        connection = self.connection(hub)
        status, text = connection.request("POST /v1/codes", TOKEN)
        self.assertEqual(status, 200)
        browser, of_owner = BrowserKey(hub.port), BrowserKey(hub.port)
        self.assertEqual(browser.register(json.loads(text)["code"])[0], 200)
        self.assertEqual(of_owner.register(json.loads(connection.request("POST /v1/codes", hub.token)[1])["code"])[0], 200)

        def hosts(who):
            status, answer = who.authorised("GET", "/v1/sessions")
            return {each["host"] for each in answer["sessions"]} if status == 200 else status

        self.assertEqual((hosts(browser), hosts(of_owner)), ({"ada"}, {"ada", "bob"}))
        listed = json.loads(connection.request("GET /v1/browsers", TOKEN)[1])["browsers"]
        self.assertEqual([(each["browser"], each["user"], each["view"]) for each in listed], [(browser.id, "ada", "full")])
        self.assertEqual(len(json.loads(connection.request("GET /v1/browsers", hub.token)[1])["browsers"]), 2)
        for path, body in (("/v1/browsers/revoke", {"browser": of_owner.id}), ("/v1/health", None)):
            self.assertIn(browser.authorised("POST" if body else "GET", path, body)[0], (403, 404))
        hub.stop()
        hub = self.hub(self.nats, more=user("ada", hosts=["bob"], view="meta"), again=hub)  # other rights
        self.assert_hub_complete(hub)
        self.assertEqual(hosts(browser), {"bob"})
        self.assertNotIn("secret", json.dumps(browser.authorised("GET", "/v1/sessions")[1]))
        hub.stop()
        hub = self.hub(self.nats, more=user("bob", OTHER, hosts=["bob"]), again=hub)  # ada was removed
        self.assertEqual((hosts(browser), hosts(of_owner)), (401, {"ada", "bob"}))
        hub.stop()
        hub = self.hub(self.nats, more=user("ada", hosts=["ada"]), again=hub)  # another ada
        self.assertEqual(hosts(browser), 401)

    def test_a_connection_without_a_hello_is_audited(self):
        self.nats = self.broker()
        hub = self.hub(self.nats, more=user("ada", hosts=["ada"]), top='log_level = "error"\n[limits]\nhello = "1s"\n')
        never = hub.client(bearer=False)
        self.assertEqual(never.wait_closed(), 4501)
        wait_for(lambda: self.audit_lines(hub) == ["anonymous from HERE requests /v1/ws and receives nothing"], "the line", give_up=hub.exit_reason)

    def test_without_users_or_without_a_log_there_is_no_audit(self):
        self.nats = self.broker()
        plain = self.hub(self.nats)
        plain.subscriber()
        plain.stop()
        self.assertNotIn(b"audit:", plain.stderr())
        silent = self.hub(self.nats, name="silent", more=user("ada") + 'view = "meta"\n', top='log_level = "off"')
        silent.subscriber()
        silent.stop()
        self.assertNotIn(b"audit:", silent.stderr())


if __name__ == "__main__":
    unittest.main()
