// The notifier at work: the decider between the daemon on one side and the sinks on the other, and what is on
// disk. One thread decides; the sinks have threads of their own and report by a mailbox.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/client.hpp"
#include "notifier/delivery_queue.hpp"
#include "notifier/desktop.hpp"
#include "notifier/files.hpp"
#include "notifier/following.hpp"
#include "notifier/http_sender.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/spool.hpp"
#include "notifier/state_file.hpp"
#include "notifier/worker.hpp"

namespace earshot::notifier {

/// Where everything lies, below the notifier's own directory.
struct Places {
  std::string directory;
  std::string state() const { return directory + "/state.json"; }
  std::string spool() const { return directory + "/spool"; }
  std::string journal() const { return directory + "/journal.ndjson"; }
  std::string dead() const { return directory + "/dead.ndjson"; }
  std::string lock() const { return directory + "/lock"; }
};

class Notifier {
 public:
  static constexpr std::int64_t cursors_ms_max =
      2000;  // cursors that nothing was told of are written as often

  /// The rules and the client outlive this. `daemon`: for the page that a click on a notice opens.
  Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
           const Places& places, bool verbose);
  /// Waits a little for what is on its way, and writes down where it is.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  std::string begin();  // a connection is open: what to ask for
  void take(std::string_view json) { following_.take(json, now()); }
  /// All that was missed is known; what comes is told as it happens.
  bool live() const { return following_.live(); }
  /// What was decided is done: sent, saved, written down. After every batch of frames, reports and ticks.
  void settle();

 private:
  struct Report {
    std::string key;
    Delivery delivery;
  };
  static std::int64_t now();
  Desktop::Hooks hooks();
  void put(Report report);  // from any thread
  void apply_reports();
  void send(const QueuedNotice& queued);
  void open_page();
  void persist(const std::vector<Notice>& told, std::int64_t now_ms);
  void write_state(std::int64_t now_ms, const std::vector<Notice>& outgoing);
  void write_journal();
  void journal(const Decision& decision);
  void set_alarm(std::int64_t now_ms);

  const Rules& rules_;
  const common::ConnectOptions& daemon_;
  common::Client& client_;
  Places places_;
  bool verbose_;
  State before_;
  RuleEngine engine_;
  Following following_;
  Spool spool_;
  DeliveryQueue queue_;
  BoundedLog journal_, dead_;
  Shown shown_;
  bool shown_changed_ = false;
  std::int64_t state_written_ms_ = 0;
  std::uint64_t advances_written_ = 0;
  std::string state_text_, disk_error_;
  std::mutex mutex_;  // of mail_ and shown_mail_
  std::vector<Report> reports_;
  std::vector<Shown> shown_reports_;
  Worker worker_;
  std::unique_ptr<Desktop> desktop_;
  std::unique_ptr<HttpSender> http_sender_;
};

/// `journal.ndjson`'s line.
std::string written(const Decision& decision);

}  // namespace earshot::notifier
