// One client: HTTP, then perhaps a WebSocket or a live stream.
#pragma once
#include <chrono>
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
  /// Something may be there to send. Cheap when nothing is, or when the client is not ready for it.
  virtual void wake() = 0;
  /// This session is another than it was: for those who asked for states.
  virtual void session_changed(const Session& session) = 0;
  /// Looks at its time limits.
  virtual void tick(watch::Clock::time_point now) = 0;
  /// Sends what is owed up to now, then closes with 1001.
  virtual void stop() = 0;
  /// Whoever came with the old token is closed with 4501.
  virtual void token_changed() = 0;
  /// At once.
  virtual void drop() = 0;

  virtual Kind kind() const = 0;
  virtual TransportKind transport_kind() const = 0;
};

/// busy: whatever it asks, the answer is 503. foreign: it is 403, because another user is at the other end.
enum class Admission { yes, busy, foreign };

/// Begins to read. It keeps itself alive until its socket is closed; `gone` is then called, once, from the
/// loop. `shared` outlives it.
std::shared_ptr<Connection> connect(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                                    ServerContext& context, Admission admission,
                                    std::function<void(Connection&)> gone);

}  // namespace earshot::serve
