#include "status/status_tracker.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "status/session_processes.hpp"
#include "status/session_titles.hpp"
#include "status/todo_lists.hpp"

namespace earshot::status {
namespace {

using std::chrono::milliseconds;
using SteadyClock = Clock;

/// Ended sessions without a transcript (opened and closed again) that are kept.
constexpr std::size_t ended_without_transcript_max = 1024;

/// A compaction without growth for this long was aborted.
constexpr milliseconds compacting_max = std::chrono::minutes(10);

/// What finished so recently, when a session is seen first, finished while the daemon looked.
constexpr milliseconds fresh_max{10'000};

/// A transcript that grew so recently is written by a live process.
constexpr milliseconds live_max{2000};

struct Session {
  TranscriptSummary summary;
  bool had_entry = false, seen_alive = false;
  std::int64_t ended_ms = 0;
  std::int64_t compacting_ms = 0;
  SteadyClock::time_point compacting_since{};
  SteadyClock::time_point quiet_since = SteadyClock::now();  // when a transcript of it grew
  bool is_published = false;                                 // the observer received `status`
  SteadyClock::time_point held_until{};  // the first status waits for an examination; zero: it does not
  Status status, derived;                // the latest; `derived`: see keep_since()
  std::string prompted;                // the call that the present wait names; empty: none, or one of several
  std::set<std::string> answered;      // open calls that earlier waits named
  std::optional<Done> told;            // the last one
  bool was_known = false;              // a transcript of it was known when it was evaluated last
  std::int64_t activity_grown_ms = 0;  // modification time when the last record with a time was read
  std::uint32_t waited_turn = 0;       // of the prompt since which waited_ms counts
  std::int64_t waited_ms = 0;          // how long it was seen waiting
};

bool is_open(const std::string& call, const TranscriptSummary& summary) {
  return std::any_of(summary.calls.begin(), summary.calls.end(),
                     [&](const OpenCall& open) { return open.call == call; });
}

std::vector<std::string> watched_prefixes(const std::vector<Root>& roots) {
  std::vector<std::string> prefixes;
  for (const Root& root : roots) {
    const auto add = [&](std::string_view name) { prefixes.push_back(root.path + '/' + std::string(name)); };
    if (const RegistryFiles* registry = root.program->registry()) add(registry->registry_directory());
    if (const TodoFiles* todos = root.program->todo_files())
      for (const std::string_view name : todos->todo_directories()) add(name);
    if (const TitleFiles* titles = root.program->title_files()) add(titles->title_path());
  }
  return prefixes;
}

const AgentProgram& program_of(const TranscriptSummary& summary) {
  const AgentProgram* program = find_agent_program(summary.program);
  return program ? *program : default_program();
}

std::string nearest_directory(std::string path) {
  while (path.size() > 1 && directory_id(path) == DirectoryId{})
    path = std::filesystem::path(path).parent_path().string();
  return path;
}

}  // namespace

struct StatusTracker::Impl : std::enable_shared_from_this<StatusTracker::Impl> {
  Impl(boost::asio::io_context& io, const boost::asio::any_io_executor& disk, std::vector<Root> given_roots,
       watch::Watcher& given_watcher, StatusObserver& given_observer, const StatusTrackerOptions& options)
      : roots(std::move(given_roots)),
        watcher(given_watcher),
        observer(given_observer),
        quiet_limit(options.quiet_max),
        examination_max(options.examination_max),
        table(std::make_shared<ProcessTable>(options.proc_dir, options.machine_id_path)),
        registry(
            io, disk, roots, given_watcher, table, {options.poll, options.retry},
            [this](const std::string& session) { evaluate(session); },
            [this](const std::string& root) { on_scanned(root); }),
        processes(
            io, disk, table, roots, options.process_patience,
            [this](std::int64_t pid) { return registry.is_registered(pid); },
            [this](const std::string& session) { evaluate(session); }),
        lists(io, disk, roots, given_watcher, options.retry,
              [this](const std::string& session) {
                if (running) observer.on_todos(session);
              }),
        titles(io, disk, [this](const std::string& session) { evaluate(session); }),
        timer(io) {}

  void watch_root(const Root& root);
  void on_change(const watch::ChangeHint& hint);
  void on_path_change(const std::string& path);
  void on_change_below(const Root& root, const std::string& path);
  void rescan();
  void on_scanned(const std::string& root);
  void report_examined();
  bool is_held(const std::string& session, Session& state, const SessionProcesses::Conclusion& conclusion,
               bool has_entry);
  void transcript_changed(const std::string& session, const TranscriptSummary& summary);
  void compaction_started(const std::string& session);
  void remove_session(const std::string& session);
  void evaluate(const std::string& session);
  const Root* root_of(const TranscriptSummary& summary) const;
  std::string writer_lock(const TranscriptSummary& summary) const;
  void track_process(const std::string& session, const Session& state,
                     const ProcessRegistry::SessionEntry& process);
  Evidence evidence_of(Session& state, const ProcessRegistry::SessionEntry& process,
                       const SessionProcesses::Conclusion& conclusion, SteadyClock::time_point now);
  Status next_status(Session& state, const Evidence& evidence);
  void add_done(Session& state, const Evidence& evidence, Status& status) const;
  void schedule(const Session& state, const Status& status, const Evidence& evidence,
                SteadyClock::time_point now);
  void set_timer(SteadyClock::time_point deadline);
  void on_timer();
  void limit_ended(const std::string& session);

  const std::vector<Root> roots;
  watch::Watcher& watcher;
  StatusObserver& observer;
  milliseconds quiet_limit, examination_max;
  const std::shared_ptr<const ProcessTable> table;
  ProcessRegistry registry;
  SessionProcesses processes;
  TodoLists lists;
  SessionTitles titles;
  std::unordered_map<std::string, Session> sessions;
  std::deque<std::string> ended_without_transcript;  // oldest first
  Timer timer;                                       // one for all sessions, for the earliest deadline
  std::optional<SteadyClock::time_point> deadline;
  std::set<std::string>
      unscanned;  // roots; until it is empty nothing is published, as the registry is incomplete
  bool running = false;
  std::map<std::string, std::string> predecessors;  // that await the process of a session, by that session
  std::set<std::string> held;                       // sessions whose first status waits for an examination
  std::function<void()> on_examined;
  SteadyClock::time_point examined_until = SteadyClock::time_point::max();  // then it is called in any case
  bool reads_history = true;                                                // until it was called
};

void StatusTracker::Impl::watch_root(const Root& root) {
  std::string nearest = nearest_directory(root.path);
  for (std::string watched; watched != nearest; nearest = nearest_directory(root.path)) {
    watched = nearest;  // subdirectories may have appeared before it was watched
    watcher.watch(nearest);
  }
  lists.watch_root(root);
  if (const std::string_view locks = root.program->writers().lock_directory(); !locks.empty())
    watcher.watch(root.path + '/' + std::string(locks));
  registry.scan(root);
}

void StatusTracker::Impl::on_change(const watch::ChangeHint& hint) {
  if (hint.where == watch::ChangeHint::Where::everything)
    rescan();
  else
    on_path_change(hint.path);
}

void StatusTracker::Impl::on_path_change(const std::string& path) {
  if (!running) return;
  for (const Root& root : roots) {
    if (watch::at_or_below(root.path, path))  // the root or above: it may have been created or removed
      watch_root(root);
    else if (watch::at_or_below(path, root.path))
      on_change_below(root, path.substr(root.path.size() + 1));
  }
}

void StatusTracker::Impl::on_change_below(const Root& root, const std::string& path) {
  const std::string_view directory = std::string_view(path).substr(0, path.find('/'));
  const RegistryFiles* const files = root.program->registry();
  if (files && directory == files->registry_directory()) {
    if (directory.size() == path.size()) return registry.scan(root);
    return registry.on_change(root, std::string_view(path).substr(directory.size() + 1));
  }
  if (path == root.program->writers().lock_directory()) watcher.watch(root.path + '/' + path);
  titles.on_change(root.path + '/' + path);
  processes.on_change(root.path + '/' + path);
  const TodoFiles* const todos = root.program->todo_files();
  const auto lists_of = todos ? todos->todo_directories() : std::span<const std::string_view>();
  if (std::find(lists_of.begin(), lists_of.end(), directory) != lists_of.end()) lists.on_change(root, path);
}

void StatusTracker::Impl::rescan() {
  if (!running) return;
  for (const Root& root : roots) watch_root(root);
  registry.check_all();
  lists.rescan();
  titles.rescan();
}

void StatusTracker::Impl::on_scanned(const std::string& root) {
  if (unscanned.erase(root) == 0 || !unscanned.empty()) return;
  std::vector<std::string> names;
  for (const auto& [session, state] : sessions) names.push_back(session);
  for (const std::string& session : names) evaluate(session);
  report_examined();
}

void StatusTracker::Impl::report_examined() {
  const bool is_late = SteadyClock::now() >= examined_until;
  if (!on_examined || !running || (!is_late && (!unscanned.empty() || !held.empty()))) return;
  reads_history = false;
  std::exchange(on_examined, {})();
}

/// True while the session's first status waits: a process that has died may have left work and requests. What
/// grows is written by a process.
bool StatusTracker::Impl::is_held(const std::string& session, Session& state,
                                  const SessionProcesses::Conclusion& conclusion, bool has_entry) {
  const auto now = SteadyClock::now();
  const bool may_have_died = reads_history || now - state.quiet_since >= live_max;
  if (state.is_published || has_entry || !state.summary.known || conclusion.is_examined || !may_have_died) {
    held.erase(session);
    return false;
  }
  if (state.held_until == SteadyClock::time_point{}) state.held_until = now + examination_max;
  if (state.held_until <= now) {
    held.erase(session);
    return false;
  }
  held.insert(session);
  set_timer(state.held_until);
  return true;
}

void StatusTracker::Impl::transcript_changed(const std::string& session, const TranscriptSummary& summary) {
  Session& state = sessions[session];
  if (summary.last_growth_ms != state.summary.last_growth_ms) {
    // For the time before the first call only the wall clock is available; from then on the steady clock is
    // used.
    const bool is_first = !state.summary.known && summary.last_growth_ms;
    const std::int64_t age_ms = is_first ? wall_now_ms() - summary.last_growth_ms : 0;
    state.quiet_since = SteadyClock::now() - milliseconds(std::max<std::int64_t>(0, age_ms));
    state.compacting_ms = 0;
  }
  if (summary.last_activity != state.summary.last_activity) state.activity_grown_ms = summary.last_growth_ms;
  state.summary = summary;
  if (summary.known) lists.track(session);
  if (const Root* const root = root_of(summary)) titles.track(session, *root, summary.path);
  evaluate(session);
}

void StatusTracker::Impl::compaction_started(const std::string& session) {
  Session& state = sessions[session];
  state.compacting_ms = wall_now_ms();
  state.compacting_since = SteadyClock::now();
  evaluate(session);
}

/// Null: its transcript is unknown or elsewhere.
const Root* StatusTracker::Impl::root_of(const TranscriptSummary& summary) const {
  const auto found = std::find_if(roots.begin(), roots.end(), [&](const Root& each) {
    return each.program == &program_of(summary) && watch::at_or_below(summary.path, each.path);
  });
  return found == roots.end() ? nullptr : &*found;
}

/// Absolute; empty: the program has none.
std::string StatusTracker::Impl::writer_lock(const TranscriptSummary& summary) const {
  const Root* const root = root_of(summary);
  const std::string lock = root ? root->program->writers().writer_lock(summary.path) : std::string();
  return lock.empty() ? lock : root->path + '/' + lock;
}

/// Where there is no registry entry, the processes of this machine show whether the session is run.
void StatusTracker::Impl::track_process(const std::string& session, const Session& state,
                                        const ProcessRegistry::SessionEntry& process) {
  const bool has_ended = state.status.state == "ended" && state.status.source == "registry";
  if (!state.summary.known || process.entry || has_ended) return processes.untrack(session);
  const AgentProgram& program = program_of(state.summary);
  const bool keeps_registry = program.registry() && program.registry()->keeps_registry(state.summary.version);
  processes.track(
      session,
      {&program, state.summary.directories, state.summary.path, writer_lock(state.summary), keeps_registry},
      state.quiet_since, state.summary.last_growth_ms, !state.summary.turn_open);
}

Evidence StatusTracker::Impl::evidence_of(Session& state, const ProcessRegistry::SessionEntry& process,
                                          const SessionProcesses::Conclusion& conclusion,
                                          SteadyClock::time_point now) {
  const bool is_running = process.entry && process.liveness != Liveness::dead;
  state.had_entry = state.had_entry || process.entry;
  state.seen_alive = state.seen_alive || is_running;
  if (is_running || !state.had_entry)
    state.ended_ms = 0;
  else if (!state.ended_ms)
    state.ended_ms = wall_now_ms();
  if (state.compacting_ms && now - state.compacting_since >= compacting_max) state.compacting_ms = 0;
  std::erase_if(state.answered, [&](const std::string& call) { return !is_open(call, state.summary); });

  Evidence evidence;
  evidence.program = process.entry ? process.program : &program_of(state.summary);
  evidence.entry = process.entry;
  evidence.liveness = process.liveness;
  evidence.had_entry = state.had_entry;
  evidence.seen_alive = state.seen_alive;
  evidence.ended_ms = state.ended_ms;
  evidence.process = conclusion.evidence;
  evidence.process_ended_ms = conclusion.ended_ms;
  evidence.is_headless = conclusion.is_headless;
  const std::string& successor = state.summary.continued_in;
  evidence.awaits_successor = !successor.empty() && state.status.state != "ended" &&
                              now - state.quiet_since < successor_max && !registry.entry_of(successor).entry;
  evidence.answered = &state.answered;
  evidence.compacting_ms = state.compacting_ms;
  evidence.quiet = std::chrono::duration_cast<milliseconds>(now - state.quiet_since);
  evidence.quiet_max = quiet_limit;
  evidence.now_ms = wall_now_ms();
  evidence.run_since_ms = process.entry ? process.run_since_ms : conclusion.run_since_ms;
  // Records that are older than a process which has run while they were written: their clock is another one.
  const bool states_nothing = process.entry && process.entry->state.empty();
  if (!states_nothing && state.activity_grown_ms > evidence.run_since_ms &&
      parse_time(state.summary.last_activity).value_or(0) < evidence.run_since_ms)
    evidence.run_since_ms = 0;
  return evidence;
}

Status StatusTracker::Impl::next_status(Session& state, const Evidence& evidence) {
  Status derived = derive_status(evidence, state.summary);
  Status status = keep_since(state.status, state.derived, derived);
  // The transcript may still show a call as open when the next wait has begun: the call that the last wait
  // named has been answered.
  const bool wait_is_over = !is_same_wait(status, state.status);
  if (wait_is_over && !state.prompted.empty()) {
    state.answered.insert(std::exchange(state.prompted, {}));
    derived = derive_status(evidence, state.summary);
    status = keep_since(state.status, state.derived, derived);
  }
  state.derived = std::move(derived);
  state.prompted = prompted_call(status, evidence, state.summary);
  return status;
}

/// What the prompt led to, and whether that is news: not what had ended before the daemon saw the session
/// live, nor the history that a fork copies.
void StatusTracker::Impl::add_done(Session& state, const Evidence& evidence, Status& status) const {
  const TranscriptSummary& summary = state.summary;
  if (std::exchange(state.waited_turn, summary.prompted.turn) != summary.prompted.turn) state.waited_ms = 0;
  if (state.status.state == "waiting" && !is_same_wait(state.status, status)) {
    const std::int64_t since_ms = parse_time(state.status.since).value_or(evidence.now_ms);
    state.waited_ms +=
        std::max<std::int64_t>(0, evidence.now_ms - std::max(since_ms, summary.prompted.time_ms));
  }
  const bool was_known = std::exchange(state.was_known, summary.known);
  status.done = done_of(status, evidence, summary, state.waited_ms);
  if (!status.done) return;
  const std::int64_t finished_ms = parse_time(summary.turn_finished).value_or(0);
  const bool has_just_finished = !reads_history && std::abs(evidence.now_ms - finished_ms) <
                                                       std::chrono::milliseconds(fresh_max).count();
  status.tells_done = !is_same_prompt(state.told, *status.done) && (was_known || has_just_finished);
  state.told = status.done;
}

void StatusTracker::Impl::evaluate(const std::string& session) {
  Session& state = sessions[session];
  if (!running || !unscanned.empty()) return;
  const ProcessRegistry::SessionEntry process = registry.entry_of(session);
  track_process(session, state, process);
  const SessionProcesses::Conclusion conclusion = processes.conclusion(session);
  const bool is_run = process.entry || conclusion.evidence == ProcessEvidence::present;
  if (state.summary.is_blank && !state.is_published && !is_run) return;  // it is no session yet
  if (is_held(session, state, conclusion, process.entry != nullptr)) return;
  const auto now = SteadyClock::now();
  const Evidence evidence = evidence_of(state, process, conclusion, now);
  Status status = next_status(state, evidence);
  status.program = process.entry ? std::string(process.program->program()) : state.status.program;
  status.project = process.entry && !process.entry->cwd.empty() ? process.entry->cwd : state.status.project;
  const std::string& named = process.entry ? process.entry->name : titles.of(session);
  status.title = named.empty() ? state.status.title : named;
  schedule(state, status, evidence, now);
  add_done(state, evidence, status);
  if (const std::string& successor = state.summary.continued_in; evidence.awaits_successor)
    predecessors[successor] = session;
  else if (!successor.empty())
    predecessors.erase(successor);
  const auto before = process.entry ? predecessors.extract(session) : decltype(predecessors)::node_type();
  const bool is_news = !state.is_published || status != state.status;
  const bool tells_done = std::exchange(status.tells_done, false);
  state.is_published = true;
  state.status = std::move(status);
  if (state.status.state == "ended" && !state.summary.known) limit_ended(session);
  if (is_news) {
    Status published = state.status;  // a copy: the observer may call back
    published.tells_done = tells_done;
    observer.on_status(session, published);
  }
  report_examined();
  if (before && sessions.contains(before.mapped())) evaluate(before.mapped());
}

/// Evaluates the session again when only the passing of time can change its status. `now` is the evidence's:
/// a deadline that passed since then still calls.
void StatusTracker::Impl::schedule(const Session& state, const Status& status, const Evidence& evidence,
                                   SteadyClock::time_point now) {
  if (may_go_on(status, state.summary) && evidence.quiet < next_turn_max)
    set_timer(state.quiet_since + next_turn_max);
  if (evidence.awaits_successor) set_timer(state.quiet_since + successor_max);
  if (status.state != "working") return;
  if (state.compacting_ms) return set_timer(state.compacting_since + compacting_max);
  if (status.source != "transcript") return;
  if (evidence.quiet < quiet_limit) set_timer(state.quiet_since + quiet_limit);
  if (!program_of(state.summary).requests().hides_permissions(state.summary.permission_mode)) return;
  for (const OpenCall& call : state.summary.calls) {
    const milliseconds age(std::max<std::int64_t>(0, evidence.now_ms - call.grown_ms));
    if (age < unseen_permission_after) set_timer(now + unseen_permission_after - age);
  }
}

void StatusTracker::Impl::set_timer(SteadyClock::time_point wanted) {
  if (deadline && *deadline <= wanted) return;
  deadline = wanted;
  timer.expires_at(wanted);
  timer.async_wait([weak = weak_from_this()](const boost::system::error_code& failed) {
    const auto self = weak.lock();
    if (failed || !self) return;
    self->deadline.reset();
    self->on_timer();
  });
}

void StatusTracker::Impl::on_timer() {
  std::vector<std::string> due(held.begin(), held.end());
  for (const auto& [session, state] : sessions)
    if ((state.status.state == "working" && state.status.source == "transcript") ||
        may_go_on(state.status, state.summary))
      due.push_back(session);
  for (const std::string& session : due)
    if (sessions.contains(session)) evaluate(session);
  report_examined();
}

void StatusTracker::Impl::limit_ended(const std::string& session) {
  ended_without_transcript.push_back(session);
  while (ended_without_transcript.size() > ended_without_transcript_max) {
    const auto oldest = sessions.find(ended_without_transcript.front());
    if (oldest != sessions.end() && oldest->first != session && !oldest->second.summary.known &&
        oldest->second.status.state == "ended")
      sessions.erase(oldest);
    ended_without_transcript.pop_front();
  }
}

void StatusTracker::Impl::remove_session(const std::string& session) {
  lists.untrack(session);
  titles.untrack(session);
  processes.untrack(session);
  held.erase(session);
  const auto found = sessions.find(session);
  if (found == sessions.end()) return;
  predecessors.erase(found->second.summary.continued_in);
  if (!registry.entry_of(session).entry) {
    sessions.erase(found);
    return;
  }
  found->second.summary = {};
  found->second.compacting_ms = 0;
  evaluate(session);
}

StatusTracker::StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                             std::vector<Root> roots, watch::Watcher& watcher, StatusObserver& observer,
                             const StatusTrackerOptions& options)
    : impl_(std::make_shared<Impl>(io, disk, std::move(roots), watcher, observer, options)) {}

StatusTracker::StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                             std::vector<Root> roots, watch::WatchMux& mux, StatusObserver& observer,
                             const StatusTrackerOptions& options) {
  const auto impl = std::make_shared<std::weak_ptr<Impl>>();  // the client outlives the tracker
  watch::Watcher& client = mux.add_client(watched_prefixes(roots), [impl](const watch::ChangeHint& hint) {
    if (const auto self = impl->lock()) self->on_change(hint);
  });
  impl_ = std::make_shared<Impl>(io, disk, std::move(roots), client, observer, options);
  *impl = impl_;
}

StatusTracker::~StatusTracker() { stop(); }

void StatusTracker::start() {
  impl_->running = true;
  for (const Root& root : impl_->roots) impl_->unscanned.insert(root.path);
  for (const Root& root : impl_->roots) impl_->watch_root(root);
}

void StatusTracker::stop() {
  impl_->running = false;
  impl_->on_examined = nullptr;
  impl_->registry.stop();
  impl_->processes.stop();
  impl_->lists.stop();
  impl_->titles.stop();
  impl_->timer.cancel();
}

void StatusTracker::when_examined(std::function<void()> on_examined) {
  impl_->on_examined = std::move(on_examined);
  impl_->examined_until = SteadyClock::now() + impl_->examination_max;
  impl_->processes.examine_now();
  impl_->report_examined();
  if (impl_->on_examined) impl_->set_timer(impl_->examined_until);
}

void StatusTracker::on_change(const watch::ChangeHint& hint) { impl_->on_change(hint); }
void StatusTracker::on_change(const std::string& path) { impl_->on_path_change(path); }
void StatusTracker::rescan() { impl_->rescan(); }

void StatusTracker::transcript_changed(const std::string& session, const TranscriptSummary& summary) {
  impl_->transcript_changed(session, summary);
}
void StatusTracker::compaction_started(const std::string& session) { impl_->compaction_started(session); }
void StatusTracker::remove_session(const std::string& session) { impl_->remove_session(session); }

Status StatusTracker::status_of(const std::string& session) const {
  const auto found = impl_->sessions.find(session);
  return found == impl_->sessions.end() ? Status() : found->second.status;
}
bool StatusTracker::is_alive(const std::string& session) const {
  return impl_->registry.entry_of(session).liveness == Liveness::alive;
}
std::optional<StatusTracker::Process> StatusTracker::process_of(const std::string& session) const {
  const ProcessRegistry::SessionEntry found = impl_->registry.entry_of(session);
  if (found.entry && found.liveness == Liveness::alive) {
    const RegistryEntry& entry = *found.entry;
    if (impl_->table->check(entry.pid, entry.process_start, entry.pid_domain) != Liveness::alive) return {};
    return Process{found.program, entry.pid, "registry"};
  }
  const auto tracked = impl_->processes.process_of(session);
  if (!tracked) return {};
  return Process{tracked->program, tracked->pid, "process"};
}
std::vector<std::string> StatusTracker::alive_sessions() const { return impl_->registry.alive_sessions(); }
const TodoList* StatusTracker::todos_of(const std::string& session) const { return impl_->lists.of(session); }

}  // namespace earshot::status
