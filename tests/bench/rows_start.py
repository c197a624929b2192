"""Startup time and memory."""
import os
import time

from generate import write_sessions
from lab import age, cpu_s, memory, until_idle
from plain_client import PlainClient
from program_sessions import programs, write_program_sessions

sessions, session_bytes = 2000, 868_000_000
cold_files, cold_directories = 100_000, 10_000
idle_s = 20
settled_s = 12  # sessions without a process have ended 10 s after the start
rounds = 3


def start(lab, add):
    name, newest = "start, 2,000 sessions, 868 MB", "start, 2,000 sessions of 2.1.330, 868 MB"
    if add.selects(name) or add.selects("idle, 2,000"):
        start_with(lab, add, name, "recorded")
    if add.selects(newest):  # nine tenths of their bytes give no events; older versions have fewer of those
        start_with(lab, add, newest, "2.1.330")
    for program in programs:
        if add.selects(row := f"start, 2,000 sessions of {program}, 868 MB"):
            start_with(lab, add, row, program)


def start_with(lab, add, name, era):
    with lab.scratch("start") as root:
        lab.say(f"writing {sessions:,} sessions, {era}")
        write = write_program_sessions if era in programs else write_sessions
        order = (era, sessions, lab.limited_size(session_bytes)) if era in programs else (sessions, lab.limited_size(session_bytes), era)
        size = sum(map(os.path.getsize, write(root, *order)))
        scale = size / session_bytes
        note = "" if scale > 0.9 else f"scaled to {size / 1e6:.0f} MB"
        ready, complete, floors, peaks = [], [], [], []
        for n in range(lab.rounds(rounds)):
            lab.say(f"{name}, round {n + 1}")
            floors.append(lab.program("floor", "read", root)["seconds"])
            began = time.monotonic()
            with lab.daemon(root) as daemon:
                ready.append(time.monotonic() - began)
                client = PlainClient(daemon.port, daemon.token)
                client.subscribe()
                shown = client.until(b'"type":"ready"', counted=b'{"type":"session"')
                complete.append(time.monotonic() - began)
                if shown != sessions:
                    raise RuntimeError(f"the snapshot shows {shown} of {sessions} sessions")
                peaks.append(memory(daemon, "VmHWM"))
                if n == 0 and add.selects("idle, 2,000") and era == "recorded":
                    add("idle, 2,000 sessions: CPU in 20 s", [idling(lab, daemon)], note="in 1 s" if lab.quick else "")
                client.close()
    add(f"{name}: ready", ready, floors, scale=scale, note=note)
    add(f"{name}: all snapshots sent", complete, floors, scale=scale, note=note)
    add(f"{name}: peak memory", peaks, [lab.empty_server()], note=note)


def idling(lab, daemon):
    seconds = lab.rounds(idle_s, 1)
    lab.say(f"idle for {seconds} s")
    until_idle(daemon, settled_s, 4 * settled_s)
    before = cpu_s(daemon)
    time.sleep(seconds)
    return cpu_s(daemon) - before


def cold_tree(root, files, directories, first=0):
    """Writes old files of one line; numbers below `first` exist already."""
    line = b'{"type":"mode","mode":"default"}\n'
    for number in range(directories):
        folder = os.path.join(root, "projects", f"-home-ada-cold-{number}")
        os.makedirs(folder, exist_ok=True)
        for n in range(first + (number - first) % directories, files, directories):
            path = os.path.join(folder, f"{n:08x}-0000-4000-8000-000000000000.jsonl")
            with open(path, "wb", buffering=0) as file:
                file.write(line)
            age([path])


def cold(lab, add):
    files, directories = lab.rounds(cold_files, 1000), lab.rounds(cold_directories, 100)
    with lab.scratch("cold") as root:
        lab.say(f"writing {files:,} cold files in {directories:,} directories")
        cold_tree(root, files, directories)
        ready, floors, resident = [], [], []
        for n in range(lab.rounds(rounds)):
            lab.say(f"start with cold files, round {n + 1}")
            floors.append(lab.program("floor", "stat", root)["seconds"])
            began = time.monotonic()
            with lab.daemon(root) as daemon:
                ready.append(time.monotonic() - began)
                until_idle(daemon)
                resident.append(memory(daemon))
    note = "" if files == cold_files else f"scaled to {files:,}"
    add("start, 100,000 cold files in 10,000 directories", ready, floors, scale=files / cold_files, note=note)
    add("100,000 cold files in 10,000 directories: memory", resident, [lab.empty_server()], note=note)
