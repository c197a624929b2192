// What one connection has asked for and what it is owed, in order. No socket: it hands out bytes and hears
// how many went.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/filter.hpp"
#include "serve/message.hpp"
#include "serve/shared.hpp"
#include "serve/types.hpp"

namespace earshot::serve {

/// Bytes for one gathered write, straight from where they lie. Valid until anything is appended to the log or
/// told.
class Batch {
 public:
  static constexpr std::size_t pieces_max = 64;  // more wait for the next write
  std::span<const iovec> iovecs() const { return {iovecs_.data(), count_}; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return count_ == 0; }
  bool full = false;  // there is more

 private:
  friend class Subscriber;
  std::array<iovec, pieces_max> iovecs_;
  std::array<LiveLog::Run, pieces_max> runs_;  // no frames in it: an own frame
  std::size_t count_ = 0, bytes_ = 0;
  Position scanned = 0;  // everything before it is in the batch, was sent or is not wanted
};

class Subscriber {
 public:
  explicit Subscriber(Shared& shared) : shared_(shared) {}
  ~Subscriber() { close(); }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// A frame for this connection alone, behind all that the log holds now.
  void tell(std::string_view payload);

  /// Queues the snapshot and `ready`, or an `error`. Both belong to this very point of the log.
  void subscribe(message::Subscribe asked);
  void unsubscribe(std::string_view id);
  /// Wants nothing any more; what is shared is not touched after this.
  void close();

  /// For `deliver: state`: this session is another than it was. The newest wins, whenever the client reads.
  void session_changed(const Session& session);

  /// What goes out next, in order. An empty batch: nothing is owed.
  void gather(Batch& batch);
  /// Of this batch `bytes` went out. Returns the rest of the frame that was cut: to be copied now, and sent
  /// before all else.
  std::span<const char> sent(const Batch& batch, std::size_t bytes);

  /// The client is not reading: let go of snapshots that the log has outrun, so that it pins no memory.
  void shed();
  /// More answers wait than a client may leave unread.
  bool congested() const { return own_bytes_ > shared_.limits.own_bytes_max; }

 private:
  using Mask = std::uint32_t;  // one bit a subscription
  static constexpr Mask all_subscriptions = ~Mask{0};
  static constexpr std::size_t masked_max = 32;  // more subscriptions than bits: error `limit`

  struct Subscription {
    std::string id;
    Filter filter;
    bool state = false, all = false;
    Position since = 0;  // earlier frames are in its snapshot
  };
  enum class Kind { answer, snapshot, lagged };
  struct Own {
    Position at;  // goes out behind every frame before this one
    Kind kind;
    Frame frame;
  };
  struct Verdict {  // what the filters say about a session, until it or they change
    std::uint32_t session = 0, generation = 0;
    Mask mask = 0;
  };
  static constexpr std::size_t verdicts = 256;  // direct-mapped; a collision is evaluated again

  bool wants(const Subscription& subscription, const Session& session) const;
  Mask sessions_mask(std::uint32_t session);
  void count_kinds();
  void push(Kind kind, Frame frame);
  void snapshot(const Subscription& subscription);
  void catch_up();
  bool add_states();
  void add_log(Batch& batch, Position until);

  Shared& shared_;  // outlives all connections
  Position position_ = 0;
  std::vector<Subscription> subscriptions_;
  bool events_ = false, states_ = false;
  bool shed_ = false;  // snapshots were let go: all sessions are told again
  std::deque<Own> own_;
  std::size_t own_bytes_ = 0;  // of answers; snapshots are shared
  std::set<std::uint32_t> states_due_;
  std::array<Mask, event_types + 1> types_{};
  std::unique_ptr<std::array<Verdict, verdicts>> verdicts_;
  Frame torn_;  // the one that the last sent() cut
};

}  // namespace earshot::serve
