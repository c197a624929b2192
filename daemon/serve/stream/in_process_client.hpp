// A subscriber that lives in this house: no socket, no authentication; for the rest it is a client like any
// other. Whoever takes its frames says when there is room, and is never waited for.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "serve/stream/message.hpp"
#include "serve/stream/subscriber.hpp"
#include "serve/websocket/connection.hpp"

namespace earshot::serve {

class InProcessListener {
 public:
  virtual ~InProcessListener() = default;
  /// Asked before each frame. False: what follows waits until Inside::wake() is called; what the log lets go
  /// of meanwhile is read from the files, if the subscription says so.
  virtual bool has_room() const = 0;
  /// A frame's payload, good during the call.
  virtual void on_frame(std::string_view payload) = 0;
};

/// All calls on the loop's thread. The listener outlives it, or calls leave().
class InProcessClient final : public Connection, public std::enable_shared_from_this<InProcessClient> {
 public:
  InProcessClient(boost::asio::io_context& io, ServerContext& context, InProcessListener& listener,
                  Audience audience);

  /// May be called from on_frame().
  void subscribe(message::Subscribe asked);
  void read(message::Read asked);
  /// No frame comes any more.
  void leave();

  void wake() override;
  void session_changed(const Session& session) override { subscriber_.session_changed(session); }
  void tick(watch::Clock::time_point now) override { subscriber_.tick(now); }
  void stop() override { leave(); }
  void token_changed() override {}
  void drop() override { leave(); }
  Kind kind() const override { return Kind::events; }
  TransportKind transport_kind() const override { return TransportKind::unix_socket; }

  std::function<void(Connection&)> gone;  // called once, from the loop, when it has left

 private:
  static constexpr int batches_a_turn = 16;  // then others have their turn

  void ask();
  void wake_soon();
  std::size_t deliver(const Batch& batch);

  boost::asio::io_context& io_;
  InProcessListener* listener_;  // null: it has left
  Subscriber subscriber_;
  std::vector<message::Subscribe> subscribes_;  // asked during a delivery
  std::vector<message::Read> reads_;
  bool delivering_ = false, wake_posted_ = false;
};

}  // namespace earshot::serve
