"""An X server for tests, a terminal with a window, and a window manager that records what it is asked.

usage: x11.py terminal COMMAND…    opens a window on DISPLAY, runs the command on a pty of its own, and prints the window's id and the
                                   command's pid
       x11.py manager              becomes the window manager of DISPLAY, prints `ready`, then the window of each _NET_ACTIVE_WINDOW message
"""
import os
import pty
import socket
import struct
import subprocess
import sys

CARDINAL, STRING, WINDOW, WM_CLIENT_MACHINE = 6, 31, 33, 36
STRUCTURE, REDIRECT, SUBSTRUCTURE = 1 << 17, 1 << 20, 1 << 19
CLIENT_MESSAGE = 33


class Display:
    """A connection that speaks the X protocol, as far as the tests need it."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"/tmp/.X11-unix/X{name.lstrip(':').split('.')[0]}")
        self.socket.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        status, length = struct.unpack("<B5xH", self._read(8))
        setup = self._read(length * 4)
        assert status == 1, setup
        self.base, = struct.unpack_from("<I", setup, 4)
        vendor, = struct.unpack_from("<H", setup, 16)
        self.root, = struct.unpack_from("<I", setup, 32 + (vendor + 3) // 4 * 4 + 8 * setup[21])
        self.next = 1

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def send(self, opcode, data, body):
        body += bytes(-len(body) % 4)
        self.socket.sendall(struct.pack("<BBH", opcode, data, 1 + len(body) // 4) + body)

    def packet(self):
        """The next reply, event or error."""
        packet = self._read(32)
        return packet + (self._read(struct.unpack_from("<I", packet, 4)[0] * 4) if packet[0] == 1 else b"")

    def ask(self, opcode, data, body):
        self.send(opcode, data, body)
        while (packet := self.packet())[0] != 1:
            assert packet[0] != 0, f"X error {packet[1]} of request {opcode}"
        return packet

    def atom(self, name):
        return struct.unpack_from("<I", self.ask(16, 0, struct.pack("<Hxx", len(name)) + name.encode()), 8)[0]

    def change(self, window, name, type, format, data):
        self.send(18, 0, struct.pack("<IIIB3xI", window, self.atom(name) if isinstance(name, str) else name, type, format, len(data) * 8 // format) + data)

    def create_window(self):
        window = self.base + self.next
        self.next += 1
        self.send(1, 0, struct.pack("<IIhhHHHHII", window, self.root, 10, 10, 200, 100, 0, 1, 0, 0))
        return window

    def name_process(self, window, pid, machine=None):
        self.change(window, WM_CLIENT_MACHINE, STRING, 8, (machine or socket.gethostname()).encode())
        self.change(window, "_NET_WM_PID", CARDINAL, 32, struct.pack("<I", pid))

    def map(self, window):
        self.send(8, 0, struct.pack("<I", window))

    def focused(self):
        return struct.unpack_from("<I", self.ask(43, 0, b""), 8)[0]

    def topmost(self):
        reply = self.ask(15, 0, struct.pack("<I", self.root))
        count, = struct.unpack_from("<H", reply, 16)
        return struct.unpack_from(f"<{count}I", reply, 32)[-1] if count else 0

    def clients(self):
        """The windows that the window manager lists."""
        reply = self.ask(20, 0, struct.pack("<IIIII", self.root, self.atom("_NET_CLIENT_LIST_STACKING"), WINDOW, 0, 1 << 16))
        count, = struct.unpack_from("<I", reply, 16)
        return list(struct.unpack_from(f"<{count}I", reply, 32))

    def select(self, mask):
        self.send(2, 0, struct.pack("<III", self.root, 1 << 11, mask))

    def sync(self):
        self.focused()


class Server:
    """Xvfb on a free display."""

    def __init__(self, home):
        read, write = os.pipe()
        self.process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "640x480x24", "-nolisten", "tcp"], pass_fds=(write,),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home)
        os.close(write)
        with os.fdopen(read) as pipe:
            self.display = ":" + pipe.readline().strip()

    def close(self):
        self.process.kill()
        self.process.wait()


def terminal(command):
    display = Display(os.environ["DISPLAY"])
    window = display.create_window()
    display.name_process(window, os.getpid())
    display.map(window)
    display.sync()
    child, master = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    print(window, child, flush=True)
    while True:
        try:
            if not os.read(master, 4096):
                return
        except OSError:  # the command has ended
            return


def manager():
    display = Display(os.environ["DISPLAY"])
    display.select(REDIRECT | SUBSTRUCTURE)
    check = display.create_window()
    display.change(display.root, "_NET_SUPPORTING_WM_CHECK", WINDOW, 32, struct.pack("<I", check))
    active = display.atom("_NET_ACTIVE_WINDOW")
    print("ready", flush=True)
    clients = []
    while packet := display.packet():
        if packet[0] & 0x7f == 20:  # MapRequest
            clients.append(struct.unpack_from("<I", packet, 8)[0])
            display.change(display.root, "_NET_CLIENT_LIST_STACKING", WINDOW, 32, struct.pack(f"<{len(clients)}I", *clients))
            display.map(clients[-1])
        if packet[0] & 0x7f == CLIENT_MESSAGE and struct.unpack_from("<I", packet, 8)[0] == active:
            print(struct.unpack_from("<I", packet, 4)[0], flush=True)


if __name__ == "__main__":
    terminal(sys.argv[2:]) if sys.argv[1] == "terminal" else manager()
