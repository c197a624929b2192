"""Generates the figures in the README files, between two markers, from a run's JSON."""
import os

import report

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEADLINES = ("append to subscriber, p50", "append to subscriber, p99", "fan-out to 1,000, bursts of 32 lines: CPU an event", "bytes to events, recorded",
             "start, 2,000 sessions, 868 MB: all snapshots sent", "start, 2,000 sessions, 868 MB: peak memory", "start, 100,000 cold files in 10,000 directories",
             "20,000 lines at once: the last one", "a new session's first event, p50", "a 1.4 GB transcript: folded", "an idle subscriber",
             "idle, 2,000 sessions: CPU in 20 s")
FILES = {"README.md": HEADLINES, "tests/bench/README.md": None}  # None: all rows


def replaced(text, block, begin=BEGIN, end=END):
    """Replaces the block between the markers; raises ValueError if the markers are missing or out of order."""
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"needs one '{begin}' followed by one '{end}'")
    return text[:text.index(begin) + len(begin)] + "\n" + block + "\n" + text[text.index(end):]


def block_of(found, only):
    when = found["when"].split(" ")[0]
    note = "A quick run: the figures are meaningless.\n\n" if found["quick"] else ""
    return f"{note}{report.markdown(found, only)}\n\n{when}: " + report.foot(found).replace("\n", ".\n") + "."


def rewrite(found, top=TOP):
    """Writes a report into the README files; returns their names."""
    for name, only in FILES.items():
        path = os.path.join(top, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            text = replaced(text, block_of(found, only))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return list(FILES)
