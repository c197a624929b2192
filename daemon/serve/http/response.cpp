#include "serve/http/response.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace earshot::serve {
namespace {

struct Reason {
  unsigned status;
  std::string_view words;
};
constexpr Reason reasons[] = {
    {200, "OK"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
};

constexpr std::string_view nothing_policy =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::string_view retry_after_seconds = "1";
constexpr std::size_t etag_bytes = 16;  // of a SHA-256: nobody meets another text by chance

void header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

HttpResponse text_response(unsigned status, std::string_view text) {
  HttpResponse answer;
  answer.status = status;
  answer.body.append(text).append("\n");
  return answer;
}

HttpResponse json_response(std::string body) {
  HttpResponse answer;
  answer.content_type = "application/json";
  answer.body = std::move(body);
  return answer;
}

std::string etag_of(std::string_view body) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(body.data()), body.size(), hash.data());
  std::string etag = "\"";
  for (std::size_t i = 0; i < etag_bytes; ++i) {
    etag += "0123456789abcdef"[hash[i] >> 4];
    etag += "0123456789abcdef"[hash[i] & 15];
  }
  return etag + '"';
}

bool matches_etag(std::string_view list, std::string_view etag) {
  if (etag.empty()) return false;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');  // our own tags hold none
    std::string_view one = trim(list.substr(0, comma));
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == etag || one == "*") return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

HttpResponse or_not_modified(HttpResponse answer, std::string_view if_none_match) {
  if (!matches_etag(if_none_match, answer.etag)) return answer;
  answer.status = 304;
  answer.body.clear();
  return answer;
}

std::string_view reason_of(unsigned status) {
  const auto it = std::find_if(std::begin(reasons), std::end(reasons),
                               [&](const Reason& reason) { return reason.status == status; });
  return it == std::end(reasons) ? "Unknown" : it->words;
}

std::string http_date(std::chrono::system_clock::time_point time) {
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday],
                utc.tm_mday, months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text.data();
}

std::string encode(const HttpResponse& answer, const Delivery& delivery) {
  const bool stream = answer.kind == HttpResponse::Kind::events;
  const bool has_body = answer.status != 304;
  std::string out;
  out.reserve(768 + (delivery.head ? 0 : answer.body.size()));
  out.append("HTTP/1.1 ").append(std::to_string(answer.status)).append(" ");
  out.append(reason_of(answer.status)).append("\r\n");
  header(out, "Date", http_date(delivery.now));
  header(out, "Server", delivery.server);
  if (has_body) header(out, "Content-Type", answer.content_type);
  if (stream && !delivery.http_1_0) header(out, "Transfer-Encoding", "chunked");
  if (!stream && has_body) header(out, "Content-Length", std::to_string(answer.body.size()));
  if (!answer.etag.empty()) header(out, "ETag", answer.etag);
  // A page may be kept when it is asked for again each time; what is told of sessions is kept nowhere.
  header(out, "Cache-Control", answer.page_policy.empty() ? "no-store" : "no-cache");
  header(out, "Content-Security-Policy", answer.page_policy.empty() ? nothing_policy : answer.page_policy);
  header(out, "X-Content-Type-Options", "nosniff");
  header(out, "X-Frame-Options", "DENY");
  header(out, "Referrer-Policy", "no-referrer");
  header(out, "Cross-Origin-Opener-Policy", "same-origin");
  header(out, "Cross-Origin-Resource-Policy", "same-origin");
  if (answer.status == 401) header(out, "WWW-Authenticate", "Bearer");
  if (answer.status == 503 || answer.status == 429) header(out, "Retry-After", retry_after_seconds);
  if (!answer.allow.empty()) header(out, "Allow", answer.allow);
  const bool upgrade = !answer.upgrade.empty();
  if (upgrade) header(out, "Upgrade", answer.upgrade);
  std::string connection = delivery.keep_alive ? (delivery.http_1_0 ? "keep-alive" : "") : "close";
  if (upgrade) connection += connection.empty() ? "Upgrade" : ", Upgrade";
  if (!connection.empty()) header(out, "Connection", connection);
  out += "\r\n";
  if (!delivery.head && has_body && !stream) out += answer.body;
  return out;
}

void append_chunk_head(std::string& out, std::size_t bytes) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, 16).ptr;
  out.append(digits.data(), end).append("\r\n");
}

}  // namespace earshot::serve
