#include "status/session_processes.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "watch/watcher.hpp"

namespace earshot::status {
namespace {

constexpr auto never = Clock::time_point::max();
constexpr std::string_view lock_suffix = ".lock";  // of all files that show a writer
constexpr std::size_t entries_max = 256;           // examined of a transcript's directory
/// How long after a process has exited its last lines may be read.
constexpr std::chrono::milliseconds read_delay_max{2000};
/// How long a process may write a transcript before it has a registry entry.
constexpr std::chrono::milliseconds registration_max{2000};

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool runs(const AgentProcess& process, const SessionPlace& place) {
  if (process.program != place.program) return false;
  return contains(process.open_files, place.transcript) ||
         (!place.program->writers().keeps_transcript_open() && contains(place.directories, process.cwd));
}

}  // namespace

SessionProcesses::SessionProcesses(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                                   std::shared_ptr<const ProcessTable> processes, std::vector<Root> roots,
                                   std::chrono::milliseconds patience, IsRegistered is_registered,
                                   OnChange on_change)
    : io_(io),
      disk_(std::move(disk)),
      processes_(std::move(processes)),
      roots_(std::move(roots)),
      patience_(patience),
      is_registered_(std::move(is_registered)),
      on_change_(std::move(on_change)),
      timer_(io) {}

void SessionProcesses::stop() {
  alive_.reset();
  timer_.cancel();
  exit_watches_.clear();
}

void SessionProcesses::track(const std::string& session, const SessionPlace& place, Clock::time_point grown,
                             std::int64_t grown_ms, bool rests) {
  if (!alive_) return;
  const auto [at, is_new] = tracked_.try_emplace(session);
  Tracked& tracked = at->second;
  tracked.rests = rests;
  if (!is_new && tracked.grown == grown && tracked.place == place) return;
  // What a process wrote before it exited may be read afterwards, but not for long.
  const bool is_late = tracked.missing_since && Clock::now() - *tracked.missing_since > read_delay_max;
  const bool grew_after_end =
      tracked.grown != grown && (grown_ms > tracked.missing_since_ms || is_late || !tracked.was_seen);
  if (tracked.evidence == ProcessEvidence::gone && grew_after_end) {
    tracked.evidence = ProcessEvidence::unknown;
    tracked.contradicted = true;
    tracked.missing_since.reset();
    tracked.examined.reset();  // who writes it may not run for long: it is looked for at once
    tracked.requested = Clock::now();
  }
  if (is_new || tracked.place != place) tracked.requested = Clock::now();
  tracked.place = place;
  tracked.grown = grown;
  tracked.grown_ms = grown_ms;
  const bool may_own =
      tracked.owner == 0 && tracked.candidates.size() == 1 && !tracked.candidates[0].has_opened;
  if ((tracked.evidence == ProcessEvidence::present && !may_own) || tracked.missing_since) return;
  tracked.due = Clock::now();
  const bool names_its_process = !place.writer_lock.empty() || place.program->writers().names_writers();
  const bool has_just_grown = Clock::now() - grown < registration_max;
  is_urgent_ |= is_new && names_its_process && has_just_grown;  // by a process that may run for a moment only
  if (tracked.examined) tracked.due = std::max(tracked.due, *tracked.examined + patience_);
  set_timer(tracked.due);
}

void SessionProcesses::untrack(const std::string& session) { tracked_.erase(session); }

SessionProcesses::Conclusion SessionProcesses::conclusion(const std::string& session) const {
  const auto found = tracked_.find(session);
  if (found == tracked_.end()) return {};
  const Tracked& tracked = found->second;
  Conclusion conclusion{tracked.evidence, tracked.was_seen ? tracked.missing_since_ms : 0};
  conclusion.is_examined = tracked.was_examined;
  conclusion.is_headless = tracked.is_headless;
  const bool is_start_known = std::all_of(tracked.candidates.begin(), tracked.candidates.end(),
                                          [](const Candidate& each) { return each.started_ms != 0; });
  if (is_start_known && !tracked.candidates.empty())
    conclusion.run_since_ms =
        std::min_element(tracked.candidates.begin(), tracked.candidates.end(),
                         [](const auto& a, const auto& b) { return a.started_ms < b.started_ms; })
            ->started_ms;
  return conclusion;
}

void SessionProcesses::on_change(const std::string& path) {
  if (!alive_ || !path.ends_with(lock_suffix)) return;
  const std::string_view whole = path, name = whole.substr(whole.rfind('/') + 1);
  const std::string_view directory = whole.substr(0, whole.size() - name.size());
  for (auto& [session, tracked] : tracked_) {
    const SessionPlace& place = tracked.place;
    const bool is_beside =
        std::string_view(place.transcript).substr(0, place.transcript.rfind('/') + 1) == directory;
    if (path != place.writer_lock && !(is_beside && place.program->writers().writer_of(name) > 0)) continue;
    tracked.due = tracked.requested = Clock::now();
    tracked.lock_looks = lock_looks;
    tracked.lock_changed = path == place.writer_lock;
    is_urgent_ = true;
  }
  if (is_urgent_) schedule();
}

void SessionProcesses::examine_now() {
  is_urgent_ = true;
  schedule();
}

std::optional<SessionProcesses::Process> SessionProcesses::process_of(const std::string& session) const {
  const auto found = tracked_.find(session);
  if (found == tracked_.end()) return std::nullopt;
  const Tracked& tracked = found->second;
  for (const bool has_opened : {true, false}) {
    std::vector<std::int64_t> alive;
    for (const Candidate& each : tracked.candidates)
      if (each.has_opened == has_opened && processes_->start_of(each.pid) == each.start)
        alive.push_back(each.pid);
    if (alive.size() == 1) return Process{tracked.place.program, alive.front()};
    if (!alive.empty()) return std::nullopt;
  }
  return std::nullopt;
}

void SessionProcesses::schedule() {
  auto due = never;
  for (const auto& [session, tracked] : tracked_) due = std::min(due, tracked.due);
  set_timer(due);
}

void SessionProcesses::set_timer(Clock::time_point due) {
  if (scanning_ || !alive_ || due == never) return;  // a scan in progress schedules the next one
  if (!is_urgent_ && last_scan_ != Clock::time_point::min()) due = std::max(due, last_scan_ + patience_ / 10);
  if (timer_due_ <= due) return;
  timer_due_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this, alive = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
    if (failed || alive.expired()) return;
    timer_due_ = never;
    scan();
  });
}

void SessionProcesses::scan() {
  if (scanning_) return;
  scanning_ = true;
  is_urgent_ = false;
  last_scan_ = Clock::now();
  auto guard = boost::asio::make_work_guard(io_);
  std::vector<std::pair<std::string, SessionPlace>> places;
  for (const auto& [session, tracked] : tracked_) places.emplace_back(session, tracked.place);
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), processes = processes_, roots = roots_,
                            places = std::move(places), guard = std::move(guard)] {
    Scan scan{processes->scan(), {}, {}};
    const FileLocks locks = processes->locks();
    for (const auto& [session, place] : places)
      if (Writers writers = writers_of(place, *processes, locks);
          !writers.alive.empty() || writers.is_one_dead || writers.is_lock_left)
        scan.writers.emplace(session, std::move(writers));
    for (const Root& root : roots)
      if (is_on_local_file_system(root.path)) scan.local_roots.push_back(root.path);
    boost::asio::post(guard.get_executor(), [this, alive, scan = std::move(scan)] {
      if (!alive.expired()) apply(scan);
    });
  });
}

void SessionProcesses::apply(const Scan& scan) {
  scanning_ = false;
  Scan candidates{{scan.processes.shows_all, {}}, scan.local_roots, scan.writers};
  for (const AgentProcess& process : scan.processes.processes)
    if (!is_registered_(process.pid)) candidates.processes.processes.push_back(process);
  Looks looks;
  for (auto& [session, tracked] : tracked_)
    if (tracked.requested <= last_scan_) looks.emplace(session, look(session, tracked, candidates));
  assign_owners(looks);
  std::vector<std::string> changed;
  for (const auto& [session, look] : looks)
    if (conclude(session, tracked_.at(session), look, candidates)) changed.push_back(session);
  std::erase_if(exit_watches_, [&](const auto& watch) {
    return std::none_of(tracked_.begin(), tracked_.end(),
                        [&](const auto& each) { return each.second.has(watch.first); });
  });
  schedule();
  const std::weak_ptr<char> alive = alive_;
  for (const std::string& session : changed)
    if (!alive.expired() && tracked_.contains(session)) on_change_(session);
}

void SessionProcesses::add_candidate(Tracked& tracked, const AgentProcess& process, bool has_opened,
                                     bool is_proven, const std::vector<Candidate>& before) {
  const auto known = std::find_if(before.begin(), before.end(), [&](const Candidate& each) {
    return each.pid == process.pid && each.start == process.start;
  });
  tracked.candidates.push_back(
      {process.pid, process.start, has_opened, is_proven,
       known == before.end() ? processes_->time_of(process.start) : known->started_ms, process.is_headless});
  tracked.was_proven |= is_proven;
}

/// No process of the session is left.
void SessionProcesses::end(Tracked& tracked) {
  if (!tracked.missing_since) {
    tracked.missing_since = Clock::now();
    tracked.missing_since_ms = wall_now_ms();
  }
  tracked.evidence = ProcessEvidence::gone;
}

/// Finds the processes that may run the session.
SessionProcesses::Look SessionProcesses::look(const std::string& session, Tracked& tracked,
                                              const Scan& scan) {
  Look look;
  look.before = conclusion(session);
  const std::vector<Candidate> known = std::exchange(tracked.candidates, {});
  for (const AgentProcess& process : scan.processes.processes) {
    if (process.program != tracked.place.program) continue;
    look.is_hidden |= process.cwd.empty();
    if (!runs(process, tracked.place)) continue;
    // A session that has ended is resumed by new lines, or by a process that has opened its transcript.
    const bool has_opened = contains(process.open_files, tracked.place.transcript);
    if (look.before.evidence == ProcessEvidence::gone && !has_opened) continue;
    add_candidate(tracked, process, has_opened,
                  has_opened && tracked.place.program->writers().keeps_transcript_open(), known);
  }
  const auto named = scan.writers.find(session);
  if (named != scan.writers.end()) {
    for (const std::int64_t pid : named->second.alive) {
      const auto found = std::find_if(tracked.candidates.begin(), tracked.candidates.end(),
                                      [pid](const Candidate& each) { return each.pid == pid; });
      if (found != tracked.candidates.end()) {
        found->has_opened = found->is_proven = tracked.was_proven = true;
        continue;
      }
      const auto scanned = std::find_if(scan.processes.processes.begin(), scan.processes.processes.end(),
                                        [pid](const AgentProcess& each) { return each.pid == pid; });
      AgentProcess process;
      process.pid = pid;
      process.start = processes_->start_of(pid);
      process.is_headless = scanned != scan.processes.processes.end() && scanned->is_headless;
      if (!process.start.empty()) add_candidate(tracked, process, true, true, known);
    }
  }
  std::erase_if(tracked.candidates, [&](const Candidate& each) {
    const bool is_disproved = tracked.was_proven && !tracked.contradicted && !each.is_proven;
    // It began after the session's last record, and has written none.
    const bool is_later =
        !each.has_opened && tracked.grown_ms + start_slack.count() < each.started_ms && tracked.grown_ms > 0;
    AgentProcess process;
    process.pid = each.pid, process.start = each.start;
    if (is_disproved || is_later) return true;
    const bool watched = watch_exit(process);
    if (!watched && processes_->start_of(each.pid) != each.start) return true;  // it has exited
    look.is_watched &= watched;
    return false;
  });
  return look;
}

/// True if it grew since it was examined.
bool SessionProcesses::is_news(const Tracked& tracked) {
  return !tracked.examined || tracked.grown > *tracked.examined;
}

/// Each process runs one session. One that alone can run a certain session of its directory owns it and runs
/// no other; what is ambiguous has no owner. It may go on from sessions that rest to the one that is written
/// now.
void SessionProcesses::assign_owners(const Looks& looks) {
  std::map<std::int64_t, Tracked*> owned;  // by process
  std::vector<Tracked*> open;
  std::set<const Tracked*> left;  // the process that owned it has exited: another session's does not run it
  for (const auto& [session, look] : looks) {
    Tracked& tracked = tracked_.at(session);
    const bool is_by_directory =
        !look.is_hidden && std::none_of(tracked.candidates.begin(), tracked.candidates.end(),
                                        [](const Candidate& each) { return each.has_opened; });
    const bool has_exited = tracked.owner != 0 && !tracked.has(tracked.owner);
    if (has_exited) left.insert(&tracked);
    if (!is_by_directory || has_exited) tracked.owner = 0;
    if (tracked.owner)
      owned.emplace(tracked.owner, &tracked);
    else if (is_by_directory && !tracked.candidates.empty())
      open.push_back(&tracked);
  }
  const auto free_of = [&](const Tracked& tracked) {
    std::vector<std::int64_t> free;
    for (const Candidate& each : tracked.candidates)
      if (!owned.contains(each.pid)) free.push_back(each.pid);
    return free;
  };
  using Claims = std::map<std::int64_t, std::vector<Tracked*>>;  // by the only process that can run them
  for (bool has_changed = true; std::exchange(has_changed, false);) {
    Claims claims;
    for (Tracked* const each : open)
      if (const auto free = free_of(*each); free.size() == 1) claims[free.front()].push_back(each);
    for (const auto& [pid, sessions] : claims) {
      if (sessions.size() != 1) continue;
      sessions.front()->owner = pid;
      owned.emplace(pid, sessions.front());
      std::erase(open, sessions.front());
      has_changed = true;
    }
  }
  Claims claims;
  for (Tracked* const each : open) {
    const auto free = free_of(*each);
    const bool is_missing = each->missing_since && !is_news(*each);
    if (!free.empty() || is_missing || left.contains(each))
      std::erase_if(each->candidates, [&](const Candidate& one) { return owned.contains(one.pid); });
    if (each->candidates.size() == 1) claims[each->candidates.front().pid].push_back(each);
  }
  for (auto& [pid, sessions] : claims) {
    if (const auto owner = owned.find(pid); owner != owned.end()) sessions.push_back(owner->second);
    go_on(pid, sessions);
  }
  for (const auto& [session, look] : looks)
    if (Tracked& tracked = tracked_.at(session); tracked.owner)
      std::erase_if(tracked.candidates, [&](const Candidate& each) { return each.pid != tracked.owner; });
}

/// The process runs the one of these sessions that was written last, if that is news and the others rest.
void SessionProcesses::go_on(std::int64_t pid, const std::vector<Tracked*>& sessions) {
  Tracked* const newest =
      *std::max_element(sessions.begin(), sessions.end(),
                        [](const Tracked* a, const Tracked* b) { return a->grown_ms < b->grown_ms; });
  if (!is_news(*newest)) return;
  const bool can_leave = std::all_of(sessions.begin(), sessions.end(), [&](const Tracked* each) {
    return each == newest || (each->was_examined && each->rests);
  });
  if (!can_leave) return;
  for (Tracked* const each : sessions) {
    if (each == newest) continue;
    each->owner = 0;
    each->candidates.clear();
    end(*each);
  }
  newest->owner = pid;
}

/// True if the evidence, or when the first process began, changed.
bool SessionProcesses::conclude(const std::string& session, Tracked& tracked, const Look& look,
                                const Scan& scan) {
  const Conclusion& before = look.before;
  const auto now = Clock::now();
  const auto has_changed = [&] {
    const Conclusion after = conclusion(session);
    return after.evidence != before.evidence || after.run_since_ms != before.run_since_ms ||
           after.is_examined != before.is_examined;
  };
  tracked.examined = now;
  tracked.was_examined = true;
  tracked.due = never;
  if (!tracked.candidates.empty()) {
    tracked.was_seen = true;
    tracked.is_headless = std::all_of(tracked.candidates.begin(), tracked.candidates.end(),
                                      [](const Candidate& each) { return each.is_headless; });
    tracked.contradicted = tracked.lock_changed = false;
    tracked.missing_since.reset();
    tracked.evidence = ProcessEvidence::present;
    if (!look.is_watched)
      tracked.due = now + patience_;
    else if (tracked.place.program->writers()
                 .keeps_transcript_open())  // it may close one of several and live on
      tracked.due =
          now + std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(now - tracked.grown),
                           patience_, std::max(patience_, closed_interval));
    return has_changed();
  }
  const auto named = scan.writers.find(session);
  const Writers none, &writers = named == scan.writers.end() ? none : named->second;
  if (before.evidence != ProcessEvidence::gone && tracked.evidence == ProcessEvidence::gone)
    return has_changed();  // its process went on to another session
  if (before.evidence == ProcessEvidence::gone) {
    if (writers.is_lock_left && tracked.lock_looks > 0) {
      --tracked.lock_looks;
      tracked.due = now + lock_interval;
      is_urgent_ = true;
    } else if (writers.is_lock_left) {
      const auto ended_for =
          std::chrono::duration_cast<std::chrono::milliseconds>(now - *tracked.missing_since);
      tracked.due = now + std::clamp(ended_for, left_lock_interval, left_lock_interval_max);
    }
    return has_changed();
  }
  tracked.evidence = ProcessEvidence::unknown;
  if (look.is_hidden) tracked.due = now + hidden_interval;
  const bool is_unseen_writer = tracked.contradicted && !tracked.was_seen && !tracked.lock_changed;
  if (look.is_hidden || is_unseen_writer || !can_decide(tracked, scan)) return has_changed();
  if (!tracked.missing_since) {
    tracked.missing_since = now;
    tracked.missing_since_ms = wall_now_ms();
  }
  // What was written before the daemon looked for the first time waits for nobody.
  const bool is_dead = writers.is_one_dead || writers.is_lock_left || tracked.lock_changed ||
                       (!before.is_examined && now - tracked.grown >= registration_max);
  const auto missing_since =
      before.is_examined ? std::max(*tracked.missing_since, tracked.grown) : tracked.grown;
  const auto decided = is_dead ? now : missing_since + patience_;
  if (now < decided)
    tracked.due = decided;
  else
    end(tracked);
  return has_changed();
}

/// On the disk thread.
SessionProcesses::Writers SessionProcesses::writers_of(const SessionPlace& place, const ProcessTable& table,
                                                       const FileLocks& locks) {
  Writers writers;
  if (!place.writer_lock.empty()) {
    writers.alive = table.holders(place.writer_lock, locks);
    writers.is_lock_left = writers.alive.empty() && !stat_file(place.writer_lock).error;
  }
  std::size_t seen = 0;
  const auto slash = place.transcript.rfind('/');
  if (!place.program->writers().names_writers() || slash == std::string::npos) return writers;
  const Directory directory(place.transcript.substr(0, slash), Symlinks::follow);
  if (directory.error()) return writers;
  directory.for_each([&](std::string_view name, FileType) {
    const std::int64_t pid = seen++ < entries_max ? place.program->writers().writer_of(name) : 0;
    if (pid == 0) return;
    if (table.check(pid, {}, {}) == Liveness::alive)
      writers.alive.push_back(pid);
    else
      writers.is_one_dead = true;
  });
  return writers;
}

/// True if a process of the session would have been found.
bool SessionProcesses::can_decide(const Tracked& tracked, const Scan& scan) {
  if (tracked.was_seen || tracked.place.keeps_registry) return true;
  const bool is_recognised =
      tracked.place.program->writers().keeps_transcript_open() || !tracked.place.directories.empty();
  return scan.processes.shows_all && is_recognised &&
         std::any_of(scan.local_roots.begin(), scan.local_roots.end(), [&](const std::string& root) {
           return watch::at_or_below(tracked.place.transcript, root);
         });
}

/// A session whose last proven process has exited has ended at once; another one is examined.
void SessionProcesses::on_exit(std::int64_t pid) {
  exit_watches_.erase(pid);
  std::vector<std::string> ended;
  for (auto& [session, tracked] : tracked_) {
    const auto exited = std::find_if(tracked.candidates.begin(), tracked.candidates.end(),
                                     [pid](const Candidate& each) { return each.pid == pid; });
    if (exited == tracked.candidates.end()) continue;
    const bool was_proof = exited->is_proven || tracked.owner == pid;
    tracked.candidates.erase(exited);
    tracked.due = Clock::now();  // another process may have opened it in the meantime
    const bool is_one_left = std::any_of(tracked.candidates.begin(), tracked.candidates.end(),
                                         [](const Candidate& each) { return each.is_proven; });
    if (!was_proof || is_one_left) continue;
    tracked.candidates.clear();
    end(tracked);
    ended.push_back(session);
  }
  schedule();
  const std::weak_ptr<char> alive = alive_;
  for (const std::string& session : ended)
    if (!alive.expired() && tracked_.contains(session)) on_change_(session);
}

/// False if the exit of this process is not reported.
bool SessionProcesses::watch_exit(const AgentProcess& process) {
  const std::int64_t pid = process.pid;
  if (exit_watches_.contains(pid)) return true;
  if (!processes_->can_watch_exits() || exit_watches_.size() >= exit_watches_max) return false;
  auto watch = ExitWatch::open(io_, pid, [this, pid] { on_exit(pid); });
  if (!watch || processes_->start_of(pid) != process.start) return false;  // it has exited
  exit_watches_.emplace(pid, std::move(watch));
  return true;
}

}  // namespace earshot::status
