"""The users of a hub: each is shown what he may see, and no more, by whatever door he asks; and everybody who comes leaves a line."""
import glob
import hashlib
import json
import os
import re
import socket
import time
import unittest

import websockets

from support.harness import http, loop, wait_for
from support.transcripts import Session, SessionWithSiblingAgents
from support.team import TeamCase

TOKEN, OTHER = "s3cret" * 8, "0ther" * 8
MARK = "200.1.123456789abcdef0"  # of no file


def user(name, token=TOKEN, **keys):
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f'[hub.users.{name}]\ntoken_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n{lines}'


class Talk:
    """One connection over which request follows request."""

    def __init__(self, port):
        self.port, self.socket = port, socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def ask(self, line, token=None, body=b"", **headers):
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
        """A broker, and a hub with the user ada, of her host unless the test says otherwise."""
        self.wire = self.broker()
        self.users = user("ada", **{"hosts": ["ada"], "view": "full", **ada})
        return self.hub(self.wire, more=self.users)

    def cold(self, hub):
        """The hub again, with files of which it knows that they are there, and no more."""
        hub.stop()
        old = time.time() - 20 * 86400
        for path in glob.glob(hub.files + "/*/*.jsonl"):
            os.utime(path, (old, old))
        return self.hub(self.wire, more=self.users)

    def talk(self, hub):
        talk = Talk(hub.port)
        self.addCleanup(talk.close)
        return talk

    def places(self, hub):
        """stream at the hub → its last cursor; the hub has read all of them then."""
        owner = hub.client()
        return dict(place.rsplit(":", 1) for frame in owner.subscribe(all=True) for place in frame["cursors"])

    def of_bob(self, **ada):
        """A hub that has one session of bob's, which it has not read; its stream, and where that ends."""
        hub, bob = self.team(**ada), self.host("bob", self.wire)
        self.session(bob, "/srv/vault").turn("the secret prompt of bob", "the secret answer of bob")
        self.assert_hub_complete(hub)
        (stream, end), = self.places(hub).items()
        return self.cold(hub), stream, end

    def silent(self, client, *words):
        for word in words:
            self.assertNotIn(word, "\n".join(client.raw))

    # --- Doors to what is not his ---

    def as_if_there_were_none(self, hub, stream, end):
        """Whatever place of it he names: the answers are those of a stream that is not."""
        nothing = "hub/bob/claude=2F-nothing=2Fnobody"
        for cursor in (MARK, "", end, "0.0.00000000000000ff"):
            with self.subTest(cursor=cursor):
                told = []
                for name in (nothing, stream):
                    seen = hub.client(token=TOKEN)
                    seen.subscribe(id="a", snapshot=False, after=[f"{name}:{cursor}"])
                    seen.wait_frame(type="bookmark", id="a", complete=True)
                    told.append([text.replace(name, "NAME") for text in seen.raw if '"welcome"' not in text])
                    self.silent(seen, "secret", '"session":')
                self.assertEqual(*told)

    def test_after_a_cold_session_of_another_host_is_answered_as_after_none(self):
        hub, stream, end = self.of_bob()
        self.as_if_there_were_none(hub, stream, end)

    def test_after_a_cold_session_of_another_project_is_answered_as_after_none(self):
        hub, stream, end = self.of_bob(hosts=["*"], projects=["/home/ada/*", "-srv-*"])  # its directory's name is no project
        self.as_if_there_were_none(hub, stream, end)

    def test_after_a_warm_session_of_another_is_answered_as_after_none(self):
        hub, stream, end = self.of_bob()
        self.places(hub)
        self.as_if_there_were_none(hub, stream, end)

    def test_after_a_cold_agent_whose_session_only_its_lines_tell(self):
        hub, bob = self.team(hosts=["*"], projects=["/home/ada/*"]), self.host("bob", self.wire)
        one = SessionWithSiblingAgents(bob.root, "/srv/vault")
        one.prompt("go")
        call, agent, transcript = one.agent()
        transcript.prompt("secret of the agent"), transcript.reply("secret answer", stop_reason="end_turn")
        one.agent_result(call, agent)
        self.assert_hub_complete(hub)
        streams = self.places(hub)
        self.assertEqual(len(streams), 2)
        stream, = (name for name in streams if "agent-" in name)
        self.as_if_there_were_none(self.cold(hub), stream, streams[stream])

    def test_what_is_his_is_resumed_as_ever_though_it_is_cold(self):
        hub = self.team(hosts=["a*"], projects=["/home/ada/*"])
        ada = self.host("ada", self.wire)
        one = self.session(ada)
        one.turn("first"), one.turn("second")
        expected = self.assert_hub_complete(hub)
        (stream, end), = self.places(hub).items()
        hub = self.cold(hub)
        seen = hub.client(token=TOKEN)
        seen.subscribe(id="a", snapshot=False, after=[f"{stream}:"])
        seen.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual(seen.count(), sum(map(len, expected.values())))
        self.assertEqual(seen.find(type="bookmark")["cursors"], [f"{stream}:{end}"])
        hub = self.cold(hub)
        other = hub.client(token=TOKEN)
        other.subscribe(id="b", snapshot=False, after=[f"{stream}:{MARK}"])
        other.wait_frame(type="bookmark", id="b", complete=True)
        self.assertEqual([f["type"] for f in other.frames], ["welcome", "ready", "reset", "session", "bookmark"])
        self.assertEqual(other.find(type="reset")["reason"], "rewritten")

    def test_the_live_stream_over_http_is_no_other_door(self):
        hub, stream, end = self.of_bob()
        with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as connection:
            connection.sendall(f"GET /v1/events?snapshot=false&after={stream.replace('=', '%3D')}:{MARK} HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\n"
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
        hub, of_ada, of_bob = self.team(**ada), self.host("ada", self.wire), self.host("bob", self.wire)
        for name in ("2", "5"):
            Session(of_ada.root, "/home/ada/api", name).turn("hers")
        for name in ("1", "3", "4", "6"):  # before, between and behind hers
            Session(of_bob.root, "/srv/vault", name).turn("secret")
        self.assert_hub_complete(hub)
        talk, after, seen = self.talk(self.cold(hub)), "", []
        while after is not None:
            status, text = talk.ask(f"GET /v1/sessions?all=true&limit=1&after={after}", TOKEN)
            page = json.loads(text)
            seen.append(([s["session"] for s in page["sessions"]], page.get("next")))
            after = page.get("next")
            self.assertNotIn("secret", text)
        self.assertEqual(seen, [(["2@ada"], "2@ada"), (["5@ada"], None)])

    def test_pages_of_sessions_do_not_tell_that_there_are_more_of_other_hosts(self):
        self.pages(hosts=["ada"])

    def test_pages_of_sessions_do_not_tell_that_there_are_more_of_other_projects(self):
        self.pages(hosts=["*"], projects=["/home/ada/*"])

    def test_a_page_of_only_cold_sessions_of_others_is_empty(self):
        hub, stream, end = self.of_bob()
        self.assertEqual(self.talk(hub).ask("GET /v1/sessions?all=true", TOKEN), (200, '{"sessions":[]}\n'))

    def test_a_record_of_another_is_not_found_and_ones_own_is_though_it_is_cold(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*"])
        ada, bob = self.host("ada", self.wire, more="read = true"), self.host("bob", self.wire, more="read = true")
        self.session(ada).turn("hers"), self.session(bob, "/srv/vault").turn("secret")
        expected = self.assert_hub_complete(hub)
        places = self.places(hub)
        hub = self.cold(hub)
        seen = hub.client(token=TOKEN)
        for stream, end in sorted(places.items()):
            host = stream.split("/")[1]
            seen.send(type="read", id=host, stream=stream, cursor=end)
        seen.send(type="read", id="none", stream="hub/bob/none", cursor=MARK)
        answers = [seen.wait_frame(type="error", id=name) for name in ("bob", "none")]
        self.assertEqual(*({k: v for k, v in answer.items() if k != "id"} for answer in answers))
        seen.wait_frame(type="record", id="ada")
        self.silent(seen, "secret")
        self.assertEqual(len(expected), 2)

    def test_what_happens_to_cold_sessions_of_others_is_not_told(self):
        hub = self.team(hosts=["*"], projects=["/home/ada/*", "-srv-*"])
        ada, bob = self.host("ada", self.wire), self.host("bob", self.wire)
        one, other = self.session(ada), self.session(bob, "/srv/vault")
        one.turn("hers"), other.turn("secret")
        self.assert_hub_complete(hub)
        hub = self.cold(hub)
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
            self.silent(client, "bob", "secret")
        seen.wait_frame(type="turn.finished", host="ada")
        self.silent(seen, "bob", "secret")

    def test_after_falling_behind_there_is_nothing_of_others(self):
        self.wire = self.broker()
        self.users = user("ada", hosts=["ada"], view="full")
        hub = self.hub(self.wire, more=self.users, top="[limits]\nlog_bytes = 524288\n")
        ada, bob = self.host("ada", self.wire), self.host("bob", self.wire)
        one, other = self.session(ada), self.session(bob, "/srv/vault")
        one.turn("hers"), other.turn("secret")
        self.assert_hub_complete(hub)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(60)
            slow.connect(("127.0.0.1", hub.port))
            slow.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            owner = hub.subscriber()
            for n in range(600):
                one.reply("x" * 4000)
                other.reply("secret" * 600)
            one.turn("the end of hers"), other.turn("the end of the secret")
            owner.wait(lambda: all(owner.find(type="turn.finished", host=host, turn=3) for host in ("ada", "bob")), "the end", 60)
            os.unlink(other.path)
            owner.wait_frame(type="stream.removed")
            got = b""

            def take_until(word):
                nonlocal got
                while word not in got.partition(b'"lagged"')[2]:
                    piece = slow.recv(1 << 20)
                    self.assertTrue(piece, got[-2000:])
                    got += piece

            take_until(b'"type":"session"')
            one.turn("after")
            take_until(b'"type":"turn.finished"')
        self.assertNotIn(b"secret", got)
        self.assertNotIn(b"bob", got)

    # --- Who is who ---

    def test_no_token_is_nobodys(self):
        self.wire = self.broker()
        nothing = hashlib.sha256(b"").hexdigest()
        config = self.write("fails.toml", f'[hub]\nurl = "{self.wire.url}"\n[hub.users.ada]\ntoken_sha256 = "{nothing}"\n')
        daemon = self.start("--config", config, roots=[], state=os.path.join(self.home, "fails"), ready=False)
        self.assertEqual(daemon.process.wait(60), 2)
        wait_for(lambda: b"the SHA-256 of nothing" in daemon.stderr(), "why", give_up=lambda: None)

    def test_each_request_of_a_connection_says_anew_who_asks(self):
        hub, stream, end = self.of_bob()
        talk = self.talk(hub)
        self.assertEqual(talk.ask("GET /v1/sessions?all=true", TOKEN), (200, '{"sessions":[]}\n'))
        hub.wait_log(r"audit: ada from 127\.0\.0\.1:\d+ asks for /v1/sessions and is shown full")
        self.assertEqual(talk.ask("GET /v1/health", "wrong")[0], 401)
        hub.wait_log(r"audit: nobody from 127\.0\.0\.1:\d+ asks for /v1/health and is shown nothing: the token is wrong")
        self.assertEqual(talk.ask("GET /v1/health", hub.token)[0], 200)
        hub.wait_log(r"audit: the owner from 127\.0\.0\.1:\d+ asks for /v1/health and is shown full")
        self.assertEqual(talk.ask("GET /v1/health", TOKEN)[0], 403)
        hub.wait_log(r"audit: ada from 127\.0\.0\.1:\d+ asks for /v1/health and is shown nothing")
        self.assertEqual(talk.ask("GET /v1/health")[0], 401)
        # The owner is shown all again, on the same connection.
        talk.socket.sendall(f"GET /v1/events?all=true HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nAuthorization: Bearer {hub.token}\r\n\r\n".encode())
        while b'"type":"ready"' not in (line := talk.file.readline()):
            self.assertTrue(line)
            if b'"type":"session"' in line:
                self.assertIn(b"vault", line)
                break
        else:
            self.fail("the owner is shown no session")

    def test_a_second_hello_changes_nothing_and_the_owners_new_token_ends_no_user(self):
        hub = self.team()
        bob = self.host("bob", self.wire)
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
        status, text = self.talk(hub).ask("POST /v1/token/rotate", hub.token)
        self.assertEqual(status, 200)
        hub.token = json.loads(text)["token"]
        self.assertEqual(owner.wait_closed(), 4501)
        fresh = hub.client()
        fresh.subscribe()
        self.session(bob, "/srv/vault").turn("his")
        fresh.wait_frame(type="turn.finished")
        ada = self.host("ada", self.wire)
        self.session(ada).turn("hers")
        for client in (by_header, by_hello):
            client.wait_frame(type="turn.finished", host="ada")
            self.silent(client, "bob", "secret")

    def test_a_meta_user_is_shown_no_more_whatever_he_asks_for(self):
        hub = self.team(view="meta")
        ada = self.host("ada", self.wire)
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
            self.silent(client, "lighthouse")
        for path in ("/v1/sessions?view=full", "/v1/sessions"):
            self.assertNotIn("lighthouse", self.talk(hub).ask(f"GET {path}", TOKEN)[1])

    # --- The audit ---

    def lines(self, hub):
        """Of the audit, without the times and ports."""
        said = hub.stderr().decode()
        return [re.sub(r"127\.0\.0\.1:\d+", "HERE", line) for line in re.findall(r"audit: (.*)", said)]

    def test_everybody_who_comes_leaves_a_line_whatever_the_log_level_is(self):
        self.team().stop()
        hub = self.hub(self.wire, more=self.users, top='log-level = "error"')
        address = ("127.0.0.1", hub.port)
        expected = []

        def then(*lines):
            expected.extend(lines)
            wait_for(lambda: len(self.lines(hub)) >= len(expected), f"{lines}", give_up=hub.exit_reason)
            self.assertEqual(self.lines(hub), expected)

        with socket.create_connection(address):
            pass
        then("nobody from HERE asks for nothing and is shown nothing")
        with socket.create_connection(address) as one:
            one.sendall(b"what is this\r\n\r\n")
            one.recv(1000)
        then("nobody from HERE asks for what is refused unread and is shown nothing")
        http(hub.port, "GET /healthz HTTP/1.1", f"Host: 127.0.0.1:{hub.port}")
        then("nobody from HERE asks for /healthz and is shown nothing")
        http(hub.port, f"GET /v1/ws/{TOKEN}?token={TOKEN} HTTP/1.1", f"Host: 127.0.0.1:{hub.port}")
        then("nobody from HERE asks for another path and is shown nothing")
        http(hub.port, "GET /v1/sessions HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", "Authorization: Basic x")
        then("nobody from HERE asks for /v1/sessions and is shown nothing: the token is wrong")
        right = hub.client(bearer=False)
        then("nobody from HERE asks for /v1/ws and is shown nothing")
        right.send(type="hello", token=TOKEN)
        then("ada from HERE asks for hello and is shown full")
        wrong = hub.client(bearer=False)
        wrong.send(type="hello", token="wrong")
        then("nobody from HERE asks for /v1/ws and is shown nothing", "nobody from HERE asks for hello and is shown nothing: the token is wrong")
        empty = hub.client(bearer=False)
        empty.send(type="hello")
        then("nobody from HERE asks for /v1/ws and is shown nothing", "nobody from HERE asks for hello and is shown nothing: the token is wrong")
        never = hub.client(bearer=False)
        self.assertEqual(never.wait_closed(), 4501)
        then("nobody from HERE asks for /v1/ws and is shown nothing")
        hub.client(token=TOKEN)
        then("ada from HERE asks for /v1/ws and is shown full")
        with self.assertRaises(websockets.InvalidStatusCode):
            hub.client(token="wrong")
        then("nobody from HERE asks for /v1/ws and is shown nothing: the token is wrong")
        talk = self.talk(hub)
        code = json.loads(talk.ask("POST /v1/codes", hub.token)[1])["code"]
        then("the owner from HERE asks for /v1/codes and is given a one-time code")
        page = self.talk(hub)
        body = json.dumps({"code": code}).encode()
        self.assertEqual(page.ask("GET /")[0], 200)
        then("nobody from HERE asks for / and is shown nothing")
        self.assertEqual(page.ask("POST /v1/token", body=body, Content_Type="application/json")[0], 200)
        then("who has a one-time code from HERE asks for /v1/token and is given the owner's token")
        self.assertEqual(page.ask("POST /v1/token", body=body, Content_Type="application/json")[0], 401)
        then("nobody from HERE asks for /v1/token and is shown nothing")
        said = hub.stderr().decode()
        for secret in (TOKEN, hub.token, code):
            self.assertNotIn(secret, said)
        self.assertNotIn("?", "".join(self.lines(hub)))

    def test_where_there_are_no_users_or_no_log_there_is_no_audit(self):
        self.wire = self.broker()
        plain = self.hub(self.wire)
        plain.subscriber()
        plain.stop()
        self.assertNotIn(b"audit:", plain.stderr())
        silent = self.hub(self.wire, name="silent", more=user("ada") + 'view = "meta"\n', top='log-level = "off"')
        silent.subscriber()
        silent.stop()
        self.assertNotIn(b"audit:", silent.stderr())


if __name__ == "__main__":
    unittest.main()
