// One client as the server sees it.
#pragma once
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "serve/server_context.hpp"
#include "serve/websocket/transport.hpp"

namespace earshot::serve {

class Connection {
 public:
  enum class Kind { http, websocket, events };

  virtual ~Connection() = default;
  /// Frames may be ready. Cheap if none are, or if the client is not ready for them.
  virtual void wake() = 0;
  /// For `deliver: state`: the session's state changed.
  virtual void session_changed(const Session& session) = 0;
  /// For `new_streams: beginning`: a `session` frame was appended to the log.
  virtual void session_shown(const Session& session) = 0;
  /// For `new_streams: beginning`: a stream without history appeared.
  virtual void stream_appeared(std::uint32_t stream) = 0;
  /// Checks the time limits.
  virtual void tick(Clock::time_point now) = 0;
  /// Sends what is ready now, then closes with 1001.
  virtual void stop() = 0;
  /// Closes with 4501 if the client authenticated with the owner's former token.
  virtual void token_changed() = 0;
  /// Closes at once.
  virtual void drop() = 0;

  virtual Kind kind() const = 0;
  virtual TransportKind transport_kind() const = 0;
};

/// busy: every request is answered by 503. foreign: by 403, as another user is connected.
enum class Admission { yes, busy, foreign };

/// Starts to serve a client. The connection keeps itself alive until its socket is closed; `on_closed` is
/// then called once, from the loop. `context` outlives it.
std::shared_ptr<Connection> connect(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                                    ServerContext& context, Admission admission,
                                    std::function<void(Connection&)> on_closed);

}  // namespace earshot::serve
