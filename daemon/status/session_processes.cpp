#include "status/session_processes.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "watch/watcher.hpp"

namespace earshot::status {
namespace {

constexpr auto never = Clock::time_point::max();

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool runs(const AgentProcess& process, const SessionPlace& place) {
  return process.program == place.program &&
         (contains(place.directories, process.cwd) || contains(process.open_files, place.transcript));
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
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), processes = processes_, roots = roots_,
                            guard = std::move(guard)] {
    Scan scan{processes->scan(), {}};
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
  Scan candidates{{scan.processes.shows_all, {}}, scan.local_roots};
  for (const AgentProcess& process : scan.processes.processes)
    if (!is_registered_(process.pid)) candidates.processes.processes.push_back(process);
  std::vector<std::string> changed;
  for (auto& [session, tracked] : tracked_)
    if (apply(tracked, candidates, now)) changed.push_back(session);
  std::erase_if(exit_watches_, [&](const auto& watch) {
    return std::none_of(tracked_.begin(), tracked_.end(), [&](const auto& each) {
      const auto& pids = each.second.pids;
      return std::find(pids.begin(), pids.end(), watch.first) != pids.end();
    });
  });
  schedule();
  const std::weak_ptr<char> alive = alive_;
  for (const std::string& session : changed)
    if (!alive.expired() && tracked_.contains(session)) on_change_(session);
}

/// True if the evidence changed.
bool SessionProcesses::apply(Tracked& tracked, const Scan& candidates, Clock::time_point now) {
  const ProcessEvidence before = tracked.evidence;
  tracked.examined = now;
  tracked.pids.clear();
  tracked.due = never;
  bool is_watched = true, is_hidden = false;
  for (const AgentProcess& process : candidates.processes.processes) {
    if (process.program != tracked.place.program) continue;
    is_hidden |= process.cwd.empty();
    if (!runs(process, tracked.place)) continue;
    tracked.pids.push_back(process.pid);
    is_watched &= watch_exit(process);
  }
  if (!tracked.pids.empty()) {
    tracked.was_seen = true;
    tracked.contradicted = false;
    tracked.missing_since.reset();
    tracked.evidence = ProcessEvidence::present;
    if (!is_watched) tracked.due = now + patience_;
    return tracked.evidence != before;
  }
  if (before == ProcessEvidence::gone) return false;
  tracked.evidence = ProcessEvidence::unknown;
  if (is_hidden) tracked.due = now + hidden_interval;
  if (is_hidden || tracked.contradicted || !can_decide(tracked, candidates))
    return tracked.evidence != before;
  if (!tracked.missing_since) {
    tracked.missing_since = now;
    tracked.missing_since_ms = wall_now_ms();
  }
  const auto decided = std::max(*tracked.missing_since, tracked.grown) + patience_;
  if (now < decided)
    tracked.due = decided;
  else
    tracked.evidence = ProcessEvidence::gone;
  return tracked.evidence != before;
}

/// True if a process of the session would have been found.
bool SessionProcesses::can_decide(const Tracked& tracked, const Scan& scan) {
  if (tracked.was_seen || tracked.place.keeps_registry) return true;
  return scan.processes.shows_all && !tracked.place.directories.empty() &&
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
      if (std::find(tracked.pids.begin(), tracked.pids.end(), pid) != tracked.pids.end())
        tracked.due = Clock::now();
    schedule();
  });
  if (!watch || processes_->start_of(pid) != process.start) return false;  // it has exited
  exit_watches_.emplace(pid, std::move(watch));
  return true;
}

}  // namespace earshot::status
