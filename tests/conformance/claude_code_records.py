"""What single records of Claude Code say: dialect, texts, tags, notifications, outcomes, todo lists.

The rules have the numbers of claude_code_reference.py, which assembles the events.
"""
import datetime
import re

from reference import SPACE, count_of, decoded_bytes, integer_of, list_of, member, milliseconds, object_of, text_of

CHAIN_TYPES = {"assistant", "attachment", "progress", "system", "user"}
METADATA_TYPES = set("""agent-name ai-title cost-state custom-title file-history-delta file-history-snapshot mode permission-mode
    queue-operation summary""".split())
WITHOUT_MEANING = set("""agent-color agent-setting api-request api-request-blob api-request-resumed api-request-shape
    artifact-autoreact-ledger artifact-comment-monitor atis-latch attribution-snapshot bridge-session content-replacement continued-in
    data-flow-incomplete data-flow-records derived-from dev-mods ended-by-model fork-context-ref frame-link history-suppression
    isolation-latch last-prompt memory-mode observer-ref pr-link relocated resume-head-vouch session-owner tag task-summary tools-used
    worktree-state""".split())
SYSTEM = {None, *"""agents_killed api_error away_summary bridge_status compact_boundary informational local_command
    microcompact_boundary model_refusal_fallback scheduled_task_fire stop_hook_summary turn_duration""".split()}
ATTACHMENTS = set("""agent_listing_delta auto_mode auto_mode_exit batching_reminder_sent budget_usd command_permissions
    compact_file_reference date date_change deferred_tools_delta deferred_tools_record dynamic_skill edited_text_file
    environment file fork_briefing goal_status hook_additional_context hook_blocking_error hook_cancelled
    hook_non_blocking_error hook_success hook_system_message invoked_skills max_turns_reached mcp_instructions_delta model
    nested_memory plan_mode plan_mode_exit plan_mode_reentry prompt_snapshot queued_command read_truncation_notice
    remote_session_change sandbox_instructions session_context session_cron_carry silent_turn_reminder skill_listing
    task_reminder task_status todo_reminder total_tokens_reminder ultra_effort_enter ultra_effort_exit unknown_command_fallback
    workflow_keyword_request""".split())
MESSAGES_TYPES = {"compact_prelude", "compact_recap", "human", "tool_result"}
FLAT_TYPES = {"compact_system"}

INTERRUPTIONS = {"[Request interrupted by user]", "[Request interrupted by user for tool use]"}
INTERRUPTED = ("[Request interrupted by user", "[Tool call interrupted: the session ended")
DENIED = ("The user doesn't want to proceed with this tool use", "The user doesn't want to take this action right now",
          "Permission for this action was denied", "Claude requested permissions")
DENIED_TOOL = re.compile("Permission to use .* has been denied", re.DOTALL)
TURN_TAGS = {"task-notification": "task", "scheduled-task": "task", "ci-monitor-event": "task", "teammate-message": "agent",
             "cross-session-message": "agent"}
COMMAND_TAGS = {"command-name", "command-message"}
OTHER_TAGS = {"local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout", "bash-stderr"}
CAVEAT = "Caveat: The messages below"  # a prompt may begin with the word
SYNTHETIC = "<synthetic>"  # the model of records that the program makes itself
TIME_END_MS = 253_402_300_800_000  # the year 10000
COUNTS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_input_tokens"}


def dialect_of(record):
    """C5: None if the record shows no dialect's sign."""
    type, message, time = text_of(record, "type"), record.get("message"), record.get("timestamp")
    if type in MESSAGES_TYPES or isinstance(time, int | float) and not isinstance(time, bool):
        return "claude-messages"
    if type in FLAT_TYPES or isinstance(message, str) or "toolName" in record or "toolArguments" in record:
        return "claude-flat"
    if type in CHAIN_TYPES and (isinstance(message, dict) or text_of(record, "uuid") or text_of(record, "sessionId")):
        return "claude-code"
    return None


def unknown_name(record, dialect):
    """C33: the name under which a record without a meaning is counted; None if it has one, or is known to have none."""
    type = text_of(record, "type")
    known = {"claude-messages": MESSAGES_TYPES, "claude-flat": FLAT_TYPES}.get(dialect, set())
    if not type:
        return "(no type)"
    if dialect is None and type in CHAIN_TYPES:  # C5
        return type
    for family, kinds, kind in (("system", SYSTEM, text_of(record, "subtype") or None),
                                ("attachment", ATTACHMENTS, text_of(record, "attachment", "type"))):
        if type == family:
            return None if kind in kinds else f"{type}/{kind}" if kind is not None else type
    return None if type in CHAIN_TYPES | METADATA_TYPES | WITHOUT_MEANING | known else type


def time_of(record):
    """(the time as RFC 3339, in ms); claude-messages has milliseconds."""
    time = record.get("timestamp")
    if isinstance(time, str):
        ms = milliseconds(time)
        return (time, ms) if ms is not None else (None, None)
    ms = integer_of(record, "timestamp")
    if ms is None or not 0 < ms < TIME_END_MS:
        return None, None
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds") + "Z", ms


# ---- Content


class Content:
    """Of a message, a result or a queued prompt: its texts, and images and documents."""

    def __init__(self, content):
        self.blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
        self.texts = [text for block in self.blocks if text_of(block, "type") == "text" and (text := text_of(block, "text")) is not None]
        self.media = [media_of(block) for block in self.blocks if text_of(block, "type") in ("image", "document")]
        self.results = [block for block in self.blocks if text_of(block, "type") == "tool_result"]

    @property
    def text(self):
        return "\n".join(filter(None, self.texts)) if self.texts else None

    @property
    def first(self):
        return self.texts[0] if self.texts else ""


def media_of(block):
    data, is_base64 = text_of(block, "source", "data"), text_of(block, "source", "type") == "base64"
    media = {"kind": text_of(block, "type"), "media_type": text_of(block, "source", "media_type"),
             "bytes": None if data is None else decoded_bytes(data) if is_base64 else len(data.encode())}
    return {key: value for key, value in media.items() if value is not None}


def leading_tag(text):
    """The name of the element with which a text begins; one that has no end is the user's words."""
    match = re.match(r"\s*<([a-z_-]+)[ >]", text)
    return match[1] if match and f"</{match[1]}>" in text else None


def prompt_of(content):
    """C13: what the user typed, without what the program put into it. None if nothing is left."""
    texts = list(content.texts)
    if texts and leading_tag(texts[0]) in ("ide_opened_file", "ide_selection"):
        texts[0] = re.sub(r"<(ide_\w+)>.*?</\1>", "", texts[0], count=1, flags=re.DOTALL)
        return (without_reminders(texts) or "").strip(SPACE) or None
    return without_reminders(texts)


def without_reminders(texts):
    """C13: the texts, joined, without what the program put between the user's words."""
    kept = [re.sub("<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL) for text in texts]
    if kept == texts:
        return "\n".join(filter(None, texts)) or None
    return "\n".join(text for text in kept if text.strip(SPACE)).strip(SPACE) or None


def tag(text, name):
    """The content of an element; None if it is not there."""
    match = re.search(f"<{name}>(.*?)</{name}>", text or "", re.DOTALL)
    return match[1] if match else None


def command_of(text):
    """C14: `/name args` of a command's record."""
    name, arguments = ((tag(text, each) or "").strip(SPACE) for each in ("command-name", "command-args"))
    return f"/{name.removeprefix('/')} {arguments}".strip(SPACE) if name else None


class Notification:
    """C25: the end of a background task."""

    def __init__(self, text):
        self.task, self.status = tag(text, "task-id"), tag(text, "status")
        self.call, self.summary = tag(text, "tool-use-id"), tag(text, "summary")
        usage = tag(text, "usage") or ""
        self.numbers = {field: int(value) for field, name in
                        (("duration_ms", "duration_ms"), ("tokens", "subagent_tokens"), ("tools", "tool_uses"))
                        if (value := (tag(usage, name) or "").strip(SPACE)).isdigit()}


def notification_of(text):
    """None if the text is none, or does not name a task and its end."""
    if not (text or "").startswith("<task-notification>"):
        return None
    found = Notification(text)
    return found if found.task and found.status else None


# ---- Calls and their results


class Call:
    """A call of a tool."""

    def __init__(self, id, tool, input, agent, ms):
        self.id, self.tool, self.input, self.agent, self.ms = id, tool, input, agent, ms
        self.is_open = True


class Agent:
    """A subagent that a call of the stream started."""

    def __init__(self, call):
        self.call, self.id, self.is_background, self.is_finished = call, None, False, False
        self.type, self.description = text_of(call.input, "subagent_type"), text_of(call.input, "description")


def outcome_of(record, block, content, knows_position):
    """C21"""
    denial, result = text_of(record, "toolDenialKind"), record.get("toolUseResult")
    is_error, text = block.get("is_error") is True, content.text or ""
    if record.get("isAborted") is True or denial == "interrupted":  # C31
        return "interrupted"
    if denial == "user-rejected":
        was_asked = record.get("toolDenialBeforeRun") is True or text_of(record, "permissionDecision", "decision") == "reject"
        return "interrupted" if knows_position and not was_asked else "denied"
    if denial:                                               # whatever its kind
        return "denied"
    was_interrupted = member(result, "interrupted") is True or member(result, "wasInterrupted") is True
    if was_interrupted or is_error and text.startswith(INTERRUPTED):
        return "interrupted"
    if is_error and (text.startswith(DENIED) or DENIED_TOOL.match(text)):
        return "denied"
    return "error" if is_error else "ok"


def launch_of(text):
    """C24: what a result without `toolUseResult`, as in the transcripts of subagents up to 2.1.114, tells of a launch."""
    if match := re.match(r"Command running in background with ID:\s*([^\s.,(]*)", text):
        return {"backgroundTaskId": match[1]}
    if text.startswith("Async agent launched"):
        match = re.search(r"agentId:\s*([^\s.,(]*)", text)
        return {"status": "async_launched", "agentId": match[1] if match else None}
    return None


def agent_of(result):
    """The id of the subagent that the result tells of."""
    mate = text_of(result, "agent_id") if text_of(result, "status") == "teammate_spawned" else None
    return text_of(result, "agentId") or mate or None


def launched_agent_of(result):
    """C24: the id of an agent that goes on in the background, empty if it is not known; None: none does."""
    return agent_of(result) or "" if text_of(result, "status") in ("async_launched", "teammate_spawned") else None


def monitor_of(result):
    """The id of a monitor that the result tells of."""
    return text_of(result, "taskId") if member(result, "timeoutMs") is not None else None


def is_of_program(record):
    """Whether an assistant record is made by the program, not by a model."""
    return text_of(record, "message", "model") == SYNTHETIC or record.get("isApiErrorMessage") is True


def recorded_count(value, *path):
    """A count; a negative one is none."""
    count = integer_of(value, *path)
    return count if count is not None and count >= 0 else None


def usage_of(usage):
    """C27: writes to the cache come flat or nested."""
    nested = object_of(usage, "cache_creation")
    counts = {name: count_of(usage, key) or 0 for name, key in COUNTS.items()}
    written = sum(count_of(nested, key) or 0 for key in ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"))
    return {**counts, "cache_write": max(count_of(usage, "cache_creation_input_tokens") or 0, written)}


def todo_of(item):
    """C26: an item of TodoWrite, or a task."""
    todo = {"id": text_of(item, "id"), "content": text_of(item, "content") or text_of(item, "subject"), "status": text_of(item, "status"),
            "priority": text_of(item, "priority"), "active_form": text_of(item, "activeForm")}
    return {key: value for key, value in todo.items() if value is not None}


def todos_of(items):
    return [{"content": "", "status": "", **todo_of(item)} for item in items if isinstance(item, dict)]


def tasks_of(items, before):
    """C26: a list of tasks has no active forms; those that are known stay."""
    forms = {todo["id"]: todo["active_form"] for todo in before if "id" in todo and "active_form" in todo}
    return [{"active_form": forms[todo["id"]], **todo} if todo.get("id") in forms else todo for todo in todos_of(items)]


def todos_after(before, tool, input, result):
    """C26: the list after a call; None if the tool has none."""
    if tool == "TodoWrite":
        items = member(result, "newTodos")
        return todos_of(items if isinstance(items, list) else list_of(input, "todos"))
    if tool == "TaskCreate":
        return [*before, {"content": "", **todo_of({**object_of(input), **object_of(result, "task")}), "status": "pending"}]
    if tool == "TaskUpdate" and member(result, "success") is not False:
        status = text_of(result, "statusChange", "to") or text_of(input, "status")
        id, change = text_of(result, "taskId") or text_of(input, "taskId"), todo_of({**object_of(input), "status": status})
        changed = [{**todo, **change} if todo.get("id") == id else todo for todo in before]
        return [todo for todo in changed if todo.get("status") != "deleted"]
    if tool == "TaskList" and isinstance(member(result, "tasks"), list):
        return tasks_of(result["tasks"], before)
    return None


def api_error_of(record):
    """C29: the fields of a failed attempt."""
    error = record.get("error")
    if isinstance(error, str):
        error = {"message": error}
    nested = text_of(error, "error", "message") or text_of(error, "error", "error", "message")
    text = text_of(error, "formatted") or text_of(error, "message") or nested or text_of(error, "cause", "code")
    return {"status": integer_of(error, "status"), "error": text, "attempt": recorded_count(record, "retryAttempt"),
            "max_attempts": recorded_count(record, "maxRetries"), "retry_in_ms": recorded_count(record, "retryInMs")}


def files_of(record):
    """C30"""
    if text_of(record, "type") == "file-history-delta":
        return [path] if (path := text_of(record, "trackingPath")) else []
    return list(object_of(record, "snapshot", "trackedFileBackups"))


