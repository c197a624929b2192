#!/usr/bin/env python3
"""Load generators for a daemon. Each runs until its input ends, then prints one JSON object.

usage: load.py backfill FILE BYTES_A_SECOND     appends lines to a transcript at that rate
       load.py catch-up PORT TOKEN STREAM       resumes a stream from its beginning, again and again
       load.py stall PORT TOKEN CLIENTS         subscribes to everything and reads nothing
"""
import json
import select
import sys
import time

import generate
from plain_client import PlainClient

piece_bytes = 1 << 20
mix = "2.1.330"
receive_bytes = 4096  # the receive buffer of a stalled client


def input_ended(wait_s=0.0):
    return bool(select.select([sys.stdin], [], [], wait_s)[0])


def backfill(path, rate):
    """Appends complete lines, about a MiB at a time; a late writer catches up at most one second."""
    template = generate.Template("backfill", piece_bytes, mix).text_bytes().replace(generate.SESSION_MARK.encode(), b"0000b5f1")
    began, written, rate = time.monotonic(), 0, float(rate)
    with open(path, "ab", buffering=0) as file:
        copy, credit, before = 0, 0.0, began
        while not input_ended():
            now = time.monotonic()
            credit, before = min(credit + (now - before) * rate, rate), now
            if credit < len(template):
                time.sleep(max(0.0005, (len(template) - credit) / rate))
                continue
            file.write(template.replace(generate.COPY_MARK.encode(), b"-%04x-" % (copy & 0xffff)))
            copy, credit, written = copy + 1, credit - len(template), written + len(template)
    return {"bytes": written, "rate": written / (time.monotonic() - began)}


def catch_up(port, token, stream):
    """Reads the stream from its first event as fast as possible, repeatedly."""
    total, times = 0, 0
    began = time.monotonic()
    while not input_ended():
        client = PlainClient(int(port), token)
        client.subscribe(filter={"session": [stream.rsplit("/", 1)[1]]}, snapshot=False, after=[f"{stream}:"])
        client.until(b'"complete":true')  # the end of the history
        total, times = total + client.bytes, times + 1
        client.close()
    return {"bytes": total, "times": times, "rate": total / (time.monotonic() - began)}


def stall(port, token, count):
    clients = [PlainClient(int(port), token, receive_bytes=receive_bytes) for _ in range(int(count))]
    for client in clients:
        client.subscribe()
    print(json.dumps({"stalling": len(clients)}), flush=True)
    while not input_ended(1.0):
        pass
    return {"clients": len(clients)}


if __name__ == "__main__":
    command = {"backfill": backfill, "catch-up": catch_up, "stall": stall}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if not command:
        sys.exit(__doc__)
    print(json.dumps(command(*sys.argv[2:])), flush=True)
