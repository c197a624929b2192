// Connects the daemon's frames, the rule engine, the sinks and the files. Everything runs on the client's
// thread except the sinks, which have their own threads and post their results.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/client.hpp"
#include "notifier/bounded_log.hpp"
#include "notifier/delivery_queue.hpp"
#include "notifier/desktop.hpp"
#include "notifier/http_sender.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/spool.hpp"
#include "notifier/state_file.hpp"
#include "notifier/subscription.hpp"
#include "notifier/worker.hpp"

namespace earshot::notifier {

/// The notifier's files.
struct StatePaths {
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
      2000;  // cursors that advanced without a decision are written this often

  /// All references must outlive the notifier. `daemon`: whose dashboard a click on a notice opens.
  Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
           const StatePaths& paths, bool verbose);
  /// Waits briefly for deliveries in flight and writes the state.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// Call when a connection opens. Returns the subscribe message.
  std::string begin();
  void receive(std::string_view json) { subscription_.receive(json, now()); }
  /// Whether missed events are read and frames are live.
  bool live() const { return subscription_.live(); }
  /// Applies decisions: sends notices and writes files. Call after each batch of frames and delivery results.
  void process();

 private:
  struct Result {
    std::string key;
    Delivery delivery;
  };
  static std::int64_t now();
  Desktop::Callbacks make_callbacks();
  void post_result(Result report);  // called on any thread
  void apply_results();
  void send(const QueuedNotice& queued);
  void open_page();
  void persist(const std::vector<Notice>& notices, std::int64_t now_ms);
  void write_state(std::int64_t now_ms, const std::vector<Notice>& outgoing);
  void write_journal();
  void journal(const Decision& decision);
  void set_timer(std::int64_t now_ms);

  const Rules& rules_;
  const common::ConnectOptions& daemon_;
  common::Client& client_;
  StatePaths paths_;
  bool verbose_;
  State before_;
  RuleEngine engine_;
  Subscription subscription_;
  Spool spool_;
  DeliveryQueue queue_;
  BoundedLog journal_, dead_;
  ShownNotices shown_;
  bool shown_changed_ = false;
  std::int64_t state_written_ms_ = 0;
  std::uint64_t advances_written_ = 0;
  std::string state_text_, disk_error_;
  std::mutex mutex_;  // guards the two below
  std::vector<Result> results_;
  std::vector<ShownNotices> shown_updates_;
  Worker worker_;
  std::unique_ptr<Desktop> desktop_;
  std::unique_ptr<HttpSender> http_sender_;
};

/// A line of journal.ndjson.
std::string to_json(const Decision& decision);

}  // namespace earshot::notifier
