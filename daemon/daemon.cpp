#include "daemon.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

#include "serve/http/health.hpp"
#include "serve/http/metrics.hpp"

namespace earshot {
namespace {

constexpr std::size_t readings_at_once =
    8;  // cold transcripts asked for together; the others wait in a list of names

serve::ServerOptions server_options(const config::Options& options, const serve::Secrets& secrets,
                                    const std::string& version) {
  serve::ServerOptions result;
  result.host = options.host;
  result.version = version;
  result.token = secrets.token;
  result.recent = options.recent;
  result.log_bytes_max = options.log_bytes_max;
  result.limits = options.limits;
  return result;
}

tail::Options tail_options(const config::Options& options, const std::vector<tail::Root>& roots,
                           const serve::Secrets& secrets, const TextFilter& filter) {
  tail::Options tail;
  tail.filter = &filter;
  tail.roots = roots;
  tail.hash_key = secrets.hash_key;
  tail.recent = options.recent;
  return tail;
}

std::vector<redact::UserRule> user_rules(const config::Options& options) {
  std::vector<redact::UserRule> rules;
  for (const auto& [name, pattern] : options.redaction) rules.push_back({name, pattern});
  return rules;
}

watch::Mode mode_of(const std::string& word) {
  if (word == "inotify") return watch::Mode::inotify;
  return word == "sweep" ? watch::Mode::sweep : watch::Mode::both;
}

watch::SweepIntervals beats_of(const config::Options& options) {
  watch::SweepIntervals beats;
  if (options.sweep) beats.slow = beats.alone = *options.sweep;
  return beats;
}

std::vector<std::string> paths_of(const std::vector<tail::Root>& roots) {
  std::vector<std::string> paths;
  for (const tail::Root& root : roots) paths.push_back(root.path);
  return paths;
}

}  // namespace

/// Cold transcripts that are being read for somebody.
struct Daemon::Reading {
  std::vector<std::string> names;
  std::size_t next = 0, open = 0;
  std::function<void()> then;
};

Daemon::Daemon(boost::asio::io_context& io, const config::Options& options, std::vector<tail::Root> roots,
               StartupResources doors, const std::string& version)
    : io_(io),
      roots_(std::move(roots)),
      state_(options.state),
      watch_mode_(options.watch),
      lock_(std::move(doors.lock)),
      redactor_(user_rules(options)),
      redact_(options.redact),
      server_(io, server_options(options, doors.secrets, version)),
      watchers_(io, disk_.get_executor(), mode_of(options.watch), beats_of(options)),
      tail_(io, disk_.get_executor(), watchers_.switchboard(),
            tail_options(options, roots_, doors.secrets, redactor_), server_),
      team_(io, server_, options, doors.secrets.hash_key, roots_,
            [this](const std::function<void(const tail::Stream&)>& visit) { tail_.for_each(visit); }) {
  watch::Watcher& line =
      watchers_.switchboard().connect(paths_of(roots_), [this](const watch::ChangeHint& ring) {
        if (board_) board_->ring(ring);
      });
  board_ = std::make_unique<status::StatusTracker>(io, disk_.get_executor(), paths_of(roots_), line, *this);
  if (!options.hub) {  // there, what a session does is said by its host
    server_.on_transcript_summary = [this](const std::string& session,
                                           const status::TranscriptSummary& said) {
      board_->transcript_changed(session, said);
    };
    server_.on_session_compacting = [this](const std::string& session) { board_->compacting(session); };
    server_.on_session_removed = [this](const std::string& session) { board_->forget(session); };
  }
  server_.set_cold_session_reader([this](auto wanted, auto then) { read_cold(wanted, std::move(then)); });
  server_.set_archive(tail_);
  server_.set_redaction(redactor_, options.redact);
  serve::DaemonCallbacks callbacks;
  callbacks.fill_metrics = [this](serve::Metrics& metrics) { fill(metrics); };
  callbacks.fill_health = [this](serve::Health& health) { fill(health); };
  callbacks.store_token = [this](const std::string& token) {
    return serve::write_private_file(state_ + "/token", token + "\n", serve::Existing::replace);
  };
  server_.set_callbacks(std::move(callbacks));
  server_.set_remote_view(options.remote_view);
  server_.listen(options.listen, std::move(doors.tls), options.names, options.listen_descriptor);
  server_.listen(std::move(doors.socket));
}

Daemon::~Daemon() {
  disk_.stop();
  disk_.join();  // before what its tasks speak of goes
}

void Daemon::start(std::function<void(const std::string&)> on_ready) {
  on_ready_ = std::move(on_ready);
  board_->start();
  tail_.start([this] { ready(); });
}

void Daemon::ready() {
  reading_done_ = true;
  log_troubles();
  for (const std::string& session : board_->alive_sessions()) want(session);
  url_ = server_.url();
  write_address();
  server_.serve();
#ifdef __GLIBC__
  ::malloc_trim(0);  // what listing and folding took for a moment; nothing that comes later needs as much
#endif
  on_ready_(url_);
  team_.start();
}

void Daemon::log_troubles() const {
  // What is wrong with single files and with expected roots was told when it was found.
  const bool any = std::any_of(roots_.begin(), roots_.end(), [](const tail::Root& root) {
    std::error_code ec;
    return root.expected || std::filesystem::is_directory(root.path, ec);
  });
  if (!any) {
    for (const tail::Root& root : roots_) spdlog::warn("no agent program has written to {} yet", root.path);
  }
  if (const std::string trouble = watchers_.trouble(); !trouble.empty()) spdlog::warn("{}", trouble);
}

/// Where clients find this daemon by themselves.
void Daemon::write_address() const {
  const std::pair<const char*, const std::string&> files[] = {{"/address", url_},
                                                              {"/socket", server_.socket_path()}};
  for (const auto& [name, text] : files) {
    if (text.empty()) continue;
    const std::string error = serve::write_private_file(state_ + name, text + "\n", serve::Existing::replace);
    if (!error.empty()) spdlog::warn("clients will not find this daemon by themselves: {}", error);
  }
}

void Daemon::forget_address() const {
  std::error_code ignored;
  if (url_.empty()) return;  // it was never written
  for (const char* name : {"/address", "/socket"}) std::filesystem::remove(state_ + name, ignored);
}

void Daemon::fill(serve::Metrics& metrics) const {
  const tail::Counters counters = tail_.counters();
  metrics.tail_bytes = counters.bytes_read;
  metrics.tail_looks = counters.looks;
  metrics.tail_resets = counters.resets;
  metrics.tail_verifications = counters.verifications;
  metrics.tail_events = counters.events;
  metrics.pending_bytes = counters.pending_bytes;
  metrics.open_files = counters.open_files;
  metrics.known_files = counters.known_files;
  metrics.directories = counters.directories;
  metrics.streams_live = counters.streams;
  metrics.streams_cold = counters.known_files - std::min(counters.known_files, counters.streams);
  for (const auto& [rule, count] : redactor_.counts()) metrics.redactions.emplace_back(rule, count);
  metrics.troubles = tail_.health().size();
  metrics.inotify_watches = watchers_.watches();
  metrics.watch_trouble = !watchers_.trouble().empty();
  team_.fill(metrics);
}

void Daemon::fill(serve::Health& health) const {
  health.state = state_;
  for (const tail::Root& root : roots_) {
    std::error_code ec;
    health.roots.push_back({root.name, root.path, std::filesystem::is_directory(root.path, ec)});
  }
  tail_.for_each([&](const tail::Stream& stream) {
    const std::string_view name = stream.name();
    const std::string_view of_root = name.substr(0, name.find('/'));
    for (serve::Health::Root& root : health.roots) {
      if (root.name != of_root) continue;
      ++root.transcripts;
      if (stream.transcript()) ++root.live;
    }
  });
  health.redaction.on = redact_;
  for (const std::string_view rule : redactor_.names()) health.redaction.rules.emplace_back(rule);
  health.watch = {watch_mode_, watchers_.trouble(), watchers_.watches()};
  for (const tail::Health& trouble : tail_.health())
    health.troubles.push_back({trouble.path, trouble.reason, trouble.advice});
  team_.fill(health);
}

void Daemon::stop() {
  team_.stop();
  tail_.stop();
  board_->stop();
  forget_address();
  server_.stop([this] { io_.stop(); });
}

void Daemon::on_status(const std::string& session, const status::Status& status) {
  server_.status_changed(session, status);
  if (reading_done_ && board_->alive(session)) want(session);
}

/// A session whose process lives is shown, though its transcript may be too old to have been read at the
/// start.
void Daemon::want(const std::string& session) {
  if (server_.has_transcript(session)) return;
  read_cold([session](std::string_view name) { return name == session; }, [] {});
}

void Daemon::on_todos(const std::string& session) {
  const status::TodoList* list = board_->todos_of(session);
  if (!list) return server_.todos_changed(session, {});
  server_.todos_changed(session, serve::FileTodos{list->todos, list->modified});
}

void Daemon::read_cold(const std::function<bool(std::string_view)>& wanted, std::function<void()> then) {
  auto reading = std::make_shared<Reading>();
  tail_.for_each([&](const tail::Stream& stream) {
    if (!stream.transcript() && wanted(stream.session())) reading->names.push_back(stream.name());
  });
  reading->then = std::move(then);
  read_next(reading);
}

void Daemon::read_next(const std::shared_ptr<Reading>& reading) {
  while (reading->open < readings_at_once && reading->next < reading->names.size()) {
    ++reading->open;
    tail_.fold(reading->names[reading->next++], [this, reading](const tail::Stream*) {
      boost::asio::post(io_, [this, reading] {
        --reading->open;
        read_next(reading);
      });
    });
  }
  if (reading->open == 0 && reading->then) std::exchange(reading->then, {})();
}

}  // namespace earshot
