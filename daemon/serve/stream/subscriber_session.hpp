// The owners of subscribers: what a WebSocket and an event stream have in common (reading cold sessions
// before a request is carried out, heartbeats, the detection of stalled clients), and a client inside the
// daemon.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "serve/auth/access.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/subscriber.hpp"
#include "serve/stream/subscription.hpp"
#include "serve/websocket/transport.hpp"

namespace earshot::serve {

class HttpConnection;

/// Owned by its connection, which its callbacks keep alive.
class SubscriberSession {
 public:
  using error_code = boost::system::error_code;

  virtual ~SubscriberSession() = default;
  virtual Connection::Kind kind() const = 0;
  virtual void start() = 0;
  virtual void wake() = 0;
  virtual void tick(Clock::time_point now) = 0;
  virtual void stop() = 0;
  virtual void token_changed() = 0;
  virtual void browser_removed(std::string_view browser) = 0;
  Subscriber& subscriber() { return subscriber_; }
  bool is_authenticated() const { return caller_.is_authenticated(); }

 protected:
  SubscriberSession(HttpConnection& connection, const Caller& caller);

  /// Subscriptions are possible: not closing.
  virtual bool is_open() const = 0;
  /// A request was carried out: the next one may be read.
  virtual void on_request_done() {}

  /// Sets the identity and the permissions of the client.
  void set_caller(const Caller& caller);
  /// Reads cold sessions as needed, then subscribes.
  void subscribe(message::Subscribe asked);
  void read(message::Read asked);
  bool is_reading_cold() const { return reading_cold_; }
  /// What is beyond the limits of this daemon.
  std::optional<message::Invalid> check_limits(const message::Subscribe& asked) const;
  /// wake() from the loop, for frames that are not in the log.
  void wake_soon();
  /// A client with unsent frames takes at least this much within `limits.stall`, or has stalled.
  static constexpr std::uint64_t progress_bytes_min = 16 << 10;
  /// False: the client has stalled. Called once per tick.
  bool check_progress(Clock::time_point now, bool has_unsent);
  void frame_sent() { last_frame_ = Clock::now(); }
  /// Queues a `heartbeat` if no frame was sent for `limits.heartbeat`.
  void send_heartbeat(Clock::time_point now);

  HttpConnection& connection_;
  ServerContext& context_;
  Transport& transport_;
  Caller caller_;
  Subscriber subscriber_;

 private:
  struct ColdRead;
  void read_cold(const std::shared_ptr<ColdRead>& request);

  bool reading_cold_ = false;
  bool wake_posted_ = false;
  std::uint64_t bytes_out_ = 0;                // at `progress_`
  Clock::time_point progress_ = Clock::now();  // when the client had last taken that much, or everything
  Clock::time_point last_frame_ = Clock::now();
};

class InProcessListener {
 public:
  virtual ~InProcessListener() = default;
  /// Called before each frame. False: delivery stops until InProcessClient::resume(); events that the
  /// log evicts meanwhile are read from the files if the subscription catches up.
  virtual bool has_room() const = 0;
  /// A frame's payload, valid during the call.
  virtual void on_frame(std::string_view payload) = 0;
};

/// When an in-process client receives new frames, and how much in one turn of the loop.
struct DeliveryPace {
  // After the first new frame; later ones are delivered with it. 0: at once, after the clients.
  std::chrono::milliseconds delay{0};
  std::size_t behind_max = 1024;  // frames; with more to deliver the delay ends
  // Then the loop continues with other handlers.
  std::size_t turn_frames_max = SIZE_MAX, turn_bytes_max = 4 << 20;
};

/// A client inside the daemon: no socket and no authentication, otherwise like any other. All calls on the
/// loop's thread. The listener outlives this object, or calls leave().
class InProcessClient final : public Connection, public std::enable_shared_from_this<InProcessClient> {
 public:
  InProcessClient(boost::asio::io_context& io, ServerContext& context, InProcessListener& listener,
                  Audience audience, const DeliveryPace& pace = {});

  /// May be called from on_frame().
  void subscribe(message::Subscribe asked);
  void read(message::Read asked);
  /// Ends delivery; no further call to the listener.
  void leave();
  /// The listener has room again: delivers without the delay.
  void resume() { deliver_ready(pace_.turn_frames_max); }
  /// Delivers what the log has without the delay, as far as the listener has room; at most
  /// DeliveryPace::behind_max frames, with more behind the delay has ended anyway.
  void flush() { deliver_ready(pace_.behind_max); }

  /// The log has grown.
  void wake() override;
  Subscriber* subscriber() override { return &subscriber_; }
  void tick(Clock::time_point now) override { subscriber_.tick(now); }
  void stop() override { leave(); }
  void token_changed() override {}
  void drop() override { leave(); }
  Kind kind() const override { return Kind::events; }
  TransportKind transport_kind() const override { return TransportKind::unix_socket; }

  std::function<void(Connection&)> on_closed;  // called once, from the loop, after leave()

 private:
  void send_requests();
  void deliver_soon();
  void deliver_ready(std::size_t frames_max);
  std::size_t deliver(const Batch& batch);
  bool is_turn_over() const { return frames_left_ == 0 || bytes_left_ == 0; }

  boost::asio::io_context& io_;
  InProcessListener* listener_;  // null after leave()
  const DeliveryPace pace_;
  Timer delay_timer_;
  Subscriber subscriber_;
  std::vector<message::Subscribe> subscribes_;  // requested since the last delivery
  std::vector<message::Read> reads_;
  std::size_t frames_left_ = 0, bytes_left_ = 0;  // of this turn
  bool delivering_ = false, delivery_posted_ = false, is_delayed_ = false;
};

}  // namespace earshot::serve
