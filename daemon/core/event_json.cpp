#include "core/event_json.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/utf8.hpp"

namespace earshot {
namespace {

constexpr std::size_t copy_depth_max = 64;  // a value nested deeper is shown as cut text

void append_number(std::string& out, auto value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

void append_escaped(std::string& out, std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::size_t plain = 0;
  const auto flush = [&](std::size_t at) { out.append(text, plain, at - plain); };
  for (std::size_t at = 0; at < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (c >= 0x20 && c != '"' && c != '\\' && c < 0x80) {
      ++at;
      continue;
    }
    std::size_t bad = 0, length = 1;
    if (c >= 0x80 && (length = utf8_length(text.substr(at), bad)) > 0) {
      at += length;
      continue;
    }
    flush(at);
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
        if (c < 0x20) {
          out += "\\u00";
          out += hex[c >> 4];
          out += hex[c & 15];
        } else {
          out += replacement;
        }
    }
    at += c < 0x80 ? 1 : bad;
    plain = at;
  }
  flush(text.size());
}

void append_cut(std::string& out, std::string_view shown, std::size_t bytes) {
  out += "{\"text\":";
  append_string(out, shown);
  out += ",\"bytes\":";
  append_number(out, bytes);
  out += ",\"truncated\":true}";
}

// Copies one JSON value, validating; keeps numbers as they are written.
class Copier {
 public:
  Copier(std::string& out, std::string_view json, std::size_t text_bytes_max)
      : out_(out), json_(json), text_bytes_max_(text_bytes_max) {}

  bool run() {
    const std::size_t begin = out_.size();
    space();
    std::vector<bool> open;  // true: an object
    bool want_value = true;
    for (;;) {
      space();
      if (want_value) {
        const char c = at();
        if (c == '{' || c == '[') {
          if (open.size() == copy_depth_max) return too_deep(begin);
          take(c);
          space();
          if (take(c == '{' ? '}' : ']')) {
            want_value = false;
            continue;
          }
          open.push_back(c == '{');
          if (c == '{' && !key()) return false;
          continue;
        }
        if (!(c == '"' ? string(text_bytes_max_) : scalar())) return false;
        want_value = false;
      }
      if (open.empty()) break;
      space();
      if (take(',')) {
        space();
        if (open.back() && !key()) return false;
        want_value = true;
      } else if (take(open.back() ? '}' : ']')) {
        open.pop_back();
      } else {
        return false;
      }
    }
    if (open.empty() && want_value) return false;
    space();
    return pos_ == json_.size();
  }

 private:
  char at() const { return pos_ < json_.size() ? json_[pos_] : '\0'; }
  void space() {
    while (pos_ < json_.size() && std::strchr(" \t\r\n", json_[pos_]) && json_[pos_]) ++pos_;
  }
  bool take(char c) {
    if (pos_ >= json_.size() || json_[pos_] != c) return false;
    out_ += c;
    ++pos_;
    return true;
  }
  bool too_deep(std::size_t begin) {
    out_.resize(begin);
    append_cut(out_, cut_utf8(json_, text_bytes_max_), json_.size());
    return true;
  }
  bool key() { return at() == '"' && string(std::string::npos) && (space(), take(':')); }

  bool scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (json_.compare(pos_, word.size(), word) != 0) continue;
      out_ += word;
      pos_ += word.size();
      return true;
    }
    const std::size_t begin = pos_;
    const auto digits = [&] {
      const std::size_t first = pos_;
      while (at() >= '0' && at() <= '9') ++pos_;
      return pos_ > first;
    };
    if (at() == '-') ++pos_;
    if (at() == '0') {
      ++pos_;
    } else if (!digits()) {
      return false;
    }
    if (at() == '.' && (++pos_, !digits())) return false;
    if (at() == 'e' || at() == 'E') {
      ++pos_;
      if (at() == '+' || at() == '-') ++pos_;
      if (!digits()) return false;
    }
    out_.append(json_, begin, pos_ - begin);
    return true;
  }

  long hex(std::size_t from) const {
    if (from + 4 > json_.size()) return -1;
    unsigned code = 0;
    const auto [next, error] = std::from_chars(&json_[from], &json_[from] + 4, code, 16);
    return error == std::errc{} && next == &json_[from] + 4 ? static_cast<long>(code) : -1;
  }

  // Escapes stay as they are written, but for lone surrogates. What is cut is decided by the decoded length.
  bool string(std::size_t bytes_max) {
    const std::size_t begin = out_.size();
    ++pos_;
    out_ += '"';
    std::size_t decoded = 0, kept = std::string::npos;  // kept: where the output is cut, if it is
    const auto unit = [&](std::string_view piece, std::size_t bytes) {
      if (kept == std::string::npos && decoded + bytes > bytes_max) kept = out_.size();
      decoded += bytes;
      if (kept == std::string::npos) out_ += piece;
    };
    for (;;) {
      if (pos_ >= json_.size()) return false;
      const unsigned char c = static_cast<unsigned char>(json_[pos_]);
      if (c == '"') break;
      if (c < 0x20) return false;
      if (c < 0x80 && c != '\\') {
        std::size_t run = pos_ + 1;
        while (run < json_.size()) {
          const unsigned char d = static_cast<unsigned char>(json_[run]);
          if (d < 0x20 || d >= 0x80 || d == '"' || d == '\\') break;
          ++run;
        }
        const std::string_view plain = json_.substr(pos_, run - pos_);
        if (kept == std::string::npos) {
          const std::size_t room = std::min(plain.size(), bytes_max - decoded);
          out_ += plain.substr(0, room);
          if (room < plain.size()) kept = out_.size();
        }
        decoded += plain.size();
        pos_ = run;
        continue;
      }
      if (c >= 0x80) {
        std::size_t bad = 0;
        const std::size_t length = utf8_length(json_.substr(pos_), bad);
        unit(length ? json_.substr(pos_, length) : replacement, length ? length : replacement.size());
        pos_ += length ? length : bad;
        continue;
      }
      const char escaped = pos_ + 1 < json_.size() ? json_[pos_ + 1] : '\0';
      if (escaped != 'u') {
        if (escaped == '\0' || !std::strchr("\"\\/bfnrt", escaped)) return false;
        unit(json_.substr(pos_, 2), 1);
        pos_ += 2;
        continue;
      }
      const long code = hex(pos_ + 2);
      if (code < 0) return false;
      const long low =
          code >= 0xD800 && code <= 0xDBFF && json_.compare(pos_ + 6, 2, "\\u") == 0 ? hex(pos_ + 8) : -1;
      if (low >= 0xDC00 && low <= 0xDFFF) {
        unit(json_.substr(pos_, 12), 4);
        pos_ += 12;
      } else if (code >= 0xD800 && code <= 0xDFFF) {
        unit(replacement, replacement.size());
        pos_ += 6;
      } else {
        unit(json_.substr(pos_, 6), code < 0x80 ? 1 : code < 0x800 ? 2 : 3);
        pos_ += 6;
      }
    }
    ++pos_;
    if (kept == std::string::npos) {
      out_ += '"';
      return true;
    }
    out_.resize(kept);
    out_ += "\",\"bytes\":";
    append_number(out_, decoded);
    out_ += ",\"truncated\":true}";
    out_.insert(begin, "{\"text\":");
    return true;
  }

  std::string& out_;
  std::string_view json_;
  std::size_t text_bytes_max_;
  std::size_t pos_ = 0;
};

// Writes the members of one event, leaving out what is absent.
class Writer {
 public:
  Writer(std::string& out, const EncodeOptions& options) : out_(out), options_(options) {}
  bool full() const { return options_.view == View::full; }

  std::string& name(std::string_view key) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
    return out_;
  }
  void word(std::string_view key, std::string_view value) {  // empty: absent
    if (!value.empty()) append_string(name(key), value);
  }
  void word(std::string_view key, const event::Absent& value) {
    if (value) append_string(name(key), *value);
  }
  void text(std::string_view key, const event::Absent& value) {
    if (value && full()) append_text(name(key), *value, options_.text_bytes_max);
  }
  void secret(std::string_view key, std::string_view value) {  // short text that only the full view shows
    if (!value.empty() && full()) append_text(name(key), value, options_.text_bytes_max);
  }
  template <class N>
  void number(std::string_view key, const std::optional<N>& value) {
    if (value) append_number(name(key), *value);
  }
  void number(std::string_view key, std::uint64_t value) { append_number(name(key), value); }
  void flag(std::string_view key, bool value) { name(key) += value ? "true" : "false"; }
  void media(const Media& media) {
    out_ += "{\"kind\":";
    append_string(out_, media.kind);
    word("media_type", media.media_type);
    if (media.bytes) number("bytes", media.bytes);
    out_ += '}';
  }

  void operator()(const event::SessionStarted& e) {
    word("dialect", e.dialect), word("version", e.version), word("cwd", e.cwd),
        word("git_branch", e.git_branch);
    word("project", e.project), secret("title", e.title), word("continues", e.continues),
        word("mode", e.mode);
    word("permission_mode", e.permission_mode);
  }
  void operator()(const event::SessionUpdated& e) {
    text("title", e.title), word("cwd", e.cwd), word("git_branch", e.git_branch), word("model", e.model);
    word("version", e.version), word("mode", e.mode), word("permission_mode", e.permission_mode);
  }
  void operator()(const event::TurnStarted& e) { text("prompt", e.prompt), word("origin", e.origin); }
  void operator()(const event::TurnFinished& e) {
    word("outcome", e.outcome);
    if (e.inferred) flag("inferred", true);
    word("stop_reason", e.stop_reason), number("duration_ms", e.duration_ms), number("tools", e.tools);
    append_usage(name("usage"), e.usage);
  }
  void operator()(const event::MessageAdded& e) {
    word("role", e.role), word("kind", e.kind), text("text", e.text), word("message", e.message),
        word("model", e.model);
    if (e.media) name("media"), media(*e.media);
  }
  void operator()(const event::ToolInvoked& e) {
    word("call", e.call), append_string(name("tool"), e.tool);
    if (full() && !e.input.json.empty()) input(e.input.json);
    word("message", e.message);
  }
  void operator()(const event::ToolFinished& e) {
    word("call", e.call), word("tool", e.tool), word("outcome", e.outcome), text("output", e.output);
    if (!e.media.empty()) {
      name("media") += '[';
      for (const Media& one : e.media) media(one), out_ += ',';
      close_list();
    }
    number("duration_ms", e.duration_ms), word("background", e.background);
  }
  void operator()(const event::TodoUpdated& e) {
    append_todos(name("todos"), e.todos, options_.text_bytes_max, options_.view);
    word("source", e.source);
  }
  void operator()(const event::CompactionStarted& e) { word("trigger", e.trigger); }
  void operator()(const event::CompactionFinished& e) {
    word("trigger", e.trigger), number("pre_tokens", e.pre_tokens), number("post_tokens", e.post_tokens);
    number("duration_ms", e.duration_ms), word("kind", e.kind);
  }
  void operator()(const event::AgentStarted& e) {
    word("subagent", e.subagent), word("agent_type", e.agent_type), secret("description", e.description);
    word("call", e.call);
    if (e.background) flag("background", true);
  }
  void operator()(const event::AgentFinished& e) {
    word("subagent", e.subagent), word("agent_type", e.agent_type), secret("description", e.description);
    word("call", e.call), word("outcome", e.outcome), number("duration_ms", e.duration_ms),
        number("tokens", e.tokens);
    number("tools", e.tools);
    if (e.background) flag("background", true);
  }
  void operator()(const event::TaskFinished& e) {
    word("task", e.task), word("call", e.call), word("outcome", e.outcome), text("summary", e.summary);
  }
  void operator()(const event::QueueChanged& e) { word("operation", e.operation), text("text", e.text); }
  void operator()(const event::UsageUpdated& e) {
    word("message", e.message), word("model", e.model);
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
    word("message", e.message);
    if (!full()) return number("files_count", e.files.size());
    name("files") += '[';
    for (const std::string_view file : e.files) append_string(out_, file), out_ += ',';
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
    append_json(out_, json, options_.text_bytes_max);
    if (out_.size() - begin <= options_.input_bytes_max) return;
    out_.resize(begin);
    append_cut(out_, cut_utf8(json, options_.text_bytes_max), json.size());
  }

  std::string& out_;
  const EncodeOptions& options_;
};

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

void append_text(std::string& out, std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return append_string(out, text);
  append_cut(out, cut_utf8(text, bytes_max), text.size());
}

void append_json(std::string& out, std::string_view json, std::size_t text_bytes_max) {
  const std::size_t begin = out.size();
  if (Copier(out, json, text_bytes_max).run()) return;
  out.resize(begin);
  out += "null";
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

void append_todos(std::string& out, std::span<const Todo> todos, std::size_t text_bytes_max, View view) {
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
      append_text(out, todo.content, text_bytes_max);
      out += ',';
    }
    out += "\"status\":";
    append_string(out, todo.status);
    if (!todo.active_form.empty() && view == View::full) {
      out += ",\"active_form\":";
      append_text(out, todo.active_form, text_bytes_max);
    }
    if (!todo.priority.empty()) {
      out += ",\"priority\":";
      append_string(out, todo.priority);
    }
    out += "},";
  }
  if (out.back() == ',') {
    out.back() = ']';
  } else {
    out += ']';
  }
}

void append_event(std::string& out, const Event& event, const Address& address,
                  const EncodeOptions& options) {
  out += "{\"type\":\"";
  out += type_name(event.body);
  out += '"';
  Writer writer(out, options);
  writer.word("host", address.host), writer.word("stream", address.stream),
      writer.word("session", address.session);
  writer.word("agent", event.agent);
  writer.name("cursor") += '"';
  out += to_string(event.cursor);
  out += '"';
  writer.word("time", event.time);
  writer.number("turn", std::uint64_t{event.turn});
  std::visit(writer, event.body);
  out += '}';
}

}  // namespace earshot
