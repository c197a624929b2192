#include "serve/http/metrics.hpp"

#include <array>
#include <charconv>
#include <string_view>

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

/// One metric: its HELP and TYPE come with the first sample, and none without one.
class Family {
 public:
  Family(std::string& out, std::string_view name, std::string_view type, std::string_view help)
      : out_(out), name_(name), type_(type), help_(help) {}

  template <class Number>
  Family& sample(Number number, Pairs labels = {}) {
    if (!begun_) {
      out_.append("# HELP ").append(name_).append(" ").append(help_).append("\n");
      out_.append("# TYPE ").append(name_).append(" ").append(type_).append("\n");
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
  std::string_view name_, type_, help_;
  bool begun_ = false;
};

class Page {
 public:
  Family gauge(std::string_view name, std::string_view help) { return {text, name, "gauge", help}; }
  Family counter(std::string_view name, std::string_view help) { return {text, name, "counter", help}; }
  std::string text;
};

void process_part(Page& page, const ProcessMetrics& process) {
  page.counter("process_cpu_seconds_total", "CPU time used, in seconds.").sample(process.cpu_seconds);
  page.gauge("process_start_time_seconds", "When the process started, since 1970, in seconds.")
      .sample(process.start_time_seconds);
  page.gauge("process_resident_memory_bytes", "Resident memory.").sample(process.resident_bytes);
  page.gauge("process_virtual_memory_bytes", "Virtual memory.").sample(process.virtual_bytes);
  page.gauge("process_open_fds", "Open file descriptors.").sample(process.open_fds);
  page.gauge("process_max_fds", "The most that may be open.").sample(process.max_fds);
  page.gauge("process_threads", "Threads of the process.").sample(process.threads);
}

void counts_part(Page& page, const Counters& counters) {
  page.counter("earshot_connections_accepted_total", "Connections since the start.")
      .sample(counters.connections);
  page.counter("earshot_received_bytes_total", "Bytes from clients.").sample(counters.bytes_in);
  page.counter("earshot_sent_bytes_total", "Bytes to clients.").sample(counters.bytes_out);
  page.counter("earshot_messages_total", "WebSocket messages from clients.").sample(counters.messages);
  auto answers = page.counter("earshot_http_answers_total", "HTTP answers, by status.");
  for (const auto& [status, number] : counters.answers)
    answers.sample(number, {{"code", std::to_string(status)}});
  auto refusals =
      page.counter("earshot_refusals_total", "Clients and requests that were not served, by reason.");
  for (std::size_t i = 0; i < refusal_names.size(); ++i)
    refusals.sample(counters.refusals[i], {{"reason", refusal_names[i]}});
  auto endings = page.counter("earshot_endings_total", "Connections that the daemon ended, by reason.");
  for (std::size_t i = 0; i < ending_names.size(); ++i)
    endings.sample(counters.endings[i], {{"reason", ending_names[i]}});
  page.counter("earshot_lagged_total", "Times that a subscriber was told that it lagged.")
      .sample(counters.lagged);
}

void hub_part(Page& page, const Metrics& metrics) {
  auto connections =
      page.gauge("earshot_connections", "Connections now, by what they are and how they came.");
  for (const auto& one : metrics.connections)
    connections.sample(one.number, {{"kind", one.kind}, {"via", one.via}});
  page.gauge("earshot_subscribers", "Connections that have such a subscription.")
      .sample(metrics.event_subscribers, {{"deliver", "events"}})
      .sample(metrics.state_subscribers, {{"deliver", "state"}});
  page.gauge("earshot_log_bytes", "Memory of the live log.").sample(metrics.log_bytes);
  page.gauge("earshot_log_max_bytes", "What it may have; then its oldest frames go.")
      .sample(metrics.log_bytes_max);
  page.counter("earshot_log_frames_total", "Frames that went into the live log.").sample(metrics.log_frames);
  page.gauge("earshot_codes_outstanding", "One-time codes that are still good.")
      .sample(metrics.codes_outstanding);
  page.gauge("earshot_sessions", "Sessions that are known, by state.").each("state", metrics.sessions);
  page.counter("earshot_catch_ups_total", "Streams that a client resumed.").sample(metrics.catch_ups);
  page.gauge("earshot_catch_up_folds", "Transcripts that are read again for clients that resume.")
      .sample(metrics.catch_up_folds);
  page.gauge("earshot_catch_up_chunk_bytes", "Memory of what was read for them and not sent yet.")
      .sample(metrics.catch_up_chunk_bytes);
  page.gauge("earshot_catch_up_chunk_max_bytes", "What that may be; then reading waits.")
      .sample(metrics.catch_up_chunk_bytes_max);
  page.counter("earshot_events_total", "Events that were told, by type.").each("type", metrics.events);
}

void house_part(Page& page, const Metrics& metrics) {
  page.counter("earshot_tail_read_bytes_total", "Bytes of transcripts that were read.")
      .sample(metrics.tail_bytes);
  page.counter("earshot_tail_looks_total", "Looks at transcripts.").sample(metrics.tail_looks);
  page.counter("earshot_tail_resets_total", "Transcripts that turned out to be another history.")
      .sample(metrics.tail_resets);
  page.counter("earshot_tail_verifications_total", "Whole prefixes that were compared.")
      .sample(metrics.tail_verifications);
  page.counter("earshot_tail_events_total", "Events that transcripts gave.").sample(metrics.tail_events);
  page.gauge("earshot_tail_pending_bytes", "Bytes of lines that are written in part, and no events yet.")
      .sample(metrics.pending_bytes);
  page.gauge("earshot_tail_open_files", "Transcripts that are open.").sample(metrics.open_files);
  page.gauge("earshot_tail_known_files", "Transcripts that are known.").sample(metrics.known_files);
  page.gauge("earshot_tail_directories", "Directories that are watched.").sample(metrics.directories);
  page.gauge("earshot_streams", "Transcripts, followed (live) or only known (cold).")
      .sample(metrics.streams_live, {{"state", "live"}})
      .sample(metrics.streams_cold, {{"state", "cold"}});
  page.gauge("earshot_troubles", "Files and directories that cannot be read now.").sample(metrics.troubles);
  page.gauge("earshot_inotify_watches", "Directories that the kernel reports on.")
      .sample(metrics.inotify_watches);
  page.gauge("earshot_watch_trouble",
             "1 when changes are found by looking only, or later than they could be.")
      .sample(std::uint64_t{metrics.watch_trouble});
  page.counter("earshot_redactions_total", "Secrets that were replaced, by rule.")
      .each("rule", metrics.redactions);
  page.gauge("earshot_limit", "The bounds of this daemon, as they are called in [limits].")
      .each("name", metrics.limits);
}

void team_part(Page& page, const TeamMetrics& team) {
  for (const TeamMetric& each : team.all) {
    std::string name = "earshot_";
    name.append(team.part).append("_").append(each.name).append(each.only_grows ? "_total" : "");
    (each.only_grows ? page.counter(name, each.help) : page.gauge(name, each.help)).sample(each.value);
  }
}

}  // namespace

std::string metrics_text(const Metrics& metrics) {
  Page page;
  page.gauge("earshot_build_info", "1; which daemon this is.")
      .sample(std::uint64_t{1}, {{"version", metrics.version}, {"instance_id", metrics.instance}});
  process_part(page, metrics.process);
  hub_part(page, metrics);
  counts_part(page, metrics.counters);
  house_part(page, metrics);
  team_part(page, metrics.team);
  return page.text;
}

}  // namespace earshot::serve
