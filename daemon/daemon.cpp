#include "daemon.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "base/file.hpp"
#include "base/system.hpp"
#include "log/log.hpp"

namespace earshot {
namespace {

constexpr unsigned fold_threads_max = 4;
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

/// Threads that read history at start.
std::size_t fold_threads() { return std::clamp(std::thread::hardware_concurrency(), 1u, fold_threads_max); }

tail::Options tail_options(const config::Options& options, const std::vector<Root>& roots,
                           const serve::Secrets& secrets, const TextFilter& filter,
                           boost::asio::thread_pool& folds) {
  tail::Options tail;
  tail.fold_executor = folds.get_executor();
  tail.folds_max = fold_threads();
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
  if (options.sweep) {
    intervals.slow = intervals.alone = *options.sweep;
    intervals.turn = {};
  }
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
    for (std::string& each : transcript_directories(root)) directories.push_back(std::move(each));
    if (const RegistryFiles* registry = root.program->registry())
      directories.push_back(root.path + '/' + std::string(registry->registry_directory()));
  }
  return directories;
}

/// Cursors depend on the host's key, and the text on the rules of redaction and of this version.
std::string search_identity(const config::Options& options, const serve::Secrets& secrets,
                            const redact::Redactor& redactor, const std::string& version) {
  std::string identity = team::owner_id(secrets.hash_key) + "\n" + version;
  for (const std::string_view rule : redactor.names()) identity += "\n" + std::string(rule);
  for (const auto& [name, pattern] : options.redaction) identity += "\n" + name + "=" + pattern;
  return identity;
}

/// Returns freed memory to the system. From any thread.
void return_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

/// Null: off, and the index is deleted.
std::unique_ptr<search::Search> make_search(boost::asio::io_context& io, const config::Options& options,
                                            const serve::Secrets& secrets, const redact::Redactor& redactor,
                                            const ModelTable& models, serve::Server& server,
                                            const std::string& version, std::function<void()> on_built) {
  if (!options.search) {
    search::remove_index(options.state);
    return nullptr;
  }
  search::SearchOptions search;
  search.directory = options.state;
  search.identity = search_identity(options, secrets, redactor, version);
  search.host = options.hub ? "" : options.host;
  search.models = &models;
  search.on_built = std::move(on_built);
  return std::make_unique<search::Search>(io, std::move(search), redactor, server);
}

/// Throws std::runtime_error with a message for users.
otlp::Config exporter_config(otlp::Config config, const std::string& version) {
  if (const std::string error = otlp::read_headers_file(config); !error.empty())
    throw std::runtime_error("[otlp]: headers_file: " + error);
  for (const otlp::SignalConfig* signal : {&config.traces, &config.metrics, &config.logs}) {
    if (!signal->is_on() || signal->tls_ca.empty()) continue;
    if (const std::string error = otlp::check_authorities(signal->tls_ca); !error.empty())
      throw std::runtime_error("[otlp]: tls_ca: " + error);
  }
  config.resource.service_version = version.substr(0, version.find(' '));
  return config;
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
      models_(options.models),
      redactor_(user_rules(options)),
      redact_(options.redact),
      mounts_(io, directories_of(roots_),
              [this](const std::string& mount) {
                log_info("{}: the file system answers again", mount);
                watchers_.mux().notify({watch::ChangeHint::Where::directory, mount});
              }),
      folds_(fold_threads()),
      cold_lists_(io),
      server_(io, server_options(options, resources.secrets, version)),
      watchers_(io, disk_.get_executor(), watch_mode(options.watch), sweep_intervals(options)),
      search_(make_search(io, options, resources.secrets, redactor_, models_, server_, version,
                          [this] { boost::asio::post(disk_, return_memory); })),
      tail_(io, disk_.get_executor(), watchers_.mux(),
            tail_options(options, roots_, resources.secrets, redactor_, folds_),
            search_ ? static_cast<tail::StreamObserver&>(*search_) : server_),
      seen_file_(io, disk_.get_executor(),
                 {state_ + "/seen.json", "which sessions you have seen", "all sessions count as seen"},
                 [this] { return [text = server_.seen().text()] { return text; }; }),
      browsers_file_(io, disk_.get_executor(),
                     {.path = state_ + "/browsers.json",
                      .what = "which browsers are signed in",
                      .if_damaged = "browsers must sign in again, with `earshot open`",
                      .is_private = true,
                      .delay = std::chrono::seconds(5)},  // of when they were last used
                     [this] { return [text = server_.browsers().text()] { return text; }; }),
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
      [this](auto is_requested, auto on_done) { read_cold(std::move(is_requested), std::move(on_done)); },
      [this](const std::string& session) { return !tail_.cold_streams_of(session).empty(); });
  server_.set_models(models_);
  server_.set_archive(tail_);
  server_.set_redaction(redactor_, options.redact);
  serve::DaemonCallbacks callbacks;
  callbacks.fill_metrics = [this](serve::MetricsPage& page) { fill(page); };
  callbacks.fill_health = [this](serve::Health& health) { fill(health); };
  callbacks.store_token = [this](const std::string& token) {
    return write_private_file(state_ + "/token", token + "\n");
  };
  callbacks.process_of = [this](const std::string& session) { return process_of(session); };
  callbacks.seen_changed = [this] { seen_file_.changed(); };
  callbacks.store_browsers = [this](auto done) { browsers_file_.store(std::move(done)); };
  server_.set_callbacks(std::move(callbacks));
  server_.set_browsers(browsers_file_.read(serve::Browsers::text_bytes_max, serve::Browsers::parse)
                           .value_or(serve::Browsers()));
  server_.set_browser_used([this] { browsers_file_.changed(); });
  browsers_file_.store({});  // the id of the daemon, and without former users
  auto seen = seen_file_.read(serve::SeenMarks::text_bytes_max, serve::SeenMarks::parse);
  if (!seen) seen_file_.changed();  // remembers that everything before now counts as seen
  server_.set_seen(seen ? std::move(*seen) : serve::SeenMarks(wall_now_ms()));
  server_.set_remote_view(options.remote_view);
  if (search_) {
    server_.set_search([this](serve::SearchRequest request, std::function<void(serve::HttpResponse)> done) {
      search_->run(std::move(request), std::move(done));
    });
  }
  server_.listen(options.listen, std::move(resources.tls), options.names, options.listen_descriptor);
  server_.listen(std::move(resources.socket));
  if (options.hub) server_.set_welcome_url(options.hub->url_public);
  if (options.otlp)
    exporter_ = std::make_unique<otlp::Exporter>(
        io, disk_.get_executor(), server_,
        [this](const std::function<void(const tail::Stream&)>& visit) { tail_.for_each(visit); },
        exporter_config(*options.otlp, version), state_);
}

Daemon::~Daemon() {
  if (search_) search_->stop();
  disk_.stop();
  folds_.stop();
  folds_.join();
  disk_.join();  // before the members that its tasks use are destroyed
  seen_file_.flush();
  browsers_file_.flush();
  if (exporter_) exporter_->flush_positions();
}

void Daemon::start(std::function<void(const std::string&)> on_ready) {
  on_ready_ = std::move(on_ready);
  status_tracker_->start();
  // After the statuses that follow from history: the first ones that clients see are those of live processes.
  tail_.start(
      [this] { boost::asio::post(io_, [this] { status_tracker_->when_examined([this] { ready(); }); }); });
}

void Daemon::ready() {
  is_ready_ = true;
  log_problems();
  for (const std::string& session : status_tracker_->alive_sessions()) read_session(session);
  url_ = server_.url();
  write_address();
  server_.serve();
  return_memory();  // startup has the highest memory use
  on_ready_(url_);
  team_.start();
  if (search_) search_->start(tail_);
  if (exporter_) exporter_->start();
}

void Daemon::log_problems() const {
  // Problems of single files and of expected roots are logged where they are detected.
  const bool any = std::any_of(roots_.begin(), roots_.end(), [](const Root& root) {
    return root.expected || stat_file(root.path, Symlinks::follow).is_directory();
  });
  if (!any) {
    for (const Root& root : roots_) log_warn("no agent program has written to {} yet", root.path);
  }
  if (const std::string problem = watchers_.problem(); !problem.empty()) log_warn("{}", problem);
}

/// Writes the files from which clients discover the daemon.
void Daemon::write_address() const {
  const std::pair<const char*, const std::string&> files[] = {{"/address", url_},
                                                              {"/socket", server_.socket_path()}};
  for (const auto& [name, text] : files) {
    if (text.empty()) continue;
    const std::string error = write_private_file(state_ + name, text + "\n");
    if (!error.empty()) log_warn("clients cannot discover this daemon: {}", error);
  }
}

void Daemon::remove_address() const {
  std::error_code ignored;
  if (url_.empty()) return;  // not written
  for (const char* name : {"/address", "/socket"}) std::filesystem::remove(state_ + name, ignored);
}

void Daemon::fill(serve::MetricsPage& page) const {
  const tail::Counters counters = tail_.counters();
  page.add("earshot_tail_read_bytes_total", "Bytes read from transcripts.", counters.bytes_read);
  page.add("earshot_tail_looks_total", "Checks of transcripts for changes.", counters.checks);
  page.add("earshot_tail_resets_total", "Transcripts that were found to have a new history.",
           counters.resets);
  page.add("earshot_tail_verifications_total", "Verifications of complete prefixes.", counters.verifications);
  page.add("earshot_tail_events_total", "Events read from transcripts.", counters.events);
  page.add("earshot_tail_dropped",
           "Calls, agents, results, texts and lists of followed transcripts that are beyond a limit.",
           counters.dropped);
  page.add("earshot_tail_pending_bytes", "Bytes of incomplete lines.", counters.pending_bytes);
  page.add("earshot_tail_open_files", "Open transcripts.", counters.open_files);
  page.add("earshot_tail_known_files", "Known transcripts.", counters.known_files);
  page.add("earshot_tail_directories", "Watched directories.", counters.directories);
  page.family("earshot_streams", "Transcripts, followed (live) or not (cold).")
      .sample(counters.streams, {{"state", "live"}})
      .sample(counters.known_files - std::min(counters.known_files, counters.streams), {{"state", "cold"}});
  page.add("earshot_problems", "Unreadable files and directories.", tail_.problems().size());
  page.add("earshot_inotify_watches", "inotify watches.", watchers_.watches());
  page.add("earshot_watch_problem", "1 if changes are found by sweeps only, or with delay.",
           watchers_.problem().empty() ? 0 : 1);
  page.family("earshot_unknown_records", "Records in live transcripts whose type earshot has no rule for.");
  for (const serve::UnknownRecords& unknown : unknown_records())
    for (const auto& [type, records] : unknown.types)
      page.sample(records, {{"program", unknown.program}, {"version", unknown.version}, {"type", type}});
  page.family("earshot_redactions_total", "Redacted secrets, by rule.");
  for (const auto& [rule, count] : redactor_.counts()) page.sample(count, {{"rule", rule}});
  if (search_) search_->fill(page);
  team_.fill(page);
  page.add(export_metrics());
  if (exporter_)
    page.add("earshot_otlp_lag_seconds", "Age of the oldest data that the collector has not accepted yet.",
             exporter_->metrics().lag_seconds);
}

serve::TeamMetrics Daemon::export_metrics() const {
  if (!exporter_) return {};
  const otlp::ExporterMetrics m = exporter_->metrics();
  return {"otlp",
          {{"open", "1 unless the collector refuses data or does not answer.", false, m.problem.empty()},
           {"exported", "Spans and log records that the collector accepted.", true, m.exported},
           {"rejected", "Spans and log records that it rejected.", true, m.rejected},
           {"dropped", "Spans and log records of requests that it refused.", true, m.dropped},
           {"expired", "Spans older than `retain`.", true, m.expired},
           {"retries", "Requests that are sent again.", true, m.retries},
           {"pending", "Spans and log records that it has not accepted yet.", false, m.pending},
           {"pending_bytes", "Their size; later events stay in the transcripts.", false, m.pending_bytes}}};
}

std::vector<serve::UnknownRecords> Daemon::unknown_records() const {
  constexpr std::string_view name_characters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./: ()";
  std::map<std::pair<std::string, std::string>, serve::UnknownRecords> found;
  tail_.for_each_live([&](const tail::Stream& stream) {
    const Transcript* transcript = stream.transcript();
    if (transcript->counts().unknown_types.empty()) return;
    const StreamState& state = transcript->state();
    const std::pair key(state.program, state.version);
    if (!found.contains(key) && found.size() >= serve::UnknownRecords::versions_max) return;
    serve::UnknownRecords& unknown = found[key];
    unknown.program = state.program;
    unknown.version = state.version;
    for (const auto& [type, records] : transcript->counts().unknown_types) {
      const bool is_name = type.find_first_not_of(name_characters) == type.npos;  // the text is anybody's
      const bool is_named = is_name && (unknown.types.contains(type) ||
                                        unknown.types.size() < serve::UnknownRecords::types_max);
      unknown.types[is_named ? type : "(other)"] += records;
    }
  });
  std::vector<serve::UnknownRecords> all;
  for (auto& [key, unknown] : found) all.push_back(std::move(unknown));
  return all;
}

void Daemon::fill(serve::Health& health) const {
  health.state = state_;
  for (const Root& root : roots_)
    health.roots.push_back({root.name, root.path, std::string(root.program->program()),
                            stat_file(root.path, Symlinks::follow).is_directory(),
                            tail_.known_files(root.name)});
  tail_.for_each_live([&](const tail::Stream& stream) {
    const std::string_view name = stream.name();
    const std::string_view root_name = name.substr(0, name.find('/'));
    for (serve::Health::Root& root : health.roots) root.live += root.name == root_name ? 1 : 0;
  });
  health.unknown_records = unknown_records();
  health.redaction.on = redact_;
  for (const std::string_view rule : redactor_.names()) health.redaction.rules.emplace_back(rule);
  health.watch = {watch_mode_, watchers_.problem(), watchers_.watches()};
  for (const tail::FileProblem& problem : tail_.problems())
    health.problems.push_back({problem.path, problem.reason, problem.advice});
  for (const serve::DebouncedFile* file : {&seen_file_, &browsers_file_})
    if (!file->problem().empty())
      health.problems.push_back({file->path(), file->problem(), "the daemon retries"});
  if (search_) search_->fill(health);
  team_.fill(health);
  health.exporter = export_metrics();
  if (exporter_ && !exporter_->metrics().problem.empty())
    health.problems.push_back({"[otlp]", exporter_->metrics().problem, "see `man earshot.toml`, [otlp]"});
}

void Daemon::stop() {
  if (exporter_) exporter_->stop();
  team_.stop();
  if (search_) search_->stop();
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

std::optional<serve::SessionProcess> Daemon::process_of(const std::string& session) const {
  const auto found = status_tracker_->process_of(session);
  if (!found) return std::nullopt;
  return serve::SessionProcess{std::string(found->program->program()), found->pid, found->source};
}

void Daemon::on_todos(const std::string& session) {
  const status::TodoList* list = status_tracker_->todos_of(session);
  if (!list) return server_.todos_changed(session, {});
  server_.todos_changed(session, serve::FileTodos{list->todos, list->modified});
}

/// Lists them in slices.
void Daemon::read_cold(std::function<bool(std::string_view)> is_requested, std::function<void()> on_done) {
  constexpr std::size_t files_per_step = 32;
  auto read = std::make_shared<ColdRead>();
  read->on_done = std::move(on_done);
  const auto list = [this, read, is_requested = std::move(is_requested),
                     place = tail::Tail::Place()](serve::Slice& slice) mutable {
    const auto add = [&](const tail::Stream& stream) {
      if (!stream.transcript() && is_requested(stream.session())) read->names.push_back(stream.name());
    };
    while (tail_.for_some(place, files_per_step, add))
      if (slice.is_over()) return false;
    return true;
  };
  cold_lists_.begin(read.get(), list, [this, read] { read_next(read); });
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

// --- the team features

namespace {

/// True if the stream's transcript does not exist, but the directory of transcripts in its root does.
bool is_deleted(const std::vector<Root>& roots, std::string_view stream) {
  const auto slash = stream.find('/');
  const auto root = std::find_if(roots.begin(), roots.end(),
                                 [&](const Root& each) { return each.name == stream.substr(0, slash); });
  if (root == roots.end() || slash == stream.npos) return false;
  const auto place = parse_stream_name(*root->program, stream.substr(slash + 1));
  if (!place) return false;
  const std::vector<std::string> directories = transcript_directories(*root);
  const auto is_there = [](const std::string& directory) {
    return stat_file(directory, Symlinks::follow).is_directory();
  };
  if (place->directory > 0 ? !is_there(directories[place->directory])
                           : std::none_of(directories.begin(), directories.end(), is_there))
    return false;
  const auto is_missing = [&](const std::string& directory) {
    return stat_transcript(directory + "/" + place->below + std::string(transcript_suffix)).error == ENOENT;
  };
  // A name without a prefix may belong to any transcript directory.
  return place->directory > 0 ? is_missing(directories[place->directory])
                              : std::all_of(directories.begin(), directories.end(), is_missing);
}

}  // namespace

Team::Team(boost::asio::io_context& io, serve::Server& server, const config::Options& options,
           std::uint64_t hash_key, std::vector<Root> roots, team::Publisher::ForEach for_each)
    : io_(io), server_(server) {
  if (options.hub) create_hub(*options.hub, options.state, hash_key);
  if (options.relay)
    create_publisher(*options.relay, options, hash_key, std::move(roots), std::move(for_each));
}

void Team::create_hub(const config::HubOptions& hub, const std::string& state, std::uint64_t hash_key) {
  server_.set_multi_host([this](std::string_view host) { return hosts_ && hosts_->online(host); });
  server_.set_users(hub.users);
  hosts_ = std::make_unique<team::HostRegistry>(
      io_,
      [this](const std::string& session, const status::Status& status) {
        server_.status_changed(session, status);
      },
      [this](const status::HostStatuses& hosts) { server_.hosts_changed(hosts); });
  hosts_->on_numbers = [this](const std::string& session, const serve::ReportedNumbers& numbers) {
    server_.on_host_numbers(session, numbers);
  };
  hosts_->on_clock = [this](const std::string& host, std::int64_t offset_ms) {
    server_.on_host_clock(host, offset_ms);
  };
  record_client_ = std::make_unique<team::RecordClient>(io_, hub.broker);
  server_.set_remote_record_reader(
      [this](const std::string& event_json, std::function<void(serve::RemoteRecord)> done) {
        record_client_->read(event_json, std::move(done));
      });
  team::IngestorOptions options;
  options.broker = hub.broker;
  options.durable = hub.durable;
  options.directory = state + "/hub";
  options.owner = team::owner_id(hash_key);
  options.store = hub.store;
  options.sync = hub.sync;
  hosts_max_ = hub.store.hosts_max;
  ingestor_ = std::make_unique<team::Ingestor>(
      io_, std::move(options), [this](const team::StatusMessage& message) { hosts_->on_message(message); });
  hosts_->is_connected = [this] { return ingestor_->metrics().open; };
}

void Team::create_publisher(const config::RelayOptions& relay, const config::Options& options,
                            std::uint64_t hash_key, std::vector<Root> roots,
                            team::Publisher::ForEach for_each) {
  team::PublisherOptions publisher;
  publisher.broker = relay.broker;
  publisher.broker.inbox = "_INBOX_" + escape_token(options.host);
  publisher.is_deleted = [roots = std::move(roots)](const std::string& stream) {
    return is_deleted(roots, stream);
  };
  publisher.host = options.host;
  publisher.owner = team::owner_id(hash_key);
  publisher.instance = server_.context().instance;
  publisher.full = relay.full;
  publisher.read = relay.read;
  publisher_ = std::make_unique<team::Publisher>(io_, server_, std::move(for_each), std::move(publisher));
}

Team::~Team() {
  publisher_.reset();
  ingestor_.reset();
  record_client_.reset();
  team::BrokerThread::wait_for_all();
}

void Team::start() {
  if (publisher_) publisher_->start();
  if (ingestor_) ingestor_->start();
  if (hosts_) hosts_->start();
}

void Team::stop() {
  if (publisher_) publisher_->stop();
  if (ingestor_) ingestor_->stop();
  if (hosts_) hosts_->stop();
}

serve::TeamMetrics Team::metrics() const {
  if (publisher_) {
    const team::PublisherMetrics m = publisher_->metrics();
    return {"relay",
            {{"open", "1 while connected to JetStream.", false, m.open},
             {"published", "Messages that JetStream acknowledged.", true, m.published},
             {"refused", "Messages that JetStream refused.", true, m.refused},
             {"opened", "Connections to the broker since the start.", true, m.opened},
             {"resets", "Resets published for rewritten transcripts.", true, m.resets},
             {"on_the_way", "Messages sent and not acknowledged yet.", false, m.in_flight},
             {"waiting_bytes", "Bytes of buffered messages; later events stay in the transcripts.", false,
              m.waiting_bytes}}};
  }
  if (!ingestor_) return {};
  const team::IngestorMetrics& m = ingestor_->metrics();
  std::uint64_t online = 0;
  for (const team::HostInfo& host : hosts_->hosts()) online += host.online;
  return {"hub",
          {{"open", "1 while connected to JetStream.", false, m.open},
           {"received", "Messages that JetStream delivered.", true, m.received},
           {"unsound", "Messages that did not match their subject; dropped.", true, m.invalid},
           {"opened", "Connections to the broker since the start.", true, m.opened},
           {"hosts", "Hosts with stored files.", false, m.store.hosts},
           {"hosts_online", "Hosts that send heartbeats.", false, online},
           {"files", "Stored files, one per stream.", false, m.store.files},
           {"bytes", "Bytes of the stored files.", false, m.store.bytes},
           {"appended", "Events appended to files.", true, m.store.appended},
           {"dropped", "Messages that were already stored.", true, m.store.dropped},
           {"restarted", "Files restarted with another history.", true, m.store.restarted},
           {"removed", "Files removed with their transcript.", true, m.store.removed},
           {"hosts_refused", "Events dropped because of the limit of hosts.", true, m.store.hosts_refused},
           {"files_refused", "Events dropped because of the limit of streams of a host.", true,
            m.store.files_refused},
           {"repairs_refused", "Repairs of a file after a gap refused because of the limit of a host.", true,
            m.store.repairs_refused},
           {"retired", "Files deleted because of the age or size limit.", true, m.store.retired}}};
}

void Team::fill(serve::MetricsPage& page) const { page.add(metrics()); }

void Team::fill(serve::Health& health) const {
  health.team = metrics();
  const auto add_problem = [&](const char* part, const std::string& reason) {
    if (!reason.empty()) health.problems.push_back({part, reason, "the daemon retries"});
  };
  if (publisher_) add_problem("[relay]", publisher_->metrics().problem);
  if (!ingestor_) return;
  add_problem("[hub]", ingestor_->metrics().problem);
  if (ingestor_->metrics().store.hosts_refused > 0)
    health.problems.push_back(
        {"[hub]",
         "more than " + std::to_string(hosts_max_) + " hosts publish: events of the others are dropped",
         "raise `hosts` in [hub]"});
  for (const team::HostInfo& host : hosts_->hosts())
    health.hosts.push_back({host.name, host.online, host.last_seen});
}

}  // namespace earshot
