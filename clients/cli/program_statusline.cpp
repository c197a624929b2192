#include "cli/program_statusline.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "agents/agent.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "common/format.hpp"
#include "common/local_request.hpp"

namespace earshot::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The program waits for the line: this process has to end within 50 ms of its start, which takes a part of
// them.
constexpr int alarm_ms = 42;

constexpr std::size_t model_columns_max = 30, project_columns_max = 20;

}  // namespace

std::string format_program_line(const ProgramLine& line, Charset charset, std::int64_t now_ms) {
  const std::string_view ellipsis = glyph(Glyph::ellipsis, charset);
  std::string text = cut_to_width(line.model, model_columns_max, ellipsis);
  const std::string context =
      line.context_percent ? gauge_text(*line.context_percent, charset) : line.context;
  if (!context.empty()) text.append(text.empty() ? "" : " ").append(context);
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text.append(" ").append(glyph(Glyph::dot, charset)).append(" ");
    text += part;
  };
  add(line.cost);
  add(brief_limit_text(current_periods(line.limits, now_ms), now_ms));
  std::string others;
  for (std::size_t n = 0; n < std::min(line.waiting.size(), waiting_shown_max); ++n)
    others += (n > 0 ? ", " : "") + line.waiting[n];
  if (line.waiting.size() > waiting_shown_max)
    others += " +" + std::to_string(line.waiting.size() - waiting_shown_max);
  if (!others.empty()) others.insert(0, std::string(glyph(Glyph::waiting, charset)) + " ");
  if (line.unseen > 0)
    others.append(others.empty() ? "" : " ")
        .append(glyph(Glyph::ok, charset))
        .append(" ")
        .append(std::to_string(line.unseen));
  add(others);
  return cut_to_width(text, program_line_columns_max, ellipsis);
}

namespace {

// What the program left out is taken from the daemon's numbers of the session.
void complete(ProgramLine& line, const Fields& own, Charset charset) {
  const Fields usage = own.object("usage");
  if (line.model.empty()) line.model = to_display_line(own.text("model"), charset);
  if (!line.context_percent) line.context_percent = context_percent(usage);
  if (!line.context_percent && line.context.empty()) line.context = context_text(usage, charset);
  if (line.cost.empty()) line.cost = cost_text(usage);
  if (!line.limits.empty()) return;
  for (const Fields& limits : own.objects("limits")) {
    line.limits = limit_periods(limits, charset);
    if (!line.limits.empty()) return;
  }
}

std::string waiting_text(const Fields& session, Charset charset, std::int64_t now_ms) {
  const std::string_view project = session.text("project");
  std::string text = cut_to_width(
      to_display_line(project.empty() ? session.text("directory") : last_component(project), charset),
      project_columns_max, glyph(Glyph::ellipsis, charset));
  if (text.empty()) text = to_display_line(short_id(session.text("session")), charset);
  const std::string reason = to_display_line(session.object("status").text("reason"), charset);
  if (!reason.empty()) text += " " + reason;
  if (const auto since = status_since(session)) text += " " + format_age(Ms(now_ms - *since));
  return text;
}

}  // namespace

bool add_sessions(ProgramLine& line, std::string_view frames, std::string_view own_session, Charset charset,
                  std::int64_t now_ms) {
  struct Waiting {
    std::int64_t since_ms;
    std::string text;
  };
  std::vector<Waiting> waiting;
  FrameParser parser;
  bool is_complete = false;
  while (!frames.empty() && !is_complete) {
    const std::size_t end = frames.find('\n');
    if (end == frames.npos) break;
    const auto frame = parser.parse(frames.substr(0, end));
    frames.remove_prefix(end + 1);
    if (!frame) continue;
    is_complete = frame->text("type") == "ready";
    if (frame->text("type") != "session") continue;
    if (!own_session.empty() && frame->text("session") == own_session) {
      complete(line, *frame, charset);
    } else if (frame->object("status").text("state") == "waiting") {
      waiting.push_back({status_since(*frame).value_or(now_ms), waiting_text(*frame, charset, now_ms)});
    } else if (frame->flag("unseen")) {
      ++line.unseen;
    }
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Waiting& a, const Waiting& b) { return a.since_ms < b.since_ms; });
  for (Waiting& each : waiting) line.waiting.push_back(std::move(each.text));
  return is_complete;
}

namespace {

// The program's JSON, read without blocking.
class Input {
 public:
  explicit Input(const StatusLines& format) : format_(format) {}

  bool is_done() const { return done_; }
  int fd() const { return done_ ? -1 : STDIN_FILENO; }
  const std::optional<earshot::StatusLine>& status() const { return status_; }
  const std::string& json() const { return json_; }

  /// Call it when there is something to read, or the end.
  void read() {
    char bytes[16 << 10];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) json_.append(bytes, static_cast<std::size_t>(got));
    done_ = got <= 0 || json_.size() > StatusLines::status_line_bytes_max;
    // A program may leave the pipe open.
    if (!done_ && !trim(json_).ends_with('}')) return;
    status_ = format_.parse_status_line(json_);
    done_ = done_ || status_.has_value();
  }

 private:
  const StatusLines& format_;
  std::string json_;
  std::optional<earshot::StatusLine> status_;
  bool done_ = false;
};

// The requests to the daemon: the sessions at once, the program's JSON when it is complete.
class Daemon {
 public:
  explicit Daemon(const ConnectOptions& options) {
    const auto found = find_daemon(options);
    const auto* const addresses = std::get_if<DaemonAddresses>(&found);
    if (addresses == nullptr) return;
    for (const DaemonAddress& address : *addresses) {
      if (!address.endpoint.is_unix()) continue;
      sessions_.emplace(address.endpoint.socket, "/v1/events?deliver=state&view=meta");
      if (!sessions_->is_connected()) continue;
      socket_ = address.endpoint.socket;
      break;
    }
  }

  void send_status(const std::string& json) {
    if (!socket_.empty()) status_.emplace(socket_, "/v1/statusline", json);
  }
  std::string_view session_frames() const {
    return sessions_ && sessions_->status() == 200 ? sessions_->body() : std::string_view();
  }
  std::vector<LocalRequest*> pending() {
    std::vector<LocalRequest*> requests;
    for (auto* each : {&sessions_, &status_})
      if (*each && !(*each)->is_done()) requests.push_back(&**each);
    return requests;
  }
  /// Whether all sessions have arrived.
  void close_if_ready() {
    if (!sessions_ || sessions_->is_done()) return;
    const std::string_view frames = session_frames();
    const std::size_t last = frames.size() < 2 ? frames.npos : frames.rfind('\n', frames.size() - 2);
    const std::string_view line = last == frames.npos ? frames : frames.substr(last + 1);
    if (line.ends_with('\n') && line.find(R"("type":"ready")") != line.npos) sessions_->close();
  }

 private:
  std::string socket_;  // empty: no daemon
  std::optional<LocalRequest> sessions_, status_;
};

void exchange(Input& input, Daemon& daemon, Clock::time_point until) {
  bool was_sent = false;
  while (true) {
    if (input.is_done() && !was_sent) {
      was_sent = true;
      if (input.status() && !input.status()->session.empty()) daemon.send_status(input.json());
    }
    daemon.close_if_ready();
    const std::vector<LocalRequest*> requests = daemon.pending();
    std::vector<pollfd> polled;
    for (const LocalRequest* each : requests) polled.push_back({each->fd(), each->events(), 0});
    if (!input.is_done()) polled.push_back({input.fd(), POLLIN, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (polled.empty() || left <= 0) return;
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return;
    if (ready <= 0) continue;
    for (std::size_t n = 0; n < requests.size(); ++n)
      if (polled[n].revents != 0) requests[n]->advance();
    if (!input.is_done() && polled.back().revents != 0) input.read();
  }
}

ProgramLine line_of(const earshot::StatusLine& status, Charset charset) {
  ProgramLine line;
  line.model = to_display_line(status.model_name.empty() ? status.model : status.model_name, charset);
  if (status.context_tokens && status.context_window)
    line.context_percent =
        100 * static_cast<double>(*status.context_tokens) / static_cast<double>(*status.context_window);
  else if (status.context_tokens)
    line.context = format_count(*status.context_tokens);
  if (status.cost_usd) line.cost = format_usd(*status.cost_usd);
  for (const earshot::LimitWindow& window : status.windows)
    if (window.used_percent)
      line.limits.push_back(
          {window.window_minutes ? period_text(static_cast<std::int64_t>(*window.window_minutes))
                                 : to_display_line(window.name, charset),
           window.window_minutes.has_value(), *window.used_percent, parse_time(window.resets_at)});
  return line;
}

// The absolute path of this program, as a word of a shell.
std::string program_word() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = error ? "earshot" : self.string();
  return quote_for_shell(path);
}

int print_install_hint() {
  const char* const directory = std::getenv("CLAUDE_CONFIG_DIR");
  const std::string file =
      (directory == nullptr || directory[0] == '\0' ? std::string("~/.claude") : std::string(directory)) +
      "/settings.json";
  std::string entry;
  JsonWriter(entry)
      .begin_object()
      .member("type", "command")
      .member("command", program_word() + " statusline --from claude-code")
      .end_object();
  Output out;
  out.write("Add this member to the object in " + safe_text(file) +
            "; it replaces a \"statusLine\" that is there.\n"
            "earshot itself changes no file.\n\n  \"statusLine\": " +
            to_display_json(entry) + "\n");
  return finish(out);
}

}  // namespace

void exit_in_time() {
  struct sigaction action {};
  action.sa_handler = [](int) { ::_exit(exit_ok); };
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{{0, 0}, {0, alarm_ms * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

int program_statusline_command(const StatusLineOptions& options) {
  if (options.install_hint) return print_install_hint();
  const Clock::time_point until = Clock::now() + std::chrono::milliseconds(options.wait_ms);
  const AgentProgram* const program = find_agent_program(options.from);
  if (program == nullptr || program->status_lines() == nullptr)
    return usage_error("--from: no program with a status line: " + options.from, "statusline");
  const Charset charset = charset_of_locale();
  Daemon daemon(options.daemon);
  Input input(*program->status_lines());
  exchange(input, daemon, until);
  ProgramLine line;
  std::string session;
  if (const auto& status = input.status()) {
    line = line_of(*status, charset);
    session = status->session;
  }
  add_sessions(line, daemon.session_frames(), session, charset, now_ms());
  Output out;
  out.write(format_program_line(line, charset, now_ms()) + "\n");
  out.flush();
  return exit_ok;
}

}  // namespace earshot::cli
