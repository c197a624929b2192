// The connection's inside: which phase it is in, and what each one does. HTTP is in client_http.cpp,
// WebSocket in client_websocket.cpp, the live stream over HTTP in client_events.cpp, what has to be read
// before an answer in client_cold.cpp.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "core/event_json.hpp"
#include "serve/auth/audit.hpp"
#include "serve/auth/token_bucket.hpp"
#include "serve/http/response.hpp"
#include "serve/stream/message.hpp"
#include "serve/stream/subscriber.hpp"
#include "serve/websocket/connection.hpp"

namespace earshot::serve {

class Client final : public Connection, public std::enable_shared_from_this<Client> {
 public:
  using Clock = watch::Clock;
  using error_code = boost::system::error_code;

  Client(std::unique_ptr<Transport> transport, TransportKind transport_kind, ServerContext& context,
         Admission admission, std::function<void(Connection&)> gone);
  void start();

  void wake() override;
  void session_changed(const Session& session) override { subscriber_.session_changed(session); }
  void tick(Clock::time_point now) override;
  void stop() override;
  void token_changed() override;
  void drop() override;
  Kind kind() const override;
  TransportKind transport_kind() const override { return transport_kind_; }

 private:
  enum class Phase {
    open,     // the TLS handshake
    request,  // a request is being read, or waited for
    work,     // it is read; the answer is being made
    answer,   // it is being written
    linger,   // the last one is written: until the client closes
    upgrade,  // to a WebSocket
    socket,   // a WebSocket
    events,   // the body is the live stream
    closing,  // a close frame, or the last chunk, goes out
    gone
  };
  void enter(Phase phase) {
    phase_ = phase;
    entered_ = Clock::now();
  }

  // HTTP
  void read_request();
  void on_head(Fault fault);
  void on_fault(Fault fault);
  void read_body();
  void act(bool cold_is_read);
  void audit(const Request& request, AuthResult auth_result, const HttpResponse& answer);
  std::string_view who() const;
  std::string_view sees() const;
  void read_cold(HttpResponse answer);
  void reply(const HttpResponse& answer, bool last = false);
  void replied(bool keep_alive);
  void linger();
  void too_slow(Clock::time_point now);

  // WebSocket
  void upgrade(const HttpResponse& answer);
  void read_message();
  void on_message(error_code ec, std::string_view text);
  bool handle(std::string_view text);
  void send_welcome();
  void known_as(const User& user);
  void send();
  void wait_room();
  void wake_soon();
  void close(std::uint16_t code, std::string_view reason);
  void tick_socket(Clock::time_point now);

  // The live stream
  void stream(const HttpResponse& answer);
  void write_head(const HttpResponse& answer, message::Subscribe subscribe);
  void send_lines();
  void write_lines(std::string bytes);
  void end_stream();
  void tick_events(Clock::time_point now);

  // Both
  std::optional<message::Invalid> unfit(const message::Subscribe& asked) const;
  struct LookUp;
  void subscribe(message::Subscribe asked);
  void read(message::Read asked);
  void look_up(const std::shared_ptr<LookUp>& up);
  bool subscribed() const { return phase_ == Phase::socket || phase_ == Phase::events; }
  void count();

  ServerContext& context_;
  const std::unique_ptr<Transport> transport_;
  const TransportKind transport_kind_;
  const Admission admission_;
  std::function<void(Connection&)> gone_;
  Subscriber subscriber_;
  Audit audit_;
  View view_ = View::full;
  Audience audience() const;
  Phase phase_ = Phase::open;
  std::size_t requests_ = 0;  // answered
  bool owner_ = false;        // has proved that it is the owner
  bool by_token_ = false;     // by a token, which may become another
  const User* user_ =
      nullptr;             // who has proved in this request, or by hello, that he is this user; owner_, too
  bool stopping_ = false;  // what is owed now, then goodbye
  bool http_1_0_ = false;  // of the live stream: no chunks
  bool writing_ = false;   // lines of it
  bool reading_ = false;
  bool asleep_ = false;  // the next message waits: what the last one asked for is being read
  bool waits_room_ = false;
  bool wake_posted_ = false;
  bool pinged_ = false;                       // since it was last heard
  bool pinging_ = false;                      // one at a time
  Clock::time_point entered_ = Clock::now();  // when this phase began
  Clock::time_point heard_ = entered_;        // when the client last sent a byte
  Clock::time_point progress_ = entered_;     // when it last took one, or was owed none
  std::optional<Clock::time_point> begun_;    // when the first byte of this request was seen
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  std::uint64_t counted_in_ = 0, counted_out_ = 0;
  TokenBucket messages_;
};

}  // namespace earshot::serve
