// The notifier's subscription: passes each event to the rule engine once, across connections and restarts.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/frame.hpp"
#include "common/resumer.hpp"
#include "notifier/rule_engine.hpp"

namespace earshot::notifier {

class Subscription {
 public:
  using Cursors = std::vector<std::pair<std::string, std::string>>;  // stream, cursor
  /// `types` are the wanted event types; the engine must outlive this. Streams in `cursors` resume from
  /// there; of other streams the events since `since_ms`, and not older than begin()'s `max_age_ms`, are
  /// requested.
  Subscription(RuleEngine& engine, std::vector<std::string> types, const Cursors& cursors,
               std::int64_t since_ms);

  /// A connection was opened: returns the request to send.
  std::string begin(std::int64_t now_ms, std::int64_t max_age_ms);
  void receive(std::string_view json, std::int64_t now_ms);
  /// Errors that the daemon reported, for the user.
  std::vector<std::string> take_diagnostics() { return std::exchange(diagnostics_, {}); }

  /// The cursors of the streams with the latest events, the latest last.
  Cursors cursors(std::size_t count_max) const;
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

}  // namespace earshot::notifier
