"""Writes the figures of a run between the markers in README.md (a summary) and tests/bench/README.md (the table)."""
import os

import report

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
SUMMARY = {
    "Latency": ("append to subscriber, p50", "append to subscriber, p99", "a new session's first event, p50", "20,000 lines at once: the last one"),
    "Throughput": ("fan-out to 1,000, bursts of 32 lines: CPU an event", "bytes to events, recorded", "a 1.4 GB transcript: folded",
                   "start, 2,000 sessions, 868 MB: all snapshots sent", "start, 100,000 cold files in 10,000 directories"),
    "Footprint": ("start, 2,000 sessions, 868 MB: peak memory", "an idle subscriber", "idle, 2,000 sessions: CPU in 20 s"),
}


def replaced(text, block, begin=BEGIN, end=END):
    """Returns `text` with `block` between the markers. Raises ValueError if the markers are not there once, in order."""
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"needs one '{begin}' and, after it, one '{end}'")
    return text[:text.index(begin) + len(begin)] + "\n" + block + "\n" + text[text.index(end):]


def summary_line(title, rows):
    """One line: how many of these rows meet their budget, and each that does, beside its floor."""
    judged = [row for row in rows if "met" in row]
    met = [row for row in judged if row["met"]]
    line = f"- **{title}**: {len(met)} of {len(judged)} budgets met"
    return line + (": " + "; ".join(map(summary_item, met)) if met else "") + "."


def summary_item(row):
    item = f"{row['what']} {report.quantity(row['figure'], row['unit'])}"
    if "ratio" not in row:
        return item
    return item + f" ({row['ratio']:.3g}x " + ("less than " if row.get("gain") else "") + row["floor_is"] + ")"


def summary(found):
    return "\n".join(summary_line(title, [row for row in found["rows"] if row["what"] in names]) for title, names in SUMMARY.items())


def block(found, body):
    when = found["when"].split(" ")[0]
    note = "A quick run: the figures are meaningless.\n\n" if found["quick"] else ""
    return f"{note}{body}\n\n{when}: " + report.foot(found).replace("\n", ".\n") + "."


FILES = {"README.md": summary, "tests/bench/README.md": report.markdown}


def rewrite(found, top=TOP):
    """Writes a run's figures into both files; returns their names."""
    for name, body in FILES.items():
        path = os.path.join(top, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            text = replaced(text, block(found, body(found)))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return list(FILES)
