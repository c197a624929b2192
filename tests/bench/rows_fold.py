"""Bytes to events in the core, and one very long transcript in the daemon."""
import glob
import itertools
import os
import time

from generate import prompt_line, write_sessions
from support.harness import corpus
from lab import memory
from program_sessions import programs, write_program_sessions

generated_bytes = 64 << 20
short_text_bytes = 500          # of prompts: lines of about 700 bytes
huge_bytes = int(1.4 * (1 << 30))
rounds = 3


def fold(lab, add):
    with lab.scratch("fold") as folder:
        size = lab.rounds(generated_bytes, 4 << 20)
        inputs = {
            "recorded": glob.glob(os.path.join(corpus() or "/nowhere", "claude-*", "*", "tree", "**", "*.jsonl"), recursive=True),
            "generated as recorded": write_sessions(os.path.join(folder, "all"), 64, size),
            "generated 2.1.330": write_sessions(os.path.join(folder, "newest"), 64, size, era="2.1.330"),
            "short lines": short_lines(os.path.join(folder, "short"), size // 4),
            **{program: write_program_sessions(os.path.join(folder, program), program, 64, size) for program in programs},
        }
        for name, files in inputs.items():
            if not files:
                add.skip(f"bytes to events, {name}: the recorded sessions are not installed (EARSHOT_CORPUS)")
                continue
            lab.say(f"bytes to events, {name}")
            got = lab.program("fold", *files)
            add(f"bytes to events, {name}", got["fold_rounds"], got["dom_rounds"])
            add(f"bytes to events, {name}, two threads", got["two_threads_rounds"], got["dom_rounds"])


def short_lines(folder, size):
    """Two transcripts of prompts, `size` bytes together."""
    os.makedirs(folder)
    paths = [os.path.join(folder, f"{name}.jsonl") for name in ("a", "b")]
    for path in paths:
        with open(path, "w") as file:
            for n in itertools.count():
                if file.tell() >= size // 2:
                    break
                file.write(prompt_line("s", n, "x" * short_text_bytes))
    return paths


def huge(lab, add):
    with lab.scratch("huge") as root:
        size = lab.limited_size(huge_bytes)
        lab.say(f"a transcript of {size >> 20} MiB")
        path, = write_sessions(root, 1, size)
        scale = os.path.getsize(path) / huge_bytes
        note = "" if scale > 0.95 else f"scaled to {os.path.getsize(path) >> 20} MiB"
        folded, floors, peaks = [], [], []
        for _ in range(lab.rounds(rounds)):
            floors.append(lab.program("floor", "read", root)["seconds"])
            began = time.monotonic()
            with lab.daemon(root) as daemon:
                folded.append(time.monotonic() - began)
                peaks.append(memory(daemon, "VmHWM"))
    add("a 1.4 GB transcript: folded", folded, floors, scale=scale, note=note)
    add("a 1.4 GB transcript: peak memory", peaks, [lab.empty_server()], note=note)
