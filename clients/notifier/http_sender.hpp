// Sends HTTP requests concurrently on its own thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "notifier/payload.hpp"
#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

class HttpSender {
 public:
  static constexpr std::size_t response_bytes_max = 16 << 10;  // the rest of a response is not read
  static constexpr int redirects_max = 3;                      // further redirects are a failure
  static constexpr std::int64_t shutdown_grace_ms = 2000;      // for requests in flight at destruction

  /// `done` is called on the sender's thread, once per request.
  using Done = std::function<void(const std::string& key, const Delivery& delivery)>;
  explicit HttpSender(Done done);
  /// Waits up to shutdown_grace_ms for requests in flight; `done` is not called for the others.
  ~HttpSender();
  HttpSender(const HttpSender&) = delete;
  HttpSender& operator=(const HttpSender&) = delete;

  void send(const std::string& key, WebhookRequest request);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

/// The result of a delivery by HTTP status; `response` is the beginning of the response body.
Delivery delivery_result(long status, std::int64_t retry_after_ms, const std::string& response);

}  // namespace earshot::notifier
