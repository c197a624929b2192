#!/usr/bin/env python3
"""Holds up the walls of the house: who may include whom, where dialects may be named, what stands at the top.

usage: walls.py [TOP]      prints each violation with its file and line; exit code 1 if there is one
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AT_THE_TOP = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "dev", "daemon", "protocol", "clients", "systemd", "tests"}
NOT_OURS = {"build", "compile_commands.json", "__pycache__"}  # what .gitignore names

# room → the rooms that it may include. main is daemon/ itself.
ROOMS = {
    "core": {"core"},
    "watch": {"watch"},
    "tail": {"tail", "watch", "core"},
    "status": {"status", "watch", "core"},
    "redact": {"redact", "core"},
    "serve": {"serve", "tail", "status", "watch", "core"},
    "service": {"service"},
    "version": {"version"},
    "relay": {"relay", "serve", "tail", "status", "watch", "core"},
}
# clients/: the same. The TypeScript ones include nothing.
CLIENT_ROOMS = {
    "link": {"link"},
    "cli": {"cli", "link"},
    "notifier": {"notifier", "link"},
}
KNOWS_ALL = "main"
# The C++ standard library, two others, and what the processor can do with 16 bytes.
CORE_MAY_USE = re.compile(r"[a-z_0-9]+|simdjson\.h|xxhash\.h|xxh_x86dispatch\.h|emmintrin\.h")
CLIENT_MAY_USE = {"core/event_json.hpp", "toml.hpp",  # how text becomes JSON, and how TOML is read: one writer and one reader for all
                  "version/version.hpp"}              # what build it is
CLIENT_MAY_USE_CORE = re.compile(r"replay|stats")        # the part of the command line that needs no daemon; it redacts, too
DIALECTS = re.compile(r"claude-(messages|flat|code)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
SOURCE = (".cpp", ".hpp", ".h", ".cc", ".ts", ".js")


def sources(top, folder):
    for directory, folders, names in os.walk(os.path.join(top, folder)):
        folders[:] = [name for name in folders if name not in ("node_modules", *NOT_OURS)]
        for name in names:
            if name.endswith(SOURCE):
                yield os.path.relpath(os.path.join(directory, name), top)


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """Comments become spaces; strings and lines stay where they are."""
    return COMMENT.sub(lambda m: m[0] if m[0].startswith('"') else re.sub(r"[^\n]", " ", m[0]), text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def includes(top, path):
    text = without_comments(read(top, path))
    for found in INCLUDE.finditer(text):
        yield line_of(text, found.start()), found[1] == "<", found[2]


def room_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else KNOWS_ALL


def wrong_includes(top):
    for path in sources(top, "daemon"):
        room = room_of(path)
        if room != KNOWS_ALL and room not in ROOMS:
            yield f"{path}:1: daemon/ has no room called '{room}'"
            continue
        for line, system, name in includes(top, path):
            if room == "core" and system and not CORE_MAY_USE.fullmatch(name):
                yield f"{path}:{line}: core may not use <{name}>"
            if system or room == KNOWS_ALL:
                continue
            target = name.split("/")[0] if "/" in name else KNOWS_ALL
            if target not in ROOMS[room]:
                yield f'{path}:{line}: {room} may not include "{name}"'
    for path in sources(top, "clients"):
        room = room_of(path)
        for line, system, name in includes(top, path):
            target = name.split("/")[0]
            if system or name in CLIENT_MAY_USE:
                continue
            if room == "cli" and target in ("core", "redact") and CLIENT_MAY_USE_CORE.search(os.path.basename(path)):
                continue
            if target in ROOMS or target not in CLIENT_ROOMS.get(room, {target}):
                yield f'{path}:{line}: {room} may not include "{name}"'


def wrong_names(top):
    for folder in ("daemon", "clients"):
        for path in sources(top, folder):
            if path.startswith("daemon/core/dialects/"):
                continue
            text = without_comments(read(top, path))
            for found in DIALECTS.finditer(text):
                yield f"{path}:{line_of(text, found.start())}: the dialect '{found[0]}' is named outside daemon/core/dialects"


def wrong_places(top):
    for name in sorted(os.listdir(top)):
        if name not in AT_THE_TOP and name not in NOT_OURS and not name.startswith("."):
            yield f"{name}: does not belong at the top"
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in (".git", "node_modules", *NOT_OURS)]
        for name in (*folders, *names):
            if re.match(r"utils?(\.|$)", name.lower()):
                yield f"{os.path.relpath(os.path.join(directory, name), top)}: say what it is; everything is useful"


def violations(top):
    return [*wrong_includes(top), *wrong_names(top), *wrong_places(top)]


if __name__ == "__main__":
    found = violations(sys.argv[1] if len(sys.argv) > 1 else TOP)
    print("\n".join(found) or "the walls stand")
    sys.exit(1 if found else 0)
