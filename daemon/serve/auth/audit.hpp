// The audit log of a daemon that has users besides its owner: one line per connection, and one per change of
// identity or permissions. Lines contain no token, code or query.
#pragma once
#include <string>
#include <string_view>

#include "serve/websocket/transport.hpp"

namespace earshot::serve {

class Audit {
 public:
  /// Enables the log for this connection; the socket is connected.
  void begin(Transport::Socket& socket, TransportKind transport_kind);
  /// `audit: WHO from ADDRESS requests WHAT and RESULT`
  void log(std::string_view who, std::string_view what, std::string_view result);
  /// The same, unless the last line had the same `who` and `result`.
  void log_change(std::string_view who, std::string_view what, std::string_view result);
  /// Enabled, and nothing was logged yet.
  bool is_pending() const { return !address_.empty() && last_.empty(); }

 private:
  std::string address_;  // empty: disabled
  std::string last_;
};

}  // namespace earshot::serve
