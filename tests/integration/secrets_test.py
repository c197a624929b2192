"""A canary of each kind of secret is written to a transcript; no output of the daemon contains it."""
import json
import os
import stat

from support.endpoints import EndpointCase, curl
from support.transcripts import Session, append

# Invented, in the format of each service. Concatenated so that secret scanners do not report this file.
CANARIES = {
    "aws_access_key": "AKIA" + "Q3EGRJ7XWV5TNB2K",
    "github_token": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "gitlab_token": "glpat-" + "x7Kq2Lm9Zt4Rv8Wc1Yb3",
    "slack_token": "xoxb-" + "248163264128-512102420484-Zq8Xw7Vu6Ts5Rr4Qp3Oo2Nn1",
    "stripe_key": "sk_live_" + "51HyGt7Rk2Lp9Qw3Zx5Vb8Nm",
    "anthropic_key": "sk-ant-" + "api03-Qw7Er8Ty9Ui0Op1As2Df3Gh4Jk5Lz6Xc7Vb8Nm9Qq0Ww1Ee2Rr3Tt4Yy5Uu6Ii7Oo8Pp9-Aa1Ss2Dd3AA",
    "google_api_key": "AIza" + "SyB7d9Kq2Lm4Zt8Rv1Wc3Yb5Xn6Qp0Gh2Jk",
    "npm_token": "npm_" + "q7Wm2Er9Ty4Ui8Op1As3Df5Gh6Jk0Lz2Xc4V",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJrZWVwZXItMTg5MyJ9" + ".Zk3Vt8Qw1Rm5Xy7Lp2Nc9Bd4Hg6Js0Ka3Ue8Io1Ty5M",
    "assignment": "password=" + "Tr0ub4dor-x9Kq2Lm",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq98WfVk3Zt\nQ0hGx5Lp2Nc9Bd4Hg6Js0Ka3Ue8I\n-----END RSA PRIVATE KEY-----",
    "url": "https://keeper:" + "s3cr3tL1ghtH0use" + "@lamp.example/",
}


def middle_of(canary):
    """The ten bytes in the middle of the secret: they must not appear anywhere."""
    value = canary.split("=", 1)[-1].split("keeper:", 1)[-1].split("@")[0]
    value = value.split("\n")[1] if "\n" in value else value
    middle = len(value) // 2
    return value[middle - 5:middle + 5]


class Secrets(EndpointCase):
    def gather(self, daemon, watcher, lines):
        """source → the text that the daemon emits there"""
        for event in [f for f in watcher.frames if "cursor" in f]:
            watcher.send(type="read", id=event["cursor"] + event["type"], stream=event["stream"], cursor=event["cursor"])
            watcher.wait(lambda: (p := watcher.all(type="record", id=event["cursor"] + event["type"])) and len(p) == p[0]["parts"], "the record")
        late = daemon.client()
        late.subscribe(after=[f"{stream}:" for stream in watcher.event_texts()])
        late.wait_frame(type="bookmark", id="a", complete=True)
        outputs = {"frames": "\n".join(watcher.raw + late.raw), "lines": "\n".join(json.dumps(f, ensure_ascii=False) for f in lines.frames),
                "stderr": daemon.stderr().decode(errors="replace")}
        for path in ("/v1/sessions", "/metrics", "/v1/health", "/"):
            outputs[path] = curl(daemon, path, unix=True)[2].decode()
        return outputs

    def test_95_the_metrics_token_reads_the_metrics_and_nothing_else(self):
        daemon = self.configured('metrics_token_file = "metrics_token"\n')
        path = os.path.join(self.home, "metrics_token")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path) as file:
            header = "Authorization: Bearer " + file.read().strip()
        status, _, text = curl(daemon, "/metrics", "-H", header, token=False)
        self.assertEqual((status, b"earshot_build_info" in text), (200, True))
        for target in ("/v1/health", "/v1/sessions", "/v1/events"):
            self.assertEqual(curl(daemon, target, "-H", header, token=False)[0], 403)
        for target in ("/v1/codes", "/v1/token/rotate"):
            self.assertEqual(curl(daemon, target, "-X", "POST", "-H", header, token=False)[0], 403)
        self.assertEqual(curl(daemon, "/metrics", "-H", header[:-1], token=False)[0], 401)

    def test_no_canary_appears_in_any_output(self):
        one = Session(self.root)
        one.prompt("begin")
        daemon = self.start("--log-level", "trace")
        watcher = daemon.subscriber()
        lines = self.event_stream(daemon)
        lines.wait(type="ready")
        escaped = {name: "".join(f"\\u{ord(c):04x}" for c in value) for name, value in CANARIES.items()}
        for name, value in CANARIES.items():
            one.prompt(f"my {name} is {value} ok")
            call = one.tool_call("Bash", {"command": f"use '{value}'", "env": {value: 1}, "password": value})
            one.result(call, f"printed {value}")
            one.reply(f"It is {value}", stop_reason="end_turn")
            record = json.dumps(one.record("user", {"role": "user", "content": "HERE"})).replace("HERE", "escaped " + escaped[name])
            append(one.path, record.encode() + b"\n")
        watcher.wait(lambda: len(watcher.all(type="turn.started")) >= 2 * len(CANARIES), "all turns")
        lines.wait(type="turn.started", turn=2 * len(CANARIES) + 1)
        outputs = self.gather(daemon, watcher, lines)
        for name, value in CANARIES.items():
            for where, text in outputs.items():
                self.assertNotIn(middle_of(value), text, f"{name} in {where}")
        self.assertGreater(outputs["frames"].count("[redacted:"), 5 * len(CANARIES))
        self.assertRegex(outputs["/metrics"], r'earshot_redactions_total\{rule="github_token"\} [1-9]')

    def test_a_secret_written_byte_by_byte_is_redacted(self):
        one = Session(self.root)
        one.prompt("begin")
        daemon = self.start()
        watcher = daemon.subscriber()
        secret = CANARIES["github_token"]
        line = json.dumps(one.record("user", {"role": "user", "content": f"take {secret} now"})).encode() + b"\n"
        at = line.index(secret.encode())
        append(one.path, line[:at])
        for byte in line[at:at + len(secret)]:
            append(one.path, bytes([byte]))
        append(one.path, line[at + len(secret):])
        event = watcher.wait_frame(type="turn.started", turn=2)
        self.assertEqual(event["prompt"], "take [redacted:github_token] now")
        self.assertNotIn(middle_of(secret), "\n".join(watcher.raw))

    def test_redaction_can_be_disabled_only_for_the_unix_socket(self):
        one = Session(self.root)
        one.prompt("begin")
        daemon = self.configured('redact = false\n[redaction]\nlamp = "LAMP-[0-9]+"\n')
        tcp, unix = daemon.subscriber(), self.unix_client(daemon)
        unix.subscribe()
        one.prompt(f"{CANARIES['npm_token']} and LAMP-1893")
        self.assertEqual(unix.wait_frame(type="turn.started")["prompt"], f"{CANARIES['npm_token']} and LAMP-1893")
        self.assertEqual(tcp.wait_frame(type="turn.started")["prompt"], "[redacted:npm_token] and [redacted:lamp]")
        for client, shown in ((unix, True), (tcp, False)):
            event = client.find(type="turn.started")
            client.send(type="read", id="r", stream=event["stream"], cursor=event["cursor"])
            self.assertEqual(CANARIES["npm_token"] in client.wait_frame(type="record", id="r")["data"], shown)

    def test_an_invalid_redaction_rule_is_named(self):
        path = os.path.join(self.home, "bad.toml")
        with open(path, "w") as file:
            file.write('[redaction]\nlamp = "("\n')
        daemon = self.start("--config", path, ready=False)
        self.assertEqual(daemon.wait_exit(), 2)
        self.assertIn("lamp", daemon.stderr().decode())
