#!/usr/bin/python3
"""Judges frames against protocol/schema/, strictly: nothing passes that is not written down.

    earshot replay --host h session.jsonl | tests/protocol/validate.py --whole -
    tests/protocol/validate.py frames.ndjson
    tests/protocol/validate.py --self-test

Needs python3-jsonschema; --self-test python3-yaml, too. Exit codes: 0 all valid, 1 some are not, 2 usage.
"""
import argparse
import collections
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from order import Order  # noqa: E402
from schemas import Schemas  # noqa: E402

REASON_CHARS_MAX = 300  # a reason quotes the frame: what is longer is cut


class NotAFrame(ValueError):
    pass


def parse(line):
    """One frame from its text. JSON as RFC 8259 has it: a field once, no NaN, no half of a surrogate pair."""
    def once(pairs):
        frame = dict(pairs)
        if len(frame) != len(pairs):
            raise NotAFrame("a field is there twice: " + ", ".join(
                k for k, n in collections.Counter(k for k, _ in pairs).items() if n > 1))
        return frame

    def no_number(text):
        raise NotAFrame(f"{text} is no JSON")
    try:
        if isinstance(line, bytes):
            line = line.decode("utf-8")
        frame = json.loads(line, object_pairs_hook=once, parse_constant=no_number)
        if "\\ud" in line or "\\uD" in line:
            json.dumps(frame, ensure_ascii=False).encode("utf-8")
    except UnicodeError as error:
        raise NotAFrame(f"not UTF-8: {error.reason}") from None
    except RecursionError:
        raise NotAFrame("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotAFrame(f"not JSON: {error}") from None
    if not isinstance(frame, dict):
        raise NotAFrame("not an object")
    return frame


class Validator:
    """Judges one connection or one replay, frame by frame."""

    def __init__(self, schemas=None, view=None, whole=False, client=False, connection=None):
        """`view`: full, meta, any; None: what `welcome` says, else full. `client`: frames that a client sends."""
        self.schemas = schemas or Schemas()
        self.view = view
        self.types = set(self.schemas.client if client else self.schemas.server)
        self.order = None if client else Order(whole=whole, connection=connection, view=view or "full")

    def problems(self, frame):
        """What is wrong with a frame, as sentences."""
        type_ = frame.get("type")
        if type_ not in self.types:
            return [f"no such type: {type_!r}"]
        if self.view is None and type_ == "welcome" and frame.get("view") in ("full", "meta"):
            self.view = frame["view"]
        found = [sentence(e) for e in self.schemas.strict(type_, self.view or "full").iter_errors(frame)]
        if self.order and found:
            self.order.lose(frame)
        return found or (self.order.check(frame) if self.order else [])


def sentence(error):
    if error.context:  # of alternatives, the one that went furthest says most
        error = max(error.context, key=lambda e: len(e.absolute_path))
    text = error.message
    if len(text) > REASON_CHARS_MAX:
        text = text[: REASON_CHARS_MAX // 2] + " … " + text[-REASON_CHARS_MAX // 2:]
    return f"{text} at {pointer(error)}"


def pointer(error):
    return "/" + "/".join(str(step) for step in error.absolute_path)


def validate_file(name, lines, make_validator, shown_max):
    """Gives (frames, failures); prints the first failures."""
    validator = make_validator()
    frames = failures = 0
    types = collections.Counter()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        frames += 1
        try:
            frame = parse(line)
            types[frame.get("type")] += 1
            problems = validator.problems(frame)
        except NotAFrame as error:
            frame, problems = {}, [str(error)]
        if problems:
            failures += 1
            if failures <= shown_max:
                for problem in problems:
                    print(f"{name}:{number}: {frame.get('type', '?')}: {problem}")
    return frames, failures, types


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="NDJSON, one frame a line; - is stdin")
    parser.add_argument("--view", choices=("full", "meta", "any"), help="default: what `welcome` says, else full")
    parser.add_argument("--whole", action="store_true", help="streams are told from their first byte, unfiltered")
    parser.add_argument("--client", action="store_true", help="frames that a client sends")
    parser.add_argument("--shown", type=int, default=10, metavar="N", help="failures to show a file (10)")
    parser.add_argument("--self-test", action="store_true", help="judge the contract itself")
    options = parser.parse_args(arguments)
    if options.self_test:
        import self_test
        return self_test.run()
    if not options.files:
        parser.error("give a FILE, or - for stdin")
    schemas = Schemas()

    def make_validator():
        return Validator(schemas, view=options.view, whole=options.whole, client=options.client)
    frames = failures = 0
    types = collections.Counter()
    for name in options.files:
        if name == "-":
            result = validate_file("-", sys.stdin.buffer, make_validator, options.shown)
        else:
            with open(name, "rb") as lines:
                result = validate_file(name, lines, make_validator, options.shown)
        frames, failures, types = frames + result[0], failures + result[1], types + result[2]
    print(f"{frames} frames of {len(types)} types: " + (f"{failures} not valid" if failures else "all valid"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
