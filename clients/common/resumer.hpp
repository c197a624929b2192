// Subscriptions, and how a client resumes them after a lost connection without losing or repeating events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "common/frame.hpp"

namespace earshot::common {

/// Glob patterns as typed. Patterns of one key are alternatives, keys are combined with AND; an empty list
/// matches everything.
struct Filters {
  std::vector<std::string> project, session, program, type, host;
  bool empty() const {
    return project.empty() && session.empty() && program.empty() && type.empty() && host.empty();
  }
};

struct SubscribeOptions {
  std::string id = "cli";
  bool snapshot = true;
  bool all = false;                      // sessions that are not live, too
  bool state = false;                    // session and status frames only, no events
  bool catch_up = false;                 // when lagging: receive the missed events instead of a new snapshot
  std::vector<std::string> after;        // `<stream>:<cursor>` each
  std::optional<std::int64_t> since_ms;  // for streams that `after` does not name
};

/// A word without wildcards is a name: `api` matches the project */api, `2eaa` a session whose id begins with
/// it, `turn` the types turn.*.
std::string project_pattern(std::string_view typed);
std::string session_pattern(std::string_view typed);
std::string type_pattern(std::string_view typed);

/// One JSON object.
std::string subscribe_request(const Filters& filters, const SubscribeOptions& options);
std::string unsubscribe_request(std::string_view id);

struct StreamCursor {
  std::string_view stream, cursor;
};
/// Splits `<stream>:<cursor>` at the last colon.
StreamCursor parse_stream_cursor(std::string_view text);
/// The `cursors` of a `session` or `bookmark` frame; the views refer to the frame.
std::vector<StreamCursor> stream_cursors(const Fields& frame);

/// The position of each stream: the cursor of its last handled event.
class Cursors {
 public:
  static constexpr std::size_t streams_max = 65'536;     // beyond this the oldest are forgotten
  static constexpr std::size_t after_places_max = 4096;  // of one request; the oldest are left out
  static constexpr std::size_t after_bytes_max = 512 << 10;
  using Streams = std::set<std::string, std::less<>>;

  void set(std::string_view stream, std::string_view cursor) { known_[stream] = cursor; }
  /// Sets the `cursors` of a frame; with `only`, those of these streams.
  void learn(const Fields& frame, const Streams* only = nullptr);
  void erase(std::string_view stream) { known_.erase(stream); }
  /// Events of the stream `to` may have been handled before.
  void rename(std::string_view from, std::string_view to) {
    if (const std::string* cursor = known_.find(from); cursor && !known_.find(to))
      set(to, std::string(*cursor));
    known_.erase(from);
  }
  const std::string* find(std::string_view stream) const { return known_.find(stream); }
  /// The positions as `after` takes them.
  std::vector<std::string> after() const;

 private:
  BoundedMap<std::string, streams_max> known_;
};

/// Resumes one subscription over several connections. The caller passes each frame to receive(), in order,
/// and to handled() once it has been processed; only handled events are not requested again.
class StreamResumer {
 public:
  enum class Phase {
    snapshot,     // from begin() to `ready`
    catching_up,  // missed events, until the complete `bookmark`
    live,
  };
  struct Options {
    std::string id = "cli";
    Filters filters;
    bool snapshot = true;                  // request `session` frames on the first connection
    std::optional<std::int64_t> since_ms;  // first connection: also the events since then
    bool all = false;                      // with since_ms: of sessions that are not live, too
  };
  explicit StreamResumer(Options options) : options_(std::move(options)) {}

  /// A connection was opened: returns the request to send. The first one requests a snapshot (and events
  /// since `since_ms`); later ones resume each stream after its last handled event, and request the events
  /// since the connection was lost of streams that are not known.
  std::string begin();
  void receive(const Fields& frame);
  void handled(const Fields& frame);
  /// The connection was lost at `now_ms`.
  void end(std::int64_t now_ms);

  Phase phase() const { return phase_; }
  /// Whether the connection resumes after a lost one, or with since_ms: missed events precede live ones.
  bool is_resuming() const { return resuming_; }
  Cursors& cursors() { return cursors_; }
  const Cursors& cursors() const { return cursors_; }
  /// Replaces the time since which events of unknown streams are requested.
  void set_since(std::int64_t since_ms) { since_ms_ = since_ms; }

 private:
  Options options_;
  Phase phase_ = Phase::snapshot;
  bool first_ = true;
  bool resuming_ = false;
  bool has_streams_ = false;  // there is something to catch up with
  std::optional<std::int64_t> since_ms_;
  Cursors cursors_;
  Cursors::Streams rewritten_;  // reset while catching up: the next session frame names their position
};

}  // namespace earshot::common
