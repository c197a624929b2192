"""Checks that schemas, vectors, asyncapi.yaml, openapi.yaml, README.md and the daemon's event types and routes agree."""
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
NOT_FRAMES = {"connection.json", "cursors.json", "filters.json", "subjects.json"}  # vectors that are not frames


class Report:
    def __init__(self):
        self.failures = []
        self.checks = 0

    def expect(self, condition, failure):
        self.checks += 1
        if not condition:
            self.failures.append(failure)


def load(path):
    return json.loads(path.read_text("utf-8"))


def strict_errors(schemas, frame, view):
    return list(schemas.strict(frame["type"], view).iter_errors(frame))


def schemas_are_schemas(schemas, report):
    for name, schema in schemas.files.items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            report.expect(False, f"schema/{name}: {error.message}")
        for ref in refs(schema):
            try:
                schemas.target(ref, name)
                report.expect(True, "")
            except (KeyError, TypeError):
                report.expect(False, f"schema/{name}: {ref} does not exist")
        for keyword in extensions(schema):
            report.expect(keyword in ("x-full", "x-meta", "x-values"), f"schema/{name}: unknown keyword {keyword}")
    for type_ in schemas.types:
        report.expect(schemas.files[type_ + SUFFIX]["properties"]["type"] == {"const": type_},
                     f"schema/{type_}{SUFFIX}: its `type` is not {type_}")
        report.expect((type_ in schemas.server) != (type_ in schemas.client),
                     f"schema/{type_}{SUFFIX}: not chosen by exactly one of frame, event and client")
    for type_ in schemas.server + schemas.client:
        report.expect(type_ in schemas.types, f"{type_} is chosen but has no schema")


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


def valid_vectors(schemas, report):
    seen = set()
    for path in sorted(VECTORS.glob("*.json")):
        if path.name in NOT_FRAMES:
            continue
        for vector in load(path):
            frame, view, where = vector["frame"], vector.get("view", "full"), f"vectors/{path.name}: {vector['description']}"
            report.expect(frame["type"] == path.stem, f"{where}: the type is not the file's")
            seen.add((frame["type"], view))
            for error in strict_errors(schemas, frame, view):
                report.expect(False, f"{where}: {error.message} at {pointer(error)}")
            side = "client" if frame["type"] in schemas.client else "frame"
            report.expect(schemas.as_written(side).is_valid(frame), f"{where}: refused by {side}{SUFFIX}")
            later = dict(copy.deepcopy(frame), later={"added": ["in a later", "version"]})
            report.expect(schemas.as_written(side).is_valid(later), f"{where}: an unknown field is refused")
            for problem in Order(view=view, connection=frame["type"] == "welcome").check(frame):
                report.expect(False, f"{where}: {problem}")
            if "cursor" in frame:
                report.expect(parse(json.dumps(frame)) == frame, f"{where}: parsing changes it")
    for type_ in schemas.types:
        report.expect((type_, "full") in seen, f"vectors/{type_}.json: no valid frame")
        text = json.dumps(schemas.files[type_ + SUFFIX])
        if "x-full" in text or "x-meta" in text:
            report.expect((type_, "meta") in seen, f"vectors/{type_}.json: no frame of the meta view")


def invalid_vectors(schemas, report):
    """Each is refused at the place that its vector names."""
    for path in sorted((VECTORS / "invalid").glob("*.json")):
        for vector in load(path):
            where = f"vectors/invalid/{path.name}: {vector['description']}"
            if "text" in vector:
                try:
                    parse(vector["text"])
                    report.expect(False, f"{where}: accepted")
                except NotAFrame:
                    report.expect(True, "")
                continue
            frame = vector["frame"]
            client = path.stem == "client"
            view = "meta" if path.stem == "meta" else "full"
            as_written = schemas.as_written("client" if client else "frame")
            report.expect(as_written.is_valid(frame) == vector.get("strict", False),
                         f"{where}: the schema as written should " + ("accept it" if vector.get("strict") else "refuse it"))
            if frame["type"] not in schemas.types:
                report.expect(bool(Validator(schemas).problems(frame)), f"{where}: accepted")
                continue
            pointers = {pointer(e) for e in strict_errors(schemas, frame, view)}
            report.expect(vector["at"] in pointers, f"{where}: refused at {sorted(pointers)}, not at {vector['at']}")


def cursor_vectors(schemas, report):
    cursor = jsonschema.Draft202012Validator(schemas.files["common" + SUFFIX]["$defs"]["cursor"])
    for vector in load(VECTORS / "cursors.json"):
        text = vector["cursor"]
        # In some languages `$` also matches before a final line feed; a cursor has none.
        valid = cursor.is_valid(text) and not text.endswith("\n")
        report.expect(valid == vector["valid"], f"vectors/cursors.json: {text!r}")


def glob_matches(pattern, text):
    """`*` matches any characters, `?` one character; all others are literal."""
    parts = {"*": "[\\s\\S]*", "?": "[\\s\\S]"}
    return re.fullmatch("".join(parts.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", pattern)), text) is not None


def filter_vectors(_schemas, report):
    for vector in load(VECTORS / "filters.json"):
        report.expect(glob_matches(vector["pattern"], vector["text"]) == vector["match"], f"vectors/filters.json: {vector}")


def subject_token(text):
    """Returns one token of a subject as TEAM.md defines it. Shortening of long tokens is covered by the daemon's unit tests."""
    literal = re.compile(rb"[A-Za-z0-9_-]")
    return "".join(chr(b) if literal.match(bytes([b])) else f"={b:02X}" for b in text.encode()) or "="


def subject_vectors(_schemas, report):
    vectors = load(VECTORS / "subjects.json")
    for vector in vectors["tokens"]:
        report.expect(subject_token(vector["text"]) == vector["token"], f"vectors/subjects.json: {vector}")
    for vector in vectors["subjects"]:
        names = vector["stream"].split("/")
        length = 3 if names[1:2] == ["conversations"] else 2
        project = "/".join(names[:length]) if len(names) > length else ""
        tokens = [vector["host"], project, vector["session"]]
        if not project or f"{project}/{vector['session']}" != vector["stream"]:
            tokens.append(vector["stream"])
        subject = ".".join(["earshot", "v1", *map(subject_token, tokens)])
        report.expect(subject == vector["subject"], f"vectors/subjects.json: {vector}: {subject}")


def connection_vector(schemas, report):
    sides = {"server": Validator(schemas), "client": Validator(schemas, client=True)}
    for number, step in enumerate(load(VECTORS / "connection.json")):
        for problem in sides[step["from"]].problems(step["frame"]):
            report.expect(False, f"vectors/connection.json: step {number}: {problem}")
        report.expect(True, "")


def order_checks(schemas, report):
    """Each deliberate mistake in a recorded connection is reported."""
    frames = [s["frame"] for s in load(VECTORS / "connection.json") if s["from"] == "server"]
    events = [f for f in frames if f["type"] in schemas.events]

    def problems(sequence, **options):
        validator = Validator(schemas, **options)
        return [p for f in sequence for p in validator.problems(f)]
    report.expect(problems(events, complete=True) == [], f"order: a complete stream: {problems(events, complete=True)}")
    mistakes = {
        "without `welcome`": (frames[1:], {"connection": True}),
        "`welcome` twice": (frames + frames[:1], {}),
        "an event twice": (events + events[-1:], {}),
        "an event missing": ([e for e in events if e["type"] != "session.updated"], {"complete": True}),
        "a snapshot that is too old": (frames + frames[1:2], {}),
        "a turn that starts twice": ([*events[:2], shifted(events[1], 1)], {"complete": True}),
        "a turn that finishes twice": ([*events, shifted(events[-1], 1)], {"complete": True}),
        "a turn number that decreases": ([*events, dict(shifted(first(events, "tool.finished"), 20000), call="toolu_99", turn=0)], {}),
        "a call that finishes twice": ([*events, shifted(first(events, "tool.finished"), 20000)], {}),
        "a call that is invoked twice": ([*events, shifted(first(events, "tool.invoked"), 20000)], {}),
        "a call left open": ([e for e in events if e["type"] != "tool.finished"]
                             + [dict(shifted(first(events, "turn.started"), 20000), turn=2)], {"complete": True}),
        "totals that decrease": ([*events, shifted(first(events, "usage.updated"), 20000)], {}),
        "a wrong number of tools": ([*events[:-1], dict(events[-1], tools=9)], {"complete": True}),
        "a wrong usage": ([*events[:-1], dict(events[-1], usage=dict(events[-1]["usage"], input=7))], {"complete": True}),
        "fields out of order": ([dict(reversed(list(events[1].items())))], {}),
        "truncated that is not last": ([{"type": events[1]["type"], "truncated": {"prompt": 9}, **events[1]}], {}),
        "a truncated path that does not exist": ([dict(events[1], truncated={"prompt/0": 9})], {}),
        "a truncated path in the list that does not exist": ([dict(events[1], truncated={"todos/0/content": 9})], {}),
        "a truncated value that is not a string": ([dict(events[1], truncated={"turn": 9})], {}),
        "an update without a changed field": ([{k: v for k, v in first(events, "session.updated").items() if k != "model"}], {}),
    }
    # Codex may begin its totals anew.
    of_codex = [dict(events[0], program="codex"), *events[1:]]
    next_turn = [dict(event, cursor=f"{offset}.1.9c1e44d0a1b2c3d4", turn=2, **changed) for offset, event, changed in (
        (20000, events[1], {}),
        (30000, first(events, "usage.updated"), {}),  # with less than before
        (40000, events[-1], {"tools": 0, "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}}))]
    report.expect(problems(of_codex + next_turn, complete=True) == [], f"order: totals that begin anew: {problems(of_codex + next_turn, complete=True)}")
    next_turn[-1]["usage"] = dict(next_turn[-1]["usage"], output=7)
    report.expect(bool(problems(of_codex + next_turn, complete=True)), "order: does not report a wrong usage of Codex")
    for mistake, (changed, options) in mistakes.items():
        report.expect(bool(problems(changed, **options)), f"order: does not report {mistake}")


def first(events, type_):
    return next(e for e in events if e["type"] == type_)


def shifted(event, bytes_more):
    offset, index, prefix_hash = event["cursor"].split(".")
    return dict(event, cursor=f"{int(offset) + bytes_more}.{index}.{prefix_hash}")


def asyncapi(schemas, report):
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
            report.expect(True, "")
        except (OSError, KeyError, IndexError, TypeError):
            report.expect(False, f"asyncapi.yaml: {ref} does not exist")
    while True:  # add what the referenced schemas refer to
        more = {r.partition("#")[0] for n in referenced for r in refs(schemas.files[n])} - referenced - {""}
        if not more:
            break
        referenced |= more
    for name in schemas.files:
        report.expect(name in referenced, f"asyncapi.yaml: schema/{name} is not referenced")
    messages = document["components"]["messages"]
    report.expect(set(messages) == set(schemas.types), "asyncapi.yaml: its messages differ from the types: "
                 + ", ".join(sorted(set(messages) ^ set(schemas.types))))
    for type_, message in messages.items():
        report.expect(message["payload"]["schema"]["$ref"] == f"schema/{type_}{SUFFIX}", f"asyncapi.yaml: {type_}: the schema of another type")
        examples = [follow(e["payload"]["$ref"]) for e in message["examples"]]
        report.expect(bool(examples), f"asyncapi.yaml: {type_}: no example")
        for example in examples:
            report.expect(example["type"] == type_ and not strict_errors(schemas, example, "full"),
                         f"asyncapi.yaml: {type_}: an example is not valid")
    in_channel = {r["$ref"] for r in document["channels"]["connection"]["messages"].values()}
    report.expect(in_channel == {f"#/components/messages/{t}" for t in schemas.types}, "asyncapi.yaml: the channel's messages are not the types")
    for operation, types in (("send", schemas.server), ("receive", schemas.client)):
        listed = {r["$ref"].rpartition("/")[2] for r in document["operations"][operation]["messages"]}
        report.expect(listed == set(types), f"asyncapi.yaml: {operation}: {sorted(listed ^ set(types))}")


def routes():
    """path → (method, function that answers, query parameters that it knows or None), of the daemon's source."""
    http = PROTOCOL.parent / "daemon/serve/http"
    source = "".join((http / name).read_text("utf-8") for name in ("router.cpp", "search.cpp", "sign_in_routes.cpp"))
    constants = dict(re.findall(r'constexpr std::string_view (\w+_path) = "([^"]+)"', source))
    found = {}
    for path, methods, function in re.findall(r'^    \{("[^"]+"|\w+_path), (get|get_head|post), Open::\w+, (\w+)', source, re.M):
        body = re.search(rf"^HttpResponse {function}\([^;{{]*\{{\n(.*?)^}}", source, re.M | re.S)
        known = re.search(r"known\[\] = \{(.*?)\}", body[1], re.S) if body else None
        found[constants.get(path, path.strip('"'))] = ("post" if methods == "post" else "get", known and set(re.findall(r'"(\w+)"', known[1])))
    events = re.search(r"known_keys\[\] = \{(.*?)\}", (http / "event_stream.cpp").read_text("utf-8"), re.S)
    found["/v1/events"] = ("get", set(re.findall(r'"(\w+)"', events[1])))
    return {path: route for path, route in found.items() if path.startswith("/v1/") or path in ("/healthz", "/metrics")}


def openapi(_, report):
    document = yaml.safe_load((PROTOCOL / "openapi.yaml").read_text("utf-8"))

    def follow(ref):
        name, _, steps = ref.partition("#")
        node = load(PROTOCOL / name) if name else document
        for step in filter(None, steps.split("/")):
            node = node[step]
        return node

    for ref in refs(document):
        try:
            follow(ref)
            report.expect(True, "")
        except (OSError, KeyError, TypeError):
            report.expect(False, f"openapi.yaml: {ref} does not exist")
    served, paths = routes(), document["paths"]
    report.expect(len(served) > 10, "openapi.yaml: the daemon's routes were not found in its source")
    report.expect(set(paths) == set(served), f"openapi.yaml: its paths differ from the daemon's: {sorted(set(paths) ^ set(served))}")
    for path in set(paths) & set(served):
        method, known = served[path]
        report.expect(list(paths[path]) == [method], f"openapi.yaml: {path}: the daemon's method is {method}")
        listed = {(follow(each["$ref"]) if "$ref" in each else each)["name"] for each in paths[path].get(method, {}).get("parameters", ())}
        report.expect(known is None or listed == known, f"openapi.yaml: {path}: its parameters differ from the daemon's: {sorted(listed ^ (known or set()))}")


def fences(text):
    """Yields (language, text, line number) of each fenced block."""
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 1


def readme(schemas, report):
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
                report.expect(False, f"README.md:{number}: {problem}")
            report.expect(True, "")
    report.expect({"hello", "subscribe", "welcome", "session", "ready"} <= shown, "README.md: too few example frames")
    for type_ in schemas.types:
        report.expect(f"`{type_}`" in text, f"README.md: {type_} is missing")
    field_tables(text, schemas, report)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        report.expect((PROTOCOL / target).exists(), f"README.md: {target} does not exist")


def field_tables(text, schemas, report):
    """Each event's table lists the fields of its schema, in order, and marks the optional ones."""
    sections = dict(re.findall(r"^#### `([a-z.]+)`\n(.*?)(?=^#|^\*\*|\Z)", text, re.M | re.S))
    report.expect(list(sections) == schemas.events, f"README.md: the event sections are not the events: {list(sections)}")
    for type_, section in sections.items():
        schema = schemas.files[type_ + SUFFIX]
        required = [*schema.get("required", ()), "files", "files_count"]  # one of these two, by view
        documented = [(name, "optional" not in kind) for name, kind in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.M)]
        expected = [(name, name in required) for name in schema["properties"] if name not in ("type", "truncated")]
        report.expect(documented == expected, f"README.md: the fields of {type_} are {documented}, not {expected}")


def daemon_event_types(schemas, report):
    """The daemon's event types are those of the contract."""
    header = (SOURCE / "daemon/core/event.hpp").read_text("utf-8")
    bodies = re.search(r"using EventBody\s*=\s*std::variant<(.*?)>;", header, re.S)[1]
    structs = [name.removeprefix("event::") for name in re.findall(r"event::\w+", bodies)]
    report.expect(len(structs) == len(schemas.events), f"event.hpp has {len(structs)} events, the contract {len(schemas.events)}")
    table = (SOURCE / "daemon/core/event_fields.hpp").read_text("utf-8")
    names = set(re.findall(r'^EARSHOT_EVENT\(\w+, "([a-z.]+)"', table, re.M))
    report.expect(names == set(schemas.events), f"event_fields.hpp and the contract differ: {sorted(names ^ set(schemas.events))}")


PARTS = (schemas_are_schemas, valid_vectors, invalid_vectors, cursor_vectors, filter_vectors, subject_vectors, connection_vector, order_checks,
         asyncapi, openapi, readme, daemon_event_types)


def run():
    schemas = Schemas()
    failed = 0
    for part in PARTS:
        report = Report()
        part(schemas, report)
        for failure in report.failures:
            print(f"{part.__name__}: {failure}")
        print(f"{part.__name__}: {report.checks} checks, {len(report.failures)} failed")
        failed += len(report.failures) + (report.checks == 0)  # a part without checks is broken
    return 1 if failed else 0
