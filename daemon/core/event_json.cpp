#include "core/event_json.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/json_rewrite.hpp"
#include "core/event_fields.hpp"

namespace earshot {
namespace {

// Appends `first` and the four members.
void append_counts(std::string& out, char first, const Usage& usage) {
  constexpr std::size_t digits_max = 20;
  constexpr FieldKey keys[] = {"input", "output", "cache_read", "cache_write"};
  char text[sizeof keys + std::size(keys) * digits_max];
  char* at = text;
  const auto add = [&](const FieldKey& key, std::uint64_t count) {
    std::memcpy(at, key.text, key.size);
    at = std::to_chars(at + key.size, at + key.size + digits_max, count).ptr;
  };
  add(keys[0], usage.input);
  add(keys[1], usage.output);
  add(keys[2], usage.cache_read);
  add(keys[3], usage.cache_write);
  text[0] = first;
  out.append(text, static_cast<std::size_t>(at - text));
}

// The parts of an event in the full view that the meta view does not have.
class FullOnly {
 public:
  void add(std::size_t begin, std::size_t end) {
    if (count_ == parts_.size()) return add_changed();
    if (begin < end) parts_[count_++] = {begin, end};
  }
  // The meta view has something else instead.
  void add_changed() { is_changed_ = true; }
  bool is_changed() const { return is_changed_; }
  // Appends the rest of the event, which begins at `begin` of `full`.
  void append_rest(std::string& out, std::string_view full, std::size_t begin) const {
    for (std::size_t n = 0; n < count_; ++n) {
      out += full.substr(begin, parts_[n].begin - begin);
      begin = parts_[n].end;
    }
    out += full.substr(begin);
  }

 private:
  struct Part {
    std::size_t begin, end;
  };
  std::array<Part, 16> parts_;  // with more, the meta view is encoded by itself
  std::size_t count_ = 0;
  bool is_changed_ = false;
};

// Writes the members of one event, leaving out absent ones.
class EventWriter {
 public:
  EventWriter(std::string& out, const EncodeOptions& options, TruncatedPaths& truncated, FullOnly* full_only)
      : out_(out), options_(options), truncated_(truncated), full_only_(full_only) {}

  template <class Body>
  void operator()(const Body& body) {
    std::apply([&](const auto&... fields) { (write(fields, body.*fields.member), ...); },
               EventTable<Body>::fields);
  }

  std::string& key(const FieldKey& key) { return out_.append(key.text, key.size); }
  void id(const FieldKey& name, std::string_view value) {
    if (!value.empty()) append_json_string(key(name), value);
  }

 private:
  static bool is_absent(std::string_view value) { return value.empty(); }
  template <class Value>
  static bool is_absent(const std::optional<Value>& value) {
    return !value;
  }
  static std::string_view text_of(std::string_view value) { return value; }
  template <class Text>
  static std::string_view text_of(const std::optional<Text>& value) {
    return *value;
  }

  bool is_full() const { return options_.view == View::full; }

  template <class Field, class Value>
  void write(const Field& field, const Value& value) {
    constexpr FieldKind kind = Field::kind;
    if constexpr (kind == FieldKind::id) {
      id(field.key, value);
    } else if constexpr (kind == FieldKind::label) {
      if (!is_absent(value) || field.is_required) label(field.key, text_of(value));
    } else if constexpr (kind == FieldKind::text) {
      if (is_absent(value) || !is_full()) return;
      const std::size_t begin = out_.size();
      append_text(key(field.key), text_of(value), options_.text_bytes_max, options_.filter, truncated_,
                  field.key.name());
      if (full_only_) full_only_->add(begin, out_.size());
    } else if constexpr (kind == FieldKind::flag) {
      key(field.key) += value ? "true" : "false";
    } else if constexpr (kind == FieldKind::flag_if_true) {
      if (value) key(field.key) += "true";
    } else if constexpr (kind == FieldKind::usage) {
      append_usage(key(field.key), value);
    } else if constexpr (kind == FieldKind::usage_inline) {
      if (value) append_counts(out_, ',', *value);
    } else if constexpr (kind == FieldKind::todos) {
      if (full_only_) full_only_->add_changed();
      append_todos(key(field.key), value, options_.text_bytes_max, options_.filter, options_.view,
                   truncated_);
    } else {
      write_value(field.key, value);
    }
  }

  void label(const FieldKey& name, std::string_view value) {
    append_redacted(key(name), value, options_.filter);
  }

  // Numbers, media, inputs and file lists, selected by the type of the value.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void write_value(const FieldKey& name, Number value) { append_json_number(key(name), value); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void write_value(const FieldKey& name, const std::optional<Number>& value) {
    if (value) append_json_number(key(name), *value);
  }
  void write_value(const FieldKey& name, const std::optional<Media>& value) {
    if (value) key(name), media(*value);
  }
  void write_value(const FieldKey& name, const std::vector<Media>& values) {
    if (!values.empty()) list(name, values, [&](const Media& each) { media(each); });
  }
  void write_value(const FieldKey& name, const std::vector<std::string_view>& files) {
    if (!is_full()) return append_json_number(key("files_count"), files.size());
    if (full_only_) full_only_->add_changed();
    list(name, files, [&](std::string_view file) { append_redacted(out_, file, options_.filter); });
  }
  void write_value(const FieldKey& name, std::span<const LimitWindow> windows) {
    append_windows(key(name), windows, options_.filter);
  }
  void write_value(const FieldKey& name, const Json& input) {
    if (!is_full() || input.json.empty()) return;
    const std::size_t begin = out_.size();
    append_input(name, input);
    if (full_only_) full_only_->add(begin, out_.size());
  }
  void append_input(const FieldKey& name, const Json& input) {
    const std::size_t begin = key(name).size(), listed = truncated_.list().size();
    {
      TruncatedPaths::Scope scope(truncated_, name.name());
      append_json(out_, input.json, options_.text_bytes_max, options_.filter, truncated_, input.is_utf8);
    }
    if (out_.size() - begin <= options_.input_bytes_max) return;
    out_.resize(begin);
    truncated_.shrink(listed);
    std::string scratch;
    append_json_string(out_, json_prefix(input.json, options_.text_bytes_max, options_.filter, scratch));
    truncated_.add(name.name(), input.json.size());
  }

  void list(const FieldKey& name, const auto& values, const auto& append) {
    key(name) += '[';
    for (const auto& each : values) append(each), out_ += ',';
    if (!values.empty()) out_.pop_back();
    out_ += ']';
  }
  void media(const Media& media) {
    out_ += "{\"kind\":";
    append_redacted(out_, media.kind, options_.filter);
    if (!media.media_type.empty()) label("media_type", media.media_type);
    if (media.bytes) append_json_number(key("bytes"), media.bytes);
    out_ += '}';
  }

  std::string& out_;
  const EncodeOptions& options_;
  TruncatedPaths& truncated_;
  FullOnly* const full_only_;  // null: not asked for
};

// Appends the members of a JSON object after others; nothing if it is invalid or empty.
void append_members(std::string& out, std::string_view object, const EncodeOptions& options,
                    TruncatedPaths& truncated) {
  const std::size_t begin = out.size(), listed = truncated.list().size();
  append_json(out, object, options.text_bytes_max, options.filter, truncated);
  if (out.size() - begin <= std::string_view("{}").size() || out[begin] != '{') {
    truncated.shrink(listed);
    return out.resize(begin);
  }
  out[begin] = ',';
  out.pop_back();
}

void append_event(std::string& out, const Event& event, std::string_view encoded_address,
                  const EncodeOptions& options, FullOnly* full_only) {
  TruncatedPaths truncated;
  out += "{\"type\":\"";
  out += type_name(event.body);
  out += '"';
  out += encoded_address;
  EventWriter writer(out, options, truncated, full_only);
  writer.id("agent", event.agent);
  writer.key("cursor") += '"';
  append_cursor(out, event.cursor);
  out += '"';
  writer.id("time", event.time);
  append_json_number(writer.key("turn"), event.turn);
  if (event.relayed && options.view == View::full) {
    if (full_only) full_only->add_changed();
    for (const TruncatedPath& each : event.relayed->truncated) truncated.add(each.path, each.bytes);
    append_members(out, event.relayed->members.json, options, truncated);
  } else {
    std::visit(writer, event.body);
  }
  const std::size_t begin = out.size();
  truncated.append_member(out);
  if (full_only) full_only->add(begin, out.size());
  out += '}';
}

}  // namespace

std::string_view type_name(const EventBody& body) {
  static constexpr auto names = []<std::size_t... index>(std::index_sequence<index...>) {
    return std::array{EventTable<std::variant_alternative_t<index, EventBody>>::type...};
  }
  (std::make_index_sequence<std::variant_size_v<EventBody>>());
  return names[body.index()];
}

void append_redacted(std::string& out, std::string_view text, const TextFilter* filter) {
  std::string scratch;
  append_json_string(out, filter ? filter->clean(text, scratch) : text);
}

void append_text(std::string& out, std::string_view text, std::size_t bytes_max, const TextFilter* filter,
                 TruncatedPaths& truncated, std::string_view path) {
  std::string scratch;
  const Beginning shown = clean_beginning(filter, text, bytes_max, scratch);
  append_json_string(out, shown.text);
  if (shown.cut) truncated.add(path, text.size());
}

void append_json(std::string& out, std::string_view json, std::size_t text_bytes_max,
                 const TextFilter* filter, TruncatedPaths& truncated, bool is_utf8) {
  const std::size_t begin = out.size(), listed = truncated.list().size();
  const Rewritten rewritten = rewrite_json(
      out, json,
      {.text_bytes_max = text_bytes_max, .filter = filter, .truncated = &truncated, .is_utf8 = is_utf8});
  if (rewritten.result == JsonResult::complete) return;
  out.resize(begin);
  truncated.shrink(listed);
  if (rewritten.result == JsonResult::invalid) {
    out += "null";
    return;
  }
  std::string scratch;
  append_json_string(out, json_prefix(json, text_bytes_max, filter, scratch));
  truncated.add({}, json.size());
}

void append_usage(std::string& out, const Usage& usage) {
  append_counts(out, '{', usage);
  out += '}';
}

void append_todos(std::string& out, std::span<const Todo> todos, std::size_t text_bytes_max,
                  const TextFilter* filter, View view, TruncatedPaths& truncated) {
  const TruncatedPaths::Scope list_scope(truncated, "todos");
  JsonWriter json(out);
  json.begin_array();
  for (std::size_t index = 0; index < todos.size(); ++index) {
    const TruncatedPaths::Scope scope(truncated, index);
    const Todo& todo = todos[index];
    const auto text = [&](std::string_view name, std::string_view value) {
      if (view == View::full)
        append_text(json.key(name).next(), value, text_bytes_max, filter, truncated, name);
    };
    json.begin_object();
    if (!todo.id.empty()) json.member("id", todo.id);
    text("content", todo.content);
    append_redacted(json.key("status").next(), todo.status, filter);
    if (!todo.active_form.empty()) text("active_form", todo.active_form);
    if (!todo.priority.empty()) append_redacted(json.key("priority").next(), todo.priority, filter);
    json.end_object();
  }
  json.end_array();
}

void append_windows(std::string& out, std::span<const LimitWindow> windows, const TextFilter* filter) {
  JsonWriter json(out);
  json.begin_array();
  for (const LimitWindow& window : windows) {
    json.begin_object();
    append_redacted(json.key("name").next(), window.name, filter);
    if (window.used_percent) json.member("used_percent", *window.used_percent);
    if (window.window_minutes) json.member("window_minutes", *window.window_minutes);
    if (!window.resets_at.empty()) append_redacted(json.key("resets_at").next(), window.resets_at, filter);
    json.end_object();
  }
  json.end_array();
}

std::string encode_address(const StreamAddress& address) {
  std::string out;
  const EncodeOptions options;
  TruncatedPaths truncated;
  EventWriter writer(out, options, truncated, nullptr);
  writer.id("host", address.host);
  writer.id("stream", address.stream);
  writer.id("session", address.session);
  return out;
}

void append_event(std::string& out, const Event& event, const StreamAddress& address,
                  const EncodeOptions& options) {
  append_event(out, event, encode_address(address), options);
}

void append_event(std::string& out, const Event& event, std::string_view encoded_address,
                  const EncodeOptions& options) {
  append_event(out, event, encoded_address, options, nullptr);
}

void append_event_views(std::string& full, std::string& meta, const Event& event,
                        std::string_view encoded_address, EncodeOptions options) {
  FullOnly full_only;
  const std::size_t begin = full.size();
  options.view = View::full;
  append_event(full, event, encoded_address, options, &full_only);
  if (!full_only.is_changed()) return full_only.append_rest(meta, full, begin);
  options.view = View::meta;
  append_event(meta, event, encoded_address, options, nullptr);
}

}  // namespace earshot
