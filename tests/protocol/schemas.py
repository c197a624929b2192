"""The schemas of protocol/schema/, twice: as they are, for clients, and strict, for the daemon.

As they are, they let pass what a later daemon may add: unknown fields, unknown types, new words in a list that may grow.
Strict, nothing passes that is not written down. The strict ones are made here from the same files, never by hand:

- `$ref` and `allOf` are drawn in, so that every object knows all of its fields; then no other field is allowed;
- `x-values`, the words of a list that may grow, becomes `enum`;
- `x-full` and `x-meta` say which view has a field: "optional", or "always" there. In the other view it is not allowed.
"""
import json
import pathlib

import jsonschema

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "protocol" / "schema"
SUFFIX = ".schema.json"
# Not the schema of one type: shapes that others refer to, and the schemas that choose by type.
SHARED = ("common", "event", "frame", "client")


class Schemas:
    def __init__(self, directory=DIRECTORY):
        self.files = {p.name: json.loads(p.read_text("utf-8")) for p in sorted(directory.glob("*" + SUFFIX))}
        self.types = [n.removesuffix(SUFFIX) for n in self.files if n.removesuffix(SUFFIX) not in SHARED]
        self.events = self._chosen_by("event")
        self.server = self.events + self._chosen_by("frame")
        self.client = self._chosen_by("client")
        self._strict = {}
        self._lax = {}

    def _chosen_by(self, name):
        return [c["if"]["properties"]["type"]["const"] for c in self.files[name + SUFFIX]["allOf"] if "if" in c]

    def target(self, ref, file):
        """The schema that `ref`, standing in `file`, points to, and the file that it stands in."""
        name, _, path = ref.partition("#")
        name = name or file
        node = self.files[name]
        for step in filter(None, path.split("/")):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node, name

    def lax(self, name):
        """A validator of one file as it is, `frame` or `turn.started`."""
        if name not in self._lax:
            resolver = jsonschema.RefResolver("file:///" + name + SUFFIX, self.files[name + SUFFIX],
                                              store={"file:///" + n: s for n, s in self.files.items()})
            self._lax[name] = jsonschema.Draft202012Validator(self.files[name + SUFFIX], resolver=resolver)
        return self._lax[name]

    def strict(self, type_, view="full"):
        """A validator of one type in which every allowed field is written down. `view`: full, meta or any."""
        if (type_, view) not in self._strict:
            name = type_ + SUFFIX
            self._strict[type_, view] = jsonschema.Draft202012Validator(self._draw_in(self.files[name], name, view))
        return self._strict[type_, view]

    def _draw_in(self, schema, file, view):
        drawn = [p["$ref"] for p in (schema, *schema.get("allOf", ())) if "$ref" in p]
        if drawn:
            out = {}
            for ref in drawn:
                merge(out, self._draw_in(*self.target(ref, file), view))
            own = {k: v for k, v in schema.items() if k not in ("$ref", "allOf")}
            return close(merge(out, self._draw_in(own, file, view)))
        out = {}
        for key, value in schema.items():
            if key in ("description", "title", "$schema", "default", "$defs"):
                continue
            if key == "x-values":
                out["enum"] = value
            elif key == "properties":
                out["properties"] = {n: self._draw_in(s, file, view) for n, s in value.items() if in_view(s, view)}
                out["required"] = [n for n in schema.get("required", ()) if n in out["properties"]]
                out["required"] += [n for n, s in value.items() if view != "any" and s.get("x-" + view) == "always"]
            elif key == "items":
                out[key] = self._draw_in(value, file, view)
            elif key == "anyOf":
                out[key] = [self._draw_in(s, file, view) for s in value]
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
        elif key != "additionalProperties":
            into[key] = value
    return into


def close(schema):
    if "properties" in schema:
        schema["additionalProperties"] = False
    return schema
