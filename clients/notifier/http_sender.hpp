// Sends web requests on a thread of its own, several at once.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "notifier/payload.hpp"
#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

class HttpSender {
 public:
  static constexpr std::size_t answer_bytes_max = 16 << 10;  // more of an answer is not read
  static constexpr int redirects_max = 3;                    // more are a failure
  static constexpr std::int64_t goodbye_ms = 2000;           // for what is on its way when this ends

  /// `done` is called on the courier's thread, once for each request.
  using Done = std::function<void(const std::string& key, const Delivery& delivery)>;
  explicit HttpSender(Done done);
  /// Waits for what is on its way, for a while; what was not sent by then is not told of.
  ~HttpSender();
  HttpSender(const HttpSender&) = delete;
  HttpSender& operator=(const HttpSender&) = delete;

  void send(const std::string& key, WebRequest request);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

/// What an HTTP status means for a letter; `answer` is the beginning of the body.
Delivery judged(long status, std::int64_t retry_after_ms, const std::string& answer);

}  // namespace earshot::notifier
