#include "core/event_json.hpp"

#include <simdjson.h>

#include <charconv>

#include "base/json_rewrite.hpp"
#include "base/json_run.hpp"
#include "base/utf8.hpp"

namespace earshot {
namespace {

void append_number(std::string& out, auto value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

// Bytes without a quote, a backslash or a control among which some are no UTF-8.
void append_repaired(std::string& out, std::string_view run) {
  while (!run.empty()) {
    std::size_t bad = 0;
    const std::size_t length = utf8_length(run, bad);
    out += length ? run.substr(0, length) : replacement;
    run.remove_prefix(length ? length : bad);
  }
}

void append_escape(std::string& out, char c) {
  static constexpr char hex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += hex[c >> 4 & 15];
      out += hex[c & 15];
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    bool ascii = true;
    const std::string_view run = text.substr(at, run_end(text, at, ascii) - at);
    if (ascii || simdjson::validate_utf8(run.data(), run.size()))
      out += run;
    else
      append_repaired(out, run);
    at += run.size();
    if (at == text.size()) return;
    append_escape(out, text[at]);
  }
}

/// A member's name as it is written, put together when this is compiled.
struct Key {
  static constexpr std::size_t name_bytes_max = 28;  // a longer one does not compile
  consteval Key(const char* name) {
    for (const char c : {',', '"'}) text[size++] = c;
    for (; *name; ++name) text[size++] = *name;
    for (const char c : {'"', ':'}) text[size++] = c;
  }
  char text[name_bytes_max + 4] = {};
  std::size_t size = 0;
};

// Writes the members of one event, leaving out what is absent.
class Writer {
 public:
  Writer(std::string& out, const EncodeOptions& options) : out_(out), options_(options) {}
  bool full() const { return options_.view == View::full; }

  std::string& name(const Key& key) { return out_.append(key.text, key.size); }
  void plain(const Key& key,
             std::string_view value) {  // our own words and the protocol's ids; empty: absent
    if (!value.empty()) append_string(name(key), value);
  }
  void word(const Key& key, std::string_view value) {  // short text that both views show
    if (!value.empty()) append_redacted(name(key), value, options_.filter);
  }
  void word(const Key& key, const event::OptionalText& value) {
    if (value) append_redacted(name(key), *value, options_.filter);
  }
  void text(const Key& key, const event::OptionalText& value) {
    if (value && full()) append_text(name(key), *value, options_.text_bytes_max, options_.filter);
  }
  void secret(const Key& key, std::string_view value) {  // short text that only the full view shows
    if (!value.empty() && full()) append_text(name(key), value, options_.text_bytes_max, options_.filter);
  }
  template <class N>
  void number(const Key& key, const std::optional<N>& value) {
    if (value) append_number(name(key), *value);
  }
  void number(const Key& key, std::uint64_t value) { append_number(name(key), value); }
  void flag(const Key& key, bool value) { name(key) += value ? "true" : "false"; }
  void media(const Media& media) {
    out_ += "{\"kind\":";
    append_redacted(out_, media.kind, options_.filter);
    word("media_type", media.media_type);
    if (media.bytes) number("bytes", media.bytes);
    out_ += '}';
  }

  void operator()(const event::SessionStarted& e) {
    plain("dialect", e.dialect), word("version", e.version), word("cwd", e.cwd),
        word("git_branch", e.git_branch);
    word("project", e.project), secret("title", e.title), plain("continues", e.continues),
        word("mode", e.mode);
    word("permission_mode", e.permission_mode);
  }
  void operator()(const event::SessionUpdated& e) {
    text("title", e.title), word("cwd", e.cwd), word("git_branch", e.git_branch), word("model", e.model);
    word("version", e.version), word("mode", e.mode), word("permission_mode", e.permission_mode);
  }
  void operator()(const event::TurnStarted& e) { text("prompt", e.prompt), plain("origin", e.origin); }
  void operator()(const event::TurnFinished& e) {
    plain("outcome", e.outcome);
    if (e.inferred) flag("inferred", true);
    word("stop_reason", e.stop_reason), number("duration_ms", e.duration_ms), number("tools", e.tools);
    append_usage(name("usage"), e.usage);
  }
  void operator()(const event::MessageAdded& e) {
    plain("role", e.role), word("kind", e.kind), text("text", e.text), plain("message", e.message),
        word("model", e.model);
    if (e.media) name("media"), media(*e.media);
  }
  void operator()(const event::ToolInvoked& e) {
    plain("call", e.call), append_redacted(name("tool"), e.tool, options_.filter);
    if (full() && !e.input.json.empty()) input(e.input.json);
    plain("message", e.message);
  }
  void operator()(const event::ToolFinished& e) {
    plain("call", e.call), word("tool", e.tool), plain("outcome", e.outcome), text("output", e.output);
    if (!e.media.empty()) {
      name("media") += '[';
      for (const Media& one : e.media) media(one), out_ += ',';
      close_list();
    }
    number("duration_ms", e.duration_ms), plain("background", e.background);
  }
  void operator()(const event::TodoUpdated& e) {
    append_todos(name("todos"), e.todos, options_.text_bytes_max, options_.filter, options_.view);
    word("source", e.source);
  }
  void operator()(const event::CompactionStarted& e) { word("trigger", e.trigger); }
  void operator()(const event::CompactionFinished& e) {
    word("trigger", e.trigger), number("pre_tokens", e.pre_tokens), number("post_tokens", e.post_tokens);
    number("duration_ms", e.duration_ms), word("kind", e.kind);
  }
  void operator()(const event::AgentStarted& e) {
    plain("subagent", e.subagent), word("agent_type", e.agent_type), secret("description", e.description);
    plain("call", e.call);
    if (e.background) flag("background", true);
  }
  void operator()(const event::AgentFinished& e) {
    plain("subagent", e.subagent), word("agent_type", e.agent_type), secret("description", e.description);
    plain("call", e.call), plain("outcome", e.outcome), number("duration_ms", e.duration_ms),
        number("tokens", e.tokens);
    number("tools", e.tools);
    if (e.background) flag("background", true);
  }
  void operator()(const event::TaskFinished& e) {
    plain("task", e.task), plain("call", e.call), plain("outcome", e.outcome), text("summary", e.summary);
  }
  void operator()(const event::QueueChanged& e) { word("operation", e.operation), text("text", e.text); }
  void operator()(const event::UsageUpdated& e) {
    plain("message", e.message), word("model", e.model);
    if (e.of_message) {
      number("input", e.of_message->input), number("output", e.of_message->output);
      number("cache_read", e.of_message->cache_read), number("cache_write", e.of_message->cache_write);
    }
    append_usage(name("total"), e.total);
    number("cost_usd", e.cost_usd);
  }
  void operator()(const event::ApiFailed& e) {
    number("status", e.status), secret("error", e.error), number("attempt", e.attempt);
    number("max_attempts", e.max_attempts), number("retry_in_ms", e.retry_in_ms), flag("fatal", e.fatal);
  }
  void operator()(const event::FilesSnapshotted& e) {
    plain("message", e.message);
    if (!full()) return number("files_count", e.files.size());
    name("files") += '[';
    for (const std::string_view file : e.files) append_redacted(out_, file, options_.filter), out_ += ',';
    close_list();
  }
  void operator()(const event::LineSkipped& e) {
    number("line", e.line), number("lines", e.lines), number("bytes", e.bytes), word("reason", e.reason);
    flag("salvaged", e.salvaged);
  }

 private:
  void close_list() {  // after its last item and a comma, or after its bracket
    if (out_.back() == ',') out_.pop_back();
    out_ += ']';
  }
  void input(std::string_view json) {
    const std::size_t begin = name("input").size();
    append_json(out_, json, options_.text_bytes_max, options_.filter);
    if (out_.size() - begin <= options_.input_bytes_max) return;
    out_.resize(begin);
    std::string scratch;
    append_cut(out_, json_beginning(json, options_.text_bytes_max, options_.filter, scratch), json.size());
  }

  std::string& out_;
  const EncodeOptions& options_;
};

/// The members of an object, behind others.
void append_relayed(std::string& out, std::string_view object, const EncodeOptions& options) {
  const std::size_t begin = out.size();
  append_json(out, object, options.text_bytes_max, options.filter);
  if (out.size() - begin <= std::string_view("{}").size() || out[begin] != '{') return out.resize(begin);
  out[begin] = ',';
  out.pop_back();
}

}  // namespace

std::string_view type_name(const EventBody& body) {
  static constexpr std::string_view names[] = {
      "session.started", "session.updated",   "turn.started",  "turn.finished",      "message.added",
      "tool.invoked",    "tool.finished",     "todo.updated",  "compaction.started", "compaction.finished",
      "agent.started",   "agent.finished",    "task.finished", "queue.changed",      "usage.updated",
      "api.failed",      "files.snapshotted", "line.skipped"};
  static_assert(std::size(names) == std::variant_size_v<EventBody>);
  return names[body.index()];
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
  out += '"';
}

void append_redacted(std::string& out, std::string_view text, const TextFilter* filter) {
  std::string scratch;
  append_string(out, filter ? filter->clean(text, scratch) : text);
}

void append_text(std::string& out, std::string_view text, std::size_t bytes_max, const TextFilter* filter) {
  std::string scratch;
  const Beginning shown = clean_beginning(filter, text, bytes_max, scratch);
  if (!shown.cut) return append_string(out, shown.text);
  append_cut(out, shown.text, text.size());
}

void append_cut(std::string& out, std::string_view shown, std::size_t bytes) {
  out += "{\"text\":";
  append_string(out, shown);
  out += ",\"bytes\":";
  append_number(out, bytes);
  out += ",\"truncated\":true}";
}

void append_json(std::string& out, std::string_view json, std::size_t text_bytes_max,
                 const TextFilter* filter) {
  const std::size_t begin = out.size();
  const Copied copied = copy_json(out, json, {.text_bytes_max = text_bytes_max, .filter = filter});
  if (copied.how == Copied::How::whole) return;
  out.resize(begin);
  if (copied.how == Copied::How::invalid) {
    out += "null";
    return;
  }
  std::string scratch;
  append_cut(out, json_beginning(json, text_bytes_max, filter, scratch), json.size());
}

void append_usage(std::string& out, const Usage& usage) {
  out += "{\"input\":";
  append_number(out, usage.input);
  out += ",\"output\":";
  append_number(out, usage.output);
  out += ",\"cache_read\":";
  append_number(out, usage.cache_read);
  out += ",\"cache_write\":";
  append_number(out, usage.cache_write);
  out += '}';
}

void append_todos(std::string& out, std::span<const Todo> todos, std::size_t text_bytes_max,
                  const TextFilter* filter, View view) {
  out += '[';
  for (const Todo& todo : todos) {
    out += '{';
    if (!todo.id.empty()) {
      out += "\"id\":";
      append_string(out, todo.id);
      out += ',';
    }
    if (view == View::full) {
      out += "\"content\":";
      append_text(out, todo.content, text_bytes_max, filter);
      out += ',';
    }
    out += "\"status\":";
    append_redacted(out, todo.status, filter);
    if (!todo.active_form.empty() && view == View::full) {
      out += ",\"active_form\":";
      append_text(out, todo.active_form, text_bytes_max, filter);
    }
    if (!todo.priority.empty()) {
      out += ",\"priority\":";
      append_redacted(out, todo.priority, filter);
    }
    out += "},";
  }
  if (out.back() == ',') {
    out.back() = ']';
  } else {
    out += ']';
  }
}

std::string encode_address(const StreamAddress& address) {
  std::string out;
  const EncodeOptions options;
  Writer writer(out, options);
  writer.plain("host", address.host), writer.plain("stream", address.stream),
      writer.plain("session", address.session);
  return out;
}

void append_event(std::string& out, const Event& event, const StreamAddress& address,
                  const EncodeOptions& options) {
  append_event(out, event, encode_address(address), options);
}

void append_event(std::string& out, const Event& event, std::string_view encoded_address,
                  const EncodeOptions& options) {
  out += "{\"type\":\"";
  out += type_name(event.body);
  out += '"';
  out += encoded_address;
  Writer writer(out, options);
  writer.plain("agent", event.agent);
  writer.name("cursor") += '"';
  append_cursor(out, event.cursor);
  out += '"';
  writer.plain("time", event.time);
  writer.number("turn", std::uint64_t{event.turn});
  if (event.relayed_members.json.empty() || options.view == View::meta)
    std::visit(writer, event.body);
  else
    append_relayed(out, event.relayed_members.json, options);
  out += '}';
}

}  // namespace earshot
