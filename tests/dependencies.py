#!/usr/bin/env python3
"""Checks the dependency rules: which module may include which, where agent programs may be named, what may be at the top level.

usage: dependencies.py [TOP]      prints each violation with its file and line; exit code 1 if there is one
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "dev", "daemon", "protocol", "clients", "systemd", "tests"}
GENERATED = {"build", "compile_commands.json", "__pycache__"}  # in .gitignore

# base ← core ← agents ← tail, status ← serve ← team, otlp ← daemon; demo includes status; watch and redact depend on base only, models on core,
# transfer on libcurl only, log on spdlog only.
BASE = {"base"}
CORE = {"core", *BASE}
AGENTS = {"agents", *CORE}
SERVE = {"serve", "tail", "log", "status", "watch", "redact", "models", *AGENTS}
DAEMON = "daemon"  # the files directly in daemon/, which may include every module
# module of daemon/ → the modules that it may include
MODULES = {
    "base": BASE,
    "core": CORE,
    "agents": AGENTS,
    "models": {"models", *CORE},
    "redact": {"redact", *BASE},
    "watch": {"watch", *BASE},
    "transfer": {"transfer"},
    "log": {"log"},
    "tail": {"tail", "log", "watch", *AGENTS},
    "status": {"status", "watch", *AGENTS},
    "demo": {"demo", "log", "status", *AGENTS},
    "serve": SERVE,
    "search": {"search", *SERVE},
    "team": {"team", *SERVE},
    "otlp": {"otlp", "transfer", *SERVE},
    "config": {"config", "team", "otlp", *SERVE},
    "service": {"service", *BASE},
    "version": {"version"},
}
# module of clients/ → the modules of clients/ that it may include; the TypeScript clients have no includes
CLIENT_MODULES = {
    "common": {"common"},
    "cli": {"cli", "common"},
    "notifier": {"notifier", "common"},
}
CLIENTS_MAY_USE = {"base", "transfer", "version"}  # modules of daemon/
OFFLINE_MAY_USE = {"core", "agents", "redact", "models"}  # in addition, by the commands that need no daemon
OFFLINE = re.compile(r"replay|doctor|usage|program_statusline")  # files of clients/cli
# Libraries, for the modules that may use only some; base and core may also use the C++ standard library.
STANDARD = r"[a-z_0-9]+|[ei]mmintrin\.h|"
LIBRARIES = {
    "base": re.compile(STANDARD + r"simdjson\.h|re2/\w+\.h|utf8proc\.h|toml(\+\+/[\w/]+)?\.h(pp)?|(sys|netinet|arpa)/\w+\.h|"
                                  r"boost/asio/(basic_waitable_timer|buffer)\.hpp|"                   # timers of base's clock, what Beast passes to streams
                                  r"boost/(asio/impl|asio/ssl/impl|beast)/src\.hpp|"                 # compiled here for all modules
                                  r"(unistd|fcntl|dirent|errno|poll|pwd|signal|stdlib|string|time|wchar)\.h"),
    "core": re.compile(STANDARD + r"simdjson\.h|xxhash\.h|xxh_x86dispatch\.h"),
}
# What only daemon/agents/<program>/ may name: program → (names of records and dialects, names of files and directories).
AGENT_NAMES = {
    "claude_code": (
        re.compile(r"claude-(?:messages|flat)\b|\b(?:toolUseResult|isSidechain|parentUuid|leafUuid|isMeta|isApiErrorMessage|agentId|sessionId|gitBranch|customTitle|"
                   r"tool_use_id|compact_boundary|procStart|pidDomain|waitingFor|rate_limits)\b"),
        re.compile(r"\bclaude-code\b|\bCLAUDE_CONFIG_DIR\b|[\"/]\.claude\b|\.meta\.json\b"),
    ),
    "codex": (
        re.compile(r"codex-(?:items|events|paginated)\b|\b(?:session_meta|event_msg|response_item|turn_context|function_call|function_call_output|item_completed|"
                   r"task_started|forked_from_id|rate_limits|SubAgentActivity|CommandExecution)\b"),
        re.compile(r"\bCODEX_HOME\b|[\"/]\.codex\b|rollout-|\barchived_sessions\b|\bthread-writer-locks\b"),
    ),
    "copilot": (
        re.compile(r"copilot-cli\b|\b(?:user\.message|assistant\.(?:message|turn_end)|tool\.execution_\w+|permission\.(?:requested|completed)|toolRequests|"
                   r"sessionId|agentId)\b"),
        re.compile(r"\bCOPILOT_HOME\b|[\"/]\.copilot\b|\bsession-state\b|\binuse\."),
    ),
    "pi": (
        re.compile(r"\b(?:branch_summary|custom_message|context_edit|toolCall|toolResult|stopReason|parentSession|branchedFrom)\b"),
        re.compile(r"\bPI_CODING_AGENT_DIR\b|[\"/]\.pi\b"),
    ),
}
WRITES_TRANSCRIPTS = ("clients/sdk/test/",)  # prefixes of files that may name all of them
# Prefixes of files that may name files and directories: defaults of options, their help, and diagnostics.
NAMES_DIRECTORIES = ("daemon/config/", "daemon/agents/roots", "daemon/tail/tail.cpp", "daemon/service_command", "clients/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
SOURCE = (".cpp", ".hpp", ".h", ".cc", ".ts", ".js")


def sources(top, folder):
    for directory, folders, names in os.walk(os.path.join(top, folder)):
        folders[:] = [name for name in folders if name not in ("node_modules", "dist", *GENERATED)]
        for name in names:
            if name.endswith(SOURCE):
                yield os.path.relpath(os.path.join(directory, name), top)


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """Replaces comments by spaces; strings and line numbers stay."""
    return COMMENT.sub(lambda m: m[0] if m[0].startswith('"') else re.sub(r"[^\n]", " ", m[0]), text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def includes(top, path):
    text = without_comments(read(top, path))
    for found in INCLUDE.finditer(text):
        yield line_of(text, found.start()), found[1] == "<", found[2]


def module_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else DAEMON


def target_of(name):
    return name.split("/")[0] if "/" in name else DAEMON


def wrong_daemon_includes(top):
    for path in sources(top, "daemon"):
        module = module_of(path)
        if module == DAEMON:
            continue
        if module not in MODULES:
            yield f"{path}:1: daemon/ has no module '{module}': add it to tests/dependencies.py"
            continue
        for line, system, name in includes(top, path):
            if system:
                if module in LIBRARIES and not LIBRARIES[module].fullmatch(name):
                    yield f"{path}:{line}: {module} may not use <{name}>"
            elif target_of(name) not in MODULES[module]:
                yield f'{path}:{line}: {module} may not include "{name}"'


def wrong_client_includes(top):
    for path in sources(top, "clients"):
        module = module_of(path)
        daemon_modules = CLIENTS_MAY_USE
        if module == "cli" and OFFLINE.search(os.path.basename(path)):
            daemon_modules = CLIENTS_MAY_USE | OFFLINE_MAY_USE
        for line, system, name in includes(top, path):
            target = target_of(name)
            if system or target in daemon_modules:
                continue
            if target in MODULES or target not in CLIENT_MODULES.get(module, {target}):
                yield f'{path}:{line}: {module} may not include "{name}"'


def wrong_agent_names(top):
    for path in (path for folder in ("daemon", "clients") for path in sources(top, folder)):
        if path.startswith(WRITES_TRANSCRIPTS):
            continue
        text = without_comments(read(top, path))
        for program, (records, directories) in AGENT_NAMES.items():
            own = re.match(r"daemon/agents/(\w+)/", path)
            if own and own[1] == program:
                continue
            shared = AGENT_NAMES.get(own[1], ())[:1] if own else ()  # two programs may have a name in common
            for pattern in (records,) if path.startswith(NAMES_DIRECTORIES) else (records, directories):
                for found in pattern.finditer(text):
                    if any(names.fullmatch(found[0]) for names in shared):
                        continue
                    yield f"{path}:{line_of(text, found.start())}: '{found[0]}' may be named only in daemon/agents/{program}"


def wrong_places(top):
    for name in sorted(os.listdir(top)):
        if name not in TOP_LEVEL and name not in GENERATED and not name.startswith("."):
            yield f"{name}: not allowed at the top level"
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in (".git", "node_modules", *GENERATED)]
        for name in (*folders, *names):
            if re.match(r"utils?(\.|$)", name.lower()):
                yield f"{os.path.relpath(os.path.join(directory, name), top)}: name it for what it contains"


def violations(top):
    return [*wrong_daemon_includes(top), *wrong_client_includes(top), *wrong_agent_names(top), *wrong_places(top)]


if __name__ == "__main__":
    found = violations(sys.argv[1] if len(sys.argv) > 1 else TOP)
    print("\n".join(found) or "no violations")
    sys.exit(1 if found else 0)
