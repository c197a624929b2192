// Connects the daemon's frames, the rule engine, the sinks and the files. Everything runs on the client's
// thread except the sinks, which have their own threads and post their results.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantities.hpp"
#include "common/client.hpp"
#include "common/frame.hpp"
#include "common/resumer.hpp"
#include "notifier/delivery_queue.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {

/// The notifier's subscription: passes each event to the rule engine once, across connections and restarts.
class Subscription {
 public:
  static constexpr std::size_t streams_max = 4096;  // beyond this the oldest are not kept for a restart

  /// `types` are the wanted event types; the engine must outlive this. Streams in `cursors` resume from
  /// there; of other streams the events since `since_ms`, and not older than begin()'s `max_age_ms`, are
  /// requested.
  Subscription(RuleEngine& engine, std::vector<std::string> types, const SavedState::Cursors& cursors,
               std::int64_t since_ms);

  /// A connection was opened: returns the request to send.
  std::string begin(std::int64_t now_ms, std::int64_t max_age_ms);
  void receive(std::string_view json, std::int64_t now_ms);
  /// Errors that the daemon reported, for the user.
  std::vector<std::string> take_diagnostics() { return std::exchange(diagnostics_, {}); }

  /// The cursors of the streams with the latest events, the latest last.
  SavedState::Cursors cursors(std::size_t count_max) const;
  /// Increases whenever cursors() changes.
  std::uint64_t advance_count() const { return advance_count_; }
  bool live() const { return resumer_.phase() == common::StreamResumer::Phase::live; }

 private:
  void advanced(std::string_view stream);

  RuleEngine& engine_;
  std::int64_t since_ms_;
  common::StreamResumer resumer_;
  std::map<std::string, std::uint64_t, std::less<>> advanced_at_;  // stream → number of its latest move
  std::uint64_t advance_count_ = 0;
  common::FrameParser parser_;
  std::vector<std::string> diagnostics_;
};

/// The notifier's files.
struct StatePaths {
  std::string directory;
  std::string state() const { return directory + "/state.json"; }
  std::string journal() const { return directory + "/journal.ndjson"; }
  std::string dead() const { return directory + "/dead.ndjson"; }
  std::string lock() const { return directory + "/lock"; }
};

class Notifier {
 public:
  // Cursors that advanced without a decision are written this often.
  static constexpr std::int64_t cursors_ms_max = 2000;
  static constexpr std::int64_t focus_ms_max = 10'000;  // then `earshot focus` is stopped
  // Streams with the latest events, whose cursors are saved; those of others would be too old.
  static constexpr std::size_t cursors_max = 512;

  /// All references must outlive the notifier. `daemon`: whose dashboard a click on a notice opens.
  Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
           const StatePaths& paths, bool verbose);
  /// Waits briefly for deliveries in flight and writes the state.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// Call when a connection opens. Returns the subscribe message.
  std::string begin();
  void receive(std::string_view json) { subscription_.receive(json, now_ms()); }
  /// Whether missed events are read and frames are live.
  bool live() const { return subscription_.live(); }
  /// See SessionCache::set_page().
  void set_page(std::string url) { engine_.set_page(std::move(url)); }
  /// The file's rules were not taken over, for this reason.
  void report_bad_rules(const std::string& why);
  /// Applies decisions: sends notices and writes files. Call after each batch of frames and delivery results.
  void process();

 private:
  struct Result {
    std::string key;
    Delivery delivery;
  };
  Desktop::Callbacks make_callbacks();
  void post_result(Result report);  // called on any thread
  void apply_results();
  void apply_decisions(std::int64_t now_ms);
  void send(const QueuedNotice& queued);
  void open_page(const std::string& link);
  void focus(const std::string& session);
  void run(const std::vector<std::string>& command);
  void report_failing_sinks(std::int64_t now_ms);
  void ask_for_figures(std::int64_t now_ms);
  void apply_figures(const std::string& session, std::string_view body);
  std::function<void()> make_process();
  void save_if_changed(std::int64_t now_ms);
  void journal(const Decision& decision);
  void write_journal();
  void set_timer(std::int64_t now_ms);

  const Rules& rules_;
  const common::ConnectOptions& daemon_;
  common::Client& client_;
  StatePaths paths_;
  bool verbose_;
  DeliveryQueue queue_;
  SavedState saved_;  // as loaded; `shown` is kept up to date
  RuleEngine engine_;
  Subscription subscription_;
  BoundedLog journal_, dead_;
  bool shown_changed_ = true;  // the state is written at the start
  bool stopped_ = false;
  std::int64_t written_ms_ = 0;
  std::uint64_t advances_written_ = 0;
  std::string disk_error_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // the client outlives this
  std::mutex mutex_;                                            // guards the two below
  std::vector<Result> results_;
  std::vector<ShownNotices> shown_updates_;
  Worker pages_;     // opens pages, which blocks
  Worker requests_;  // asks for figures, likewise
  Sinks sinks_;
};

/// A line of journal.ndjson.
std::string to_json(const Decision& decision);

/// The command that shows the terminal of a session: `earshot` beside this program, or in $PATH.
std::vector<std::string> focus_command(const common::ConnectOptions& daemon, const std::string& session);

}  // namespace earshot::notifier
