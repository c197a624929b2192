// One client: HTTP, then perhaps a WebSocket. Plain on this side; Beast is heavy and stays in connection.cpp.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "serve/shared.hpp"

namespace earshot::serve {

class Connection {
 public:
  virtual ~Connection() = default;
  /// Something may be there to send. Cheap when nothing is, or when the client is not ready for it.
  virtual void ring() = 0;
  /// This session is another than it was: for those who asked for states.
  virtual void session_changed(const Session& session) = 0;
  /// Looks at its time limits.
  virtual void tick(std::chrono::steady_clock::time_point now) = 0;
  /// Sends what is owed up to now, then closes with 1001.
  virtual void stop() = 0;
  /// At once.
  virtual void drop() = 0;
};

enum class Welcome { yes, busy };  // busy: whatever it asks, the answer is 503

/// Begins to read. It keeps itself alive until its socket is closed; `gone` is then called, once, from the
/// loop. `shared` outlives it.
std::shared_ptr<Connection> connect(boost::asio::ip::tcp::socket socket, Shared& shared, Welcome welcome,
                                    std::function<void(Connection&)> gone);

}  // namespace earshot::serve
