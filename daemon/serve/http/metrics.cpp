#include "serve/http/metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/json_writer.hpp"

namespace earshot::serve {
namespace {

using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string text_of(std::uint64_t number) { return std::to_string(number); }
std::string text_of(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

/// One metric: HELP and TYPE precede the first sample; without a sample they are omitted.
class Family {
 public:
  Family(std::string& out, std::string_view name, std::string_view help)
      : out_(out), name_(name), help_(help) {}

  template <class Number>
  Family& sample(Number number, Pairs labels = {}) {
    if (!begun_) {
      out_.append("# HELP ").append(name_).append(" ").append(help_).append("\n");
      out_.append("# TYPE ").append(name_).append(" ").append(name_.ends_with("_total") ? "counter\n"
                                                                                        : "gauge\n");
    }
    begun_ = true;
    out_ += name_;
    if (labels.size() > 0) {
      char before = '{';
      for (const auto& [label, value] : labels) {
        out_ += before;
        out_.append(label).append("=\"").append(escaped(value)).append("\"");
        before = ',';
      }
      out_ += '}';
    }
    out_.append(" ").append(text_of(number)).append("\n");
    return *this;
  }
  template <class Number>
  Family& sample(const std::optional<Number>& number) {
    return number ? sample(*number) : *this;
  }
  void each(std::string_view label, const Labelled& numbers) {
    for (const auto& [value, number] : numbers) sample(number, {{label, value}});
  }

 private:
  std::string& out_;
  std::string_view name_, help_;
  bool begun_ = false;
};

/// Names of counters end in `_total`; other metrics are gauges.
class Page {
 public:
  Family family(std::string_view name, std::string_view help) { return {text, name, help}; }
  void add(std::string_view name, std::string_view help, const auto& value) {
    family(name, help).sample(value);
  }
  std::string text;
};

void add_process(Page& page, const ProcessMetrics& process) {
  page.add("process_cpu_seconds_total", "CPU time used, in seconds.", process.cpu_seconds);
  page.add("process_start_time_seconds", "When the process started, since 1970, in seconds.",
           process.start_time_seconds);
  page.add("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  page.add("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  page.add("process_open_fds", "Open file descriptors.", process.open_fds);
  page.add("process_max_fds", "Limit of open file descriptors.", process.max_fds);
  page.add("process_threads", "Threads of the process.", process.threads);
}

void add_counters(Page& page, const Counters& counters) {
  page.add("earshot_connections_accepted_total", "Connections since the start.", counters.connections);
  page.add("earshot_received_bytes_total", "Bytes from clients.", counters.bytes_in);
  page.add("earshot_sent_bytes_total", "Bytes to clients.", counters.bytes_out);
  page.add("earshot_messages_total", "WebSocket messages from clients.", counters.messages);
  auto answers = page.family("earshot_http_answers_total", "HTTP responses, by status.");
  for (const auto& [status, number] : counters.answers)
    answers.sample(number, {{"code", std::to_string(status)}});
  auto refusals = page.family("earshot_refusals_total", "Refused clients and requests, by reason.");
  for (std::size_t i = 0; i < refusal_names.size(); ++i)
    refusals.sample(counters.refusals[i], {{"reason", refusal_names[i]}});
  auto endings = page.family("earshot_endings_total", "Connections closed by the daemon, by reason.");
  for (std::size_t i = 0; i < ending_names.size(); ++i)
    endings.sample(counters.endings[i], {{"reason", ending_names[i]}});
  page.add("earshot_lagged_total", "Times that a subscriber fell behind.", counters.lagged);
}

void add_server(Page& page, const Metrics& metrics) {
  auto connections = page.family("earshot_connections", "Current connections, by kind and listener.");
  for (const auto& one : metrics.connections)
    connections.sample(one.number, {{"kind", one.kind}, {"via", one.via}});
  page.family("earshot_subscribers", "Connections that have such a subscription.")
      .sample(metrics.event_subscribers, {{"deliver", "events"}})
      .sample(metrics.state_subscribers, {{"deliver", "state"}});
  page.add("earshot_log_bytes", "Memory of the live log.", metrics.log_bytes);
  page.add("earshot_log_max_bytes", "Limit of the live log; above it the oldest frames are evicted.",
           metrics.log_bytes_max);
  page.add("earshot_log_frames_total", "Frames that went into the live log.", metrics.log_frames);
  page.add("earshot_response_bytes", "Memory of HTTP responses that clients have not read.",
           metrics.response_bytes);
  page.add("earshot_codes_outstanding", "Valid one-time codes.", metrics.codes_outstanding);
  page.family("earshot_sessions", "Known sessions, by state.").each("state", metrics.sessions);
  page.add("earshot_catch_ups_total", "Streams that clients resumed.", metrics.catch_ups);
  page.add("earshot_catch_up_folds", "Transcripts being read for resuming clients.", metrics.catch_up_folds);
  page.add("earshot_catch_up_chunk_bytes", "Memory of events read for them and not sent.",
           metrics.catch_up_chunk_bytes);
  page.add("earshot_catch_up_chunk_max_bytes", "Limit of that memory.", metrics.catch_up_chunk_bytes_max);
  page.family("earshot_events_total", "Events, by type.").each("type", metrics.events);
}

void add_tail(Page& page, const Metrics& metrics) {
  page.add("earshot_tail_read_bytes_total", "Bytes read from transcripts.", metrics.tail_bytes);
  page.add("earshot_tail_looks_total", "Checks of transcripts for changes.", metrics.tail_looks);
  page.add("earshot_tail_resets_total", "Transcripts that were found to have a new history.",
           metrics.tail_resets);
  page.add("earshot_tail_verifications_total", "Verifications of complete prefixes.",
           metrics.tail_verifications);
  page.add("earshot_tail_events_total", "Events read from transcripts.", metrics.tail_events);
  page.add("earshot_tail_dropped",
           "Calls, agents, results, texts and lists of followed transcripts that are beyond a limit.",
           metrics.tail_dropped);
  page.add("earshot_tail_pending_bytes", "Bytes of incomplete lines.", metrics.pending_bytes);
  page.add("earshot_tail_open_files", "Open transcripts.", metrics.open_files);
  page.add("earshot_tail_known_files", "Known transcripts.", metrics.known_files);
  page.add("earshot_tail_directories", "Watched directories.", metrics.directories);
  page.family("earshot_streams", "Transcripts, followed (live) or not (cold).")
      .sample(metrics.streams_live, {{"state", "live"}})
      .sample(metrics.streams_cold, {{"state", "cold"}});
  page.add("earshot_problems", "Unreadable files and directories.", metrics.problems);
  page.add("earshot_inotify_watches", "inotify watches.", metrics.inotify_watches);
  page.add("earshot_watch_problem", "1 if changes are found by sweeps only, or with delay.",
           std::uint64_t{metrics.watch_problem});
  page.family("earshot_redactions_total", "Redacted secrets, by rule.").each("rule", metrics.redactions);
  page.family("earshot_limit", "Limits of this daemon, by their name in [limits].")
      .each("name", metrics.limits);
}

void add_team(Page& page, const TeamMetrics& team) {
  for (const TeamMetric& each : team.all) {
    std::string name = "earshot_";
    name.append(team.part).append("_").append(each.name).append(each.only_grows ? "_total" : "");
    page.add(name, each.help, each.value);
  }
}

template <class Value, class... Rest>
void write_members(JsonWriter& json, std::string_view name, const Value& value, const Rest&... rest) {
  json.member(name, value);
  if constexpr (sizeof...(rest) > 0) write_members(json, rest...);
}

/// Writes an object of names and values in turn.
void write_object(JsonWriter& json, const auto&... members) {
  json.begin_object();
  write_members(json, members...);
  json.end_object();
}

/// Fields of /proc/self/stat behind the name (proc(5)): the first one here is field 3.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream rest(line.substr(end_of_name + 1));
  std::vector<std::string> fields;
  for (std::string word; rest >> word;) fields.push_back(word);
  return fields;
}

std::optional<double> seconds_since_1970_at_boot() {
  std::ifstream file("/proc/stat");
  for (std::string key; file >> key;) {
    double value = 0;
    if (key == "btime" && file >> value) return value;
    file.ignore(1 << 20, '\n');
  }
  return {};
}

}  // namespace

std::string metrics_text(const Metrics& metrics) {
  Page page;
  page.family("earshot_build_info", "1; which daemon this is.")
      .sample(std::uint64_t{1}, {{"version", metrics.version}, {"instance_id", metrics.instance}});
  add_process(page, metrics.process);
  add_server(page, metrics);
  add_counters(page, metrics.counters);
  add_tail(page, metrics);
  add_team(page, metrics.team);
  return page.text;
}

ProcessMetrics process_metrics() {
  ProcessMetrics metrics;
  const auto fields = stat_fields();
  const auto number = [&](std::size_t field) { return std::stoull(fields[field - 3]); };
  if (fields.size() >= 22) {
    const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    metrics.cpu_seconds = static_cast<double>(number(14) + number(15)) / ticks;
    metrics.threads = number(20);
    if (const auto boot = seconds_since_1970_at_boot())
      metrics.start_time_seconds = *boot + static_cast<double>(number(22)) / ticks;
    metrics.virtual_bytes = number(23);
    metrics.resident_bytes = number(24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code ec;
  std::uint64_t open = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", ec);
       !ec && it != std::filesystem::directory_iterator(); it.increment(ec))
    ++open;
  if (!ec && open > 0) metrics.open_fds = open - 1;  // without the descriptor of this iteration
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    metrics.max_fds = limit.rlim_cur;
  return metrics;
}

std::string health_json(const Health& health) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_members(json, "version", health.version, "instance", health.instance, "host", health.host, "pid",
                health.pid, "uptime_s", health.uptime_s, "protocol", 1, "state", health.state, "address",
                health.address, "socket", health.socket);
  json.key("roots").array(health.roots, [&](const Health::Root& root) {
    write_object(json, "name", root.name, "path", root.path, "present", root.present, "transcripts",
                 root.transcripts, "live", root.live);
  });
  write_object(json.key("watch"), "mode", health.watch.mode, "problem", health.watch.problem,
               "inotify_watches", health.watch.inotify_watches);
  json.key("problems").array(health.problems, [&](const Health::Problem& problem) {
    write_object(json, "path", problem.path, "reason", problem.reason, "advice", problem.advice);
  });
  json.key("redaction").begin_object().member("on", health.redaction.on);
  json.array_member("rules", health.redaction.rules).end_object();
  if (!health.team.all.empty()) {
    json.key("team").begin_object();
    for (const TeamMetric& each : health.team.all) json.member(each.name, each.value);
    json.end_object();
  }
  if (!health.hosts.empty()) {
    json.key("hosts").array(health.hosts, [&](const Health::Host& host) {
      write_object(json, "name", host.name, "online", host.online, "last_seen", host.last_seen);
    });
  }
  json.member("connections", health.connections).member("sessions", health.sessions);
  json.key("limits").begin_object();
  for (const auto& [name, value] : health.limits) json.member(name, value);
  json.end_object().end_object();
  return out + "\n";
}

}  // namespace earshot::serve
