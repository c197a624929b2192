#include "status/status_tracker.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "status/process_registry.hpp"
#include "status/small_file.hpp"
#include "status/todo_lists.hpp"

namespace earshot::status {

namespace {

using std::chrono::milliseconds;
using Steady = watch::Clock;

/// Sessions that ended without a transcript (opened and closed again): beyond this the oldest are forgotten.
constexpr std::size_t silent_ended_max = 1024;

/// A compaction that brought no growth for this long was given up: its sign is withdrawn at the next look.
constexpr milliseconds compacting_max = std::chrono::minutes(10);

struct Session {
  TranscriptSummary said;
  bool had_entry = false, seen_alive = false;
  std::int64_t ended_ms = 0;
  std::int64_t compacting_ms = 0;
  Steady::time_point compacting_since{};
  Steady::time_point quiet_since = Steady::now();  // when a transcript of it grew
  bool told = false;                               // `status` was told to the listener
  Status status;
  std::string asked;               // the call that the present wait names; empty: none, or it may be several
  std::set<std::string> answered;  // open calls that earlier waits named
};

bool is_open(const std::string& call, const TranscriptSummary& said) {
  return std::any_of(said.calls.begin(), said.calls.end(),
                     [&](const OpenCall& open) { return open.call == call; });
}

std::vector<std::string> normal(std::vector<std::string> roots) {
  for (std::string& root : roots) {
    while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  }
  return roots;
}

std::vector<std::string> prefixes_of(const std::vector<std::string>& roots) {
  std::vector<std::string> prefixes;
  for (const std::string& root : roots) {
    for (const char* name : {"/sessions", "/todos", "/tasks"}) prefixes.push_back(root + name);
  }
  return prefixes;
}

std::string nearest_directory(std::string path) {
  while (path.size() > 1 && directory_at(path) == Identity{})
    path = std::filesystem::path(path).parent_path().string();
  return path;
}

}  // namespace

struct StatusTracker::Impl : std::enable_shared_from_this<StatusTracker::Impl> {
  Impl(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
       std::vector<std::string> given_roots, watch::Watcher& given_watcher, StatusObserver& given_listener,
       const StatusTrackerOptions& given)
      : roots(normal(std::move(given_roots))),
        watcher(given_watcher),
        listener(given_listener),
        quiet_limit(given.quiet_max),
        roster(
            io, disk, roots, given_watcher, {given.proc_dir, given.machine_id_path, given.beat, given.retry},
            [this](const std::string& session) { evaluate(session); },
            [this](const std::string& root) { scanned(root); }),
        lists(io, disk, roots, given_watcher, given.retry,
              [this](const std::string& session) {
                if (running) listener.on_todos(session);
              }),
        clock(io) {}

  void arm(const std::string& root);
  void on_change(const watch::ChangeHint& ring);
  void look_at(const std::string& path);
  void rescan();
  void changed(const std::string& session, const TranscriptSummary& said);
  void evaluate(const std::string& session);
  void arm_clock(Steady::time_point deadline);
  void on_clock();
  void remove_session(const std::string& session);
  void remember_end(const std::string& session);
  void scanned(const std::string& root);

  std::vector<std::string> roots;
  watch::Watcher& watcher;
  StatusObserver& listener;
  milliseconds quiet_limit;
  ProcessRegistry roster;
  TodoLists lists;
  std::unordered_map<std::string, Session> sessions;
  std::deque<std::string> silent_ended;
  watch::Timer clock;
  std::optional<Steady::time_point> clock_at;
  std::set<std::string> unscanned;  // until it is empty nobody is told: no status that the next one denies
  bool running = false;
};

void StatusTracker::Impl::arm(const std::string& root) {
  std::string nearest = nearest_directory(root);
  for (std::string watched; watched != nearest; nearest = nearest_directory(root)) {
    watched = nearest;  // below it more may have appeared by the time that it is watched
    watcher.watch(nearest);
  }
  lists.arm(root);
  roster.scan(root);
}

void StatusTracker::Impl::on_change(const watch::ChangeHint& ring) {
  if (ring.where == watch::ChangeHint::Where::everything)
    rescan();
  else
    look_at(ring.path);
}

void StatusTracker::Impl::look_at(const std::string& path) {
  if (!running) return;
  for (const std::string& root : roots) {
    if (watch::at_or_below(root, path)) {  // the root, or above it: perhaps it was born or is gone
      arm(root);
    } else if (watch::at_or_below(path, root)) {
      const std::string below = path.substr(root.size() + 1);
      const std::string kind = below.substr(0, below.find('/'));
      if (below == "sessions")
        roster.scan(root);
      else if (kind == "sessions")
        roster.on_change(root, below.substr(kind.size() + 1));
      else if (kind == "todos" || kind == "tasks")
        lists.on_change(root, below);
    }
  }
}

void StatusTracker::Impl::rescan() {
  if (!running) return;
  for (const std::string& root : roots) arm(root);
  roster.check_all();
  lists.rescan();
}

void StatusTracker::Impl::scanned(const std::string& root) {
  if (unscanned.erase(root) == 0 || !unscanned.empty()) return;
  std::vector<std::string> names;
  for (const auto& [session, state] : sessions) names.push_back(session);
  for (const std::string& session : names) evaluate(session);
}

void StatusTracker::Impl::changed(const std::string& session, const TranscriptSummary& said) {
  Session& state = sessions[session];
  if (said.last_growth_ms != state.said.last_growth_ms) {
    const bool first = !state.said.known;
    // What happened before we looked is only known by the wall clock; from here on the steady one counts.
    const auto before = milliseconds(
        first && said.last_growth_ms ? std::max<std::int64_t>(0, watch::wall_now_ms() - said.last_growth_ms)
                                     : 0);
    state.quiet_since = Steady::now() - before;
    state.compacting_ms = 0;
  }
  state.said = said;
  if (said.known) lists.track(session);
  evaluate(session);
}

void StatusTracker::Impl::evaluate(const std::string& session) {
  Session& state = sessions[session];
  if (!running || !unscanned.empty()) return;
  const ProcessRegistry::RegistrySource voice = roster.entry_of(session);
  const bool lives = voice.entry && voice.life != Liveness::dead;
  state.had_entry = state.had_entry || voice.entry;
  state.seen_alive = state.seen_alive || lives;
  if (lives || !state.had_entry)
    state.ended_ms = 0;
  else if (!state.ended_ms)
    state.ended_ms = watch::wall_now_ms();
  const auto now = Steady::now();
  if (state.compacting_ms && now - state.compacting_since >= compacting_max) state.compacting_ms = 0;

  Evidence evidence;
  evidence.entry = voice.entry;
  evidence.life = voice.life;
  evidence.had_entry = state.had_entry;
  evidence.seen_alive = state.seen_alive;
  evidence.ended_ms = state.ended_ms;
  evidence.compacting_ms = state.compacting_ms;
  evidence.quiet = std::chrono::duration_cast<milliseconds>(now - state.quiet_since);
  evidence.quiet_max = quiet_limit;
  std::erase_if(state.answered, [&](const std::string& call) { return !is_open(call, state.said); });
  evidence.answered = &state.answered;
  Status status = settle(state.status, decide(evidence, state.said));
  // The transcript still shows a call as open when the next wait has begun: what the last wait named is
  // answered.
  const bool wait_is_over = status.state != "waiting" || status.since != state.status.since;
  if (wait_is_over && !state.asked.empty()) {
    state.answered.insert(std::exchange(state.asked, {}));
    status = settle(state.status, decide(evidence, state.said));
  }
  const OpenCall* named = named_call(status, state.said, state.answered);
  state.asked = named ? named->call : std::string();

  if (status.state == "working" && state.compacting_ms)
    arm_clock(state.compacting_since + compacting_max);
  else if (status.state == "working" && status.source == "transcript" && state.said.calls.empty())
    arm_clock(state.quiet_since + quiet_limit);
  if (state.told && status == state.status) return;
  state.told = true;
  state.status = std::move(status);
  if (state.status.state == "ended" && !state.said.known) remember_end(session);
  listener.on_status(session, Status(state.status));  // a copy: the listener may call back
}

/// One timer for all sessions, for the earliest of them.
void StatusTracker::Impl::arm_clock(Steady::time_point deadline) {
  if (clock_at && *clock_at <= deadline) return;
  clock_at = deadline;
  clock.expires_at(deadline);
  clock.async_wait([weak = weak_from_this()](const boost::system::error_code& failed) {
    const auto self = weak.lock();
    if (failed || !self) return;
    self->clock_at.reset();
    self->on_clock();
  });
}

void StatusTracker::Impl::on_clock() {
  std::vector<std::string> working;
  for (const auto& [session, state] : sessions) {
    if (state.status.state == "working" && state.status.source == "transcript") working.push_back(session);
  }
  for (const std::string& session : working) {
    if (sessions.contains(session)) evaluate(session);
  }
}

void StatusTracker::Impl::remember_end(const std::string& session) {
  silent_ended.push_back(session);
  while (silent_ended.size() > silent_ended_max) {
    const auto oldest = sessions.find(silent_ended.front());
    const bool silent = oldest != sessions.end() && !oldest->second.said.known;
    if (silent && oldest->first != session && oldest->second.status.state == "ended") sessions.erase(oldest);
    silent_ended.pop_front();
  }
}

void StatusTracker::Impl::remove_session(const std::string& session) {
  lists.untrack(session);
  const auto found = sessions.find(session);
  if (found == sessions.end()) return;
  if (!roster.entry_of(session).entry) {
    sessions.erase(found);
    return;
  }
  found->second.said = {};
  found->second.compacting_ms = 0;
  evaluate(session);
}

StatusTracker::StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                             std::vector<std::string> root_paths, watch::Watcher& watcher,
                             StatusObserver& listener, const StatusTrackerOptions& options)
    : impl_(std::make_shared<Impl>(io, disk, std::move(root_paths), watcher, listener, options)) {}

StatusTracker::StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                             std::vector<std::string> root_paths, watch::WatchMux& mux,
                             StatusObserver& listener, const StatusTrackerOptions& options) {
  const auto impl =
      std::make_shared<std::weak_ptr<Impl>>();  // the line is older than the board and outlives it
  watch::Watcher& line =
      mux.add_client(prefixes_of(normal(root_paths)), [impl](const watch::ChangeHint& ring) {
        if (const auto self = impl->lock()) self->on_change(ring);
      });
  impl_ = std::make_shared<Impl>(io, disk, std::move(root_paths), line, listener, options);
  *impl = impl_;
}

StatusTracker::~StatusTracker() { stop(); }

void StatusTracker::start() {
  impl_->running = true;
  impl_->unscanned = {impl_->roots.begin(), impl_->roots.end()};
  for (const std::string& root : impl_->roots) impl_->arm(root);
}

void StatusTracker::stop() {
  impl_->running = false;
  impl_->roster.stop();
  impl_->lists.stop();
  impl_->clock.cancel();
}

void StatusTracker::on_change(const watch::ChangeHint& ring) { impl_->on_change(ring); }
void StatusTracker::on_change(const std::string& path) { impl_->look_at(path); }
void StatusTracker::rescan() { impl_->rescan(); }

void StatusTracker::transcript_changed(const std::string& session, const TranscriptSummary& said) {
  impl_->changed(session, said);
}

void StatusTracker::compaction_started(const std::string& session) {
  Session& state = impl_->sessions[session];
  state.compacting_ms = watch::wall_now_ms();
  state.compacting_since = Steady::now();
  impl_->evaluate(session);
}

void StatusTracker::remove_session(const std::string& session) { impl_->remove_session(session); }

Status StatusTracker::status_of(const std::string& session) const {
  const auto found = impl_->sessions.find(session);
  return found == impl_->sessions.end() ? Status() : found->second.status;
}

bool StatusTracker::is_alive(const std::string& session) const {
  return impl_->roster.entry_of(session).life == Liveness::alive;
}

const TodoList* StatusTracker::todos_of(const std::string& session) const { return impl_->lists.of(session); }

std::vector<std::string> StatusTracker::alive_sessions() const { return impl_->roster.alive_sessions(); }

}  // namespace earshot::status
