#include "team/payload.hpp"

#include <simdjson.h>

#include <algorithm>
#include <limits>

#include "agents/stream_name.hpp"
#include "base/hex.hpp"
#include "base/json_rewrite.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "base/text_filter.hpp"
#include "core/event_json.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::team {
namespace {

using dom::element;

constexpr std::string_view events = "earshot.v1.", statuses = "earshot.status.v1.",
                           reads = "earshot.read.v1.";

/// The prefix `<root>/[conversations/]<directory>` of a longer name; empty if it has none.
std::string_view project_of(std::string_view stream) {
  std::size_t end = 0;
  const auto component = [&] {
    const std::size_t begin = end == 0 ? 0 : end + 1;
    end = stream.find('/', begin);
    return end == stream.npos ? std::string_view() : stream.substr(begin, end - begin);
  };
  component();  // the root
  if (end == stream.npos) return {};
  const std::string_view first = component();
  if (end != stream.npos && is_directory_prefix(first)) component();
  return end == stream.npos ? std::string_view() : stream.substr(0, end);
}

// Of a status. Names of another length and impossible numbers count as absent.
constexpr std::size_t limits_max = 8, windows_max = 8, name_bytes_max = 128;
constexpr double percent_max = 1000, usd_max = 1e9;

std::string name_of(const element& json, std::string_view key) {
  const std::string_view text = dom::text_of(json, key);
  return std::string(text.size() <= name_bytes_max ? text : std::string_view());
}

/// As format_time() writes it, or empty.
std::string time_of(const element& json, std::string_view key) {
  const auto ms = parse_time(dom::text_of(json, key));
  return ms ? format_time_if_valid(*ms) : std::string();
}

std::optional<status::Done> done_of(const element& json) {
  const auto member = dom::member(json, "done");
  if (!member) return std::nullopt;
  constexpr auto number_max = std::numeric_limits<std::uint32_t>::max();
  const auto turn = dom::count_of(*member, "turn"), turns = dom::count_of(*member, "turns");
  if (!turn || !turns || *turn > number_max || *turns > number_max) return std::nullopt;
  status::Done done;
  done.outcome = name_of(*member, "outcome");
  done.turn = static_cast<std::uint32_t>(*turn), done.turns = static_cast<std::uint32_t>(*turns);
  done.prompted = time_of(*member, "prompted");
  const auto ms_of = [&](std::string_view key) -> std::optional<std::int64_t> {
    const auto count = dom::count_of(*member, key);
    if (!count || *count > static_cast<std::uint64_t>(duration_max.count())) return std::nullopt;
    return static_cast<std::int64_t>(*count);
  };
  done.duration_ms = ms_of("duration_ms");
  done.waited_ms = ms_of("waited_ms").value_or(0);
  if (const auto headless = dom::member(*member, "headless"))
    if (bool is_headless = false; !headless->get(is_headless)) done.is_headless = is_headless;
  return done;
}

std::vector<std::string> texts_of(const element& json, std::string_view key) {
  std::vector<std::string> texts;
  simdjson::dom::array list;
  if (const auto member = dom::member(json, key); member && !member->get_array().get(list))
    for (const element each : list) texts.emplace_back(dom::as_text(each));
  return texts;
}

status::Status status_of(const element& json) {
  const auto text = [&](std::string_view key) { return std::string(dom::text_of(json, key)); };
  return {.state = text("state"),
          .reason = text("reason"),
          .detail = text("detail"),
          .source = text("source"),
          .since = text("since"),
          .request = text("request"),
          .agent = text("agent"),
          .title = text("title"),
          .projects = texts_of(json, "projects"),
          .done = done_of(json)};
}

std::optional<double> number_of(const element& json, std::string_view key, double max) {
  double number = 0;
  const auto member = dom::member(json, key);
  if (!member || member->get(number) || !(number >= 0 && number <= max)) return std::nullopt;
  return number;
}

std::vector<LimitWindow> windows_of(const element& limit) {
  std::vector<LimitWindow> windows;
  simdjson::dom::array list;
  const auto member = dom::member(limit, "windows");
  if (!member || member->get_array().get(list)) return windows;
  for (const element each : list) {
    if (windows.size() == windows_max) break;
    LimitWindow window{name_of(each, "name"), number_of(each, "used_percent", percent_max), std::nullopt,
                       time_of(each, "resets_at")};
    if (const auto minutes = number_of(each, "window_minutes", 1e9))
      window.window_minutes = static_cast<std::int64_t>(*minutes);
    if (!window.name.empty()) windows.push_back(std::move(window));
  }
  return windows;
}

std::vector<LimitState> limits_of(const element& json) {
  std::vector<LimitState> limits;
  simdjson::dom::array list;
  const auto member = dom::member(json, "limits");
  if (!member || member->get_array().get(list)) return limits;
  for (const element each : list) {
    if (limits.size() == limits_max) break;
    limits.push_back({time_of(each, "time"), name_of(each, "limit"), name_of(each, "plan"),
                      name_of(each, "reached"), windows_of(each)});
  }
  return limits;
}

std::optional<std::int64_t> milliseconds_of(const std::optional<element>& json, std::string_view key) {
  constexpr std::int64_t years = std::int64_t{100} * 365 * 24 * 3600 * 1000;
  const auto ms = json ? dom::int_of(*json, key) : std::nullopt;
  return ms && *ms >= 0 && *ms <= years ? ms : std::nullopt;
}

/// Absent unless all are stated.
std::optional<TimeSpent> times_of(const element& json) {
  const auto times = dom::member(json, "times");
  const auto turn = times ? dom::member(*times, "turn") : std::nullopt;
  const auto waited = milliseconds_of(times, "waited_ms"), worked = milliseconds_of(times, "worked_ms");
  const auto idle = milliseconds_of(times, "idle_ms");
  const auto turn_waited = milliseconds_of(turn, "waited_ms"),
             turn_worked = milliseconds_of(turn, "worked_ms");
  if (!waited || !worked || !idle || !turn_waited || !turn_worked) return std::nullopt;
  return TimeSpent{*waited, *worked, *idle, *turn_waited, *turn_worked};
}

serve::ReportedNumbers numbers_of(const element& json) {
  serve::ReportedNumbers numbers;
  numbers.limits = limits_of(json);
  numbers.times = times_of(json);
  const auto usage = dom::member(json, "usage");
  if (!usage) return numbers;
  numbers.context_window = dom::count_of(*usage, "context_window");
  const std::string source = name_of(*usage, "cost_source");
  constexpr std::string_view sources[] = {"recorded", "estimated", "mixed"};
  if (std::find(std::begin(sources), std::end(sources), source) == std::end(sources)) return numbers;
  numbers.cost_usd = number_of(*usage, "cost_usd", usd_max);
  if (numbers.cost_usd) numbers.cost_source = source;
  return numbers;
}

void append_numbers(JsonWriter& json, const serve::ReportedNumbers& numbers) {
  if (numbers.context_window || numbers.cost_usd) {
    json.key("usage").begin_object().member("context_window", numbers.context_window);
    if (numbers.cost_usd)
      json.member("cost_usd", *numbers.cost_usd).member_if_any("cost_source", numbers.cost_source);
    json.end_object();
  }
  if (numbers.times) serve::append_times_member(json, *numbers.times);
  if (numbers.limits.empty()) return;
  json.key("limits").array(numbers.limits, [&](const LimitState& each) {
    json.begin_object().member_if_any("time", each.time).member_if_any("limit", each.limit);
    json.member_if_any("plan", each.plan).member_if_any("reached", each.reached);
    append_windows(json.key("windows").next(), each.windows, nullptr);
    json.end_object();
  });
}

/// Appends the first elements of a list that fit.
void append_list_prefix(std::string& out, const simdjson::dom::array& list, std::size_t bytes_max) {
  const std::size_t begin = out.size();
  out += '[';
  for (const element each : list) {
    const std::string text = simdjson::minify(each);
    if (out.size() - begin + text.size() + 2 > bytes_max) break;
    if (out.back() != '[') out += ',';
    out += text;
  }
  out += ']';
}

// Adds what the event's own `truncated` has for the member `name`, and, if `nested`, for texts in it.
void add_truncated(TruncatedPaths& truncated, const element& event, std::string_view name, bool nested) {
  simdjson::dom::object paths;
  const auto member = dom::member(event, "truncated");
  if (!member || member->get_object().get(paths)) return;
  std::string path;
  append_path_name(path, name);
  for (const auto each : paths) {
    const bool below =
        each.key.size() > path.size() && each.key.starts_with(path) && each.key[path.size()] == '/';
    if (each.key != path && !(nested && below)) continue;
    if (const auto bytes = dom::as_count(each.value))
      truncated.add(nested ? each.key : std::string_view{}, *bytes);
  }
}

}  // namespace

bool is_host(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= host_bytes_max && std::all_of(name.begin(), name.end(), fits);
}

std::string main_subject(std::string_view host, std::string_view stream) {
  const std::string_view project = project_of(stream);
  const std::string_view rest = project.empty() ? project : stream.substr(project.size() + 1);
  if (rest.empty() || rest.find('/') != rest.npos) return {};
  return std::string(events) + escape_token(host) + '.' + escape_token(project) + '.' + escape_token(rest);
}
std::string event_subject(std::string_view host, std::string_view session, std::string_view stream) {
  const std::string main = main_subject(host, stream);
  if (!main.empty() && stream.substr(stream.rfind('/') + 1) == session) return main;
  return std::string(events) + escape_token(host) + '.' + escape_token(project_of(stream)) + '.' +
         escape_token(session) + '.' + escape_token(stream);
}
bool is_subject_of(std::string_view subject, std::string_view host, std::string_view stream) {
  if (!subject.empty() && subject == main_subject(host, stream)) return true;
  const auto tokens = tokens_of(subject);
  return tokens && tokens->host == escape_token(host) && tokens->stream == escape_token(stream);
}
std::string all_events() { return std::string(events) + '>'; }
std::string events_of(std::string_view host) { return std::string(events) + escape_token(host) + ".>"; }
std::string status_subject(std::string_view host, std::string_view session) {
  return std::string(statuses) + escape_token(host) + '.' + escape_token(session);
}
std::string heartbeat_subject(std::string_view host) { return std::string(statuses) + escape_token(host); }
std::string all_statuses() { return std::string(statuses) + '>'; }
std::string read_subject(std::string_view host) { return std::string(reads) + escape_token(host); }

std::optional<SubjectTokens> tokens_of(std::string_view subject) {
  if (!subject.starts_with(events)) return {};
  subject.remove_prefix(events.size());
  std::string_view tokens[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto dot = subject.find('.');
    tokens[i] = subject.substr(0, dot);
    if (tokens[i].empty() || (dot == subject.npos) != (i == 3)) return {};
    if (dot != subject.npos) subject.remove_prefix(dot + 1);
  }
  return SubjectTokens{tokens[0], tokens[3]};
}

std::string event_source(std::string_view host, std::string_view stream) {
  constexpr std::string_view hex_digits = "0123456789ABCDEF";
  constexpr std::size_t bytes_max = 1024;
  const std::string authority = "earshot://" + std::string(host);
  std::string uri = authority;
  if (!stream.empty()) uri += '/';
  for (const char c : stream) {
    const bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (is_alphanumeric || std::string_view("-._~/").find(c) != std::string_view::npos) {
      uri += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', hex_digits[byte >> 4], hex_digits[byte & 15]};
    }
  }
  return uri.size() <= bytes_max ? uri : authority + '/' + escape_token(stream);
}

std::string message_id(std::string_view host, std::string_view stream, std::string_view cursor,
                       std::string_view history) {
  std::string id(host);
  id += '/';
  id += stream;
  id += '/';
  id += cursor;
  if (!history.empty()) id.append(1, '#').append(history);
  return id;
}

std::optional<IdParts> parts_of_id(std::string_view host, std::string_view id) {
  if (!id.starts_with(host) || id.size() <= host.size() || id[host.size()] != '/') return {};
  id.remove_prefix(host.size() + 1);
  const auto slash = id.rfind('/');
  if (slash == id.npos) return {};
  const std::string_view cursor = id.substr(slash + 1);
  const auto hash = cursor.find('#');
  return IdParts{id.substr(0, slash), cursor.substr(0, hash),
                 hash == cursor.npos ? std::string_view() : cursor.substr(hash + 1)};
}

// --- Payloads ---

bool is_common_member(std::string_view key) {
  constexpr std::string_view common_members[] = {"type",  "host",   "stream", "session",
                                                 "agent", "cursor", "time",   "turn"};
  return std::find(std::begin(common_members), std::end(common_members), key) != std::end(common_members);
}

std::optional<Frame> read_frame(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  element json;
  if (parser.parse(text.data(), text.size(), true).get(json) || !json.is_object()) return {};
  Frame frame;
  struct Field {
    std::string_view key;
    std::string Frame::*member;
  };
  constexpr Field fields[] = {{"type", &Frame::type},
                              {"host", &Frame::host},
                              {"stream", &Frame::stream},
                              {"session", &Frame::session},
                              {"time", &Frame::time},
                              {"id", &Frame::id},
                              {"reason", &Frame::reason},
                              {"code", &Frame::code},
                              {"message", &Frame::message},
                              {"owner", &Frame::owner},
                              {"instance", &Frame::instance},
                              {"from", &Frame::from},
                              {"to", &Frame::to}};
  for (const Field& each : fields) frame.*each.member = dom::text_of(json, each.key);
  if (frame.type.empty()) return {};
  if (const std::string_view cursor = dom::text_of(json, "cursor"); !cursor.empty())
    frame.cursor = parse_cursor(cursor);
  frame.cursors = texts_of(json, "cursors");
  if (frame.type == "status") {
    frame.status = status_of(json);
    frame.numbers = numbers_of(json);
  }
  if (const auto status = dom::member(json, "status"); frame.type == "session" && status)
    frame.status = status_of(*status);
  return frame;
}

bool is_last_part(std::string_view payload) {
  simdjson::dom::parser parser;
  element json;
  if (parser.parse(payload.data(), payload.size(), true).get(json)) return true;
  return dom::count_of(json, "part") == dom::count_of(json, "parts");
}

std::string shorten_event(std::string_view payload, std::size_t bytes_max) {
  if (payload.size() <= bytes_max) return std::string(payload);
  simdjson::dom::parser parser;
  element json;
  simdjson::dom::object object;
  if (parser.parse(payload.data(), payload.size(), true).get(json) || json.get_object().get(object))
    return {};
  // The longest members shrink until the event fits, by half each round; in the last round only the common
  // ones remain.
  constexpr std::size_t member_bytes_min = 64;
  constexpr std::size_t shown_bytes = 4096;
  for (std::size_t member_bytes_max = 64 << 10;; member_bytes_max /= 2) {
    const bool common_only = member_bytes_max < member_bytes_min;
    TruncatedPaths truncated;
    std::string out = "{";
    for (const auto field : object) {
      if (field.key == "truncated" || (common_only && !is_common_member(field.key))) continue;
      if (out.size() > 1) out += ',';
      append_json_string(out, field.key);
      out += ':';
      const std::string value = simdjson::minify(field.value);
      simdjson::dom::array list;
      if (common_only || value.size() <= member_bytes_max) {
        add_truncated(truncated, json, field.key, true);
        out += value;
      } else if (!field.value.get_array().get(list)) {
        add_truncated(truncated, json, field.key, true);
        append_list_prefix(out, list, member_bytes_max);
      } else {
        const std::size_t text_bytes_max = std::min(shown_bytes, member_bytes_max);
        const TruncatedPaths::Scope scope(truncated, field.key);
        const bool is_text = field.value.is_string();
        append_json_string(out, cut_utf8(is_text ? dom::as_text(field.value) : value, text_bytes_max));
        add_truncated(truncated, json, field.key, false);
        truncated.add({}, is_text ? dom::as_text(field.value).size() : value.size());
      }
    }
    truncated.append_member(out);
    out += '}';
    if (out.size() <= bytes_max || common_only) return out;
  }
}

std::string json_object(std::initializer_list<JsonMember> members) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const JsonMember& each : members)
    if (each.json != R"("")") json.raw_member(each.key, each.json);
  json.end_object();
  return out;
}

std::string reset_payload(const Frame& frame, std::string_view last) {
  return json_object({{"type", "reset"},
                      {"host", frame.host},
                      {"stream", frame.stream},
                      {"session", frame.session},
                      {"reason", frame.reason.empty() ? "rewritten" : frame.reason},
                      {"last", last}});
}

std::string removed_payload(const Frame& frame, std::string_view session) {
  return json_object(
      {{"type", "stream.removed"}, {"host", frame.host}, {"stream", frame.stream}, {"session", session}});
}

std::string renamed_payload(std::string_view host, std::string_view session, std::string_view from,
                            std::string_view to) {
  return json_object(
      {{"type", "stream.renamed"}, {"host", host}, {"stream", to}, {"session", session}, {"from", from}});
}

std::string status_payload(std::string_view host, std::string_view session, const status::Status& status,
                           const serve::ReportedNumbers& numbers) {
  const auto payload = [&](const serve::ReportedNumbers& shown) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("type", "status").member_if_any("host", host);
    json.member_if_any("session", session).member_if_any("state", status.state);
    json.member_if_any("reason", status.reason).member_if_any("detail", status.detail);
    json.member_if_any("title", status.title).member_if_any("source", status.source);
    json.member_if_any("since", status.since).member_if_any("request", status.request);
    json.member_if_any("agent", status.agent);
    if (!status.projects.empty()) json.array_member("projects", status.projects);
    if (status.done) serve::append_done(json.key("done"), *status.done);
    append_numbers(json, shown);
    json.end_object();
    return out;
  };
  const std::string whole = payload(numbers);
  if (whole.size() <= status_bytes_max) return whole;
  if (status.projects.empty() || status.projects.front() == unknown_project) return payload({});
  status::Status hidden = status;
  hidden.projects = {std::string(unknown_project)};
  return status_payload(host, session, hidden, numbers);
}

std::string heartbeat_payload(const Heartbeat& heartbeat) {
  return json_object({{"type", "host"},
                      {"host", heartbeat.host},
                      {"owner", heartbeat.owner},
                      {"instance", heartbeat.instance},
                      {"time", heartbeat.time},
                      {"beat_ms", heartbeat_ms}});
}

std::string owner_id(std::uint64_t hash_key) {
  PrefixHash hash(hash_key);
  hash.add_line(std::string_view("who publishes\n"));  // constant: it is part of published ids
  std::string id;
  append_hex(id, hash.value());
  return id;
}

}  // namespace earshot::team
