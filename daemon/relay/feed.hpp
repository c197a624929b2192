// What the hub wants of a message broker. All calls on one thread of its own, and they may wait.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "relay/link.hpp"
#include "relay/shelf.hpp"

namespace earshot::relay {

struct Delivery {
  Received received;
  bool sound = false;  // it is what its subject says; else it is counted and let go
  std::string ack;     // how it is acknowledged
};

/// A status or a beat, as it was published.
struct HeardStatus {
  std::string subject, payload;
  std::int64_t time_ms = 0;  // by the broker's clock
};

class Feed {
 public:
  virtual ~Feed() = default;
  /// Connects; makes the streams and the durable consumer where there are none. Statuses and beats go to
  /// `on_status` from then on, from another thread. Empty: done. Otherwise why not, for people.
  /// `anew`: the consumer begins at the first message again, for nothing is left of what it fetched.
  virtual std::string open(bool anew, std::function<void(HeardStatus heard)> on_status) = 0;
  /// What has come, at most `count`; waits for the first one. False: the connection is over, `why` says it.
  virtual bool next(std::vector<Delivery>& into, std::size_t count, std::chrono::milliseconds wait,
                    std::string& why) = 0;
  /// Empty: done. Otherwise what went wrong: they come again.
  virtual std::string ack(const std::vector<std::string>& acks) = 0;
  virtual void close() = 0;
};

/// `durable` is the consumer's name. Null where the daemon is built without a broker's library.
std::unique_ptr<Feed> make_feed(Link link, std::string durable);

}  // namespace earshot::relay
