#include "notifier/sinks/sinks.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/display_text.hpp"
#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "base/sockets.hpp"
#include "base/text.hpp"
#include "common/endpoint.hpp"
#include "common/format.hpp"
#include "transfer/post.hpp"

namespace earshot::notifier {
namespace {

// Secrets are sent in HTTP headers and URLs: only visible ASCII.
bool is_usable(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return !text.empty();
}

constexpr std::size_t response_bytes_max = 16 << 10;  // the rest of a response is not read
constexpr int redirects_max = 3;                      // further redirects are a failure

// The scheme, host and port of a URL.
std::string_view origin(std::string_view url) {
  const std::size_t scheme = url.find("://");
  return scheme == url.npos ? std::string_view() : url.substr(0, url.find_first_of("/?#", scheme + 3));
}

constexpr std::size_t discord_bytes_max = 1900;  // its limit is 2,000 characters

std::string shorten(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : std::string(cut_utf8(text, bytes_max)) + "…";
}

// Escapes the Markdown of Discord and Teams.
std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\*_~`|[]()#>").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string join_lines(const std::string& title, const std::string& body) {
  return body.empty() ? title : title + "\n" + body;
}

constexpr const char* link_text = "Open the session";

void slack(const Notice& notice, const Credentials&, WebhookRequest& request) {
  std::string text = join_lines("*" + escape_markup(notice.title) + "*", escape_markup(notice.body));
  if (!notice.link.empty()) text += "\n<" + escape_markup(notice.link) + "|" + link_text + ">";
  JsonWriter(request.body).begin_object().member("text", text).end_object();
}

void discord(const Notice& notice, const Credentials&, WebhookRequest& request) {
  std::string link;
  if (!notice.link.empty() && notice.link.size() < discord_bytes_max / 2)
    link = "\n[" + std::string(link_text) + "](<" + notice.link + ">)";
  const std::string text =
      join_lines("**" + escape_markdown(notice.title) + "**", escape_markdown(notice.body));
  JsonWriter writer(request.body);
  writer.begin_object();
  writer.member("content", shorten(text, discord_bytes_max - link.size()) + link);
  writer.raw_member("allowed_mentions", R"({"parse":[]})");
  writer.end_object();
}

void teams(const Notice& notice, const Credentials&, WebhookRequest& request) {
  std::string card;
  JsonWriter writer(card);
  const auto write_block = [&](const std::string& text, bool is_title) {
    writer.begin_object()
        .member("type", "TextBlock")
        .member("text", escape_markdown(text))
        .member("wrap", true);
    if (is_title) writer.member("weight", "Bolder").member("size", "Medium");
    writer.end_object();
  };
  writer.begin_object().member("type", "AdaptiveCard");
  writer.member("$schema", "http://adaptivecards.io/schemas/adaptive-card.json").member("version", "1.4");
  writer.key("body").begin_array();
  write_block(notice.title, true);
  if (!notice.body.empty()) write_block(notice.body, false);
  writer.end_array();
  if (!notice.link.empty()) {
    writer.key("actions").begin_array().begin_object();
    writer.member("type", "Action.OpenUrl").member("title", link_text).member("url", notice.link);
    writer.end_object().end_array();
  }
  writer.end_object();
  request.body =
      R"({"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":)" +
      card + "}]}";
}

void write_push(JsonWriter& writer, const Notice& notice, const int (&priorities)[3]) {
  writer.member("title", notice.title).member("message", notice.body.empty() ? notice.title : notice.body);
  writer.member("priority", priorities[static_cast<std::size_t>(notice.urgency)]);
}

void add_bearer(const Credentials& credentials, WebhookRequest& request) {
  if (!credentials.token.empty())
    request.secret_headers.push_back("Authorization: Bearer " + credentials.token);
}

// The URL is https://ntfy.sh/TOPIC. Published as JSON to https://ntfy.sh/, as headers limit titles to ASCII.
void ntfy(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  while (request.url.ends_with('/')) request.url.pop_back();
  const std::size_t slash = request.url.rfind('/');
  JsonWriter writer(request.body);
  writer.begin_object().member("topic", request.url.substr(slash + 1));
  write_push(writer, notice, {2, 3, 5});
  writer.member_if_any("click", notice.link).end_object();
  request.url.resize(slash + 1);
  add_bearer(credentials, request);
}

void gotify(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  while (request.url.ends_with('/')) request.url.pop_back();
  if (!request.url.ends_with("/message")) request.url += "/message";
  JsonWriter writer(request.body);
  writer.begin_object();
  write_push(writer, notice, {2, 5, 8});
  if (!notice.link.empty()) {
    writer.key("extras").begin_object().key("client::notification").begin_object();
    writer.key("click").begin_object().member("url", notice.link).end_object();
    writer.end_object().end_object();
  }
  writer.end_object();
  request.secret_headers.push_back("X-Gotify-Key: " + credentials.token);
}

void json(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  request.body = notice_json(notice);
  add_bearer(credentials, request);
}

struct Kind {
  SinkKind kind;
  void (*fill)(const Notice& notice, const Credentials& credentials, WebhookRequest& request);
};
constexpr Kind kinds[] = {{SinkKind::json, json},   {SinkKind::slack, slack}, {SinkKind::discord, discord},
                          {SinkKind::teams, teams}, {SinkKind::ntfy, ntfy},   {SinkKind::gotify, gotify}};

struct Net4 {
  std::uint32_t net;
  int bits;
};
// Not globally reachable according to IANA's special-purpose registry.
constexpr Net4 nets[] = {
    {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
    {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15},
    {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 3},  // multicast, reserved, broadcast
};

bool is_private4(std::uint32_t address) {
  return std::any_of(std::begin(nets), std::end(nets),
                     [&](const Net4& each) { return (address ^ each.net) >> (32 - each.bits) == 0; });
}

bool is_private6(const unsigned char* bytes) {
  const auto inner = [&](int at) {
    return is_private4(std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
                       std::uint32_t{bytes[at + 2]} << 8 | bytes[at + 3]);
  };
  constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
  if (std::memcmp(bytes, mapped, 12) == 0 || std::memcmp(bytes, nat64, 12) == 0) return inner(12);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return inner(2);  // 6to4
  return (bytes[0] & 0xe0) != 0x20 ||                         // not global unicast
         (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0d && bytes[3] == 0xb8);
}

// One delivery. Redirects are followed here and not by curl, to check each of them.
class Transfer {
 public:
  Transfer(const WebhookRequest& request, const std::function<bool()>& is_cancelled)
      : request_(request), is_cancelled_(is_cancelled), url_(request.url), easy_(curl_easy_init()) {}
  ~Transfer() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(easy_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Delivery run() {
    if (easy_ == nullptr) return {.why = "cannot start curl"};
    while (true) {
      prepare();
      const CURLcode code = curl_easy_perform(easy_);
      Delivery delivery;
      const bool has_response = code == CURLE_OK || code == CURLE_WRITE_ERROR;
      if (has_response && !is_rejected_ && follow_redirect(delivery)) continue;
      return delivery.why.empty() ? result(code) : delivery;
    }
  }

 private:
  static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto& transfer = *static_cast<Transfer*>(self);
    const bool is_private_target = is_private(&address->addr);
    if (transfer.redirects_ == 0) transfer.allow_private_ = transfer.allow_private_ || is_private_target;
    if (is_private_target && !transfer.allow_private_) {
      transfer.is_rejected_ = true;
      return CURL_SOCKET_BAD;
    }
    return earshot::open_socket(address->family, address->socktype, address->protocol).release();
  }

  static std::size_t append_response(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& response = static_cast<Transfer*>(self)->response_;
    if (response.size() + size > response_bytes_max) return 0;  // ends the transfer: the status is known
    response.append(bytes, size);
    return size;
  }

  static int check_cancelled(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->is_cancelled_() ? 1 : 0;
  }

  void prepare() {
    curl_easy_reset(easy_);
    curl_slist_free_all(std::exchange(headers_, nullptr));
    response_.clear();
    const auto add = [&](const std::string& header) {
      headers_ = curl_slist_append(headers_, header.c_str());
    };
    for (const std::string& header : request_.headers) add(header);
    if (origin(url_) == origin(request_.url)) {
      for (const std::string& header : request_.secret_headers) add(header);
    }
    add("Expect:");
    transfer::set_post(
        easy_, {url_, headers_, request_.body, request_.ca_file, common::user_agent(), request_.timeout_ms},
        {&Transfer::check_cancelled, &Transfer::append_response, this});
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy_, option, value); };
    set(CURLOPT_FORBID_REUSE, 1L);  // so that open_socket checks each connection
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  }

  // True: the request must be repeated with the new url.
  bool follow_redirect(Delivery& delivery) {
    long status = 0;
    char* to = nullptr;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &to);
    if (status < 300 || status > 399 || to == nullptr) return false;
    const std::string next = to;
    delivery.permanent = true;
    if (status == 303) {
      delivery.why = "it redirects to a page (HTTP 303): check the URL";
    } else if (++redirects_ > redirects_max) {
      delivery.why = "more than " + std::to_string(redirects_max) + " redirects";
    } else if (url_.starts_with("https://") && !next.starts_with("https://")) {
      delivery.why = "a redirect from https to " + redact_url(next) + " is not followed";
    } else {
      url_ = next;
      delivery = {};
      return true;
    }
    return false;
  }

  Delivery result(CURLcode code) const {
    Delivery delivery;
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (is_rejected_) {
      delivery.permanent = true;
      delivery.why = "a redirect to the private address " + redact_url(url_) + " is not followed";
      return delivery;
    }
    const bool has_response = code == CURLE_OK || (code == CURLE_WRITE_ERROR && status != 0);
    if (has_response) return delivery_result(status, retry_after_s * 1000, response_);
    delivery.permanent = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    delivery.why = std::string(curl_easy_strerror(code)) + " (" + redact_url(url_) + ")";
    return delivery;
  }

  const WebhookRequest& request_;
  const std::function<bool()>& is_cancelled_;
  std::string url_;
  int redirects_ = 0;
  bool allow_private_ = false;  // the configured address is itself private
  bool is_rejected_ = false;
  std::string response_;
  curl_slist* headers_ = nullptr;
  CURL* easy_;
};

}  // namespace

std::variant<std::string, SecretError> read_secret(const SecretSource& source) {
  if (!source.is_set()) return std::string();
  if (!source.variable.empty()) {
    const char* const value = std::getenv(source.variable.c_str());
    if (value == nullptr || !is_usable(value))
      return SecretError{"the environment has no valid " + source.variable};
    return std::string(value);
  }
  const common::TextFile file = common::read_text_file(source.file);
  if (!file.error.empty()) return SecretError{source.file + ": " + file.error};
  if ((file.mode & 077) != 0)
    return SecretError{"others can read or change " + source.file + ": chmod 600 " + source.file};
  if (!is_usable(file.text))
    return SecretError{source.file + ": must be one line of visible ASCII characters"};
  return file.text;
}

std::string sign(std::string_view key, std::string_view text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size);
  return to_hex(bytes, size);
}

std::variant<Credentials, SecretError> read_credentials(const Sink& sink) {
  Credentials credentials;
  const std::pair<const SecretSource&, std::string&> sources[] = {
      {sink.url_source, credentials.url}, {sink.token, credentials.token}, {sink.secret, credentials.secret}};
  for (const auto& [source, value] : sources) {
    auto read = read_secret(source);
    if (auto* error = std::get_if<SecretError>(&read)) return std::move(*error);
    value = std::get<std::string>(std::move(read));
  }
  if (credentials.url.empty()) credentials.url = sink.url;
  if (sink.uses_http() && !credentials.url.starts_with("https://") && !credentials.url.starts_with("http://"))
    return SecretError{"sink " + sink.name + ": the URL must begin with https:// or http://"};
  return credentials;
}

std::variant<WebhookRequest, SecretError> make_request(const Sink& sink, const Credentials& credentials,
                                                       const Notice& notice, std::int64_t now_ms) {
  WebhookRequest request;
  request.url = credentials.url;
  request.ca_file = sink.ca_file;
  request.timeout_ms = sink.timeout_ms;
  request.headers = {"Content-Type: application/json", "Idempotency-Key: " + notice.id};
  for (const Kind& each : kinds) {
    if (each.kind == sink.kind) each.fill(notice, credentials, request);
  }
  if (request.body.empty()) return SecretError{"sink " + sink.name + " does not use HTTP"};
  const std::size_t host = request.url.find("://") + 3;
  if (sink.kind == SinkKind::ntfy && request.url.size() <= host)
    return SecretError{"sink " + sink.name +
                       ": the URL of ntfy must end with the topic, https://ntfy.sh/TOPIC"};
  if (!credentials.secret.empty()) {
    const std::string seconds = std::to_string(now_ms / 1000);
    request.headers.push_back("X-Earshot-Timestamp: " + seconds);
    request.headers.push_back("X-Earshot-Signature: sha256=" +
                              sign(credentials.secret, seconds + "." + request.body));
  }
  return request;
}

std::string redact_url(std::string_view url) {
  const std::string_view site = origin(url);
  if (site.empty()) return "…";
  const std::size_t host = std::max(site.find("://") + 3, site.rfind('@') + 1);
  return std::string(site.substr(0, site.find("://") + 3)) + std::string(site.substr(host)) +
         (site.size() < url.size() ? "/…" : "");
}

bool is_private(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return is_private4(ntohl(in.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return true;
  sockaddr_in6 in{};
  std::memcpy(&in, address, sizeof in);
  return is_private6(in.sin6_addr.s6_addr);
}

Delivery delivery_result(long status, std::int64_t retry_after_ms, const std::string& response) {
  Delivery delivery;
  delivery.done = status >= 200 && status <= 299;
  constexpr std::size_t shown_columns = 120;
  const std::string text = clean_line(response, shown_columns);
  const std::string answer = "HTTP " + std::to_string(status) + (text.empty() ? "" : ": " + text);
  if (delivery.done) {
    delivery.answer = answer;
    return delivery;
  }
  const bool is_temporary = status == 408 || status == 425 || status == 429 || status >= 500;
  delivery.permanent = !is_temporary;
  delivery.retry_after_ms = is_temporary ? retry_after_ms : 0;
  delivery.why = answer;
  return delivery;
}

Delivery send_webhook(const Sink& sink, const Notice& notice, const std::function<bool()>& is_cancelled) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialized != CURLE_OK) return {.why = "cannot start curl"};
  const auto credentials = read_credentials(sink);
  if (const auto* error = std::get_if<SecretError>(&credentials)) return {.why = error->why};
  const auto request = make_request(sink, std::get<Credentials>(credentials), notice, now_ms());
  if (const auto* error = std::get_if<SecretError>(&request)) return {.permanent = true, .why = error->why};
  return Transfer(std::get<WebhookRequest>(request), is_cancelled).run();
}

}  // namespace earshot::notifier
