// One event of another daemon per line, as published (protocol/README.md):
//   {"type":"tool.invoked","host":"dev7","stream":…,"session":…,"cursor":…,"time":…,"turn":3,"call":…,…}
// Events are emitted unchanged, with members that this version does not define. The defined fields are read
// for the stream state and the meta view. Other types (`reset`, types of later versions) are counted only.
#include "team/event_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "core/event_fields.hpp"

namespace earshot {
namespace {

using dom::element;

constexpr std::size_t files_max = 4096;  // of `files_count`; a larger count is reduced to it

Usage usage_of(const element& json) {
  const auto count = [&](std::string_view key) { return dom::count_of(json, key).value_or(0); };
  return {count("input"), count("output"), count("cache_read"), count("cache_write")};
}

Media media_of(const element& json) {
  return {dom::text_of(json, "kind"), dom::text_of(json, "media_type"),
          dom::count_of(json, "bytes").value_or(0)};
}

std::vector<Todo> todos_of(const element& json) {
  std::vector<Todo> todos;
  dom::array list;
  if (json.get_array().get(list)) return todos;
  for (const element each : list) {
    const auto text = [&](std::string_view key) { return std::string(dom::text_of(each, key)); };
    todos.push_back({text("id"), text("content"), text("status"), text("active_form"), text("priority")});
  }
  return todos;
}

std::vector<LimitWindow> windows_of(const element& json) {
  std::vector<LimitWindow> windows;
  dom::array list;
  if (json.get_array().get(list)) return windows;
  for (const element each : list) {
    LimitWindow& window = windows.emplace_back();
    window.name = dom::text_of(each, "name");
    if (const auto percent = dom::member(each, "used_percent"))
      window.used_percent = dom::as_double(*percent);
    window.window_minutes = dom::int_of(each, "window_minutes");
    window.resets_at = dom::text_of(each, "resets_at");
  }
  return windows;
}

// Reads a member of each type that an event's field may have. A member of another JSON type is absent.
void read_value(const element& json, std::string_view& value) { value = dom::as_text(json); }
void read_value(const element& json, OptionalText& value) { value = dom::as_optional_text(json); }
void read_value(const element& json, std::optional<LazyText>& value) { value = dom::as_optional_text(json); }
void read_value(const element& json, bool& value) { value = dom::as_bool(json); }
void read_value(const element& json, std::uint64_t& value) { value = dom::as_count(json).value_or(0); }
void read_value(const element& json, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(dom::as_count(json).value_or(0));
}
void read_value(const element& json, std::optional<std::int64_t>& value) { value = dom::as_int(json); }
void read_value(const element& json, std::optional<std::uint64_t>& value) { value = dom::as_count(json); }
void read_value(const element& json, std::optional<double>& value) { value = dom::as_double(json); }
void read_value(const element& json, Usage& value) { value = usage_of(json); }
void read_value(const element& json, std::optional<Media>& value) {
  if (json.is_object()) value = media_of(json);
}
void read_value(const element& json, std::vector<Media>& values) {
  dom::array list;
  if (json.get_array().get(list)) return;
  for (const element each : list) values.push_back(media_of(each));
}

// Reads the fields of one event type. False: a required field is missing or of another type, so that clients
// could not use the event.
class FieldReader {
 public:
  FieldReader(const element& json, Record& record, RelayedEvent& event)
      : json_(json), record_(record), event_(event) {}

  template <class Field, class Value>
  bool read(const Field& field, Value& value) {
    if constexpr (Field::kind == FieldKind::usage_inline) {
      if (dom::count_of(json_, "input")) value = usage_of(json_);
      return true;
    } else {
      const auto json = dom::member(json_, field.key.name());
      if (field.is_required && !(json && has_type<Field::kind>(*json))) return false;
      if constexpr (Field::kind == FieldKind::files) {
        read_files(json, value);
      } else if constexpr (Field::kind == FieldKind::todos) {
        event_.todos = todos_of(*json);
      } else if constexpr (Field::kind == FieldKind::windows) {
        event_.windows = windows_of(*json);
      } else if constexpr (Field::kind == FieldKind::input) {
        if (json) value.json = record_.keep(simdjson::minify(*json));
      } else {
        if (json) read_value(*json, value);
      }
      return true;
    }
  }

 private:
  template <FieldKind kind>
  static bool has_type(const element& json) {
    if constexpr (kind == FieldKind::number) return json.is_number();
    if constexpr (kind == FieldKind::flag) return json.is_bool();
    if constexpr (kind == FieldKind::usage) return json.is_object();
    if constexpr (kind == FieldKind::todos || kind == FieldKind::windows) return json.is_array();
    return json.is_string();
  }

  // The meta view has the number of files only.
  void read_files(const std::optional<element>& json, std::vector<std::string_view>& files) {
    dom::array list;
    if (json && !json->get_array().get(list)) {
      for (const element each : list) files.push_back(dom::as_text(each));
    } else {
      files.resize(std::min<std::uint64_t>(dom::count_of(json_, "files_count").value_or(0), files_max));
    }
  }

  const element& json_;
  Record& record_;
  RelayedEvent& event_;
};

template <class Body>
bool read_body(const element& json, Record& record, RelayedEvent& event) {
  Body& body = event.body.emplace<Body>();
  FieldReader reader(json, record, event);
  return std::apply([&](const auto&... fields) { return (reader.read(fields, body.*fields.member) && ...); },
                    EventTable<Body>::fields);
}

struct Type {
  std::string_view name;
  bool (*read)(const element&, Record&, RelayedEvent&);
};
constexpr auto types = []<std::size_t... index>(std::index_sequence<index...>) {
  return std::array{Type{EventTable<std::variant_alternative_t<index, EventBody>>::type,
                         read_body<std::variant_alternative_t<index, EventBody>>}...};
}
(std::make_index_sequence<std::variant_size_v<EventBody>>());

// Members that are not copied: the common ones, `received` (written by the event store) and `truncated`.
constexpr std::array<std::string_view, 10> not_copied = {"type",   "host", "stream", "session",  "agent",
                                                         "cursor", "time", "turn",   "received", "truncated"};

std::string other_members(const dom::object& object) {
  std::string out = "{";
  for (const auto field : object) {
    if (std::find(not_copied.begin(), not_copied.end(), field.key) != not_copied.end()) continue;
    if (out.size() > 1) out += ',';
    append_json_string(out, field.key);
    out += ':';
    out += simdjson::minify(field.value);
  }
  out += '}';
  return out;
}

std::vector<TruncatedPath> truncated_of(const element& json) {
  TruncatedPaths paths;
  dom::object object;
  const auto truncated = dom::member(json, "truncated");
  if (!truncated || truncated->get_object().get(object)) return {};
  for (const auto field : object)
    if (const auto bytes = dom::as_count(field.value)) paths.add(field.key, *bytes);
  return paths.list();
}

// The tree of the current record: its members are written again from it.
class RelayedDom {
 public:
  static constexpr std::size_t kept_bytes_max = 1 << 20;  // a parser that grew beyond is freed

  std::optional<element> parse(const Value& value) {
    if (parser_.capacity() > kept_bytes_max) parser_ = simdjson::dom::parser();
    if (parser_.capacity() == 0 && parser_.allocate(4096, nesting_max + 1)) return std::nullopt;
    return value.to_dom(parser_);
  }

 private:
  simdjson::dom::parser parser_;
};

class RelayedDialect final : public Dialect {
 public:
  std::string_view name() const override { return {}; }

  void read(const Value& value, std::string_view, Record& out) const override {
    thread_local RelayedDom dom;
    const auto root = dom.parse(value);
    if (!root) return;
    const element& json = *root;
    out.type = dom::text_of(json, "type");
    out.time = dom::text_of(json, "time");
    out.time_ms = parse_time(out.time).value_or(0);
    if (out.time_ms == 0) out.time = {};
    const std::string_view session = dom::text_of(json, "session");
    if (!session.empty())
      out.session = out.keep(std::string(session) + '@' + std::string(dom::text_of(json, "host")));

    RelayedEvent event;
    dom::object object;
    const auto type =
        std::find_if(types.begin(), types.end(), [&](const Type& each) { return each.name == out.type; });
    if (type == types.end() || json.get_object().get(object) || !type->read(json, out, event)) {
      out.unknown = out.type != "reset";
      return;
    }
    event.turn = static_cast<std::uint32_t>(dom::count_of(json, "turn").value_or(0));
    event.agent = dom::text_of(json, "agent");
    event.members.json = out.keep(other_members(object));
    event.truncated = truncated_of(json);
    out.relayed = std::move(event);
  }
};

class RelayedReader final : public RecordReader {
 public:
  std::string_view program() const override { return {}; }
  const Dialect* detect(const Value&) const override { return &dialect_; }
  const Dialect* metadata_dialect(const Value&) const override { return nullptr; }

 private:
  RelayedDialect dialect_;
};

class RelayedProgram final : public AgentProgram {
 public:
  std::string_view program() const override { return {}; }
  const RecordReader& reader() const override { return relayed_reader(); }
  std::span<const std::string_view> transcript_directories() const override {
    static constexpr std::array<std::string_view, 1> directories = {"projects"};
    return directories;
  }
  StreamIdentity identify(std::string_view below) const override { return relayed_identity(below); }
  bool is_root_entry(std::string_view) const override { return false; }
};

}  // namespace

const AgentProgram& relayed_program() {
  static const RelayedProgram program;
  return program;
}

const RecordReader& relayed_reader() {
  static const RelayedReader reader;
  return reader;
}

}  // namespace earshot
