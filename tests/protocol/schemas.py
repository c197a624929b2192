"""The schemas of protocol/schema/ in two forms: as written, for clients, and strict, for the daemon.

As written, they accept what a later version may add: unknown fields, unknown types, new values in lists that may grow.
A strict schema accepts documented content only. It is derived from the same files:

- `$ref` and `allOf` are resolved, so that every object lists all its fields; then additional fields are refused;
- `x-values`, the values of a list that may grow, becomes `enum`;
- `x-full` and `x-meta` state which view has a field, "optional" or "always"; the other view must not have it.
"""
import json
import pathlib

import jsonschema

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "protocol" / "schema"
SUFFIX = ".schema.json"
# Files that are not the schema of one type: shared definitions, and schemas that choose by type.
SHARED = ("common", "event", "frame", "client")


class Schemas:
    def __init__(self, directory=DIRECTORY):
        self.files = {p.name: json.loads(p.read_text("utf-8")) for p in sorted(directory.glob("*" + SUFFIX))}
        self.types = [n.removesuffix(SUFFIX) for n in self.files if n.removesuffix(SUFFIX) not in SHARED]
        self.events = self._types_in("event")
        self.server = self.events + self._types_in("frame")
        self.client = self._types_in("client")
        self._strict = {}
        self._as_written = {}

    def _types_in(self, name):
        return [c["if"]["properties"]["type"]["const"] for c in self.files[name + SUFFIX]["allOf"] if "if" in c]

    def target(self, ref, file):
        """Returns the schema that `ref` in `file` points to, and the file that contains it."""
        name, _, path = ref.partition("#")
        name = name or file
        node = self.files[name]
        for step in filter(None, path.split("/")):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node, name

    def as_written(self, name):
        """Returns a validator of one file as it is: `frame`, `turn.started`."""
        if name not in self._as_written:
            resolver = jsonschema.RefResolver("file:///" + name + SUFFIX, self.files[name + SUFFIX],
                                              store={"file:///" + n: s for n, s in self.files.items()})
            self._as_written[name] = jsonschema.Draft202012Validator(self.files[name + SUFFIX], resolver=resolver)
        return self._as_written[name]

    def strict(self, type_, view="full"):
        """Returns a validator of one type that accepts documented fields only. `view`: full, meta or any."""
        if (type_, view) not in self._strict:
            name = type_ + SUFFIX
            self._strict[type_, view] = jsonschema.Draft202012Validator(self._resolve(self.files[name], name, view))
        return self._strict[type_, view]

    def _resolve(self, schema, file, view):
        references = [p["$ref"] for p in (schema, *schema.get("allOf", ())) if "$ref" in p]
        if references:
            out = {}
            for ref in references:
                merge(out, self._resolve(*self.target(ref, file), view))
            own = {k: v for k, v in schema.items() if k not in ("$ref", "allOf")}
            return close(merge(out, self._resolve(own, file, view)))
        out = {}
        for key, value in schema.items():
            if key in ("description", "title", "$schema", "default", "$defs"):
                continue
            if key == "x-values":
                out["enum"] = value
            elif key == "properties":
                out["properties"] = {n: self._resolve(s, file, view) for n, s in value.items() if in_view(s, view)}
                out["required"] = [n for n in schema.get("required", ()) if n in out["properties"]]
                out["required"] += [n for n, s in value.items() if view != "any" and s.get("x-" + view) == "always"]
            elif key == "items":
                out[key] = self._resolve(value, file, view)
            elif key == "anyOf":
                out[key] = [self._resolve(s, file, view) for s in value]
            elif key not in out and not key.startswith("x-"):
                out[key] = value
        return close(out)


def in_view(schema, view):
    other = {"full": "x-meta", "meta": "x-full"}.get(view)
    return other is None or other not in schema


def merge(into, more):
    for key, value in more.items():
        if key == "properties":
            into.setdefault("properties", {}).update(value)
        elif key == "required":
            into["required"] = list(dict.fromkeys(into.get("required", []) + value))
        elif key != "additionalProperties" or isinstance(value, dict):
            into[key] = value
    return into


def close(schema):
    if "properties" in schema:
        schema["additionalProperties"] = False
    return schema
