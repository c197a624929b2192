#include "serve/http/metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/system.hpp"

namespace earshot::serve {
namespace {

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

std::string& MetricsPage::begin_sample(Labels labels) {
  if (!help_.empty()) {
    text.append("# HELP ").append(name_).append(" ").append(std::exchange(help_, {})).append("\n");
    text.append("# TYPE ").append(name_).append(name_.ends_with("_total") ? " counter\n" : " gauge\n");
  }
  text += name_;
  char before = '{';
  for (const auto& [label, value] : labels) {
    text += std::exchange(before, ',');
    text.append(label).append("=\"").append(escaped(value)).append("\"");
  }
  return text += labels.size() > 0 ? "} " : " ";
}

void MetricsPage::add(const ProcessMetrics& process) {
  add("process_cpu_seconds_total", "CPU time used, in seconds.", process.cpu_seconds);
  add("process_start_time_seconds", "When the process started, since 1970, in seconds.",
      process.start_time_seconds);
  add("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  add("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  add("process_open_fds", "Open file descriptors.", process.open_fds);
  add("process_max_fds", "Limit of open file descriptors.", process.max_fds);
  add("process_threads", "Threads of the process.", process.threads);
}

void MetricsPage::add(const Counters& counters) {
  add("earshot_connections_accepted_total", "Connections since the start.", counters.connections);
  add("earshot_received_bytes_total", "Bytes from clients.", counters.bytes_in);
  add("earshot_sent_bytes_total", "Bytes to clients.", counters.bytes_out);
  add("earshot_messages_total", "WebSocket messages from clients.", counters.messages);
  family("earshot_http_answers_total", "HTTP responses, by status.");
  for (const auto& [status, number] : counters.answers) sample(number, {{"code", std::to_string(status)}});
  family("earshot_refusals_total", "Refused clients and requests, by reason.");
  for (std::size_t i = 0; i < refusal_names.size(); ++i)
    sample(counters.refusals[i], {{"reason", refusal_names[i]}});
  family("earshot_endings_total", "Connections closed by the daemon, by reason.");
  for (std::size_t i = 0; i < ending_names.size(); ++i)
    sample(counters.endings[i], {{"reason", ending_names[i]}});
  add("earshot_lagged_total", "Times that a subscriber fell behind.", counters.lagged);
}

void MetricsPage::add(const TeamMetrics& team) {
  for (const TeamMetric& each : team.all) {
    std::string name = "earshot_";
    name.append(team.part).append("_").append(each.name).append(each.only_grows ? "_total" : "");
    add(name, each.help, each.value);
  }
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
  std::uint64_t open = 0;
  const Directory descriptors("/proc/self/fd", Symlinks::follow);
  const int error = descriptors.for_each([&](std::string_view, FileType) { ++open; });
  if (error == 0 && open > 0) metrics.open_fds = open - 1;  // without the descriptor of this iteration
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
    write_object(json, "name", root.name, "path", root.path, "program", root.program, "present", root.present,
                 "transcripts", root.transcripts, "live", root.live);
  });
  write_object(json.key("watch"), "mode", health.watch.mode, "problem", health.watch.problem,
               "inotify_watches", health.watch.inotify_watches);
  json.key("problems").array(health.problems, [&](const Health::Problem& problem) {
    write_object(json, "path", problem.path, "reason", problem.reason, "advice", problem.advice);
  });
  if (!health.unknown_records.empty())
    json.key("unknown_records").array(health.unknown_records, [&](const UnknownRecords& unknown) {
      json.begin_object().member("program", unknown.program).member_if_any("version", unknown.version);
      json.key("types").begin_object();
      for (const auto& [type, records] : unknown.types) json.member(type, records);
      json.end_object().end_object();
    });
  json.key("redaction").begin_object().member("on", health.redaction.on);
  json.array_member("rules", health.redaction.rules).end_object();
  const Health::Search& search = health.search;
  json.key("search").begin_object().member("on", search.on);
  if (search.on) {
    json.member("building", search.building).member("indexed", search.indexed).member("total", search.total);
    json.member("documents", search.documents).member("bytes", search.bytes).member("lag_ms", search.lag_ms);
    json.member_if_any("problem", search.problem);
  }
  json.end_object();
  const std::pair<const char*, const TeamMetrics&> parts[] = {{"team", health.team},
                                                              {"otlp", health.exporter}};
  for (const auto& [name, part] : parts) {
    if (part.all.empty()) continue;
    json.key(name).begin_object();
    for (const TeamMetric& each : part.all) json.member(each.name, each.value);
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
