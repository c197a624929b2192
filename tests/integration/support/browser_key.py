"""A browser that signs in at a daemon, as the page does: with a key of openssl instead of WebCrypto."""
import hashlib
import hmac
import http.client
import json
import os
import subprocess
import tempfile

SPKI_POINT_BYTES, NUMBER_BYTES = 65, 32


def number(der, at):
    """(an INTEGER of a DER signature as 32 bytes, the offset behind it)"""
    end = at + 2 + der[at + 1]
    return der[at + 2:end].lstrip(b"\0").rjust(NUMBER_BYTES, b"\0"), end


def hmac_of(key, *lines):
    return hmac.new(key.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


class BrowserKey:
    def __init__(self, port):
        self.port, self.origin, self.id, self.secret = port, f"http://127.0.0.1:{port}", None, None
        self.pem = subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"], check=True, capture_output=True).stdout
        public = subprocess.run(["openssl", "ec", "-pubout", "-outform", "DER"], input=self.pem, check=True, capture_output=True).stdout
        self.public = public[-SPKI_POINT_BYTES:].hex()

    def sign(self, text):
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "key.pem")
            with open(path, "wb") as file:
                file.write(self.pem)
            der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", path], input=text.encode(), check=True, capture_output=True).stdout
        r, at = number(der, 2)
        return (r + number(der, at)[0]).hex()

    def request(self, method, target, body=None, **headers):
        """(status, the JSON or text of the response)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            if body is not None:
                headers = {"Content-Type": "application/json", **headers}
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, json.loads(text) if response.headers["Content-Type"] == "application/json" else text
        finally:
            connection.close()

    def registration(self, code, name="Chrome on Linux", temporary=False):
        challenge = self.request("GET", "/v1/challenge")[1]
        self.daemon_id = challenge["daemon_id"]
        parts = ["earshot registration 1", self.daemon_id, self.origin, challenge["nonce"], self.public, "temporary" if temporary else "kept", name]
        proof = hmac_of(code, *parts)
        return {"nonce": challenge["nonce"], "key": self.public, "name": name, "temporary": temporary, "proof": proof, "signature": self.sign("\n".join(parts))}

    def send_registration(self, registration, origin=None):
        status, answer = self.request("POST", "/v1/browsers/register", registration, Origin=origin or self.origin)
        if status == 200:
            self.id = answer["browser"]
        return status, answer

    def register(self, code, *args, **more):
        """(status, response); the proof of the daemon is verified."""
        registration = self.registration(code, *args, **more)
        status, answer = self.send_registration(registration)
        if status == 200:
            parts = [self.daemon_id, self.origin, self.id, registration["nonce"]]
            assert answer["proof"] == hmac_of(code, "earshot registered 1", *parts), answer
            self.secret = hmac_of(code, "earshot secret 1", *parts)
        return status, answer

    def challenge(self):
        """(status, response), without a proof if this browser is not known."""
        asked = os.urandom(16).hex()
        status, answer = self.request("GET", f"/v1/challenge?browser={self.id}&nonce={asked}")
        if "proof" in answer and self.secret:
            assert answer["proof"] == hmac_of(self.secret, "earshot challenge 1", self.daemon_id, self.origin, asked, answer["nonce"]), answer
        return status, answer

    def answer(self, purpose):
        nonce = self.challenge()[1]["nonce"]
        signature = self.sign("\n".join(["earshot sign-in 1", purpose, self.daemon_id, self.origin, self.id, nonce]))
        return {"browser": self.id, "nonce": nonce, "signature": signature}

    def authorization(self, method, target):
        answer = self.answer(f"{method} {target}")
        return f"Earshot {answer['browser']}.{answer['nonce']}.{answer['signature']}"

    def authorised(self, method, target, body=None, **headers):
        return self.request(method, target, body, **{"Origin": self.origin, "Authorization": self.authorization(method, target), **headers})
