#include "otlp/sender.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "transfer/post.hpp"

namespace earshot::otlp {
namespace {

constexpr std::chrono::milliseconds stop_wait_max{1000};  // for the thread, which is left to itself then

/// One handle for all requests of a thread: it keeps the connection.
class Transfer {
 public:
  explicit Transfer(const std::atomic<bool>& is_stopped) : is_stopped_(is_stopped), easy_(curl_easy_init()) {}
  ~Transfer() { curl_easy_cleanup(easy_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Response run(const Request& request) {
    Response response;
    if (easy_ == nullptr) return response.error = "cannot start curl", response;
    curl_easy_reset(easy_);  // keeps connections
    curl_slist* headers = nullptr;
    for (const std::string& header : request.headers) headers = curl_slist_append(headers, header.c_str());
    headers = curl_slist_append(headers, "Expect:");
    response_ = &response;
    transfer::set_post(easy_,
                       {request.url, headers, request.body, request.tls_ca, "earshotd", request.timeout_ms},
                       {&Transfer::check_stopped, &Transfer::append_body, this});
    const CURLcode code = curl_easy_perform(easy_);
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &response.status);
    const char* type = nullptr;
    curl_easy_getinfo(easy_, CURLINFO_CONTENT_TYPE, &type);
    if (type != nullptr) response.content_type = type;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after_s);
    constexpr curl_off_t retry_after_s_max = 24 * 3600;
    response.retry_after_ms = std::clamp<curl_off_t>(retry_after_s, 0, retry_after_s_max) * 1000;
    // The answer may be longer than what is read; one that breaks off before is none.
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && response.status != 0)) {
      response.status = 0;
      response.error = curl_easy_strerror(code);
    }
    curl_slist_free_all(headers);
    return response;
  }

 private:
  static std::size_t append_body(char* bytes, std::size_t, std::size_t size, void* self) {
    std::string& body = static_cast<Transfer*>(self)->response_->body;
    if (body.size() + size > Response::body_bytes_max) return 0;  // ends the transfer
    body.append(bytes, size);
    return size;
  }
  static int check_stopped(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->is_stopped_ ? 1 : 0;
  }

  const std::atomic<bool>& is_stopped_;
  CURL* easy_;
  Response* response_ = nullptr;  // of the request in progress
};

}  // namespace

struct Sender::Shared : std::enable_shared_from_this<Sender::Shared> {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Request> next;
  std::optional<Response> response;       // not passed on yet
  boost::asio::io_context* io = nullptr;  // null: the owner was destroyed
  Sender* owner = nullptr;                // used on the loop only
  std::atomic<bool> is_stopped = false;
  bool has_ended = false;

  void run() {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    {
      Transfer transfer(is_stopped);
      while (const auto request = wait()) deliver(transfer.run(*request));
    }
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  }
  std::optional<Request> wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return next || is_stopped; });
    if (is_stopped) return std::nullopt;
    return std::exchange(next, std::nullopt);
  }
  void deliver(Response received) {
    const std::lock_guard lock(mutex);
    if (!io) return;
    response = std::move(received);
    changed.notify_all();
    boost::asio::post(*io, [self = shared_from_this()] {
      Sender* const sender = self->owner;
      if (!sender) return;
      auto taken = self->take_response();
      if (!taken) return;  // finish() has it
      sender->is_busy_ = false;
      const auto done = std::exchange(sender->done_, {});
      done(std::move(*taken));
    });
  }
  std::optional<Response> take_response() {
    const std::lock_guard lock(mutex);
    return std::exchange(response, std::nullopt);
  }
};

Sender::Sender(boost::asio::io_context& io) : shared_(std::make_shared<Shared>()) {
  shared_->io = &io;
  shared_->owner = this;
  std::thread([shared = shared_] { shared->run(); }).detach();
}

Sender::~Sender() {
  shared_->owner = nullptr;
  std::unique_lock lock(shared_->mutex);
  shared_->io = nullptr;
  shared_->is_stopped = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, stop_wait_max, [this] { return shared_->has_ended; });
}

void Sender::send(Request request, std::function<void(Response)> done) {
  is_busy_ = true;
  done_ = std::move(done);
  const std::lock_guard lock(shared_->mutex);
  shared_->next = std::move(request);
  shared_->changed.notify_all();
}

std::optional<Response> Sender::finish(std::chrono::milliseconds wait_max) {
  if (!std::exchange(is_busy_, false)) return {};
  done_ = {};
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, wait_max, [this] { return shared_->response.has_value(); });
  return std::exchange(shared_->response, std::nullopt);
}

}  // namespace earshot::otlp
