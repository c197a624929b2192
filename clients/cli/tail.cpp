// `earshot tail`: follows events live.
#include "cli/tail.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "common/client.hpp"
#include "common/format.hpp"
#include "common/host_clocks.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t snapshot_sessions_max = 20'000;  // beyond this they are not shown
constexpr std::size_t snapshot_lines_max = 12;         // idle sessions are shown up to this number of lines
constexpr std::int64_t live_ms = 24LL * 3600 * 1000;   // the daemon's default age limit of live sessions

std::string text_of_status(const Fields& status) {
  std::string text;
  for (const char* key : {"state", "reason", "detail"}) text += std::string(status.text(key)) + '\n';
  return text;
}

StreamResumer::Options resumer_options(const TailOptions& options) {
  StreamResumer::Options out{.filters = options.filters, .since_ms = options.since_ms};
  out.snapshot = options.snapshot || !options.json;  // names are learned from it, printed or not
  out.all = options.since_ms && *options.since_ms < now_ms() - live_ms;
  return out;
}

// Whether all of `text` has strptime's format.
bool parse_format(const std::string& text, const char* format, std::tm& parts) {
  const char* const end = ::strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0';
}

// strptime() accepts 31 days in each month.
bool is_date(const std::tm& parts) {
  using namespace std::chrono;
  return (year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday).ok();
}

std::optional<std::int64_t> local_ms(std::tm parts) {
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1000;
}

}  // namespace

std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms) {
  if (text != "0") {
    if (const auto ago = parse_duration(text)) return now_ms - ago->count();
  }
  if (const auto exact = parse_time(text)) return exact;
  const std::string word(text);
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    if (parse_format(word, format, parts)) return is_date(parts) ? local_ms(parts) : std::nullopt;
  }
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    const std::time_t now = static_cast<std::time_t>(now_ms / 1000);
    std::tm parts{};
    localtime_r(&now, &parts);
    parts.tm_sec = 0;
    if (!parse_format(word, format, parts)) continue;
    const auto today = local_ms(parts);
    if (!today || *today <= now_ms) return today;
    --parts.tm_mday;  // yesterday; mktime normalises the date
    return local_ms(parts);
  }
  return std::nullopt;
}

void Backfill::add(const Fields& event, std::string_view json, std::int64_t offset_ms) {
  Stream& stream = streams_[std::string(event.text("stream"))];
  if (auto ms = parse_time(event.text("time"))) {
    *ms += offset_ms;
    if (!stream.first_ms) stream.first_ms = ms;
    stream.last_ms = stream.last_ms ? std::max(*stream.last_ms, *ms) : *ms;
  }
  entries_.push_back({stream.last_ms.value_or(untimed), &stream, text_.size(), json.size()});
  text_ += json;
  bytes_ = text_.size() + entries_.size() * sizeof(Entry);
}

void Backfill::drain(const std::function<void(std::string_view json)>& take) {
  // Events before the first time of their stream get that time.
  for (Entry& each : entries_) {
    if (each.ms == untimed) each.ms = each.stream->first_ms.value_or(untimed);
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.ms < b.ms; });
  for (const Entry& each : entries_) take(std::string_view(text_).substr(each.offset, each.size));
  entries_.clear();
  text_.clear();
  bytes_ = 0;
}

TailPrinter::TailPrinter(const TailOptions& options)
    : options_(options),
      pretty_(!options.json),
      is_since_empty_(options.since_ms && !options.json),
      resumer_(resumer_options(options)),
      formatter_(stdout_display(options.colour), options.verbose) {}

std::string TailPrinter::begin() {
  snapshot_.clear();
  changed_sessions_.clear();
  bookmarks_.clear();
  std::string request = resumer_.begin();
  snapshot_printed_ = resumer_.is_resuming();  // the missed events are printed instead
  return request;
}

void TailPrinter::end(std::int64_t now_ms) {
  if (resumer_.phase() == StreamResumer::Phase::catching_up) print_missed();  // the rest is requested again
  resumer_.end(now_ms);
}

bool TailPrinter::receive(std::string_view json) {
  using Phase = StreamResumer::Phase;
  const auto frame = parser_.parse(json);
  if (!frame) {
    print_message("ignored a frame of the daemon that is not a JSON object");
    return true;
  }
  const std::string_view type = frame->text("type");
  const Phase before = resumer_.phase();
  resumer_.receive(*frame);
  bool more = true;
  if (type == "error") {
    more = receive_error(*frame);
    if (!pretty_) print(*frame, json);
  } else if (type == "session") {
    receive_session(*frame, json);
  } else if (type == "bookmark") {
    if (before == Phase::catching_up) {
      bookmarks_.emplace_back(json);  // it may be ahead of events that are not printed yet
    } else {
      print(*frame, json);
    }
    if (before == Phase::catching_up && resumer_.phase() == Phase::live) print_missed();
  } else if (!frame->text("cursor").empty()) {
    receive_event(*frame, json);
  } else if (type == "ready" && pretty_) {
    if (std::exchange(is_first_, false) && !options_.snapshot) changed_sessions_.clear();
    if (resumer_.is_resuming() && resumer_.phase() == Phase::live) {
      print_changed_sessions();
      print_if_empty();
    }
    print_snapshot();
  } else if (type == "reset" && pretty_ && frame->text("reason") == "unknown") {
    resumer_.handled(*frame);  // the transcript was deleted meanwhile
  } else if (type == "ready") {
    if (std::exchange(is_first_, false) && !options_.snapshot) changed_sessions_.clear();
    print_changed_sessions();
    print(*frame, json);
  } else if (type != "heartbeat" || !pretty_) {
    if (type == "status") remember_status(frame->text("session"), *frame);
    print(*frame, json);
  }
  out_.flush_if_full();
  return more && !out_.closed() && out_.error().empty();
}

bool TailPrinter::receive_error(const Fields& frame) {
  const std::string_view code = frame.text("code");
  print_daemon_error(frame);
  // A cursor that cannot be used affects its stream only: the subscription remains.
  const bool fatal = frame.text("id") == "cli" && code != "bad_cursor" && !frame.flag("retry");
  if (fatal && code == "unsupported")
    print_message("the daemon is older than this program: restart it with the installed version");
  failed_ = failed_ || fatal;
  return !fatal;
}

void TailPrinter::receive_session(const Fields& frame, std::string_view json) {
  formatter_.observe(frame);
  const bool is_missed = resumer_.is_resuming() && resumer_.phase() != StreamResumer::Phase::live;
  if (is_missed) {
    if (is_status_new(frame)) changed_sessions_.emplace_back(json);
    return resumer_.handled(frame);
  }
  remember_status(frame.text("session"), frame.object("status"));
  if (!pretty_) return print(frame, json);
  resumer_.handled(frame);
  if (snapshot_printed_ || !options_.snapshot || snapshot_.size() >= snapshot_sessions_max) return;
  const std::string_view state = frame.object("status").text("state");
  snapshot_.push_back({std::string(json),
                       parse_time(frame.text("last_activity")).value_or(0) + clock_offset_ms(frame),
                       state == "working" || state == "waiting"});
}

void TailPrinter::receive_event(const Fields& frame, std::string_view json) {
  if (resumer_.phase() != StreamResumer::Phase::catching_up) return print(frame, json);
  formatter_.observe(frame);  // the type of a subagent may be known only when it has finished
  backfill_.add(frame, json, formatter_.clocks().offset_ms(frame.text("host")));
  if (!backfill_.is_full()) return;
  backfill_.drain([this](std::string_view stored) {
    if (const auto event = stored_parser_.parse(stored)) print(*event, stored);
  });
}

// The missed events by time, then the sessions that wait now.
void TailPrinter::print_missed() {
  const auto print_stored = [this](std::string_view json) {
    if (const auto frame = stored_parser_.parse(json)) print(*frame, json);
  };
  backfill_.drain(print_stored);
  for (const std::string& json : std::exchange(bookmarks_, {})) print_stored(json);
  print_changed_sessions();
  print_if_empty();
}

void TailPrinter::print_if_empty() {
  if (std::exchange(is_since_empty_, false)) out_.write("no events since then; waiting for events\n");
}

// As JSON each session whose status changed; for people those that wait.
void TailPrinter::print_changed_sessions() {
  for (const std::string& json : std::exchange(changed_sessions_, {})) {
    const auto frame = stored_parser_.parse(json);
    if (!frame) continue;
    const Fields status = frame->object("status");
    if (!is_status_new(*frame)) continue;  // a status frame arrived since
    remember_status(frame->text("session"), status);
    if (pretty_ && status.text("state") != "waiting") continue;
    if (pretty_)
      print_line(*frame);
    else
      out_.write_json_line(json);
  }
}

void TailPrinter::print_line(const Fields& frame) {
  const std::size_t before = out_.buffer().size();
  formatter_.set_columns(terminal_columns());
  formatter_.format(frame, out_.buffer());
  if (out_.buffer().size() > before) is_since_empty_ = false;
}

bool TailPrinter::is_status_new(const Fields& session_frame) const {
  const std::string* const printed = statuses_.find(session_frame.text("session"));
  return printed == nullptr || *printed != text_of_status(session_frame.object("status"));
}

void TailPrinter::remember_status(std::string_view session, const Fields& status) {
  statuses_[session] = text_of_status(status);
}

void TailPrinter::print(const Fields& frame, std::string_view json) {
  resumer_.handled(frame);
  if (pretty_)
    print_line(frame);
  else
    out_.write_json_line(json);
  out_.flush_if_full();
}

// Once all names are known: all active sessions and the latest others, the oldest first, as in a log.
void TailPrinter::print_snapshot() {
  if (snapshot_printed_) return;
  snapshot_printed_ = true;
  formatter_.set_columns(terminal_columns());
  std::vector<SnapshotEntry> entries = std::exchange(snapshot_, {});
  std::stable_sort(entries.begin(), entries.end(), [](const SnapshotEntry& a, const SnapshotEntry& b) {
    return a.activity_ms > b.activity_ms;
  });
  std::vector<const SnapshotEntry*> shown;
  for (const SnapshotEntry& each : entries) {
    if (each.active || shown.size() < snapshot_lines_max) shown.push_back(&each);
  }
  for (auto each = shown.rbegin(); each != shown.rend(); ++each) {
    if (const auto frame = stored_parser_.parse((*each)->json)) formatter_.format(*frame, out_.buffer());
  }
  const std::size_t omitted = entries.size() - shown.size();
  if (omitted > 0) out_.write(plural(omitted, "more idle session") + ": earshot ls\n");
  if (entries.empty() && options_.snapshot)
    out_.write(options_.filters.empty() ? "no live session yet; waiting for events\n"
                                        : "no live session matches the filters; waiting for events\n");
}

namespace {

class TailCommand {
 public:
  explicit TailCommand(const TailOptions& options) : printer_(options) {}

  int attempt(const DaemonAddresses& addresses) {
    bool is_open = false;
    Handlers handlers;
    handlers.on_open = [&] {
      if (was_open_ || waiting_) print_message("connected");
      is_open = was_open_ = true;
      waiting_ = false;
      client_.send(printer_.begin());
    };
    handlers.on_frame = [&](std::string_view json) { return printer_.receive(json); };
    handlers.on_idle = [&] { printer_.flush(); };
    const ConnectResult result = client_.run_any(addresses, handlers);
    const ConnectionOutcome& outcome = result.last();
    const std::string& warning = result.address(addresses).warning;
    if (!warning.empty() && !warned_) print_message(safe_text(warning));
    warned_ = warned_ || !warning.empty();
    if (is_open) printer_.end(now_ms());
    if (const int failed = finish(printer_.output()); failed != exit_ok) return failed;
    if (outcome.end_reason == EndReason::stopped) return printer_.failed() ? exit_failed : exit_ok;
    if (is_permanent(outcome)) {
      print_message(format_connect_error(result, addresses));
      return exit_failed;
    }
    if (is_open) {
      backoff_.reset();
      print_message("lost the connection to the daemon (" + safe_text(outcome.text) + "); reconnecting");
    } else if (!was_open_ && !waiting_) {
      print_message(format_connect_error(result, addresses) + "\n  Waiting for the daemon ...");
    }
    waiting_ = waiting_ || !was_open_;
    return client_.pause(backoff_.next_ms()) ? try_again : exit_ok;
  }

 private:
  Client client_;
  TailPrinter printer_;
  Backoff backoff_;
  bool was_open_ = false, warned_ = false, waiting_ = false;
};

}  // namespace

int tail_command(const TailOptions& options) {
  TailCommand command(options);
  return with_daemon_until_done(options.daemon,
                                [&](const auto& addresses) { return command.attempt(addresses); });
}

}  // namespace earshot::cli
