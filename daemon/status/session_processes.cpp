#include "status/session_processes.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "watch/watcher.hpp"

namespace earshot::status {
namespace {

constexpr auto never = Clock::time_point::max();
constexpr std::size_t entries_max = 256;  // examined of a transcript's directory

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

void SessionProcesses::track(const std::string& session, const SessionPlace& place, Clock::time_point grown) {
  if (!alive_) return;
  const auto [at, is_new] = tracked_.try_emplace(session);
  Tracked& tracked = at->second;
  if (!is_new && tracked.grown == grown && tracked.place == place) return;
  if (tracked.evidence == ProcessEvidence::gone && tracked.grown != grown) {
    tracked.evidence = ProcessEvidence::unknown;
    tracked.contradicted = true;
    tracked.missing_since.reset();
    tracked.examined.reset();  // who writes it may not run for long: it is looked for at once
  }
  tracked.place = place;
  tracked.grown = grown;
  if (tracked.evidence == ProcessEvidence::present || tracked.missing_since) return;
  tracked.due = Clock::now();
  if (tracked.examined) tracked.due = std::max(tracked.due, *tracked.examined + patience_);
  set_timer(tracked.due);
}

void SessionProcesses::untrack(const std::string& session) { tracked_.erase(session); }

SessionProcesses::Conclusion SessionProcesses::conclusion(const std::string& session) const {
  const auto found = tracked_.find(session);
  if (found == tracked_.end()) return {};
  const Tracked& tracked = found->second;
  return {tracked.evidence, tracked.was_seen ? tracked.missing_since_ms : 0};
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
  if (last_scan_ != Clock::time_point::min()) due = std::max(due, last_scan_ + patience_ / 10);
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
          !writers.alive.empty() || writers.is_one_dead)
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
  const auto now = Clock::now();
  Scan candidates{{scan.processes.shows_all, {}}, scan.local_roots, scan.writers};
  for (const AgentProcess& process : scan.processes.processes)
    if (!is_registered_(process.pid)) candidates.processes.processes.push_back(process);
  std::vector<std::string> changed;
  for (auto& [session, tracked] : tracked_)
    if (apply(session, tracked, candidates, now)) changed.push_back(session);
  std::erase_if(exit_watches_, [&](const auto& watch) {
    return std::none_of(tracked_.begin(), tracked_.end(),
                        [&](const auto& each) { return each.second.has(watch.first); });
  });
  schedule();
  const std::weak_ptr<char> alive = alive_;
  for (const std::string& session : changed)
    if (!alive.expired() && tracked_.contains(session)) on_change_(session);
}

/// True if the evidence changed.
bool SessionProcesses::apply(const std::string& session, Tracked& tracked, const Scan& candidates,
                             Clock::time_point now) {
  const ProcessEvidence before = tracked.evidence;
  tracked.examined = now;
  tracked.candidates.clear();
  tracked.due = never;
  bool is_watched = true, is_hidden = false;
  for (const AgentProcess& process : candidates.processes.processes) {
    if (process.program != tracked.place.program) continue;
    is_hidden |= process.cwd.empty();
    if (!runs(process, tracked.place)) continue;
    // A session that has ended is resumed by new lines, or by a process that has opened its transcript.
    const bool has_opened = contains(process.open_files, tracked.place.transcript);
    if (before == ProcessEvidence::gone && !has_opened) continue;
    tracked.candidates.push_back({process.pid, process.start, has_opened});
    is_watched &= watch_exit(process);
  }
  const auto named = candidates.writers.find(session);
  const Writers none, &writers = named == candidates.writers.end() ? none : named->second;
  for (const std::int64_t pid : writers.alive) {
    const auto known = std::find_if(tracked.candidates.begin(), tracked.candidates.end(),
                                    [pid](const Candidate& each) { return each.pid == pid; });
    if (known != tracked.candidates.end()) {
      known->has_opened = true;
      continue;
    }
    AgentProcess process;
    process.pid = pid;
    process.start = processes_->start_of(pid);
    if (process.start.empty()) continue;
    tracked.candidates.push_back({pid, process.start, true});
    is_watched &= watch_exit(process);
  }
  if (!tracked.candidates.empty()) {
    tracked.was_seen = true;
    tracked.contradicted = false;
    tracked.missing_since.reset();
    tracked.evidence = ProcessEvidence::present;
    if (!is_watched)
      tracked.due = now + patience_;
    else if (tracked.place.program->writers()
                 .keeps_transcript_open())  // it may close one of several and live on
      tracked.due =
          now + std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(now - tracked.grown),
                           patience_, std::max(patience_, closed_interval));
    return tracked.evidence != before;
  }
  if (before == ProcessEvidence::gone) return false;
  tracked.evidence = ProcessEvidence::unknown;
  if (is_hidden) tracked.due = now + hidden_interval;
  const bool is_unseen_writer = tracked.contradicted && !tracked.was_seen;
  if (is_hidden || is_unseen_writer || !can_decide(tracked, candidates)) return tracked.evidence != before;
  if (!tracked.missing_since) {
    tracked.missing_since = now;
    tracked.missing_since_ms = wall_now_ms();
  }
  const auto decided =
      writers.is_one_dead ? now : std::max(*tracked.missing_since, tracked.grown) + patience_;
  if (now < decided)
    tracked.due = decided;
  else
    tracked.evidence = ProcessEvidence::gone;
  return tracked.evidence != before;
}

/// On the disk thread.
SessionProcesses::Writers SessionProcesses::writers_of(const SessionPlace& place, const ProcessTable& table,
                                                       const FileLocks& locks) {
  Writers writers;
  if (!place.writer_lock.empty()) writers.alive = table.holders(place.writer_lock, locks);
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

/// False if the exit of this process is not reported.
bool SessionProcesses::watch_exit(const AgentProcess& process) {
  const std::int64_t pid = process.pid;
  if (exit_watches_.contains(pid)) return true;
  if (!processes_->can_watch_exits() || exit_watches_.size() >= exit_watches_max) return false;
  auto watch = ExitWatch::open(io_, pid, [this, pid] {
    exit_watches_.erase(pid);
    for (auto& [session, tracked] : tracked_)
      if (tracked.has(pid)) tracked.due = Clock::now();
    schedule();
  });
  if (!watch || processes_->start_of(pid) != process.start) return false;  // it has exited
  exit_watches_.emplace(pid, std::move(watch));
  return true;
}

}  // namespace earshot::status
