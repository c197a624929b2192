"""A subscriber on a plain or TLS socket that parses as little as possible, so that the daemon is measured."""
import json
import os
import socket
import ssl

patience_s = 60


def masked(payload):
    """A client's text frame, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big") if size < 65536 else b"\xff" + size.to_bytes(8, "big")
    return b"\x81" + length + bytes(4) + payload


class PlainClient:
    def __init__(self, port, token, tls=None, receive_bytes=None):
        """`tls` is an ssl.SSLContext; `receive_bytes` limits the kernel's receive buffer."""
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(patience_s)
        self.socket.connect(("127.0.0.1", port))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.rest, self.bytes = b"", 0  # bytes not searched yet; total received
        self.socket.sendall((f"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: earshot.v1\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        self.until(b'"type":"welcome"')

    def send(self, **message):
        self.socket.sendall(masked(json.dumps(message).encode()))

    def subscribe(self, **more):
        self.send(type="subscribe", id="bench", **more)

    def until(self, marker, counted=b"\0"):
        """Reads up to and including `marker`; returns how often `counted` occurred before it. Both may be split between reads."""
        count = 0
        while (at := self.rest.find(marker)) < 0:
            keep = min(len(self.rest), 64)
            count += self.rest.count(counted) - self.rest[len(self.rest) - keep:].count(counted)
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise ConnectionError(f"the daemon closed the connection: {self.rest[-300:]!r}")
            self.bytes += len(piece)
            self.rest = self.rest[len(self.rest) - keep:] + piece
        count += self.rest[:at].count(counted)
        self.rest = self.rest[at + len(marker):]
        return count

    def close(self):
        self.socket.close()


def context_trusting(certificate):
    return ssl.create_default_context(cafile=certificate)


def certificate(folder, run):
    """Makes cert.pem and key.pem for this machine."""
    paths = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]], check=True, capture_output=True)
    os.chmod(paths[1], 0o600)
    return paths
