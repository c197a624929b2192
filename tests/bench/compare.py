"""Compares two runs row by row, and separates changes from noise."""
import report

noise_least = 0.05  # smaller differences are always noise


def noise_of(*rows):
    """The relative difference that counts as noise: the larger spread of the rounds."""
    return max(noise_least, *(row["spread"] for row in rows))


def compared(old, new):
    """[{what, unit, old, new, change, noise, moved}]; `moved` is better, worse, same, new or removed. A change needs two numbers."""
    found, before = [], {row["what"]: row for row in old["rows"]}
    by = "figure" if old["machine"]["id"] == new["machine"]["id"] else "ratio"
    for row in new["rows"]:
        before_row = before.pop(row["what"], None)
        entry = {"what": row["what"], "unit": row["unit"], "by": by, "new": row.get(by), "old": before_row.get(by) if before_row else None}
        if entry["old"] and entry["new"] is not None:
            entry["change"] = entry["new"] / entry["old"] - 1
            entry["noise"] = noise_of(before_row, row)
            better = row["better"] if by == "figure" else "more" if row["better"] == "more" or row.get("gain") else "less"
            entry["moved"] = "same" if abs(entry["change"]) <= entry["noise"] else "better" if (entry["change"] < 0) == (better == "less") else "worse"
        elif not before_row:
            entry["moved"] = "new"
        found.append(entry)
    return found + [{"what": what, "unit": before_row["unit"], "by": by, "old": before_row.get(by), "new": None, "moved": "removed"} for what, before_row in before.items()]


def cells(entry):
    def shown(value):
        return "" if value is None else f"{value:.3g}x" if entry["by"] == "ratio" else report.quantity(value, entry["unit"])

    if "change" not in entry:
        return entry["what"], shown(entry["old"]), shown(entry["new"]), "", "", entry.get("moved", "")
    return (entry["what"], shown(entry["old"]), shown(entry["new"]), f"{entry['change']:+.0%}", f"±{entry['noise']:.0%}", {"same": ""}.get(entry["moved"], entry["moved"].upper()))


def table(old, new):
    rows = compared(old, new)
    text = report.aligned([("what", "old", "new", "change", "noise", "moved"), *map(cells, rows)])
    moved = [entry for entry in rows if entry.get("moved") in ("better", "worse")]
    foot = [f"{len(moved)} of {len(rows)} rows moved beyond the noise" + (": " + ", ".join(f"{entry['what']} ({entry['moved']})" for entry in moved) if moved else "")]
    if old["machine"]["id"] != new["machine"]["id"]:
        foot.append("the runs are from different machines: ratios to the floor are compared, not figures")
    foot += [f"{name}: {report.noise_words(run['noise'])}" for name, run in (("old", old), ("new", new)) if run["noise"]["noisy"]]
    return text + "\n\n" + "\n".join(foot)
