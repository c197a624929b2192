// A client inside the daemon: no socket and no authentication, otherwise like any other.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "serve/server_context.hpp"
#include "serve/stream/subscriber.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

class InProcessListener {
 public:
  virtual ~InProcessListener() = default;
  /// Called before each frame. False: delivery stops until InProcessClient::wake(); events that the log
  /// evicts meanwhile are read from the files if the subscription catches up.
  virtual bool has_room() const = 0;
  /// A frame's payload, valid during the call.
  virtual void on_frame(std::string_view payload) = 0;
};

/// All calls on the loop's thread. The listener outlives this object, or calls leave().
class InProcessClient final : public Connection, public std::enable_shared_from_this<InProcessClient> {
 public:
  InProcessClient(boost::asio::io_context& io, ServerContext& context, InProcessListener& listener,
                  Audience audience);

  /// May be called from on_frame().
  void subscribe(message::Subscribe asked);
  void read(message::Read asked);
  /// Ends delivery; no further call to the listener.
  void leave();

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
  static constexpr int batches_per_turn = 16;  // then the loop continues with other handlers

  void send_requests();
  void wake_soon();
  std::size_t deliver(const Batch& batch);

  boost::asio::io_context& io_;
  InProcessListener* listener_;  // null after leave()
  Subscriber subscriber_;
  std::vector<message::Subscribe> subscribes_;  // requested since the last wake()
  std::vector<message::Read> reads_;
  bool delivering_ = false, wake_posted_ = false;
};

}  // namespace earshot::serve
