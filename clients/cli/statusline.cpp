// `earshot statusline`: one line for a status bar, once or at each change.
#include "cli/statusline.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "common/client.hpp"
#include "common/resumer.hpp"

namespace earshot::cli {
namespace {

// What is counted. The first kind with a session is the class of the line.
struct Kind {
  std::string_view name;
  Glyph mark;
  bool shown;  // in the line and in the tooltip
};
constexpr Kind kinds[] = {
    {"waiting", Glyph::waiting, true}, {"working", Glyph::working, true},  {"unseen", Glyph::ok, true},
    {"idle", Glyph::idle, false},      {"unknown", Glyph::unknown, false},
};

std::string key_of(const Fields& frame) {
  return std::string(frame.text("host")) + '/' + std::string(frame.text("session"));
}

std::string describe(const SessionRow& row, bool several_hosts, Glyph mark, Charset charset) {
  std::string text(glyph(mark, charset));
  text.append(" ").append(several_hosts ? row.project_at_host() : row.project);
  if (row.state == "waiting" && !row.reason.empty()) text.append(" ").append(row.reason);
  if (row.context_percent) text.append(" ").append(row.context);
  if (!row.last.empty()) text.append(": ").append(row.last);
  return cut_to_width(text, StatusLine::line_columns_max, glyph(Glyph::ellipsis, charset));
}

// The streams of subagents have longer names, or names without the session's id.
std::string main_stream(const Fields& session) {
  const std::string_view name = session.text("session"), id = name.substr(0, name.find('@'));
  const auto rank = [&](const StreamCursor& each) {
    return std::pair(each.stream.find(id) == std::string_view::npos, each.stream.size());
  };
  const std::vector<StreamCursor> streams = stream_cursors(session);
  const auto main =
      std::min_element(streams.begin(), streams.end(),
                       [&](const StreamCursor& a, const StreamCursor& b) { return rank(a) < rank(b); });
  return main == streams.end() ? std::string() : std::string(main->stream);
}

}  // namespace

void StatusLine::begin() {
  sessions_ = {};
  limits_ = LimitSummary(charset_);
}

void StatusLine::receive(const Fields& frame, std::int64_t now_ms) {
  const std::string_view type = frame.text("type");
  if (type == "session") {
    sessions_[key_of(frame)] = {make_session_row(frame, charset_, now_ms), main_stream(frame)};
    limits_.add(frame);
  }
  if (type == "stream.renamed") {
    const Entry* const moved = sessions_.find(key_of(frame));
    if (moved != nullptr && moved->main_stream == frame.text("from"))
      sessions_[key_of(frame)].main_stream = frame.text("to");
  }
  if (type != "stream.removed") return;
  // A session ends with its main stream.
  const std::string_view stream = frame.text("stream");
  const Entry* const known = sessions_.find(key_of(frame));
  const bool is_known = known != nullptr && !known->main_stream.empty();
  if (is_known ? known->main_stream == stream : last_component(stream) == frame.text("session"))
    sessions_.erase(key_of(frame));
}

bool StatusLine::several_hosts() const {
  std::string_view first;
  for (const auto& [key, known] : sessions_) {
    if (first.empty()) first = known.row.host;
    if (known.row.host != first) return true;
  }
  return false;
}

std::vector<const SessionRow*> StatusLine::rows_of(std::string_view kind) const {
  std::vector<const SessionRow*> rows;
  for (const auto& [key, known] : sessions_)
    if (kind == "unseen" ? known.row.unseen : known.row.state == kind) rows.push_back(&known.row);
  return rows;
}

std::string StatusLine::line(std::int64_t now_ms) const {
  std::string text;
  for (const Kind& kind : kinds) {
    const std::size_t count = kind.shown ? rows_of(kind.name).size() : 0;
    if (count == 0) continue;
    text += text.empty() ? "" : " ";
    text.append(glyph(kind.mark, charset_)).append(" ").append(std::to_string(count));
  }
  const std::string limits = show_limits_ ? limits_.brief(now_ms) : std::string();
  return text.empty() || limits.empty() ? text + limits : text + " " + limits;
}

std::string StatusLine::json(std::int64_t now_ms) const {
  std::string_view alt = "idle";
  std::vector<std::pair<std::string_view, std::size_t>> counts;
  std::vector<std::string> rows;
  const bool hosts = several_hosts();
  for (const Kind& kind : kinds) {
    std::vector<const SessionRow*> of_kind = rows_of(kind.name);
    counts.emplace_back(kind.name, of_kind.size());
    if (!kind.shown || of_kind.empty()) continue;
    if (alt == "idle") alt = kind.name;
    std::sort(of_kind.begin(), of_kind.end(), [](const SessionRow* a, const SessionRow* b) {
      return a->activity_ms != b->activity_ms ? a->activity_ms > b->activity_ms : a->session < b->session;
    });
    for (const SessionRow* row : of_kind) rows.push_back(describe(*row, hosts, kind.mark, charset_));
  }
  std::string tooltip;
  for (std::size_t n = 0; n < rows.size() && n < lines_max; ++n) tooltip += (n > 0 ? "\n" : "") + rows[n];
  if (rows.size() > lines_max) tooltip += "\n+" + std::to_string(rows.size() - lines_max);
  if (std::string limits = limits_.lines({charset_, Palette::none, line_columns_max}, now_ms);
      !limits.empty()) {
    limits.pop_back();
    tooltip += (tooltip.empty() ? "" : "\n") + limits;
  }

  std::string out;
  JsonWriter writer(out);
  writer.begin_object().member("text", line(now_ms)).member("alt", alt).member("class", alt);
  writer.member("tooltip", tooltip);
  for (const auto& [state, count] : counts) writer.member(state, count);
  writer.end_object();
  return out;
}

std::string StatusLine::offline_line() { return "earshot?"; }

std::string StatusLine::offline_json(const std::string& reason) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("text", offline_line())
      .member("alt", "away")
      .member("class", "away")
      .member("tooltip", reason)
      .end_object();
  return out;
}

namespace {

// A status bar that exits closes its end of the pipe. As there may be nothing to write for days, the pipe is
// polled; then the command stops as if by a signal.
void stop_when_output_closes() {
  std::thread([] {
    pollfd out{STDOUT_FILENO, 0, 0};  // errors only: files and terminals have none
    while (::poll(&out, 1, -1) < 0 && errno == EINTR) {
    }
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

class StatusLineCommand {
 public:
  explicit StatusLineCommand(const StatusLineOptions& options)
      : options_(options), status_(stdout_display(ColourMode::never).charset, options.limits) {}

  int attempt(const DaemonAddresses& addresses);

 private:
  ConnectResult connect(const DaemonAddresses& addresses);
  // Prints a line if it differs from the last one.
  void print(std::string line) {
    if (last_ && *last_ == line) return;
    if (options_.json)
      out_.write_json_line(line);
    else
      out_.write(line + "\n");
    out_.flush();
    last_ = std::move(line);
  }
  void print_status() { print(options_.json ? status_.json(now_ms()) : status_.line(now_ms())); }
  void print_offline(const std::string& reason) {
    print(options_.json ? StatusLine::offline_json(reason) : StatusLine::offline_line());
  }
  bool output_closed() const { return out_.closed() || !out_.error().empty(); }
  int exit_code() {
    const int written = finish(out_);
    return refused_ ? exit_failed : written;
  }

  const StatusLineOptions& options_;
  Client client_;
  Backoff backoff_;
  FrameParser parser_;
  StatusLine status_;
  Output out_;
  std::optional<std::string> last_;
  bool ready_ = false, refused_ = false;
};

ConnectResult StatusLineCommand::connect(const DaemonAddresses& addresses) {
  ready_ = false;
  Handlers handlers;
  handlers.on_open = [&] {
    status_.begin();
    client_.send(subscribe_request(options_.filters, {.state = true}));
  };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "error") print_daemon_error(*frame);
    refused_ = refused_ || type == "error";
    ready_ = ready_ || type == "ready";
    status_.receive(*frame, now_ms());
    return !refused_ && !output_closed() && (options_.follow || !ready_);
  };
  handlers.on_idle = [&] {
    if (ready_ && options_.follow) print_status();
  };
  return client_.run_any(addresses, handlers);
}

int StatusLineCommand::attempt(const DaemonAddresses& addresses) {
  const ConnectResult result = connect(addresses);
  if (result.last().end_reason == EndReason::stopped) {
    if (ready_ && !options_.follow) print_status();
    return exit_code();
  }
  const std::string reason = format_connect_error(result, addresses);
  if (!options_.follow || is_permanent(result.last())) {
    print_message(reason);
    return exit_failed;
  }
  print_offline(reason.substr(0, reason.find('\n')));
  if (ready_) backoff_.reset();
  return output_closed() || !client_.pause(backoff_.next_ms()) ? exit_code() : try_again;
}

}  // namespace

int statusline_command(const StatusLineOptions& options) {
  if (!options.from.empty()) exit_in_time();
  if (!options.from.empty() || options.install_hint) return program_statusline_command(options);
  if (options.follow) stop_when_output_closes();
  StatusLineCommand command(options);
  return with_daemon_until_done(options.daemon,
                                [&](const auto& addresses) { return command.attempt(addresses); });
}

}  // namespace earshot::cli
