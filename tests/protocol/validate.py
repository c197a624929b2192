#!/usr/bin/python3
"""Validates frames strictly against protocol/schema/: undocumented fields, types and values are errors.

    earshot replay --host h session.jsonl | tests/protocol/validate.py --complete -
    tests/protocol/validate.py frames.ndjson
    tests/protocol/validate.py --self-test

Requires python3-jsonschema; --self-test also python3-yaml. Exit codes: 0 all frames are valid, 1 some are not, 2 usage.
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

MESSAGE_CHARS_MAX = 300  # a schema error quotes the frame; longer messages are cut in the middle


class NotAFrame(ValueError):
    pass


def parse(line):
    """Parses one frame as RFC 8259 JSON; refuses duplicate fields, NaN and lone surrogates."""
    def unique(pairs):
        frame = dict(pairs)
        if len(frame) != len(pairs):
            raise NotAFrame("duplicate fields: " + ", ".join(k for k, n in collections.Counter(k for k, _ in pairs).items() if n > 1))
        return frame

    def refuse_constant(text):
        raise NotAFrame(f"{text} is not JSON")
    try:
        if isinstance(line, bytes):
            line = line.decode("utf-8")
        frame = json.loads(line, object_pairs_hook=unique, parse_constant=refuse_constant)
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
    """Validates one connection or one replay, frame by frame."""

    def __init__(self, schemas=None, view=None, complete=False, client=False, connection=None):
        """`view`: full, meta or any; None: that of `welcome`, else full. `client`: frames that a client sends.
        `complete`, `connection`: see Order."""
        self.schemas = schemas or Schemas()
        self.view = view
        self.types = set(self.schemas.client if client else self.schemas.server)
        self.order = None if client else Order(complete=complete, connection=connection, view=view or "full")

    def problems(self, frame):
        """Returns the problems of a frame as sentences."""
        type_ = frame.get("type")
        if type_ not in self.types:
            return [f"unknown type: {type_!r}"]
        if self.view is None and type_ == "welcome" and frame.get("view") in ("full", "meta"):
            self.view = frame["view"]
        problems = [describe(e) for e in self.schemas.strict(type_, self.view or "full").iter_errors(frame)]
        if self.order and problems:
            self.order.skip(frame)
        return problems or (self.order.check(frame) if self.order else [])


def describe(error):
    if error.context:  # of several alternatives, report the error that is deepest in the frame
        error = max(error.context, key=lambda e: len(e.absolute_path))
    text = error.message
    if len(text) > MESSAGE_CHARS_MAX:
        text = text[: MESSAGE_CHARS_MAX // 2] + " … " + text[-MESSAGE_CHARS_MAX // 2:]
    return f"{text} at {pointer(error)}"


def pointer(error):
    return "/" + "/".join(str(step) for step in error.absolute_path)


def validate_lines(name, lines, validator, shown_max):
    """Prints the problems of the first `shown_max` invalid frames; returns (frames, invalid frames, frames by type)."""
    frames = invalid = 0
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
            invalid += 1
            if invalid <= shown_max:
                for problem in problems:
                    print(f"{name}:{number}: {frame.get('type', '?')}: {problem}")
    return frames, invalid, types


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="NDJSON, one frame per line; - is stdin")
    parser.add_argument("--view", choices=("full", "meta", "any"), help="default: that of `welcome`, else full")
    parser.add_argument("--complete", action="store_true", help="streams start at their first byte and are unfiltered")
    parser.add_argument("--client", action="store_true", help="frames that a client sends")
    parser.add_argument("--shown", type=int, default=10, metavar="N", help="invalid frames to print per file (10)")
    parser.add_argument("--self-test", action="store_true", help="check that the parts of the contract agree")
    options = parser.parse_args(arguments)
    if options.self_test:
        import self_test
        return self_test.run()
    if not options.files:
        parser.error("name a FILE, or - for stdin")
    schemas = Schemas()
    frames = invalid = 0
    types = collections.Counter()
    for name in options.files:
        validator = Validator(schemas, view=options.view, complete=options.complete, client=options.client)
        if name == "-":
            result = validate_lines("-", sys.stdin.buffer, validator, options.shown)
        else:
            with open(name, "rb") as lines:
                result = validate_lines(name, lines, validator, options.shown)
        frames, invalid, types = frames + result[0], invalid + result[1], types + result[2]
    print(f"{frames} frames of {len(types)} types: " + (f"{invalid} invalid" if invalid else "all valid"))
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
