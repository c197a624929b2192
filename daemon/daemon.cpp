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

#include "base/file.hpp"
#include "serve/http/metrics.hpp"

namespace earshot {
namespace {

constexpr std::size_t cold_reads_max = 8;  // concurrent; further transcripts wait in ColdRead

serve::ServerOptions server_options(const config::Options& options, const serve::Secrets& secrets,
                                    const std::string& version) {
  serve::ServerOptions result;
  result.host = options.host;
  result.version = version;
  result.token = secrets.token;
  result.metrics_token = secrets.metrics_token;
  result.recent = options.recent;
  result.log_bytes_max = options.log_bytes_max;
  result.limits = options.limits;
  return result;
}

tail::Options tail_options(const config::Options& options, const std::vector<Root>& roots,
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

watch::Mode watch_mode(const std::string& name) {
  if (name == "inotify") return watch::Mode::inotify;
  return name == "sweep" ? watch::Mode::sweep : watch::Mode::both;
}

watch::SweepIntervals sweep_intervals(const config::Options& options) {
  watch::SweepIntervals intervals;
  if (options.sweep) intervals.slow = intervals.alone = *options.sweep;
  return intervals;
}

std::vector<std::string> paths_of(const std::vector<Root>& roots) {
  std::vector<std::string> paths;
  for (const Root& root : roots) paths.push_back(root.path);
  return paths;
}

/// The roots and the directories below them that are read.
std::vector<std::string> directories_of(const std::vector<Root>& roots) {
  std::vector<std::string> directories = paths_of(roots);
  for (const Root& root : roots) {
    for (const std::string_view below : root.program->transcript_directories())
      directories.push_back(root.path + '/' + std::string(below));
    if (const auto registry = root.program->registry_directory(); !registry.empty())
      directories.push_back(root.path + '/' + std::string(registry));
  }
  return directories;
}

}  // namespace

/// A request to read the state of cold transcripts.
struct Daemon::ColdRead {
  std::vector<std::string> names;
  std::size_t next = 0, open = 0;
  std::function<void()> on_done;
};

Daemon::Daemon(boost::asio::io_context& io, const config::Options& options, std::vector<Root> roots,
               StartupResources resources, const std::string& version)
    : io_(io),
      roots_(std::move(roots)),
      state_(options.state),
      watch_mode_(options.watch),
      lock_(std::move(resources.lock)),
      redactor_(user_rules(options)),
      redact_(options.redact),
      mounts_(io, directories_of(roots_),
              [this](const std::string& mount) {
                spdlog::info("{}: the file system answers again", mount);
                watchers_.mux().notify({watch::ChangeHint::Where::directory, mount});
              }),
      server_(io, server_options(options, resources.secrets, version)),
      watchers_(io, disk_.get_executor(), watch_mode(options.watch), sweep_intervals(options)),
      tail_(io, disk_.get_executor(), watchers_.mux(),
            tail_options(options, roots_, resources.secrets, redactor_), server_),
      team_(io, server_, options, resources.secrets.hash_key, roots_,
            [this](const std::function<void(const tail::Stream&)>& visit) { tail_.for_each(visit); }) {
  watch::Watcher& watcher =
      watchers_.mux().add_client(paths_of(roots_), [this](const watch::ChangeHint& hint) {
        if (status_tracker_) status_tracker_->on_change(hint);
      });
  status_tracker_ = std::make_unique<status::StatusTracker>(io, disk_.get_executor(), roots_, watcher, *this);
  if (!options.hub) {  // a hub receives statuses from the hosts
    server_.on_transcript_summary = [this](const std::string& session,
                                           const status::TranscriptSummary& summary) {
      status_tracker_->transcript_changed(session, summary);
    };
    server_.on_session_compacting = [this](const std::string& session) {
      status_tracker_->compaction_started(session);
    };
    server_.on_session_removed = [this](const std::string& session) {
      status_tracker_->remove_session(session);
    };
  }
  server_.set_cold_session_reader(
      [this](auto is_requested, auto on_done) { read_cold(is_requested, std::move(on_done)); });
  server_.set_archive(tail_);
  server_.set_redaction(redactor_, options.redact);
  serve::DaemonCallbacks callbacks;
  callbacks.fill_metrics = [this](serve::Metrics& metrics) { fill(metrics); };
  callbacks.fill_health = [this](serve::Health& health) { fill(health); };
  callbacks.store_token = [this](const std::string& token) {
    return write_private_file(state_ + "/token", token + "\n");
  };
  server_.set_callbacks(std::move(callbacks));
  server_.set_remote_view(options.remote_view);
  server_.listen(options.listen, std::move(resources.tls), options.names, options.listen_descriptor);
  server_.listen(std::move(resources.socket));
}

Daemon::~Daemon() {
  disk_.stop();
  disk_.join();  // before the members that its tasks use are destroyed
}

void Daemon::start(std::function<void(const std::string&)> on_ready) {
  on_ready_ = std::move(on_ready);
  status_tracker_->start();
  tail_.start([this] { ready(); });
}

void Daemon::ready() {
  is_ready_ = true;
  log_problems();
  for (const std::string& session : status_tracker_->alive_sessions()) read_session(session);
  url_ = server_.url();
  write_address();
  server_.serve();
#ifdef __GLIBC__
  ::malloc_trim(0);  // startup has the highest memory use; return the rest to the system
#endif
  on_ready_(url_);
  team_.start();
}

void Daemon::log_problems() const {
  // Problems of single files and of expected roots are logged where they are detected.
  const bool any = std::any_of(roots_.begin(), roots_.end(), [](const Root& root) {
    return root.expected || stat_file(root.path, Symlinks::follow).is_directory();
  });
  if (!any) {
    for (const Root& root : roots_) spdlog::warn("no agent program has written to {} yet", root.path);
  }
  if (const std::string problem = watchers_.problem(); !problem.empty()) spdlog::warn("{}", problem);
}

/// Writes the files from which clients discover the daemon.
void Daemon::write_address() const {
  const std::pair<const char*, const std::string&> files[] = {{"/address", url_},
                                                              {"/socket", server_.socket_path()}};
  for (const auto& [name, text] : files) {
    if (text.empty()) continue;
    const std::string error = write_private_file(state_ + name, text + "\n");
    if (!error.empty()) spdlog::warn("clients cannot discover this daemon: {}", error);
  }
}

void Daemon::remove_address() const {
  std::error_code ignored;
  if (url_.empty()) return;  // not written
  for (const char* name : {"/address", "/socket"}) std::filesystem::remove(state_ + name, ignored);
}

void Daemon::fill(serve::Metrics& metrics) const {
  const tail::Counters counters = tail_.counters();
  metrics.tail_bytes = counters.bytes_read;
  metrics.tail_looks = counters.checks;
  metrics.tail_resets = counters.resets;
  metrics.tail_verifications = counters.verifications;
  metrics.tail_events = counters.events;
  metrics.tail_dropped = counters.dropped;
  metrics.pending_bytes = counters.pending_bytes;
  metrics.open_files = counters.open_files;
  metrics.known_files = counters.known_files;
  metrics.directories = counters.directories;
  metrics.streams_live = counters.streams;
  metrics.streams_cold = counters.known_files - std::min(counters.known_files, counters.streams);
  for (const auto& [rule, count] : redactor_.counts()) metrics.redactions.emplace_back(rule, count);
  metrics.problems = tail_.problems().size();
  metrics.inotify_watches = watchers_.watches();
  metrics.watch_problem = !watchers_.problem().empty();
  team_.fill(metrics);
}

void Daemon::fill(serve::Health& health) const {
  health.state = state_;
  for (const Root& root : roots_)
    health.roots.push_back({root.name, root.path, stat_file(root.path, Symlinks::follow).is_directory()});
  tail_.for_each([&](const tail::Stream& stream) {
    const std::string_view name = stream.name();
    const std::string_view root_name = name.substr(0, name.find('/'));
    for (serve::Health::Root& root : health.roots) {
      if (root.name != root_name) continue;
      ++root.transcripts;
      if (stream.transcript()) ++root.live;
    }
  });
  health.redaction.on = redact_;
  for (const std::string_view rule : redactor_.names()) health.redaction.rules.emplace_back(rule);
  health.watch = {watch_mode_, watchers_.problem(), watchers_.watches()};
  for (const tail::FileProblem& problem : tail_.problems())
    health.problems.push_back({problem.path, problem.reason, problem.advice});
  team_.fill(health);
}

void Daemon::stop() {
  team_.stop();
  tail_.stop();
  status_tracker_->stop();
  remove_address();
  server_.stop([this] { io_.stop(); });
}

void Daemon::on_status(const std::string& session, const status::Status& status) {
  server_.status_changed(session, status);
  if (is_ready_ && status_tracker_->is_alive(session)) read_session(session);
}

/// Reads the transcript of a session with a running process that was too old to be read at startup.
void Daemon::read_session(const std::string& session) {
  if (server_.has_transcript(session)) return;
  auto read = std::make_shared<ColdRead>();
  read->names = tail_.cold_streams_of(session);
  read_next(read);
}

void Daemon::on_todos(const std::string& session) {
  const status::TodoList* list = status_tracker_->todos_of(session);
  if (!list) return server_.todos_changed(session, {});
  server_.todos_changed(session, serve::FileTodos{list->todos, list->modified});
}

void Daemon::read_cold(const std::function<bool(std::string_view)>& is_requested,
                       std::function<void()> on_done) {
  auto read = std::make_shared<ColdRead>();
  tail_.for_each([&](const tail::Stream& stream) {
    if (!stream.transcript() && is_requested(stream.session())) read->names.push_back(stream.name());
  });
  read->on_done = std::move(on_done);
  read_next(read);
}

void Daemon::read_next(const std::shared_ptr<ColdRead>& read) {
  while (read->open < cold_reads_max && read->next < read->names.size()) {
    ++read->open;
    tail_.fold(read->names[read->next++], [this, read](const tail::Stream*) {
      boost::asio::post(io_, [this, read] {
        --read->open;
        read_next(read);
      });
    });
  }
  if (read->open == 0 && read->on_done) std::exchange(read->on_done, {})();
}

}  // namespace earshot
