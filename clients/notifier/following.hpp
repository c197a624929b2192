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

class Following {
 public:
  using Places = std::vector<std::pair<std::string, std::string>>;  // stream, cursor
  /// `types` are the wanted event types; the decider must outlive this. Streams in `places` resume from
  /// there; of other streams the events since `since_ms`, and not older than begin()'s `max_age_ms`, are
  /// requested.
  Following(Decider& decider, std::vector<std::string> types, const Places& places, std::int64_t since_ms);

  /// A connection was opened: returns the request to send.
  std::string begin(std::int64_t now_ms, std::int64_t max_age_ms);
  void take(std::string_view json, std::int64_t now_ms);
  /// Errors that the daemon reported, for the user.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }

  /// The cursors of the streams with the latest events, the latest last.
  Places places(std::size_t count_max) const;
  /// Increases whenever places() changes.
  std::uint64_t moves() const { return move_; }
  bool live() const { return resumer_.phase() == common::StreamResumer::Phase::live; }

 private:
  void moved(std::string_view stream);

  Decider& decider_;
  std::int64_t since_ms_;
  common::StreamResumer resumer_;
  std::map<std::string, std::uint64_t, std::less<>> moves_;  // stream → number of its latest move
  std::uint64_t move_ = 0;
  common::FrameParser parser_;
  std::vector<std::string> complaints_;
};

}  // namespace earshot::notifier
