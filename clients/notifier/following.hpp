// What is asked of the daemon, connection after connection, so that the decider hears of each event once:
// first a look at the sessions, then what was missed, then what is live.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cursors.hpp"
#include "common/frame.hpp"
#include "notifier/rule_engine.hpp"

namespace earshot::notifier {

class Following {
 public:
  using Places = std::vector<std::pair<std::string, std::string>>;  // stream, cursor
  /// `types` are those of the events that are wanted; the decider outlives this. Streams that `places` does
  /// not know begin at their first event when they moved lately, and after `since_ms`; else where they are.
  Following(Decider& decider, std::vector<std::string> types, const Places& places, std::int64_t since_ms);

  /// A connection is open: what is to be asked for first.
  std::string begin(std::int64_t now_ms, std::int64_t max_age_ms);
  void take(std::string_view json, std::int64_t now_ms);
  /// What else to ask for, to be sent after take().
  std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }
  /// What the daemon complained of; for people.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }

  /// Where the streams are that moved last, the last one at the end.
  Places places(std::size_t count_max) const;
  /// How often a stream moved: whether places() is another than it was.
  std::uint64_t moves() const { return move_; }
  bool live() const { return phase_ == Phase::live; }

 private:
  enum class Phase {
    looking,      // session frames of the subscription `look`, until its `ready`
    asking,       // until the `ready` of the one that is wanted
    catching_up,  // until its bookmark, and that of the streams which were born between the two
    live,
  };
  void ask();
  void ask_for_the_young();
  void caught_up(std::int64_t now_ms);
  void moved(std::string_view stream);
  void take_session(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  void take_reset(const common::Fields& frame);

  Decider& decider_;
  std::vector<std::string> types_;
  std::int64_t since_ms_;
  Phase phase_ = Phase::live;
  std::int64_t cut_ms_ = 0;
  common::Cursors cursors_;
  std::map<std::string, std::uint64_t, std::less<>> moves_;  // stream → when it moved, in moves
  std::uint64_t move_ = 0;
  std::vector<common::SeenStream> seen_;
  std::set<std::string, std::less<>> rewritten_;
  std::set<std::string, std::less<>> asked_;  // streams that are asked for
  std::set<std::string, std::less<>> young_;  // that the second snapshot is the first to tell of
  int awaited_ = 0;                           // bookmarks
  common::FrameParser parser_;
  std::vector<std::string> requests_, complaints_;
};

}  // namespace earshot::notifier
