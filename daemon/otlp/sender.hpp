// Sends HTTP requests on a thread of its own, in order.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace earshot::otlp {

struct Request {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  std::string tls_ca;  // a file; empty: the system's certificate authorities
  std::int64_t timeout_ms = 0;
};

struct Response {
  static constexpr std::size_t body_bytes_max = 64 << 10;  // the rest is not read

  long status = 0;                  // 0: there was no answer
  std::int64_t retry_after_ms = 0;  // as seconds or as a date; 0: not stated
  std::string content_type;
  std::string body;
  std::string error;  // for users, without an answer
};

/// All calls on the event loop's thread, none blocks. libcurl keeps the connection open between requests.
class Sender {
 public:
  explicit Sender(boost::asio::io_context& io);
  /// Cancels the request. Waits shortly for the thread, and leaves it to its end if it is in a call that does
  /// not return, such as a resolver's.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  bool is_busy() const { return is_busy_; }
  /// REQUIRES: not busy. `done` is called later, from the loop, unless this object was destroyed.
  void send(Request request, std::function<void(Response)> done);
  /// For after the loop has ended: waits for the response to the request in progress, for which `done` is not
  /// called any more. nullopt: there is none, or no response within this time.
  std::optional<Response> finish(std::chrono::milliseconds wait_max);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  std::function<void(Response)> done_;
  bool is_busy_ = false;
};

}  // namespace earshot::otlp
