#include "otlp/retry.hpp"

#include <algorithm>
#include <string_view>

namespace earshot::otlp {
namespace {

bool is_success(long status) { return status >= 200 && status <= 299; }
bool is_redirect(long status) { return status >= 300 && status <= 399; }

/// A sign-in page of a network, or a web server that serves one page for every path: no collector.
bool is_page(const Response& response) {
  constexpr std::string_view page = "text/html";
  std::string type = response.content_type.substr(0, page.size());
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return is_success(response.status) && type == page;
}

}  // namespace

std::chrono::milliseconds Backoff::next(std::chrono::milliseconds asked) {
  delay_ = std::clamp(delay_ * 2, delay_min, delay_max);
  // Not std::uniform_int_distribution: its results differ between standard libraries.
  const std::int64_t half = delay_.count() / 2;
  const auto jittered = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(half + 1));
  return std::max(std::chrono::milliseconds(delay_.count() - half + jittered), std::min(asked, asked_max));
}

bool is_unauthorized(long status) { return status == 401 || status == 403; }

bool is_retryable(const Response& response) {
  // OTLP specification 1.3, "Retryable Response Codes".
  const long status = response.status;
  const bool is_overload = status == 429 || status == 502 || status == 503 || status == 504;
  const bool is_setup = is_unauthorized(status) || status == 404 || status == 407 || is_redirect(status);
  return status == 0 || is_overload || is_setup || is_page(response);
}

std::string reason_of(const Response& response) {
  if (response.status == 0) return response.error;
  const std::string answer = "HTTP " + std::to_string(response.status);
  if (is_redirect(response.status)) return answer + ", a redirect: set the final address";
  if (is_page(response)) return answer + " with a web page: this is no collector";
  return answer;
}

}  // namespace earshot::otlp
