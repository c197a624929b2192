"""What the reference assemblers share: lines, records, times, counts, and the wire's cut of long texts.

A reference assembler is a second implementation, written from the rules alone and independent of the daemon,
with which it is compared event by event.
"""
import dataclasses
import datetime
import json
import re
import sys

LINE_BYTES_MAX = 16 << 20
NESTING_MAX = 1024
TEXT_BYTES_MAX = 4096  # a longer text is cut on the wire
INPUT_BYTES_MAX = 64 << 10  # of a tool's input with its texts cut; a longer one is sent as the beginning of its JSON
TRUNCATED_MAX = 64  # further cut texts are not listed
TEXT_FIELDS = ("prompt", "text", "output", "title", "description", "summary", "error")

sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * NESTING_MAX))  # the JSON parser recurses


@dataclasses.dataclass
class Line:
    """A complete line."""

    begin: int
    end: int  # the offset of the next line
    records: list  # objects; on a line that is one value of another type, that value
    skipped: list  # the fields of each `line.skipped`; its events come before those of the records


# ---- Lines


def lines(data):
    """Yields the complete lines; an unterminated tail is none."""
    begin, run = 0, None
    while (lf := data.find(b"\n", begin)) >= 0:
        line = Line(begin, lf + 1, [], [])
        begin = lf + 1
        line.records, reason, salvaged = parse_line(data[line.begin : lf], line.begin == 0)
        if reason or line.records is not None:
            if run and (salvaged or reason != run["reason"]):
                line.skipped.append(run)
                run = None
            if reason and not (run and not salvaged):
                run = {"line": line.begin, "lines": 0, "bytes": 0, "reason": reason, "salvaged": salvaged}
            if reason:
                run["lines"] += 1
                run["bytes"] += line.end - line.begin
            if salvaged:
                line.skipped.append(run)
                run = None
        line.records = line.records or []
        yield line


def parse_line(line, is_first):
    """Returns the records, the reason why the line is skipped (None: it is not) and whether records of a broken
    line are kept. A line without a value has records None."""
    if len(line) > LINE_BYTES_MAX:
        return [], "too long", False
    line = line.removesuffix(b"\r")
    if is_first:
        line = line.removeprefix(b"\xef\xbb\xbf")
    text = line.decode("utf-8", "replace").strip(SPACE)
    if not text:
        return None, None, False
    if depth(text) > NESTING_MAX:
        return [], "nested too deeply", False
    records, rest = values(text)
    if not rest:
        return records, None, False
    if not records:
        try:
            value = parse(text)
        except ValueError:
            pass
        else:
            return [value], None, False  # valid JSON, but not an object
    at = rest.find("{", 1)
    while at >= 0:
        suffix, broken = values(rest[at:])
        if not broken and all(isinstance(each.get("type"), str) for each in suffix):
            return records + suffix, "not JSON", True
        at = rest.find("{", at + 1)
    return records, "not JSON", False


def values(text):
    """Returns the objects at the beginning of a text, one behind the other, and what follows them."""
    found = []
    while text.startswith("{"):
        try:
            value, end = DECODER.raw_decode(text)
        except ValueError:
            break
        found.append(without_surrogates(value))
        text = text[end:].lstrip(SPACE)
    return found, text


def parse(text):
    return without_surrogates(DECODER.decode(text))


def no_constant(name):
    raise ValueError(name)


SPACE = " \t\r\n"
DECODER = json.JSONDecoder(parse_constant=no_constant)


def depth(text):
    """Returns how deep arrays and objects are nested; of a text that is not JSON, a guess."""
    level = deepest = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text, re.DOTALL):
        if token[0] in "[{":
            level += 1
            deepest = max(deepest, level)
        elif token[0] in "]}":
            level -= 1
    return deepest


def without_surrogates(value):
    """Replaces lone surrogates, which have no UTF-8, in all strings."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(each) for key, each in value.items()}
    return value


# ---- Values; one of another type is absent


def member(value, *path):
    """Returns the member of nested objects; None if it is absent."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_of(value, *path):
    """Returns a string; None if it is absent."""
    found = member(value, *path)
    return found if isinstance(found, str) else None


def object_of(value, *path):
    """Returns an object; an empty one if it is absent."""
    found = member(value, *path)
    return found if isinstance(found, dict) else {}


def list_of(value, *path):
    """Returns a list; an empty one if it is absent."""
    found = member(value, *path)
    return found if isinstance(found, list) else []


def integer_of(value, *path):
    """Returns a number, rounded half away from zero; None if it is absent or has no 64 bits."""
    found = member(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if isinstance(found, float):
        if not abs(found) < 9e18:
            return None
        found = int(abs(found) + 0.5) * (1 if found >= 0 else -1)
    return found if -(1 << 63) <= found < 1 << 63 else None


def count_of(value, *path):
    """Returns a count, 0 for a negative number; None if it is absent."""
    found = integer_of(value, *path)
    return None if found is None else max(0, found)


def number_of(value, *path):
    """Returns a finite number; None if it is absent."""
    found = member(value, *path)
    return found if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < float("inf") else None


def decoded_bytes(base64):
    """Returns the size of base64 data once it is decoded."""
    return len(base64.rstrip("=").encode()) * 3 // 4


# ---- Times


TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


def milliseconds(time):
    """Returns the Unix time of an RFC 3339 text; digits beyond milliseconds are dropped. None if it is not one."""
    match = TIME.fullmatch(time) if isinstance(time, str) else None
    if not match:
        return None
    date, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    hour, minute, second = int(hour), int(minute), int(second)
    offset = int(offset_hours or 0) * 60 + int(offset_minutes or 0)
    try:
        days = datetime.date.fromisoformat(date).toordinal() - datetime.date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 60 or int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    minutes = (days * 24 + hour) * 60 + minute - (-offset if sign == "-" else offset)
    return minutes * 60_000 + second * 1000 + int(((fraction or "") + "000")[:3])


def union_ms(intervals):
    """Returns the time that (begin, end) pairs cover; None without one. One that ends before it begins is empty."""
    covered, until = 0, None
    for begin, end in sorted(intervals):
        end = max(begin, end)
        covered += end - begin if until is None or begin > until else max(0, end - until)
        until = end if until is None else max(until, end)
    return covered if intervals else None


# ---- The wire


def cut(event):
    """Returns the event with its long texts cut as on the wire, and `truncated`."""
    truncated = {}

    def cut_text(text, path):
        encoded = text.encode()
        if len(encoded) <= TEXT_BYTES_MAX:
            return text
        if len(truncated) < TRUNCATED_MAX:
            truncated[path] = len(encoded)
        return encoded[:TEXT_BYTES_MAX].decode("utf-8", "ignore")

    def cut_texts(value, path):
        if isinstance(value, str):
            return cut_text(value, path)
        if isinstance(value, list):
            return [cut_texts(each, f"{path}/{index}") for index, each in enumerate(value)]
        if isinstance(value, dict):
            name = lambda key: key.replace("~", "~0").replace("/", "~1")
            return {key: cut_texts(each, f"{path}/{name(key)}") for key, each in value.items()}
        return value

    shown = dict(event)
    for field in TEXT_FIELDS:
        if isinstance(shown.get(field), str):
            shown[field] = cut_text(shown[field], field)
    for field in ("input", "todos"):
        if field in shown:
            shown[field] = cut_texts(shown[field], field)
    if truncated:
        shown["truncated"] = truncated
    return shown
