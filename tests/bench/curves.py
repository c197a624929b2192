"""Measures how costs grow: stores each curve as JSON and as a plot, and shows all of them on one page."""
import json
import os
import sys
import time

import curves_points
import fit
import machine
import plot
import readme
import report
from lab import Lab
from run_rows import build_info

PLOTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plots")
PAGE = os.path.join("tests", "bench", "README.md")
BEGIN, END = "<!-- curves: begin -->", "<!-- curves: end -->"


def exponents(series):
    """{name: exponent over the upper decades}"""
    return {name: None if (found := fit.exponent(fit.upper(points))) is None else round(found, 3) for name, points in series.items()}


def measured(curve, lab):
    noise, notes, began = machine.Noise(), [], time.monotonic()
    series = {name: points for name, points in curve.measure(lab, notes).items() if points}
    return {"name": curve.name, "title": curve.title, "x": curve.x, "x_unit": curve.x_unit, "y": curve.y, "y_unit": curve.y_unit, "says": curve.says, "series": series,
            "exponents": exponents(series), "notes": notes, "quick": lab.quick, "seconds": round(time.monotonic() - began, 1), "noise": noise.verdict(),
            "machine": machine.described(), "build": build_info(), "when": time.strftime("%Y-%m-%d")}


def drawn(found):
    return plot.svg(found["title"], found["x"], found["x_unit"], found["y"], found["y_unit"], found["series"])


def page_part(found):
    grows = ", ".join(f"{name} n^{value:.2f}" for name, value in found["exponents"].items() if value is not None)
    kept = f"{found['when']}{', quick' if found['quick'] else ''}, {report.noise_words(found['noise'])}"
    return "\n".join([f"### {found['title']}", "", f"![{found['title']}](plots/{found['name']}.svg)", "", f"{found['says']} Growth over the upper decades: {grows}.",
                      *found["notes"], f"[Data](plots/{found['name']}.json); {kept}.", ""])


def page(top=readme.TOP):
    """Draws the stored data and rewrites the curves part of the page."""
    path = os.path.join(top, PAGE)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    kept = []
    for curve in curves_points.CURVES:
        data = os.path.join(PLOTS, curve.name + ".json")
        if os.path.exists(data):
            with open(data) as file:
                found = json.load(file)
            kept.append(page_part(found))
            with open(os.path.join(PLOTS, curve.name + ".svg"), "w") as file:
                file.write(drawn(found))
    with open(path, "w", encoding="utf-8") as file:
        file.write(readme.replaced(text, "\n" + "\n".join(kept), BEGIN, END))


def main(name, quick):
    wanted = [curve for curve in curves_points.CURVES if name.lower() in curve.name or name.lower() in curve.title.lower()]
    if not wanted:
        sys.exit(f"bench: no curve is called '{name}': {', '.join(curve.name for curve in curves_points.CURVES)}")
    os.makedirs(PLOTS, exist_ok=True)
    failed = []
    for curve in wanted:
        lab = Lab(quick)
        try:
            found = measured(curve, lab)
        except (RuntimeError, AssertionError, OSError) as why:  # measure the other curves
            failed.append(f"{curve.name}: {why}")
            continue
        finally:
            lab.say.end()
            lab.close()
        with open(os.path.join(PLOTS, curve.name + ".json"), "w") as file:
            json.dump(found, file, indent=1)
        print(f"{curve.name}: " + ", ".join(f"{name} n^{value}" for name, value in found["exponents"].items()) + f"; {found['seconds']:.0f} s")
        for note in found["notes"]:
            print(f"  {note}")
    page()
    print(f"bench: the plots are in {os.path.relpath(PLOTS)}, and shown in {PAGE}")
    if failed:
        sys.exit("bench: could not measure " + "\n".join(failed))
