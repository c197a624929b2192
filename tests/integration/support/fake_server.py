"""Another program where the daemon is expected."""
import socket
import threading


class FakeServer(threading.Thread):
    """Answers each request on this listening socket with the same body, and keeps what each connection sent."""

    def __init__(self, listener, body):
        super().__init__(daemon=True)
        self.socket, self.received = listener, []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                data = b""
                while piece := connection.recv(65536):
                    data += piece
                    if data.endswith(b"\r\n\r\n"):
                        connection.sendall(self.answer)
                self.received.append(data)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
