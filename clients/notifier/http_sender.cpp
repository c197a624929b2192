#include "notifier/http_sender.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "common/format.hpp"
#include "notifier/public_address.hpp"

namespace earshot::notifier {
namespace {

constexpr std::int64_t connect_ms_max = 5000;
constexpr int poll_ms = 1000;

// The scheme, host and port of a URL.
std::string origin(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return {};
  return std::string(url.substr(0, std::min(url.find_first_of("/?#", scheme + 3), url.size())));
}

// One delivery. Redirects are followed here and not by curl, to check each of them.
struct Transfer {
  std::string key;
  WebhookRequest request;
  std::string url;
  int redirects = 0;
  bool allow_private = false;  // the configured address is itself private
  bool is_rejected = false;
  std::string response;
  curl_slist* headers = nullptr;
  CURL* easy = nullptr;

  ~Transfer() {
    curl_slist_free_all(headers);
    if (easy != nullptr) curl_easy_cleanup(easy);
  }

  static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto& transfer = *static_cast<Transfer*>(self);
    const bool is_private_target = is_private(&address->addr);
    if (transfer.redirects == 0) transfer.allow_private = transfer.allow_private || is_private_target;
    if (is_private_target && !transfer.allow_private) {
      transfer.is_rejected = true;
      return CURL_SOCKET_BAD;
    }
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }

  static std::size_t append_response(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& response = static_cast<Transfer*>(self)->response;
    if (response.size() + size > HttpSender::response_bytes_max)
      return 0;  // ends the transfer: the status is known already
    response.append(bytes, size);
    return size;
  }

  bool prepare() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(std::exchange(headers, nullptr));
    easy = curl_easy_init();
    if (easy == nullptr) return false;
    response.clear();
    for (const std::string& header : request.headers) headers = curl_slist_append(headers, header.c_str());
    if (origin(url) == origin(request.url)) {
      for (const std::string& header : request.secret_headers)
        headers = curl_slist_append(headers, header.c_str());
    }
    headers = curl_slist_append(headers, "Expect:");
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_USERAGENT, common::user_agent().c_str());
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
    set(CURLOPT_FORBID_REUSE, 1L);  // so that open_socket checks each connection
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &Transfer::append_response);
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(CURLOPT_PRIVATE, static_cast<void*>(this));
    if (!request.ca_file.empty()) set(CURLOPT_CAINFO, request.ca_file.c_str());
    return true;
  }

  // True: the request must be repeated with the new url.
  bool follow_redirect(Delivery& delivery) {
    long status = 0;
    char* to = nullptr;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &to);
    if (status < 300 || status > 399 || to == nullptr) return false;
    const std::string next = to;
    delivery.permanent = true;
    if (status == 303) {
      delivery.why = "it redirects to a page (HTTP 303): check the URL";
    } else if (++redirects > HttpSender::redirects_max) {
      delivery.why = "more than " + std::to_string(HttpSender::redirects_max) + " redirects";
    } else if (url.starts_with("https://") && !next.starts_with("https://")) {
      delivery.why = "a redirect from https to " + redact_url(next) + " is not followed";
    } else {
      url = next;
      delivery = {};
      return true;
    }
    return false;
  }

  Delivery result(CURLcode code) const {
    Delivery delivery;
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (is_rejected) {
      delivery.permanent = true;
      delivery.why = "a redirect to the private address " + redact_url(url) + " is not followed";
      return delivery;
    }
    const bool has_response = code == CURLE_OK || (code == CURLE_WRITE_ERROR && status != 0);
    if (has_response) return delivery_result(status, retry_after_s * 1000, response);
    delivery.permanent = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    delivery.why = std::string(curl_easy_strerror(code)) + " (" + redact_url(url) + ")";
    return delivery;
  }
};

}  // namespace

Delivery delivery_result(long status, std::int64_t retry_after_ms, const std::string& response) {
  Delivery delivery;
  delivery.done = status >= 200 && status <= 299;
  if (delivery.done) return delivery;
  const bool is_temporary = status == 408 || status == 425 || status == 429 || status >= 500;
  delivery.permanent = !is_temporary;
  delivery.retry_after_ms = is_temporary ? retry_after_ms : 0;
  constexpr std::size_t shown_columns = 120;
  const std::string text = clean_line(response, shown_columns);
  delivery.why = "HTTP " + std::to_string(status) + (text.empty() ? "" : ": " + text);
  return delivery;
}

class HttpSender::Thread {
 public:
  explicit Thread(Done done)
      : done_(std::move(done)), multi_(curl_multi_init()), thread_([this] { run(); }) {}
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (const auto& each : transfers_) curl_multi_remove_handle(multi_, each->easy);
    transfers_.clear();
    curl_multi_cleanup(multi_);
  }

  void send(const std::string& key, WebhookRequest request) {
    auto transfer = std::make_unique<Transfer>();
    transfer->key = key;
    transfer->url = request.url;
    transfer->request = std::move(request);
    {
      const std::lock_guard lock(mutex_);
      queued_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Transfers = std::list<std::unique_ptr<Transfer>>;

  void run() {
    std::optional<Clock::time_point> end;
    while (true) {
      Transfers queued;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_ && !end) end = Clock::now() + std::chrono::milliseconds(shutdown_grace_ms);
        if (!end) queued = std::exchange(queued_, {});
      }
      for (auto& each : queued) begin(std::move(each));
      if (end && (transfers_.empty() || Clock::now() > *end)) return;
      int running = 0, handles = 0;
      curl_multi_perform(multi_, &running);
      bool finished = false;
      while (CURLMsg* const message = curl_multi_info_read(multi_, &handles)) {
        if (message->msg != CURLMSG_DONE) continue;
        finish(message->easy_handle, message->data.result);
        finished = true;
      }
      if (!finished) curl_multi_poll(multi_, nullptr, 0, end ? 50 : poll_ms, nullptr);
    }
  }

  void begin(std::unique_ptr<Transfer> transfer) {
    if (!transfer->prepare()) return done_(transfer->key, {.why = "cannot start curl"});
    curl_multi_add_handle(multi_, transfer->easy);
    transfers_.push_back(std::move(transfer));
  }

  void finish(CURL* easy, CURLcode code) {
    Transfer* found = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
    curl_multi_remove_handle(multi_, easy);
    const auto position = std::find_if(transfers_.begin(), transfers_.end(),
                                       [&](const auto& each) { return each.get() == found; });
    std::unique_ptr<Transfer> transfer = std::move(*position);
    transfers_.erase(position);
    Delivery delivery;
    const bool has_response = code == CURLE_OK || code == CURLE_WRITE_ERROR;
    if (has_response && !transfer->is_rejected && transfer->follow_redirect(delivery))
      return begin(std::move(transfer));
    if (delivery.why.empty()) delivery = transfer->result(code);
    done_(transfer->key, delivery);
  }

  Done done_;
  CURLM* multi_;
  std::mutex mutex_;  // guards the two below
  Transfers queued_;
  bool stopping_ = false;
  Transfers transfers_;  // used by the thread only
  std::thread thread_;
};

HttpSender::HttpSender(Done done) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_ = std::make_unique<Thread>(std::move(done));
}
HttpSender::~HttpSender() = default;
void HttpSender::send(const std::string& key, WebhookRequest request) {
  thread_->send(key, std::move(request));
}

}  // namespace earshot::notifier
