// One event of another daemon per line, as published (protocol/README.md):
//   {"type":"tool.invoked","host":"dev7","stream":…,"session":…,"cursor":…,"time":…,"turn":3,"call":…,…}
// Events are emitted unchanged, with members that this version does not define. The defined fields are read
// for the stream state and the meta view. Other types (`reset`, types of later versions) are counted only.
#include "team/event_store.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "core/event_fields.hpp"

namespace earshot {
namespace {

constexpr std::size_t files_max = 4096;  // of `files_count`; a larger count is reduced to it
constexpr std::size_t windows_max = 16;  // of a limit; further ones are left out

Usage usage_of(const Value& json) {
  const auto count = [&](std::string_view key) { return json.count_of(key).value_or(0); };
  return {count("input"), count("output"), count("cache_read"), count("cache_write")};
}

Media media_of(const Value& json) {
  return {json.text_of("kind"), json.text_of("media_type"), json.count_of("bytes").value_or(0)};
}

std::vector<Todo> todos_of(const Value& list) {
  std::vector<Todo> todos;
  for (const Value each : list.items()) {
    const auto text = [&](std::string_view key) { return std::string(each.text_of(key)); };
    todos.push_back({text("id"), text("content"), text("status"), text("active_form"), text("priority")});
  }
  return todos;
}

std::vector<LimitWindow> windows_of(const Value& list) {
  std::vector<LimitWindow> windows;
  for (const Value each : list.items()) {
    if (windows.size() >= windows_max) break;
    LimitWindow& window = windows.emplace_back();
    window.name = each.text_of("name");
    window.used_percent = each.member("used_percent").as_double();
    window.window_minutes = each.int_of("window_minutes");
    window.resets_at = each.text_of("resets_at");
  }
  return windows;
}

// Reads a member of each type that an event's field may have. A member of another JSON type is absent.
void read_value(const Value& json, std::string_view& value) { value = json.as_text(); }
void read_value(const Value& json, OptionalText& value) { value = json.as_optional_text(); }
void read_value(const Value& json, std::optional<LazyText>& value) { value = json.as_optional_text(); }
void read_value(const Value& json, bool& value) { value = json.as_bool(); }
void read_value(const Value& json, std::uint64_t& value) { value = json.as_count().value_or(0); }
void read_value(const Value& json, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(json.as_count().value_or(0));
}
void read_value(const Value& json, std::optional<std::int64_t>& value) { value = json.as_int(); }
void read_value(const Value& json, std::optional<std::uint64_t>& value) { value = json.as_count(); }
void read_value(const Value& json, std::optional<double>& value) { value = json.as_double(); }
void read_value(const Value& json, Usage& value) { value = usage_of(json); }
void read_value(const Value& json, std::optional<Media>& value) {
  if (json.is_object()) value = media_of(json);
}
void read_value(const Value& json, std::vector<Media>& values) {
  for (const Value each : json.items()) values.push_back(media_of(each));
}

// Reads the fields of one event type. False: a required field is missing or of another type, so that clients
// could not use the event.
class FieldReader {
 public:
  FieldReader(const Value& json, RelayedEvent& event) : json_(json), event_(event) {}

  template <class Field, class Member>
  bool read(const Field& field, Member& member) {
    if constexpr (Field::kind == FieldKind::usage_inline) {
      if (json_.count_of("input")) member = usage_of(json_);
      return true;
    } else {
      const Value json = json_.member(field.key.name());
      if (field.is_required && !has_type<Field::kind>(json)) return false;
      if constexpr (Field::kind == FieldKind::files) {
        read_files(json, member);
      } else if constexpr (Field::kind == FieldKind::todos) {
        event_.todos = todos_of(json);
      } else if constexpr (Field::kind == FieldKind::windows) {
        event_.windows = windows_of(json);
      } else if constexpr (Field::kind == FieldKind::input) {
        member.json = json.raw();
      } else {
        if (json) read_value(json, member);
      }
      return true;
    }
  }

 private:
  template <FieldKind kind>
  static bool has_type(const Value& json) {
    if constexpr (kind == FieldKind::number) return json.as_double().has_value();
    if constexpr (kind == FieldKind::flag) return json.is_bool();
    if constexpr (kind == FieldKind::usage) return json.is_object();
    if constexpr (kind == FieldKind::todos || kind == FieldKind::windows) return json.is_array();
    return json.is_string();
  }

  // The meta view has the number of files only.
  void read_files(const Value& json, std::vector<std::string_view>& files) {
    if (json.is_array()) {
      for (const Value each : json.items()) files.push_back(each.as_text());
    } else {
      files.resize(std::min<std::uint64_t>(json_.count_of("files_count").value_or(0), files_max));
    }
  }

  const Value& json_;
  RelayedEvent& event_;
};

template <class Body>
bool read_body(const Value& json, RelayedEvent& event) {
  Body& body = event.body.emplace<Body>();
  FieldReader reader(json, event);
  return std::apply([&](const auto&... fields) { return (reader.read(fields, body.*fields.member) && ...); },
                    EventTable<Body>::fields);
}

struct Type {
  std::string_view name;
  bool (*read)(const Value&, RelayedEvent&);
};
constexpr auto types = []<std::size_t... index>(std::index_sequence<index...>) {
  return std::array{Type{EventTable<std::variant_alternative_t<index, EventBody>>::type,
                         read_body<std::variant_alternative_t<index, EventBody>>}...};
}
(std::make_index_sequence<std::variant_size_v<EventBody>>());

// Members that are not copied: the common ones, `received` (written by the event store) and `truncated`.
constexpr std::array<std::string_view, 10> not_copied = {"type",   "host", "stream", "session",  "agent",
                                                         "cursor", "time", "turn",   "received", "truncated"};

std::string other_members(const Value& json) {
  std::string out = "{";
  for (const Member& each : json.members()) {
    if (std::find(not_copied.begin(), not_copied.end(), each.key) != not_copied.end()) continue;
    if (out.size() > 1) out += ',';
    append_json_string(out, each.key);
    out.append(":").append(each.value.raw());
  }
  out += '}';
  return out;
}

std::vector<TruncatedPath> truncated_of(const Value& json) {
  TruncatedPaths paths;
  for (const Member& each : json.member("truncated").members())
    if (const auto bytes = each.value.as_count()) paths.add(each.key, *bytes);
  return paths.list();
}

// Applies an event to the state of its stream.
class StateUpdate {
 public:
  /// `is_agent_known`: the events do not name the stream's agent. `counted`: the total that was counted.
  StateUpdate(Assembler& to, const RelayedEvent& relayed, bool is_agent_known, Usage& counted)
      : to_(to),
        state_(to.mutable_state()),
        relayed_(relayed),
        is_agent_known_(is_agent_known),
        counted_(counted) {}

  void operator()(const event::SessionStarted& e) {
    take_agent();
    state_.started = true;
    set(state_.program, e.program), set(state_.dialect, e.dialect), set(state_.version, e.version),
        set(state_.cwd, e.cwd);
    set(state_.git_branch, e.git_branch), set(state_.project, e.project), set(state_.title, e.title);
    set(state_.continues, e.continues), set(state_.mode, e.mode);
    set(state_.permission_mode, e.permission_mode), set(state_.sandbox, e.sandbox);
    set(state_.source, e.source), set(state_.originator, e.originator);
    set(state_.parent, e.parent), set(state_.agent_type, e.agent_type);
    if (state_.project.empty()) state_.project = state_.cwd;
  }
  void operator()(const event::SessionUpdated& e) {
    set(state_.title, e.title), set(state_.cwd, e.cwd), set(state_.git_branch, e.git_branch);
    set(state_.model, e.model), set(state_.version, e.version), set(state_.mode, e.mode);
    set(state_.permission_mode, e.permission_mode), set(state_.sandbox, e.sandbox);
    if (state_.project.empty()) state_.project = state_.cwd;
  }
  void operator()(const event::TurnStarted& e) {
    take_agent();
    state_.turn_open = true;
    state_.turn_started = to_.time();
    state_.turn_started_ms = to_.time_ms();
    state_.times.start_turn(to_.time_ms());
    state_.turn_prompt = to_.preview_source(e.prompt.value_or(""));
    state_.turn_prompt_truncated = bytes_of("prompt", e.prompt);
    state_.tools.clear();
  }
  void operator()(const event::TurnFinished& e) {
    state_.turn_open = false;
    state_.last_outcome = e.outcome;
    state_.last_finished = to_.time();
    state_.times.set_turn_waited(e.waited_ms);
    state_.times.finish_turn(to_.time_ms());
  }
  void operator()(const event::MessageAdded& e) {
    if (e.role != "assistant" || e.kind != "text" || !to_.is_own_chain()) return;
    state_.last_text = to_.preview_source(e.text.value_or(""));
    state_.last_text_truncated = bytes_of("text", e.text);
  }
  void operator()(const event::ToolInvoked& e) {
    OpenTool open;
    open.call = Assembler::short_id(e.call), open.tool = to_.short_text(e.tool);
    if (!to_.is_own_chain()) open.agent = Assembler::short_id(relayed_.agent);
    to_.list_tool(std::move(open), e.input);
  }
  void operator()(const event::ToolFinished& e) {
    const std::string_view call = Assembler::short_id(e.call);
    std::erase_if(state_.tools, [&](const OpenTool& one) { return one.call == call; });
    name_agent(state_, call, Assembler::short_id(e.background));
  }
  void operator()(const event::TodoUpdated& e) {
    if (!to_.is_own_chain()) return;
    const std::span<const Todo> kept = std::span(e.todos).first(to_.count_kept(e.todos));
    state_.todos.assign(kept.begin(), kept.end());
    state_.todos_time = to_.time();
  }
  void operator()(const event::AgentStarted& e) {
    RunningAgent agent;
    agent.call = Assembler::short_id(e.call), agent.subagent = to_.short_text(e.subagent);
    agent.agent_type = to_.short_text(e.agent_type), agent.description = to_.preview_source(e.description);
    agent.background = e.background;
    to_.add_agent(std::move(agent));
  }
  void operator()(const event::AgentFinished& e) {
    const std::string_view call = Assembler::short_id(e.call);
    const std::string_view subagent = cut_utf8(e.subagent, Assembler::text_bytes_max);
    const auto named = std::find_if(state_.agents.begin(), state_.agents.end(), [&](const RunningAgent& one) {
      return !subagent.empty() && one.subagent == subagent;
    });
    if (named != state_.agents.end())
      state_.agents.erase(named);
    else if (!call.empty())
      std::erase_if(state_.agents, [&](const RunningAgent& one) { return one.call == call; });
  }
  void operator()(const event::UsageUpdated& e) {
    add_by_model(e);
    state_.usage = e.total;
    if (e.cost_usd) state_.cost_usd = e.cost_usd;
    if (!to_.is_own_chain()) return;
    if (e.context_window) state_.context_window = e.context_window;
    if (e.context_tokens)
      state_.context_tokens = *e.context_tokens;
    else if (e.of_message)
      state_.context_tokens = e.of_message->input + e.of_message->cache_read + e.of_message->cache_write;
  }
  void operator()(const event::CompactionFinished& e) {
    if (to_.is_own_chain()) state_.compact(e);
  }
  void operator()(const event::LimitsUpdated& e) { state_.set_limits(e, to_.time()); }
  template <class Other>
  void operator()(const Other&) {}  // changes no state

 private:
  // Of an event that belongs to the stream's own chain.
  void take_agent() {
    if (!is_agent_known_) to_.set_own_agent(relayed_.agent);
  }
  void set(std::string& field, std::string_view value) {
    if (!value.empty()) field = to_.short_text(value);
  }
  void set(std::string& field, const OptionalText& value) {
    if (value) field = to_.short_text(*value);
  }
  // The size of a text before the other daemon cut it.
  std::uint64_t bytes_of(std::string_view path, const OptionalText& text) const {
    for (const TruncatedPath& each : relayed_.truncated)
      if (each.path == path) return each.bytes;
    return text ? text->size() : 0;
  }
  // A cost that grew covers what the event adds; one without a message is a total.
  void add_by_model(const event::UsageUpdated& e) {
    const std::string_view model = e.model.empty() ? std::string_view(state_.model) : e.model;
    const bool has_cost = e.cost_usd && e.cost_usd != state_.cost_usd;
    Usage more, earlier;  // before the first event that is known here
    bool fell = false;
    for (const auto count : {&Usage::input, &Usage::output, &Usage::cache_read, &Usage::cache_write}) {
      fell |= e.total.*count < counted_.*count;
      more.*count = std::max(e.total.*count, counted_.*count) - counted_.*count;
      if (!e.of_message || counted_ != Usage{}) continue;
      earlier.*count = more.*count - std::min(more.*count, (*e.of_message).*count);
      more.*count -= earlier.*count;
    }
    // The program's total began anew; another one that falls was written late (codex::TokenCounts).
    if (fell && e.of_message) more = *e.of_message == e.total ? *e.of_message : Usage{};
    if (!fell || more != Usage{} || !e.of_message) counted_ = e.total;
    StreamUsage& used = state_.used;
    if (earlier != Usage{}) used.add_earlier(model, earlier, has_cost);
    if (more != Usage{} && !e.of_message) used.mark_sum();
    std::optional<double> usd;
    if (has_cost) usd = e.of_message ? std::max(0.0, *e.cost_usd - state_.cost_usd.value_or(0)) : 0;
    if (more != Usage{} || usd.value_or(0) > 0) used.add(0, model, more, usd);
    if (!has_cost || e.of_message) return;
    used.cover_all();
    state_.cost_total_ms = to_.time_ms() ? to_.time_ms() : state_.last_activity_ms;
  }

  Assembler& to_;
  StreamState& state_;
  const RelayedEvent& relayed_;
  const bool is_agent_known_;
  Usage& counted_;
};

class RelayedReader final : public RecordReader {
 public:
  void read(const Value& json, NestedJson&, Assembler& to) override {
    const std::string_view name = json.text_of("type");
    RelayedEvent relayed;
    const auto type =
        std::find_if(types.begin(), types.end(), [&](const Type& each) { return each.name == name; });
    const bool is_known = type != types.end() && type->read(json, relayed);
    to.begin_record(json.text_of("time"));
    to.count_type(name, !is_known && name != "reset");
    const std::string_view session = json.text_of("session");
    if (to.recorded_session().empty() && !session.empty())
      to.set_recorded_session(std::string(session) + '@' + std::string(json.text_of("host")));
    if (!is_known) return;
    const std::string members = other_members(json);
    relayed.turn = static_cast<std::uint32_t>(json.count_of("turn").value_or(0));
    relayed.agent = json.text_of("agent");
    relayed.members.json = members;
    relayed.truncated = truncated_of(json);
    emit(relayed, to);
  }
  std::size_t memory_bytes() const override { return sizeof *this; }

 private:
  void emit(const RelayedEvent& relayed, Assembler& to) {
    if (!is_agent_known_) is_agent_known_ = !to.own_agent().empty();
    to.set_agent(Assembler::short_id(relayed.agent));
    to.mutable_state().turn = relayed.turn;
    EventBody body = relayed.body;
    if (auto* list = std::get_if<event::TodoUpdated>(&body)) list->todos = relayed.todos;
    if (auto* limits = std::get_if<event::LimitsUpdated>(&body)) limits->windows = relayed.windows;
    std::visit(StateUpdate(to, relayed, *is_agent_known_, counted_), body);
    to.set_previews_raw();
    to.emit_relayed(std::move(body), relayed);
  }

  std::optional<bool> is_agent_known_;  // by the path; absent before the first event
  Usage counted_;                       // the total that was counted last
};

class RelayedFormat final : public RecordFormat {
 public:
  std::string_view program() const override { return {}; }
  const Dialect* detect(const Value&) const override {
    static constexpr Dialect dialect{};
    return &dialect;
  }
  std::unique_ptr<RecordReader> make_reader(bool) const override { return std::make_unique<RelayedReader>(); }
};

class RelayedProgram final : public AgentProgram {
 public:
  std::string_view program() const override { return {}; }
  const RecordFormat& format() const override { return relayed_format(); }
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

const RecordFormat& relayed_format() {
  static const RelayedFormat format;
  return format;
}

}  // namespace earshot
