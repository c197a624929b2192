#!/usr/bin/env python3
"""Lists the skipped tests of JUnit reports (ctest --output-junit, pytest --junitxml) with their reasons.

usage: skips.py REPORT…

With EARSHOT_NO_SKIP=1, as in .ci/run, a reason that is not in PERMITTED is a failure: exit code 1.
"""
import os
import re
import sys
import xml.etree.ElementTree as xml

# Parts of reasons, each with the machine where it is right to skip.
PERMITTED = {
    "root can read every file": "CI runs as root",
    "root may read everything": "CI runs as root",
    "no recorded sessions": "the recorded sessions are not a part of the project",
    "there are no recorded sessions": "likewise",
    "the recorded sessions are not installed": "likewise",
    "the recorded corpus is not installed": "likewise",
    "play.py is not installed": "likewise",
    "a sanitizer changes memory use": "the release build runs the test",
    "a sanitized daemon": "the release build runs the test",
    "AddressSanitizer does not work with": "the release build runs the test",
}


def skipped(report):
    """Yields (test, reason) of each skipped test."""
    for case in xml.parse(report).getroot().iter("testcase"):
        skip = case.find("skipped")
        if skip is None:
            continue
        output = case.findtext("system-out") or ""
        found = re.search(r"skipped: ((?:.|\n(?! *\n))*)", output)
        reason = found[1] if found else skip.get("message") or skip.text or "no reason"
        yield case.get("name"), " ".join(reason.split())


def is_permitted(reason):
    return any(part in reason for part in PERMITTED)


def main():
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    forbidden = 0
    for report in sys.argv[1:]:
        for test, reason in skipped(report):
            bad = os.environ.get("EARSHOT_NO_SKIP") == "1" and not is_permitted(reason)
            forbidden += bad
            print(f"{'FAILED, not permitted to skip' if bad else 'skipped'}: {test}: {reason}")
    sys.exit(1 if forbidden else 0)


if __name__ == "__main__":
    main()
