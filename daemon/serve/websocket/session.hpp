// A client's WebSocket: its messages, and the frames it is sent.
#pragma once
#include "serve/stream/subscriber_session.hpp"

namespace earshot::serve {

/// Close codes: after 4000–4499 a client may reconnect, after 4500–4999 it must not.
constexpr std::uint16_t close_going_away = 1001, close_stalled = 4408, close_too_often = 4429,
                        close_not_authenticated = 4501;

class WebSocketSession final : public SubscriberSession {
 public:
  WebSocketSession(HttpConnection& connection, const Caller& caller)
      : SubscriberSession(connection, caller) {}

  Connection::Kind kind() const override { return Connection::Kind::websocket; }
  /// Accepts the upgrade.
  void start() override;
  void wake() override;
  void tick(Clock::time_point now) override;
  void stop() override;
  void token_changed() override;
  void browser_removed(std::string_view browser) override;

 private:
  enum class State { upgrading, open, closing };
  void enter(State state) {
    state_ = state;
    entered_ = Clock::now();
  }
  bool is_open() const override { return state_ == State::open; }
  void on_request_done() override { read_message(); }

  void send_welcome();
  void read_message();
  void on_message(error_code ec, std::string_view text);
  bool is_too_often();
  bool handle(std::string_view text);
  bool authenticate(const message::Hello& hello);
  void send();
  void wait_room();
  void close(std::uint16_t code, std::string_view reason);

  State state_ = State::upgrading;
  Clock::time_point entered_ = Clock::now();
  Clock::time_point received_ = entered_;  // when the client last sent a byte
  std::uint64_t bytes_in_ = 0;
  bool reading_ = false;
  bool waits_room_ = false;
  bool pinged_ = false;   // since the client last sent a byte
  bool pinging_ = false;  // a ping is being written
};

}  // namespace earshot::serve
