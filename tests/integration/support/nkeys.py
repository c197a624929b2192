"""Makes NATS keys, JWTs and credentials with openssl, for tests of broker authentication.

https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth, …/jwt
"""
import base64
import json
import os
import subprocess
import tempfile
import time

SEED, KINDS = 18 << 3, {"O": 14 << 3, "A": 0, "U": 20 << 3}  # the first letter of the encoded key


def crc16(data):
    """CRC-16/XMODEM."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def encode_key(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "little")).rstrip(b"=").decode()


def base64_url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """An Ed25519 key of an operator (O), an account (A) or a user (U)."""

    def __init__(self, kind):
        self.pem = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"], check=True, capture_output=True).stdout

        def der(*words):
            return subprocess.run(["openssl", "pkey", "-outform", "DER", *words], input=self.pem, check=True, capture_output=True).stdout[-32:]

        prefix = KINDS[kind]
        self.public = encode_key(bytes([prefix]) + der("-pubout"))
        self.seed = encode_key(bytes([SEED | prefix >> 5, (prefix & 31) << 3]) + der())

    def sign(self, text):
        with tempfile.TemporaryDirectory() as home:
            key, data = os.path.join(home, "key.pem"), os.path.join(home, "data")
            with open(key, "wb") as file:
                file.write(self.pem)
            with open(data, "wb") as file:
                file.write(text)
            return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", data], check=True, capture_output=True).stdout

    def jwt(self, subject, name, nats):
        head = base64_url(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = base64_url(json.dumps({"jti": name, "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": {**nats, "version": 2}}).encode())
        return f"{head}.{body}.{base64_url(self.sign(f'{head}.{body}'.encode()))}"


class Operator:
    """An operator that a broker trusts, with an account that may use JetStream and a system account."""

    def __init__(self):
        self.key, self.account, system = Key("O"), Key("A"), Key("A")
        plain = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
        with_store = {**plain, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        accounts = {self.account.public: self.key.jwt(self.account.public, "team", {"limits": with_store, "type": "account"}),
                    system.public: self.key.jwt(system.public, "system", {"limits": plain, "type": "account"})}
        jwt = self.key.jwt(self.key.public, "operator", {"type": "operator", "system_account": system.public})
        preload = ", ".join(f"{key}: {value}" for key, value in accounts.items())
        self.config = f"operator: {jwt}\nsystem_account: {system.public}\nresolver: MEMORY\nresolver_preload: {{ {preload} }}\n"

    def credentials(self, name, permissions=None):
        """The text of a .creds file for a user of the account."""
        user = Key("U")
        limits = {"subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}, **(permissions or {}), "type": "user"}
        jwt = self.account.jwt(user.public, name, limits)
        return (f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
                f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
