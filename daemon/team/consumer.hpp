// What the hub wants of a message broker. All calls on one thread of its own, and they may wait.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "team/broker_config.hpp"
#include "team/ingest_action.hpp"

namespace earshot::team {

struct Delivery {
  Received received;
  bool sound = false;  // it is what its subject says; else it is counted and let go
  std::string ack;     // how it is acknowledged
};

/// A status or a beat, as it was published.
struct HeardStatus {
  std::string subject, payload;
  std::int64_t time_ms = 0;  // by the broker's clock
  bool old = false;          // it was there before we listened
};

/// Everything up to this message of a store was acknowledged.
struct Floor {
  std::string store;
  std::uint64_t sequence = 0;
};

/// What a hub knows when it connects.
struct ConsumerStart {
  std::string owner;  // stands for the hub's state directory
  /// Begin at the first message: nothing, or not all, is left of what was fetched.
  bool anew = false;
  Floor floor;  // as it was last kept; where the broker knows nothing of us
  /// Of all that was taken from this store, what came last.
  std::function<Kept(const std::string& store)> newest;
  /// Keeps it. Empty: done. Otherwise what went wrong.
  std::function<std::string(const Floor&)> keep_floor;
};

class Consumer {
 public:
  virtual ~Consumer() = default;
  /// Connects; makes the streams and the durable consumer where there are none. Statuses and beats go to
  /// `on_status` from then on, from another thread; it returns false when it takes no more. Empty: done.
  /// Otherwise why not, for people.
  virtual std::string open(const ConsumerStart& start, std::function<bool(HeardStatus heard)> on_status) = 0;
  /// What has come, at most `count` and about `bytes`; waits for the first one. False: the connection is
  /// over, `why` says it.
  virtual bool next(std::vector<Delivery>& into, std::size_t count, std::size_t bytes,
                    std::chrono::milliseconds wait, std::string& why) = 0;
  /// Empty: done. Otherwise what went wrong: they come again.
  virtual std::string ack(const std::vector<std::string>& acks) = 0;
  virtual void close() = 0;
};

/// `durable` is the consumer's name. Null where the daemon is built without a broker's library.
std::unique_ptr<Consumer> make_feed(BrokerConfig link, std::string durable);

}  // namespace earshot::team
