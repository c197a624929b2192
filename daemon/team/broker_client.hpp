// What the relay wants of a message broker. The broker's own threads and calls that wait stay behind it: all
// of this is the loop's thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "team/broker_config.hpp"
#include "team/outbox.hpp"

namespace earshot::team {

/// The last message of one of our subjects.
struct Published {
  std::string subject, id, type;
  std::string time;   // of the event, RFC 3339; empty: not said
  std::string owner;  // who published it, as in Beat
  std::uint64_t sequence = 0;
};

/// Somebody asks for a whole record.
struct Asked {
  std::string reply, text;
};

class BrokerListener {
 public:
  virtual ~BrokerListener() = default;
  /// Connected, the streams are there, the host's name is ours; this is what the broker has of it, and
  /// `beat_sequence` what it has of the beat.
  virtual void on_open(std::vector<Published> published, std::uint64_t beat_sequence) = 0;
  /// It cannot be had; for people.
  virtual void on_failed(const std::string& why) = 0;
  /// It was there and is not any more: of what was sent and not answered nobody knows.
  virtual void on_lost(const std::string& why) = 0;
  virtual void on_acked(std::uint64_t number, std::uint64_t sequence) = 0;
  virtual void on_refused(std::uint64_t number, int error, const std::string& why) = 0;
  virtual void on_asked(Asked asked) = 0;
};

/// The broker's word for: your subject's last message is not the one that you think.
constexpr int wrong_last_sequence = 10071;
/// Longer than the stream takes: that will not change by asking again.
constexpr int message_too_long = 10054;
/// With each event: the cursor of the one before it, so that who receives knows what is missing.
constexpr char after_header[] = "Earshot-After";
/// With each event: who published it, as in Beat.
constexpr char owner_header[] = "Earshot-Owner";

/// Who publishes under a host's name.
struct Heartbeat {
  std::string host;
  std::string owner;     // stands for the state directory: the same daemon after a restart
  std::string instance;  // another one each start
  bool contested =
      false;  // somebody took the name while we had it: whoever has it now keeps it while he beats
};
std::string beat_payload(const Heartbeat& beat);
/// Stands for a state directory, and shows nothing of its key.
std::string owner_of(std::uint64_t hash_key);

class BrokerClient {
 public:
  static constexpr int beat_ms = 5000;  // between two beats; who misses three is away
  static constexpr int beats_missed_max = 3;

  virtual ~BrokerClient() = default;
  /// One answer comes: on_open or on_failed.
  virtual void open(const Heartbeat& beat) = 0;
  /// Only while it is open. Each is answered: on_acked or on_refused, unless it is lost before.
  virtual void publish(std::vector<Outgoing> messages) = 0;
  virtual void answer(std::string reply, std::vector<std::string> parts) = 0;
  /// Nothing more comes until open().
  virtual void close() = 0;
};

/// The listener outlives it. Null where the daemon is built without a broker's library.
std::unique_ptr<BrokerClient> make_engine(boost::asio::io_context& io, BrokerConfig link,
                                          BrokerListener& listener);

/// Empty: this daemon can speak with a broker. Else why not.
std::string missing_library();

}  // namespace earshot::team
