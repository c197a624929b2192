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

namespace earshot::otlp {
namespace {

constexpr std::int64_t connect_ms_max = 5000;
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
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy_, option, value); };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_USERAGENT, "earshotd");
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min(request.timeout_ms, connect_ms_max)));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_ms));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Transfer::check_stopped);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &Transfer::append_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&response.body));
    if (!request.tls_ca.empty()) set(CURLOPT_CAINFO, request.tls_ca.c_str());
    const CURLcode code = curl_easy_perform(easy_);
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &response.status);
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
  static std::size_t append_body(char* bytes, std::size_t, std::size_t size, void* to) {
    auto& body = *static_cast<std::string*>(to);
    if (body.size() + size > Response::body_bytes_max) return 0;  // ends the transfer
    body.append(bytes, size);
    return size;
  }
  static int check_stopped(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->is_stopped_ ? 1 : 0;
  }

  const std::atomic<bool>& is_stopped_;
  CURL* easy_;
};

}  // namespace

struct Sender::Shared : std::enable_shared_from_this<Sender::Shared> {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Request> next;
  std::optional<Response> response;       // not passed on yet
  boost::asio::io_context* io = nullptr;  // null: the owner is gone
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
      auto received = self->take_response();
      if (!received) return;  // finish() has it
      sender->is_busy_ = false;
      const auto done = std::exchange(sender->done_, {});
      done(std::move(*received));
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
