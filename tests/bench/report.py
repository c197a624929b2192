"""Formats measurements as a table and as JSON. Pure functions."""
import statistics


PREFIXES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "B": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1, "B/s")),
}


def quantity(value, unit):
    """Three digits and a fitting unit: 24.6 us."""
    factor, name = next(((f, n) for f, n in PREFIXES[unit] if abs(value) >= f), PREFIXES[unit][-1])
    value = value / factor
    return f"{value:.3g} {name}" if abs(value) < 1000 else f"{value:.0f} {name}"


def spread(samples):
    """The relative spread of rounds: (max - min) / 2 / median; 0 for one round."""
    middle = statistics.median(samples)
    return (max(samples) - min(samples)) / 2 / middle if len(samples) > 1 and middle else 0.0


def row(of, figures, floors=(), scale=1.0, note=""):
    """A row of the JSON report. Rounds of figure and floor alternate, so ratios are per pair."""
    found = {"what": of.what, "unit": of.unit, "group": of.group, "better": of.better, "figure": statistics.median(figures), "spread": round(spread(figures), 4),
             "rounds": list(figures)}
    if floors:
        found.update(floor=statistics.median(floors), floor_is=of.floor, floor_rounds=list(floors))
        pairs = [of.ratio(a, b) for a, b in zip(figures, floors)] if len(floors) == len(figures) else [of.ratio(found["figure"], found["floor"])]
        found["ratio"] = statistics.median(pairs)
    if of.gain:
        found["gain"] = True
    if note:
        found["note"] = note
    budget, met = judged(of, found, scale)
    if budget:
        found.update(budget=budget, met=met)
    if scale != 1.0:
        found["scale"] = scale
    return found


def judged(of, found, scale=1.0):
    """(the budget as text, whether it is met); ("", None) without a budget."""
    scale = scale if of.scales else 1.0
    asked = ((of.most, found["figure"], 1, lambda limit: f"<= {quantity(limit, of.unit)}"), (of.least, found["figure"], -1, lambda limit: f">= {quantity(limit, of.unit)}"),
             (of.ratio_most, found.get("ratio"), 1, lambda limit: f"<= {limit:g}x"), (of.ratio_least, found.get("ratio"), -1, lambda limit: f">= {limit:g}x"))
    words, met = [], True
    for n, (limit, value, sign, text) in enumerate(asked):
        if limit is None:
            continue
        limit = limit * scale if n < 2 else limit
        words.append(text(limit))
        met = met and value is not None and sign * value <= sign * limit
    return ", ".join(words), met if words else None


HEAD = ("what", "figure", "spread", "floor", "ratio", "budget", "met")


def cells(row):
    return (row["what"] + (f" ({row['note']})" if "note" in row else ""), quantity(row["figure"], row["unit"]),
            f"{row['spread']:.0%}" if len(row["rounds"]) > 1 else "",
            f"{quantity(row['floor'], row['unit'])}, {row['floor_is']}" if "floor" in row else "",
            f"{row['ratio']:.3g}x" if "ratio" in row else "", row.get("budget", ""), {True: "yes", False: "NO"}.get(row.get("met"), ""))


def aligned(lines):
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def table(report):
    lines = [HEAD, *(cells(row) for row in report["rows"])]
    return aligned(lines) + "\n\n" + foot(report)


def foot(report):
    machine, noise = report["machine"], report["noise"]
    build = report["build"]
    lines = [f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}; earshot {build['version']}, {build['type']}; {report['seconds']:.0f} s"]
    lines.append(noise_words(noise))
    lines += [f"SKIPPED {what}" for what in report.get("skipped", ())]
    return "\n".join(lines)


def noise_words(noise):
    figures = (f"other processes used {noise['others']:.0%} of the machine, steal was {noise['steal']:.1%}, a calibration loop varied by {noise['calibration_spread']:.0%}")
    return f"NOISY: {figures}; ratios are usable, absolute figures are not" if noise["noisy"] else f"quiet: {figures}"


def markdown(report):
    lines = [cells(row) for row in report["rows"]]
    keep = [n for n, name in enumerate(HEAD) if name != "spread"]
    head = "| " + " | ".join(HEAD[n] for n in keep) + " |\n|" + "---|" * len(keep)
    return "\n".join([head, *("| " + " | ".join(line[n] for n in keep) + " |" for line in lines)])
