// What `tail` does with the frames of one connection after the other: nothing is missed, nothing is told
// twice.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/backfill.hpp"
#include "cli/commands.hpp"
#include "cli/event_formatter.hpp"
#include "cli/name_resolver.hpp"
#include "common/cursors.hpp"

namespace earshot::cli {

using namespace common;

class Follower {
 public:
  /// `options` is the command's, and outlives this.
  Follower(const TailOptions& options, bool pretty);

  /// A connection is open: says what is to be asked for first. The first connection without --since gets a
  /// snapshot and goes on; any other looks at the sessions, then catches up.
  std::string begin();
  /// What else to ask for, if anything; to be sent after take().
  std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }
  /// False: enough.
  bool take(std::string_view json);
  /// The connection is gone, at this moment.
  void end(std::int64_t now_ms);

  bool failed() const { return failed_; }
  void flush() { out_.flush(); }
  const Output& output() const { return out_; }

 private:
  enum class Phase {
    looking,      // session frames of the subscription `display`, until its `ready`
    asking,       // until the `ready` of the one that is wanted
    catching_up,  // until its bookmark
    live,
  };
  struct Kept {
    std::string json;
    std::int64_t activity_ms;
    bool active;  // working or waiting
  };

  bool take_error(const Fields& frame);
  void take_ready(std::string_view id, const Fields& frame, std::string_view json);
  void take_session(const Fields& frame, std::string_view json);
  void take_reset(const Fields& frame, std::string_view json);
  void take_bookmark(const Fields& frame, std::string_view json);
  void take_event(const Fields& frame, std::string_view json);
  std::string display();
  void ask();
  void caught_up();
  void show_news();
  bool status_is_news(const Fields& session_frame) const;
  void remember_status(std::string_view session, const Fields& status);
  void show(const Fields& frame, std::string_view json);
  void write_json(std::string_view json);
  void keep(const Fields& frame, std::string_view json);
  void introduce();

  const TailOptions& options_;
  bool pretty_;
  bool safe_json_;
  Phase phase_ = Phase::live;
  bool first_ = true;  // connection
  bool introduced_ = false;
  bool failed_ = false;
  std::int64_t cut_ms_ = 0;  // of streams that begin at their first event, only what is newer is told
  std::vector<std::string> requests_;
  std::vector<SeenStream> seen_;
  std::set<std::string, std::less<>> looked_at_;  // what the display told of
  bool late_ = false;                             // another stream came since
  std::set<std::string, std::less<>> from_the_beginning_, rewritten_;
  bool awaits_bookmark_ = false;
  std::vector<std::string> news_;  // session frames that tell another status than was told
  std::vector<std::string> bookmarks_;
  Cursors cursors_;
  Backfill caught_up_;
  Recent<std::string, NameResolver::sessions_max> statuses_;
  FrameParser parser_, later_parser_;  // the latter for frames that were kept
  EventFormatter formatter_;
  Output out_;
  std::vector<Kept> snapshot_;
};

}  // namespace earshot::cli
