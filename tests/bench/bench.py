#!/usr/bin/env python3
"""Measures every budget on this machine and compares it with a floor measured in the same run. Run by `./dev bench`.

usage: ./dev bench [NAME] [--json] [--quick] [--readme]
       ./dev bench compare OLD.json NEW.json
       ./dev bench curves [NAME] [--quick]
       ./dev bench --readme RUN.json
       ./dev bench list
       ./dev bench soak …                  (./dev bench soak --help)

The table lists per row: the figure (median of several rounds), the spread of the rounds, the floor (measured alternately), their ratio, the
budget, and whether it is met. No exit code depends on the figures. The last lines state whether the machine was quiet enough.

  NAME            only rows whose name contains NAME, or the rows of that group; `list` prints both
  --json          one JSON object on stdout: machine, build, noise, and rows in seconds and bytes, with every round
  --quick         small sizes, one round: checks in some minutes that everything works; the figures are meaningless
  --readme        also writes the figures to README.md and tests/bench/README.md, between their markers
  --readme FILE   writes the figures of a stored run; measures nothing
  compare         per row: old, new, change, and whether it exceeds the noise of both; runs of different machines by ratios
  curves          how costs grow, as data and plots in tests/bench/plots; takes minutes, not part of the table

A run of all rows is stored in build/bench.json. It takes less than ten minutes and up to 2 GB in EARSHOT_BENCH_DIR (/tmp).

  ./dev bench                              the table
  ./dev bench latency                      one group
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

STORED_RUN = os.path.join(readme.TOP, "build", "bench.json")


def load_run(path):
    """Reads a stored run."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"bench: {path} cannot be read: {error}")
    if not isinstance(found, dict) or found.get("format") != 1:
        sys.exit(f"bench: {path} is not what ./dev bench --json prints")
    return found


def parse_arguments(argv):
    parser = argparse.ArgumentParser(add_help=False)
    parser.error = lambda error: sys.exit(f"bench: {error}; ./dev bench --help")
    parser.add_argument("words", nargs="*")
    for flag in ("--json", "--quick", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--readme", nargs="?", const=True)
    return parser.parse_intermixed_args(argv)


def print_rows():
    for group in spec.GROUPS:
        print(group)
        for row in spec.ROWS:
            if row.group == group:
                print(f"  {row.what}")


def table(name, options):
    selected = spec.chosen(name)
    if not selected:
        sys.exit(f"bench: no row is called '{name}'; ./dev bench list shows them")
    if options.readme and len(selected) < len(spec.ROWS):
        sys.exit("bench: --readme needs all rows: omit NAME")
    from run_rows import run_rows  # imported here: it needs the built programs
    found = run_rows(selected, options.quick)
    if len(selected) == len(spec.ROWS):
        os.makedirs(os.path.dirname(STORED_RUN), exist_ok=True)
        with open(STORED_RUN, "w") as file:
            json.dump(found, file, indent=1)
    print(json.dumps(found, indent=1) if options.json else report.table(found))
    if options.readme:
        update_readmes(found)


def update_readmes(found):
    try:
        names = readme.rewrite(found)
    except ValueError as error:
        sys.exit(f"bench: {error}")
    print("bench: the figures are in " + " and ".join(names), file=sys.stderr)


def main(argv=None):
    options = parse_arguments(sys.argv[1:] if argv is None else argv)
    first, rest = (options.words or [""])[0], options.words[1:]
    if options.help or options.h:
        print(__doc__.strip())
    elif isinstance(options.readme, str):
        update_readmes(load_run(options.readme))
    elif first == "compare":
        if len(rest) != 2:
            sys.exit("bench: compare takes two files: OLD.json NEW.json")
        old, new = map(load_run, rest)
        if options.json:
            print(json.dumps(compare.compared(old, new), indent=1))
        else:
            print(compare.table(old, new))
    elif first == "list":
        print_rows()
    elif first == "curves":
        import curves
        curves.main(" ".join(rest), options.quick)
    else:
        table(" ".join(options.words), options)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: stopped"))  # so that cleanup runs
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")
