#!/usr/bin/env python3
"""Measures every budget on this machine, each beside what the machine can do at best in the same run. `./dev bench` calls it.

usage: ./dev bench [NAME] [--json] [--quick] [--readme]
       ./dev bench compare OLD.json NEW.json
       ./dev bench curves [NAME] [--quick]
       ./dev bench --readme RUN.json
       ./dev bench list
       ./dev bench soak …                  (./dev bench soak --help)

One table: what was measured; the figure, the middle of several rounds; how far these lay apart; the floor, taken in turn with it; their ratio; the
budget; and whether it is met. Nothing fails for being slow. The foot says whether the machine was quiet enough for figures to be kept.

  NAME            only rows whose name contains it; or those of the group that is called so: list shows both
  --json          one JSON object on stdout: machine, build, noise, and rows in seconds and bytes, with every round
  --quick         small sizes, one round: shows in half a minute that everything works; no figure is worth keeping
  --readme        also puts the figures into README.md and tests/bench/README.md, between the marks that are there
  --readme FILE   only that, of a run that was kept; nothing is measured
  compare         row by row: old, new, change, and what moved beyond the noise of both; other machines by ratios
  curves          how costs grow, as data and plots in tests/bench/plots: minutes, not part of the table

A run of all rows is kept in build/bench.json. It takes less than five minutes; the disk gets up to 2 GB for a while, in EARSHOT_BENCH_DIR (/tmp).

  ./dev bench                              the table
  ./dev bench latency                      is it fast now?
  cp build/bench.json /tmp/old.json        … change something …
  ./dev bench && ./dev bench compare /tmp/old.json build/bench.json
"""
import argparse
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402
import readme  # noqa: E402
import report  # noqa: E402
import spec  # noqa: E402

KEPT = os.path.join(readme.TOP, "build", "bench.json")


def loaded(path):
    """A run that was kept."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError) as wrong:
        sys.exit(f"bench: {path} cannot be read: {wrong}")
    if not isinstance(found, dict) or found.get("format") != 1:
        sys.exit(f"bench: {path} is not what ./dev bench --json prints")
    return found


def parsed(argv):
    parser = argparse.ArgumentParser(add_help=False)
    parser.error = lambda wrong: sys.exit(f"bench: {wrong}; ./dev bench --help")
    parser.add_argument("words", nargs="*")
    for flag in ("--json", "--quick", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--readme", nargs="?", const=True)
    return parser.parse_intermixed_args(argv)


def listed():
    for group in spec.GROUPS:
        print(group)
        for row in spec.ROWS:
            if row.group == group:
                print(f"  {row.what}")


def table(name, given):
    wanted = spec.chosen(name)
    if not wanted:
        sys.exit(f"bench: no row is called '{name}'; ./dev bench list shows them")
    if given.readme and len(wanted) < len(spec.ROWS):
        sys.exit("bench: --readme wants all rows: without NAME")
    from run_rows import measured  # what measures wants programs and packages; the rest of this file does not
    found = measured(wanted, given.quick)
    if len(wanted) == len(spec.ROWS):
        os.makedirs(os.path.dirname(KEPT), exist_ok=True)
        with open(KEPT, "w") as file:
            json.dump(found, file, indent=1)
    print(json.dumps(found, indent=1) if given.json else report.table(found))
    if given.readme:
        written(found)


def written(found):
    try:
        names = readme.rewrite(found)
    except ValueError as wrong:
        sys.exit(f"bench: {wrong}")
    print("bench: the figures are in " + " and ".join(names), file=sys.stderr)


def main(argv=None):
    given = parsed(sys.argv[1:] if argv is None else argv)
    first, rest = (given.words or [""])[0], given.words[1:]
    if given.help or given.h:
        print(__doc__.strip())
    elif isinstance(given.readme, str):
        written(loaded(given.readme))
    elif first == "compare":
        if len(rest) != 2:
            sys.exit("bench: compare wants two files: OLD.json NEW.json")
        old, new = map(loaded, rest)
        if given.json:
            print(json.dumps(compare.compared(old, new), indent=1))
        else:
            print(compare.table(old, new))
    elif first == "list":
        listed()
    elif first == "curves":
        import curves
        curves.main(" ".join(rest), given.quick)
    else:
        table(" ".join(given.words), given)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: stopped"))  # and nothing is left behind
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")
