"""Two runs, row by row: what moved, and whether that is more than noise."""
import report

noise_least = 0.05  # no two runs are closer than that


def noise_of(*rows):
    """What a row may differ by without having moved: as far as its rounds lay apart, in either run."""
    return max(noise_least, *(row["spread"] for row in rows))


def compared(old, new):
    """[{what, unit, old, new, change, noise, moved}]; `moved` is better, worse, same, new or gone. No change is told without two numbers."""
    found, before = [], {row["what"]: row for row in old["rows"]}
    by = "figure" if old["machine"]["id"] == new["machine"]["id"] else "ratio"
    for row in new["rows"]:
        was = before.pop(row["what"], None)
        one = {"what": row["what"], "unit": row["unit"], "by": by, "new": row.get(by), "old": was.get(by) if was else None}
        if one["old"] and one["new"] is not None:
            one["change"] = one["new"] / one["old"] - 1
            one["noise"] = noise_of(was, row)
            better = row["better"] if by == "figure" else "more" if row["better"] == "more" or row.get("gain") else "less"
            one["moved"] = "same" if abs(one["change"]) <= one["noise"] else "better" if (one["change"] < 0) == (better == "less") else "worse"
        elif not was:
            one["moved"] = "new"
        found.append(one)
    return found + [{"what": what, "unit": was["unit"], "by": by, "old": was.get(by), "new": None, "moved": "gone"} for what, was in before.items()]


def cells(one):
    def shown(value):
        return "" if value is None else f"{value:.3g}x" if one["by"] == "ratio" else report.quantity(value, one["unit"])

    if "change" not in one:
        return one["what"], shown(one["old"]), shown(one["new"]), "", "", one.get("moved", "")
    return (one["what"], shown(one["old"]), shown(one["new"]), f"{one['change']:+.0%}", f"±{one['noise']:.0%}", {"same": ""}.get(one["moved"], one["moved"].upper()))


def table(old, new):
    rows = compared(old, new)
    said = report.aligned([("what", "old", "new", "change", "noise", "moved"), *map(cells, rows)])
    moved = [one for one in rows if one.get("moved") in ("better", "worse")]
    foot = [f"{len(moved)} of {len(rows)} rows moved beyond the noise" + (": " + ", ".join(f"{one['what']} ({one['moved']})" for one in moved) if moved else "")]
    if old["machine"]["id"] != new["machine"]["id"]:
        foot.append("the runs are of different machines: ratios to the floor are compared, not figures")
    foot += [f"{name}: {report.noise_words(run['noise'])}" for name, run in (("old", old), ("new", new)) if run["noise"]["noisy"]]
    return said + "\n\n" + "\n".join(foot)
