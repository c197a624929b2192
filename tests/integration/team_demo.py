#!/usr/bin/env python3
"""Runs `./dev team-demo`: a nats-server, three daemons with demo sessions, and a hub, until Ctrl-C. Removes its files at the end."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EARSHOT_BUILD") or os.path.join(TOP, "build", "release")
HOSTS = ("ada", "grace", "linus")
seconds_max = 240  # for a process to start


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def write(home, name, text):
    path = os.path.join(home, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def wait(condition, what, process):
    end = time.monotonic() + seconds_max
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"team-demo: {what} did not start")
        time.sleep(0.05)


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=seconds_max):
            return True
    except OSError:
        return False


def page(state):
    """The address of the hub's page, with a one-time code for one browser."""
    with open(os.path.join(state, "socket")) as file:
        path = file.read().strip()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"POST /v1/codes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return json.loads(answer.partition(b"\r\n\r\n")[2])["url"]


def main():
    server = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not server:
        sys.exit("team-demo: nats-server is not installed (Debian: apt install nats-server)")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home = tempfile.mkdtemp(prefix="earshot-team-")
    processes = []
    try:
        port = free_port()
        log = open(os.path.join(home, "log"), "ab")
        config = write(home, "nats.conf", f'listen: "127.0.0.1:{port}"\nmax_payload: 1MB\njetstream {{ store_dir: "{home}/jetstream" }}\n')

        def start(*words, name):
            environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(home, name, "run")}
            os.makedirs(environment["XDG_RUNTIME_DIR"], exist_ok=True)
            processes.append(subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment))
            return processes[-1]

        wait(lambda: answers(port), "nats-server", start(server, "-c", config, name="nats"))

        def daemon(name, text, *words):
            state = os.path.join(home, name, "state")
            config = write(home, name + ".toml", text)
            process = start(os.path.join(BUILD, "earshotd"), "--config", config, "--state", state, "--host", name, "--listen", "127.0.0.1:0", *words, name=name)
            wait(lambda: os.path.exists(os.path.join(state, "socket")), name, process)
            return state

        hub = daemon("hub", f'[hub]\nurl = "nats://127.0.0.1:{port}"\n')
        for name in HOSTS:
            daemon(name, f'[relay]\nurl = "nats://127.0.0.1:{port}"\nview = "full"\n', "--demo")
        print(f"team-demo: {', '.join(HOSTS)} publish to nats://127.0.0.1:{port}; the hub's page:\n  {page(hub)}", flush=True)
        print(f"  earshot ls --state {hub}      and other commands; Ctrl-C stops everything", flush=True)
        if "--once" in sys.argv:  # for the test: everything started
            return
        while all(process.poll() is None for process in processes):
            time.sleep(0.5)
        with open(log.name, errors="replace") as file:
            sys.exit("team-demo: a process exited\n" + file.read()[-4000:])
    except KeyboardInterrupt:
        pass
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
