// Which sessions are run by a local process, for programs and versions without a registry entry. A session
// whose process is missing for a while has ended.
#pragma once
#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/roots.hpp"
#include "base/clock.hpp"
#include "status/process_table.hpp"
#include "status/status.hpp"

namespace earshot::status {

/// What identifies the process of a session.
struct SessionPlace {
  const AgentProgram* program = nullptr;
  std::vector<std::string> directories;  // working directories that the transcript names
  std::string transcript;                // its path
  std::string writer_lock;               // that its writer holds a flock() on; empty: none
  bool keeps_registry = false;           // this version of the program would have a registry entry
  friend bool operator==(const SessionPlace&, const SessionPlace&) = default;
};

/// Scans the processes only while the result can change a tracked session: a process that was found is
/// watched for its exit, and a session without a conclusion is not examined again before it grows.
class SessionProcesses {
 public:
  using OnChange = std::function<void(const std::string& session)>;
  /// True if a registry entry names this process: it runs the session of that entry and no other.
  using IsRegistered = std::function<bool(std::int64_t pid)>;

  static constexpr std::size_t exit_watches_max = 256;  // one descriptor each; others are scanned for
  static constexpr std::chrono::milliseconds hidden_interval{60'000};  // while a process hides its directory
  static constexpr std::chrono::milliseconds closed_interval{60'000};  // for open files, of a quiet session
  /// For a session that has ended and whose writer's lock file is left: a lock makes no hint. At first, and
  /// later as long as it has ended.
  static constexpr std::chrono::milliseconds left_lock_interval{10'000}, left_lock_interval_max{600'000};
  /// A program makes its lock file before it locks it: that is looked for again.
  static constexpr std::chrono::milliseconds lock_interval{100};
  static constexpr int lock_looks = 5;

  SessionProcesses(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                   std::shared_ptr<const ProcessTable> processes, std::vector<Root> roots,
                   std::chrono::milliseconds patience, IsRegistered is_registered, OnChange on_change);

  /// Examines the session from now on. Two scans are at least a tenth of the patience apart. `grown`: when a
  /// transcript of it grew; `grown_ms`: its modification time, since 1970; `rests`: no turn of it is open.
  /// Does not call back.
  void track(const std::string& session, const SessionPlace& place, Clock::time_point grown,
             std::int64_t grown_ms, bool rests);
  void untrack(const std::string& session);
  /// `path`: absolute. A file of a writer appeared, changed or was removed: its session is examined now.
  void on_change(const std::string& path);
  /// The next scan that is due does not wait for its distance to the last one.
  void examine_now();
  void stop();

  struct Conclusion {
    ProcessEvidence evidence = ProcessEvidence::unknown;
    std::int64_t ended_ms = 0;      // if a process of it was seen: when its end was noticed, since 1970
    std::int64_t run_since_ms = 0;  // when the first of its processes began, since 1970; 0: unknown
    bool is_examined = false;
    bool is_headless = false;  // its processes run without a person at a terminal, or the last ones did
  };
  Conclusion conclusion(const std::string& session) const;

  /// The process that was found last and still runs; absent: none, or several with the same evidence.
  struct Process {
    const AgentProgram* program = nullptr;
    std::int64_t pid = 0;
  };
  std::optional<Process> process_of(const std::string& session) const;

 private:
  struct Candidate {
    std::int64_t pid = 0;
    std::string start;  // as ProcessTable::start_of()
    /// It has the transcript open, or its lock, or a file names it: this proves that it runs the session.
    /// Else its working directory matches.
    bool has_opened = false;
    bool is_proven = false;  // a program that opens a transcript only for a moment proves nothing by that
    std::int64_t started_ms = 0;  // by the clock when it was seen first; 0: unknown
    bool is_headless = false;     // as AgentProcess::is_headless
  };
  struct Tracked {
    SessionPlace place;
    Clock::time_point requested{};  // when an examination was: a scan that began before does not answer it
    int lock_looks = 0;             // left since the last hint
    bool lock_changed = false;      // its lock did, and no process of it was found since: it was removed
    Clock::time_point grown, due;   // due: of the next scan for it; max(): none
    std::int64_t grown_ms = 0;
    bool rests = false;  // it has no open turn: its process may have gone on to another session
    std::optional<Clock::time_point> examined, missing_since;
    std::int64_t missing_since_ms = 0;
    ProcessEvidence evidence = ProcessEvidence::unknown;
    bool was_examined = false, was_seen = false;
    bool was_proven = false;    // by what a process of it had opened: a directory proves nothing any more
    bool is_headless = false;   // as in Conclusion
    bool contradicted = false;  // it grew after its end: the next scan finds the process, or proves nothing
    std::vector<Candidate> candidates;
    /// The only process that can run it: no other one in its directory is without a session. 0: undecided.
    std::int64_t owner = 0;

    bool has(std::int64_t pid) const {
      return std::any_of(candidates.begin(), candidates.end(),
                         [pid](const Candidate& each) { return each.pid == pid; });
    }
  };
  /// What a scan shows about a session.
  struct Look {
    Conclusion before;
    bool is_hidden = false;  // a process hides its directory
    bool is_watched = true;  // the exit of each candidate is reported
  };
  using Looks = std::map<std::string, Look>;
  /// The writers that lock files beside the transcripts, or for them, name.
  struct Writers {
    std::vector<std::int64_t> alive;
    bool is_one_dead = false;   // a file names a process that has exited
    bool is_lock_left = false;  // nobody holds the lock, and its file is left: the writer was killed
  };
  struct Scan {
    ProcessScan processes;
    std::vector<std::string> local_roots;
    std::map<std::string, Writers> writers;  // by session
  };

  void add_candidate(Tracked& tracked, const AgentProcess& process, bool has_opened, bool is_proven,
                     const std::vector<Candidate>& before);
  void on_exit(std::int64_t pid);
  void end(Tracked& tracked);
  void schedule();
  void set_timer(Clock::time_point due);
  void scan();
  void apply(const Scan& scan);
  Look look(const std::string& session, Tracked& tracked, const Scan& scan);
  void assign_owners(const Looks& looks);
  static bool is_news(const Tracked& tracked);
  void go_on(std::int64_t pid, const std::vector<Tracked*>& sessions);
  bool conclude(const std::string& session, Tracked& tracked, const Look& look, const Scan& scan);
  static Writers writers_of(const SessionPlace& place, const ProcessTable& table, const FileLocks& locks);
  static bool can_decide(const Tracked& tracked, const Scan& scan);
  bool watch_exit(const AgentProcess& process);

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  std::shared_ptr<const ProcessTable> processes_;
  const std::vector<Root> roots_;
  const std::chrono::milliseconds patience_;
  IsRegistered is_registered_;
  OnChange on_change_;
  std::unordered_map<std::string, Tracked> tracked_;
  std::map<std::int64_t, std::unique_ptr<ExitWatch>> exit_watches_;
  Timer timer_;
  Clock::time_point timer_due_ = Clock::time_point::max();
  Clock::time_point last_scan_ = Clock::time_point::min();
  bool scanning_ = false, is_urgent_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // results from the disk hold it weakly
};

}  // namespace earshot::status
