// One event of another daemon per line, as published (protocol/README.md):
//   {"type":"tool.invoked","host":"dev7","stream":…,"session":…,"cursor":…,"time":…,"turn":3,"call":…,…}
// Passed on as it stands, also members that this version does not know; what it means is read for snapshots
// and for the view that shows less. Other types (`reset`) and those of later versions are counted, no more.
#include "team/relayed_reader.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/time.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

using dom::element;

constexpr std::size_t files_max = 4096;  // of a list whose names are not shown: more are not counted

/// The members of one event; of a text that was cut, what is left of it.
class Members {
 public:
  explicit Members(const element& json) : json_(json) {}

  std::string_view word(std::string_view key) const { return dom::text_of(json_, key); }
  event::OptionalText text(std::string_view key) const {
    const auto value = dom::member(json_, key);
    if (!value) return {};
    if (value->is_string()) return dom::as_text(*value);
    if (const auto beginning = dom::member(*value, "text"); beginning && beginning->is_string())
      return dom::as_text(*beginning);
    return {};
  }
  std::string_view shown(std::string_view key) const { return text(key).value_or(std::string_view{}); }
  event::OptionalText said(std::string_view key) const {
    const auto value = dom::member(json_, key);
    return value ? dom::as_optional_text(*value) : event::OptionalText{};
  }
  std::optional<std::int64_t> whole(std::string_view key) const { return dom::int_of(json_, key); }
  std::optional<std::uint64_t> count(std::string_view key) const { return dom::count_of(json_, key); }
  bool truth(std::string_view key) const { return dom::bool_of(json_, key); }
  std::optional<element> at(std::string_view key) const { return dom::member(json_, key); }

  static Usage usage_of(const std::optional<element>& json) {
    if (!json) return {};
    const auto of = [&](std::string_view key) { return dom::count_of(*json, key).value_or(0); };
    return {of("input"), of("output"), of("cache_read"), of("cache_write")};
  }
  Usage usage(std::string_view key) const { return usage_of(at(key)); }
  std::optional<Usage> own_usage() const {
    if (!count("input")) return {};
    return usage_of(json_);
  }
  static Media media_of(const element& json) {
    return {dom::text_of(json, "kind"), dom::text_of(json, "media_type"),
            dom::count_of(json, "bytes").value_or(0)};
  }
  std::optional<Media> media() const {
    const auto json = at("media");
    if (!json || !json->is_object()) return {};
    return media_of(*json);
  }

 private:
  const element& json_;
};

using Read = EventBody (*)(const Members&, Record&, RelayedEvent&);
/// A member that every event of its type has (protocol/schema): without it nothing is told, for clients rely
/// on it.
struct Needed {
  enum class What { nothing, text, number, truth, list, object } what = What::nothing;
  std::string_view key;
  bool in(const element& json) const {
    if (what == What::nothing) return true;
    const auto value = dom::member(json, key);
    if (!value) return false;
    switch (what) {
      case What::text:
        return value->is_string();
      case What::number:
        return value->is_number();
      case What::truth:
        return value->is_bool();
      case What::list:
        return value->is_array();
      default:
        return value->is_object();
    }
  }
};
constexpr Needed text(std::string_view key) { return {Needed::What::text, key}; }
constexpr Needed number(std::string_view key) { return {Needed::What::number, key}; }
constexpr Needed truth(std::string_view key) { return {Needed::What::truth, key}; }
constexpr Needed list(std::string_view key) { return {Needed::What::list, key}; }
constexpr Needed object(std::string_view key) { return {Needed::What::object, key}; }

struct Type {
  std::string_view name;
  Read read;
  std::array<Needed, 5> needed{};
  bool fits(const element& json) const {
    return std::all_of(needed.begin(), needed.end(), [&](const Needed& each) { return each.in(json); });
  }
};

EventBody tool_invoked(const Members& m, Record& record, RelayedEvent&) {
  event::ToolInvoked e;
  e.call = m.word("call"), e.tool = m.word("tool"), e.message = m.word("message");
  if (const auto input = m.at("input")) e.input.json = record.keep(simdjson::minify(*input));
  return e;
}

EventBody tool_finished(const Members& m, Record&, RelayedEvent&) {
  event::ToolFinished e;
  e.call = m.word("call"), e.tool = m.said("tool"), e.outcome = m.word("outcome"),
  e.output = m.text("output");
  e.duration_ms = m.whole("duration_ms"), e.background = m.word("background");
  simdjson::dom::array list;
  if (const auto media = m.at("media"); media && !media->get_array().get(list))
    for (const element one : list) e.media.push_back(Members::media_of(one));
  return e;
}

EventBody todo_updated(const Members& m, Record&, RelayedEvent& relayed) {
  event::TodoUpdated e;
  e.source = m.word("source");
  simdjson::dom::array list;
  const auto todos = m.at("todos");
  if (!todos || todos->get_array().get(list)) return e;
  for (const element one : list) {
    const Members todo(one);
    const auto text = [&](std::string_view key) { return std::string(todo.shown(key)); };
    relayed.todos.push_back(
        {text("id"), text("content"), text("status"), text("active_form"), text("priority")});
  }
  return e;
}

EventBody usage_updated(const Members& m, Record&, RelayedEvent&) {
  event::UsageUpdated e;
  e.message = m.word("message"), e.model = m.word("model"), e.of_message = m.own_usage(),
  e.total = m.usage("total");
  if (const auto cost = m.at("cost_usd")) e.cost_usd = dom::as_double(*cost);
  return e;
}

EventBody files_snapshotted(const Members& m, Record&, RelayedEvent&) {
  event::FilesSnapshotted e;
  e.message = m.word("message");
  simdjson::dom::array list;
  if (const auto files = m.at("files"); files && !files->get_array().get(list)) {
    for (const element one : list) e.files.push_back(dom::as_text(one));
  } else {
    e.files.resize(std::min<std::uint64_t>(m.count("files_count").value_or(0), files_max));
  }
  return e;
}

constexpr Type types[] = {
    {"session.started",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::SessionStarted{m.word("dialect"),    m.word("version"), m.word("cwd"),
                                    m.word("git_branch"), m.word("project"), m.shown("title"),
                                    m.word("continues"),  m.word("mode"),    m.word("permission_mode")};
     },
     {{text("dialect")}}},
    {"session.updated",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::SessionUpdated{m.text("title"),          m.said("cwd"),     m.said("git_branch"),
                                    m.said("model"),          m.said("version"), m.said("mode"),
                                    m.said("permission_mode")};
     }},
    {"turn.started",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::TurnStarted{m.text("prompt"), m.word("origin")};
     },
     {{text("origin")}}},
    {"turn.finished",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::TurnFinished{m.word("outcome"),
                                  m.truth("inferred"),
                                  m.word("stop_reason"),
                                  m.whole("duration_ms"),
                                  static_cast<std::uint32_t>(m.count("tools").value_or(0)),
                                  m.usage("usage")};
     },
     {{text("outcome"), number("tools"), object("usage")}}},
    {"message.added",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::MessageAdded{m.word("role"),    m.word("kind"),  m.text("text"),
                                  m.word("message"), m.word("model"), m.media()};
     },
     {{text("role"), text("kind")}}},
    {"tool.invoked", tool_invoked, {{text("call"), text("tool")}}},
    {"tool.finished", tool_finished, {{text("call"), text("outcome")}}},
    {"todo.updated", todo_updated, {{list("todos"), text("source")}}},
    {"compaction.started",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::CompactionStarted{m.word("trigger")};
     }},
    {"compaction.finished",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::CompactionFinished{m.word("trigger"), m.count("pre_tokens"), m.count("post_tokens"),
                                        m.whole("duration_ms"), m.word("kind")};
     },
     {{text("kind")}}},
    {"agent.started",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::AgentStarted{m.word("subagent"), m.word("agent_type"), m.shown("description"),
                                  m.word("call"), m.truth("background")};
     },
     {{text("call")}}},
    {"agent.finished",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::AgentFinished{m.word("subagent"), m.word("agent_type"), m.shown("description"),
                                   m.word("call"),     m.word("outcome"),    m.whole("duration_ms"),
                                   m.count("tokens"),  m.count("tools"),     m.truth("background")};
     },
     {{text("outcome")}}},
    {"task.finished",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::TaskFinished{m.word("task"), m.word("call"), m.word("outcome"), m.text("summary")};
     },
     {{text("task"), text("outcome")}}},
    {"queue.changed",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::QueueChanged{m.word("operation"), m.text("text")};
     },
     {{text("operation")}}},
    {"usage.updated", usage_updated, {{object("total")}}},
    {"api.failed",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::ApiFailed{m.whole("status"),       m.shown("error"),       m.whole("attempt"),
                               m.whole("max_attempts"), m.whole("retry_in_ms"), m.truth("fatal")};
     },
     {{truth("fatal")}}},
    {"files.snapshotted", files_snapshotted},
    {"line.skipped",
     [](const Members& m, Record&, RelayedEvent&) -> EventBody {
       return event::LineSkipped{m.count("line").value_or(0), m.count("lines").value_or(0),
                                 m.count("bytes").value_or(0), m.word("reason"), m.truth("salvaged")};
     },
     {{number("line"), number("lines"), number("bytes"), text("reason"), truth("salvaged")}}},
};
static_assert(std::size(types) == std::variant_size_v<EventBody>);

/// Members that every event has; `received` is what the keeper of the line wrote beside them.
constexpr std::array<std::string_view, 9> common = {"type",   "host", "stream", "session", "agent",
                                                    "cursor", "time", "turn",   "received"};

/// All members but those, as one object.
std::string others_of(const simdjson::dom::object& object) {
  std::string out = "{";
  for (const auto field : object) {
    if (std::find(common.begin(), common.end(), field.key) != common.end()) continue;
    if (out.size() > 1) out += ',';
    append_string(out, field.key);
    out += ':';
    out += simdjson::minify(field.value);
  }
  out += '}';
  return out;
}

class RelayedDialect final : public Dialect {
 public:
  std::string_view name() const override { return {}; }

  void read(const element& json, std::string_view, Record& out) const override {
    const Members members(json);
    out.type = members.word("type");
    const auto type = std::find_if(std::begin(types), std::end(types),
                                   [&](const Type& each) { return each.name == out.type; });
    out.time = members.word("time");
    out.time_ms = parse_time(out.time).value_or(0);
    if (out.time_ms == 0) out.time = {};
    const std::string_view session = members.word("session"), host = members.word("host");
    if (!session.empty()) out.session = out.keep(std::string(session) + '@' + std::string(host));
    simdjson::dom::object object;
    if (type == std::end(types) || json.get_object().get(object) || !type->fits(json)) {
      out.unknown = out.type != "reset";
      return;
    }
    RelayedEvent relayed;
    relayed.body = type->read(members, out, relayed);
    relayed.turn = static_cast<std::uint32_t>(members.count("turn").value_or(0));
    relayed.agent = members.word("agent");
    relayed.members.json = out.keep(others_of(object));
    out.relayed = std::move(relayed);
  }
};

class RelayedReader final : public RecordReader {
 public:
  std::string_view program() const override { return {}; }
  const Dialect* detect(const dom::element&) const override { return &dialect_; }
  const Dialect* metadata_dialect(const dom::element&) const override { return nullptr; }

 private:
  RelayedDialect dialect_;
};

class RelayedProgram final : public AgentProgram {
 public:
  std::string_view program() const override { return {}; }
  const RecordReader& reader() const override { return relayed_reader(); }
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
