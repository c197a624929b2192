// One HTTP request over the daemon's Unix socket that never blocks: for a command that must finish in time
// whatever the daemon does.
#pragma once
#include <string>
#include <string_view>

#include "base/system.hpp"

namespace earshot::common {

class LocalRequest {
 public:
  static constexpr std::size_t response_bytes_max = 8 << 20;  // a longer one is cut

  /// Connects to `socket` if a daemon of this user listens there; otherwise is_done() at once. The response
  /// ends with the connection. `body`: JSON; empty: a GET.
  LocalRequest(const std::string& socket, std::string_view target, std::string_view body = {});

  /// For poll(): what advance() waits for. -1: nothing any more.
  int fd() const { return fd_.get(); }
  short events() const;
  /// Sends and receives what is possible now.
  void advance();

  bool is_connected() const { return connected_; }
  /// The response is complete, or there will be none.
  bool is_done() const { return !fd_; }
  /// 0: no response yet.
  int status() const;
  /// What has arrived of the response's body.
  std::string_view body() const;
  void close() { fd_.reset(); }

 private:
  Fd fd_;
  bool connected_ = false;
  std::string unsent_, received_;
};

}  // namespace earshot::common
