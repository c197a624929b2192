"""The contract judged by itself: schemas, vectors, asyncapi.yaml and README.md say the same, and say what the daemon knows."""
import copy
import json
import pathlib
import re

import jsonschema
import yaml

from order import Order
from schemas import DIRECTORY, SUFFIX, Schemas
from validate import NotAFrame, Validator, parse, pointer

PROTOCOL = DIRECTORY.parent
VECTORS = PROTOCOL / "vectors"
SOURCE = PROTOCOL.parent
NOT_FRAMES = {"connection.json", "cursors.json", "filters.json", "subjects.json"}  # vectors of another form
DESIGNED_NAME = re.compile(r'"([a-z]+\.[a-z]+)"')


class Findings:
    def __init__(self):
        self.failures = []
        self.checks = 0

    def expect(self, good, what):
        self.checks += 1
        if not good:
            self.failures.append(what)


def load(path):
    return json.loads(path.read_text("utf-8"))


def strict_errors(schemas, frame, view):
    return list(schemas.strict(frame["type"], view).iter_errors(frame))


def schemas_are_schemas(schemas, found):
    for name, schema in schemas.files.items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            found.expect(False, f"schema/{name}: {error.message}")
        for ref in refs(schema):
            try:
                schemas.target(ref, name)
                found.expect(True, "")
            except (KeyError, TypeError):
                found.expect(False, f"schema/{name}: {ref} leads nowhere")
        for word in extensions(schema):
            found.expect(word in ("x-full", "x-meta", "x-values"), f"schema/{name}: unknown word {word}")
    for type_ in schemas.types:
        found.expect(schemas.files[type_ + SUFFIX]["properties"]["type"] == {"const": type_},
                     f"schema/{type_}{SUFFIX}: its `type` is not {type_}")
        found.expect((type_ in schemas.server) != (type_ in schemas.client),
                     f"schema/{type_}{SUFFIX}: neither frame, event nor client chooses it, or two do")
    for type_ in schemas.server + schemas.client:
        found.expect(type_ in schemas.types, f"{type_} is chosen but has no schema")


def refs(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = node.values()
    elif not isinstance(node, list):
        return
    for child in node:
        yield from refs(child)


def extensions(node):
    if isinstance(node, dict):
        yield from (k for k in node if k.startswith("x-"))
        node = node.values()
    elif not isinstance(node, list):
        return
    for child in node:
        yield from extensions(child)


def valid_vectors(schemas, found):
    seen = set()
    for path in sorted(VECTORS.glob("*.json")):
        if path.name in NOT_FRAMES:
            continue
        for vector in load(path):
            frame, view, where = vector["frame"], vector.get("view", "full"), f"vectors/{path.name}: {vector['says']}"
            found.expect(frame["type"] == path.stem, f"{where}: its type is not the file's")
            seen.add((frame["type"], view))
            for error in strict_errors(schemas, frame, view):
                found.expect(False, f"{where}: {error.message} at {pointer(error)}")
            side = "client" if frame["type"] in schemas.client else "frame"
            found.expect(schemas.lax(side).is_valid(frame), f"{where}: {side}{SUFFIX} refuses it")
            later = dict(copy.deepcopy(frame), later={"what": ["a later daemon", "says"]})
            found.expect(schemas.lax(side).is_valid(later), f"{where}: an unknown field is refused")
            found.expect(not Order(view=view, connection=frame["type"] == "welcome").check(frame), f"{where}: its fields are not in order")
            if "cursor" in frame:
                found.expect(parse(json.dumps(frame)) == frame, f"{where}: is another after parsing")
    for type_ in schemas.types:
        found.expect((type_, "full") in seen, f"vectors/{type_}.json: no valid frame")
        shown = schemas.files[type_ + SUFFIX]
        if "x-full" in json.dumps(shown) or "x-meta" in json.dumps(shown):
            found.expect((type_, "meta") in seen, f"vectors/{type_}.json: no frame of the meta view")


def invalid_vectors(schemas, found):
    """Each is refused, and at the place that it says: not by accident."""
    for path in sorted((VECTORS / "invalid").glob("*.json")):
        for vector in load(path):
            where = f"vectors/invalid/{path.name}: {vector['why']}"
            if "text" in vector:
                try:
                    parse(vector["text"])
                    found.expect(False, f"{where}: passes")
                except NotAFrame:
                    found.expect(True, "")
                continue
            frame = vector["frame"]
            client = path.stem == "client"
            view = "meta" if path.stem == "meta" else "full"
            lax = schemas.lax("client" if client else "frame")
            found.expect(lax.is_valid(frame) == vector.get("strict", False),
                         f"{where}: refused only strictly is {vector.get('strict', False)}, but it is not so")
            if frame["type"] not in schemas.types:
                found.expect(bool(Validator(schemas).problems(frame)), f"{where}: passes")
                continue
            places = {pointer(e) for e in strict_errors(schemas, frame, view)}
            found.expect(vector["at"] in places, f"{where}: refused at {sorted(places)}, not at {vector['at']}")


def cursor_vectors(schemas, found):
    cursor = jsonschema.Draft202012Validator(schemas.files["common" + SUFFIX]["$defs"]["cursor"])
    for vector in load(VECTORS / "cursors.json"):
        text = vector["cursor"]
        # A pattern's $ also matches before a last line feed in some languages; a cursor has none.
        good = cursor.is_valid(text) and not text.endswith("\n")
        found.expect(good == vector["valid"], f"vectors/cursors.json: {text!r}")


def glob_matches(pattern, text):
    """`*` any characters, `?` one; nothing else is special."""
    parts = {"*": "[\\s\\S]*", "?": "[\\s\\S]"}
    return re.fullmatch("".join(parts.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", pattern)), text) is not None


def filter_vectors(_schemas, found):
    for vector in load(VECTORS / "filters.json"):
        found.expect(glob_matches(vector["pattern"], vector["text"]) == vector["match"], f"vectors/filters.json: {vector}")


def word(text):
    """One token of a subject, as TEAM.md says; what is too long for these vectors is tried in the daemon's own tests."""
    kept = re.compile(rb"[A-Za-z0-9_-]")
    return "".join(chr(b) if kept.match(bytes([b])) else f"={b:02X}" for b in text.encode()) or "="


def subject_vectors(_schemas, found):
    vectors = load(VECTORS / "subjects.json")
    for vector in vectors["words"]:
        found.expect(word(vector["text"]) == vector["word"], f"vectors/subjects.json: {vector}")
    for vector in vectors["subjects"]:
        names = vector["stream"].split("/")
        length = 3 if names[1:2] == ["conversations"] else 2
        project = "/".join(names[:length]) if len(names) > length else ""
        tokens = [vector["host"], project, vector["session"]]
        if not project or f"{project}/{vector['session']}" != vector["stream"]:
            tokens.append(vector["stream"])
        subject = ".".join(["earshot", "v1", *map(word, tokens)])
        found.expect(subject == vector["subject"], f"vectors/subjects.json: {vector}: {subject}")


def connection_vector(schemas, found):
    sides = {"server": Validator(schemas), "client": Validator(schemas, client=True)}
    for number, step in enumerate(load(VECTORS / "connection.json")):
        for problem in sides[step["from"]].problems(step["frame"]):
            found.expect(False, f"vectors/connection.json: step {number}: {problem}")
        found.expect(True, "")


def order_sees(schemas, found):
    """The judge of order is judged: what is wrong on purpose is seen."""
    frames = [s["frame"] for s in load(VECTORS / "connection.json") if s["from"] == "server"]
    events = [f for f in frames if f["type"] in schemas.events]

    def problems(some, **options):
        validator = Validator(schemas, **options)
        return [p for f in some for p in validator.problems(f)]
    found.expect(problems(events, whole=True) == [], f"order: a whole stream: {problems(events, whole=True)}")
    wrongs = {
        "without `welcome`": (frames[1:], {"connection": True}),
        "`welcome` twice": (frames + frames[:1], {}),
        "an event twice": (events + events[-1:], {}),
        "an event missing": ([e for e in events if e["type"] != "session.updated"], {"whole": True}),
        "a snapshot that is too old": (frames + frames[1:2], {}),
        "a turn that starts twice": ([*events[:2], moved(events[1], 1)], {"whole": True}),
        "a turn that finishes twice": ([*events, moved(events[-1], 1)], {"whole": True}),
        "a turn that falls back": ([*events, dict(moved(of(events, "tool.finished"), 20000), call="toolu_99", turn=0)], {}),
        "a call that finishes twice": ([*events, moved(of(events, "tool.finished"), 20000)], {}),
        "a call that is invoked twice": ([*events, moved(of(events, "tool.invoked"), 20000)], {}),
        "a call left open": ([e for e in events if e["type"] != "tool.finished"]
                             + [dict(moved(of(events, "turn.started"), 20000), turn=2)], {"whole": True}),
        "totals that fall": ([*events, moved(of(events, "usage.updated"), 20000)], {}),
        "a wrong number of tools": ([*events[:-1], dict(events[-1], tools=9)], {"whole": True}),
        "a wrong usage": ([*events[:-1], dict(events[-1], usage=dict(events[-1]["usage"], input=7))], {"whole": True}),
        "fields out of order": ([dict(reversed(list(events[1].items())))], {}),
        "an update that says nothing": ([{k: v for k, v in of(events, "session.updated").items() if k != "model"}], {}),
    }
    for what, (some, options) in wrongs.items():
        found.expect(bool(problems(some, **options)), f"order: does not see {what}")


def of(events, type_):
    return next(e for e in events if e["type"] == type_)


def moved(event, bytes_on):
    offset, index, mark = event["cursor"].split(".")
    return dict(event, cursor=f"{int(offset) + bytes_on}.{index}.{mark}")


def asyncapi(schemas, found):
    path = PROTOCOL / "asyncapi.yaml"
    document = yaml.safe_load(path.read_text("utf-8"))
    referenced = set()

    def follow(ref):
        name, _, steps = ref.partition("#")
        if name.startswith("schema/"):
            referenced.add(pathlib.PurePath(name).name)
        node = load(PROTOCOL / name) if name else document
        for step in filter(None, steps.split("/")):
            node = node[int(step)] if isinstance(node, list) else node[step]
        return follow(node["$ref"]) if isinstance(node, dict) and list(node) == ["$ref"] and not name else node

    for ref in refs(document):
        try:
            follow(ref)
            found.expect(True, "")
        except (OSError, KeyError, IndexError, TypeError):
            found.expect(False, f"asyncapi.yaml: {ref} leads nowhere")
    while True:  # what a referenced schema refers to is referenced, too
        more = {r.partition("#")[0] for n in referenced for r in refs(schemas.files[n])} - referenced - {""}
        if not more:
            break
        referenced |= more
    for name in schemas.files:
        found.expect(name in referenced, f"asyncapi.yaml: schema/{name} is not referenced")
    messages = document["components"]["messages"]
    found.expect(set(messages) == set(schemas.types), "asyncapi.yaml: its messages are not the types: "
                 + ", ".join(sorted(set(messages) ^ set(schemas.types))))
    for type_, message in messages.items():
        found.expect(message["payload"]["schema"]["$ref"] == f"schema/{type_}{SUFFIX}", f"asyncapi.yaml: {type_}: another schema")
        examples = [follow(e["payload"]["$ref"]) for e in message["examples"]]
        found.expect(bool(examples), f"asyncapi.yaml: {type_}: no example")
        for example in examples:
            found.expect(example["type"] == type_ and not strict_errors(schemas, example, "full"),
                         f"asyncapi.yaml: {type_}: an example is not valid")
    in_channel = {r["$ref"] for r in document["channels"]["connection"]["messages"].values()}
    found.expect(in_channel == {f"#/components/messages/{t}" for t in schemas.types}, "asyncapi.yaml: the channel's messages")
    for operation, types in (("listen", schemas.server), ("ask", schemas.client)):
        told = {r["$ref"].rpartition("/")[2] for r in document["operations"][operation]["messages"]}
        found.expect(told == set(types), f"asyncapi.yaml: {operation}: {sorted(told ^ set(types))}")


def fences(text):
    """(language, text, line) of each fenced block."""
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 1


def readme(schemas, found):
    text = (PROTOCOL / "README.md").read_text("utf-8")
    shown = set()
    for language, block, line in fences(text):
        if language == "python":
            compile(block, f"README.md:{line}", "exec")
        if language != "json":
            continue
        for number, row in enumerate(block.splitlines(), line + 1):
            if not row.strip():
                continue
            try:
                frame = parse(row)
                shown.add(frame.get("type"))
                client = frame.get("type") in schemas.client
                problems = Validator(schemas, client=client, connection=frame.get("type") == "welcome").problems(frame)
            except NotAFrame as error:
                problems = [str(error)]
            for problem in problems:
                found.expect(False, f"README.md:{number}: {problem}")
            found.expect(True, "")
    found.expect({"hello", "subscribe", "welcome", "session", "ready"} <= shown, "README.md: shows too few frames")
    for type_ in schemas.types:
        found.expect(f"`{type_}`" in text, f"README.md: does not tell of {type_}")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        found.expect((PROTOCOL / target).exists(), f"README.md: {target} is not there")


def daemon_knows(schemas, found):
    """The daemon's event types are the contract's."""
    header = (SOURCE / "daemon/core/event.hpp").read_text("utf-8")
    bodies = re.search(r"using EventBody\s*=\s*std::variant<(.*?)>;", header, re.S)[1]
    structs = [name.removeprefix("event::") for name in re.findall(r"event::\w+", bodies)]
    found.expect(len(structs) == len(schemas.events), f"event.hpp has {len(structs)} events, the contract {len(schemas.events)}")
    written = set()
    for path in sorted((SOURCE / "daemon/core").glob("*.cpp")):
        body = re.search(r"type_name\(const EventBody& \w+\) \{(.*?)^\}", path.read_text("utf-8"), re.S | re.M)
        if body:
            written |= set(DESIGNED_NAME.findall(body[1]))
    found.expect(written == set(schemas.events), f"type_name and the contract differ: {sorted(written ^ set(schemas.events))}")


PARTS = (schemas_are_schemas, valid_vectors, invalid_vectors, cursor_vectors, filter_vectors, subject_vectors, connection_vector, order_sees,
         asyncapi, readme, daemon_knows)


def run():
    schemas = Schemas()
    failed = 0
    for part in PARTS:
        found = Findings()
        part(schemas, found)
        for failure in found.failures:
            print(f"{part.__name__}: {failure}")
        print(f"{part.__name__}: {found.checks} checks, {len(found.failures)} failed")
        failed += len(found.failures) + (found.checks == 0)  # a part that checks nothing is broken
    return 1 if failed else 0
