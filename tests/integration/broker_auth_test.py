"""Authentication at the broker: passwords, nkeys, credentials and certificates."""
import os
import subprocess
import unittest

from support.harness import wait_for
from support.nkeys import Key, Operator
from support.team import TeamCase

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


class Access(TeamCase):
    def assert_team_works(self, broker, hub, ada):
        session = self.session(ada)
        session.turn("hers")
        self.assert_hub_complete(hub)
        broker.kill()
        session.turn("while the broker is away")
        broker.start()
        self.assert_hub_complete(hub)

    def reason_refused(self, broker, name, more, expected="", url=None):
        """Starts a host that the broker refuses; returns the reason in its health, which contains `expected`. Its local delivery works."""
        daemon = self.host(name, broker, more=more, url=url)
        del self.hosts[name]
        client = daemon.subscriber()
        self.session(daemon).turn("delivered locally")
        client.wait_frame(type="turn.finished")
        reasons = lambda: (t["reason"] for t in self.health(daemon)["problems"] if t["path"] == "[relay]")  # noqa: E731
        return wait_for(lambda: next((each for each in reasons() if expected in each), None), f"a reason with {expected}")

    def test_a_user_with_a_password_that_is_never_displayed(self):
        broker = self.broker(authorization='authorization { timeout: 120, users: [ { user: ada, password: "hush-hush" } ] }')

        def url(password):
            return broker.url.replace("//", f"//ada:{password}@")

        hub, ada = self.hub(broker, url=url("hush-hush")), self.host("ada", broker, url=url("hush-hush"))
        self.assert_team_works(broker, hub, ada)
        why = self.reason_refused(broker, "eve", "", "uthorization", url=url("wrong-word"))
        self.assertIn(broker.url, why)
        self.assertNotIn("wrong-word", why)
        for daemon in (hub, ada):
            self.assertNotIn("hush-hush", daemon.stderr().decode() + str(self.health(daemon)))

    def test_a_user_with_an_nkey(self):
        known, unknown = Key("U"), Key("U")
        broker = self.broker(authorization=f"authorization {{ timeout: 120, users: [ {{ nkey: {known.public} }} ] }}")

        def keys(name, key):
            self.write(f"{name}.nk", key.seed + "\n")
            return f'nkey = "{key.public}"\nnkey_seed = "{name}.nk"\n'

        hub = self.hub(broker, more=keys("known", known))
        self.assert_team_works(broker, hub, self.host("ada", broker, more=keys("known", known)))
        self.reason_refused(broker, "eve", keys("unknown", unknown), "uthorization")
        self.reason_refused(broker, "bob", f'nkey = "{known.public}"\nnkey_seed = "missing.nk"\n', "missing.nk")

    def test_a_user_with_credentials(self):
        operator, another = Operator(), Operator()
        broker = self.broker(more=operator.config)

        def credentials(name, text):
            self.write(f"{name}.creds", text)
            return f'credentials = "{name}.creds"\n'

        hub = self.hub(broker, more=credentials("hub", operator.credentials("hub")))
        self.assert_team_works(broker, hub, self.host("ada", broker, more=credentials("ada", operator.credentials("ada"))))
        self.reason_refused(broker, "eve", credentials("eve", another.credentials("eve")), "uthorization")
        self.reason_refused(broker, "bob", 'credentials = "missing.creds"\n', "missing.creds")

    def certificates(self, *names):
        """Makes a certificate authority, and a certificate and key for each name."""
        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.home)

        openssl("req", "-x509", *EC, "-subj", "/CN=the team's", "-keyout", "ca.key", "-out", "ca.pem")
        for name in names:
            openssl("req", *EC, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            self.write(f"{name}.ext", "subjectAltName = DNS:localhost, IP:127.0.0.1\n")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def test_a_broker_and_hosts_with_certificates(self):
        self.certificates("broker", "ada")
        files = {name: os.path.join(self.home, name) for name in ("broker.pem", "broker.key", "ca.pem")}
        broker = self.broker(more=f'tls {{ cert_file: "{files["broker.pem"]}", key_file: "{files["broker.key"]}", ca_file: "{files["ca.pem"]}", verify: true, timeout: 120 }}')
        url = broker.url.replace("nats://", "tls://")
        ours = 'tls_ca = "ca.pem"\ntls_cert = "ada.pem"\ntls_key = "ada.key"\n'
        hub = self.hub(broker, url=url, more=ours)
        self.assert_team_works(broker, hub, self.host("ada", broker, url=url, more=ours))
        self.reason_refused(broker, "eve", 'tls_ca = "ca.pem"\n', url=url)  # has no certificate
        self.certificates("untrusted")  # signed by another authority
        self.reason_refused(broker, "bob", 'tls_ca = "ca.pem"\ntls_cert = "untrusted.pem"\ntls_key = "untrusted.key"\n', url=url)
        self.reason_refused(broker, "kim", 'tls_ca = "missing.pem"\n', "missing.pem", url=url)

    def test_a_tls_url_is_never_used_without_tls(self):
        broker = self.broker()  # speaks no TLS
        self.reason_refused(broker, "ada", "", url=broker.url.replace("nats://", "tls://"))


if __name__ == "__main__":
    unittest.main()
