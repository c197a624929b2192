#include "common/http.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "common/connection.hpp"
#include "common/format.hpp"

extern char** environ;

namespace earshot::common {
namespace {

constexpr std::chrono::seconds opener_time_max{3};  // one that takes longer is at work: it is left alone
constexpr std::chrono::milliseconds opener_beat{20};

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] != '\0';
}

class Exchange final : public Connection {
 public:
  Exchange(asio::io_context& context, const DaemonAddress& address, const HttpRequest& request)
      : Connection(context, address) {
    request_.method_string(request.method);
    request_.target(request.target);
    request_.set(http::field::host, address.endpoint.authority());
    request_.set(http::field::user_agent, user_agent());
    if (!address.token.empty()) request_.set(http::field::authorization, "Bearer " + address.token);
    if (request.method == "POST") request_.set(http::field::content_type, "application/json");
    request_.body() = request.body;
    request_.prepare_payload();
    response_.body_limit(http_response_bytes_max);
  }

  HttpResponse take_response() {
    const ConnectionOutcome& how = *outcome();
    if (how.text.empty()) return {.status = how.http_status, .body = std::move(response_.get().body())};
    // A server that accepted the connection and sent nothing, as one that stops: the next address is tried.
    if (how.end_reason == EndReason::closed) return {.error = how.text, .end_reason = EndReason::unreachable};
    const bool is_busy = how.end_reason == EndReason::refused;
    return {is_busy ? how.http_status : 0, {}, how.text, how.end_reason};
  }

 private:
  void on_ready() override {
    plain().expires_after(std::chrono::seconds(handshake_seconds_max));
    http::async_write(wire(), request_, [this, own = shared_from_this()](Error error, std::size_t) {
      if (outcome()) return;
      if (error) return on_failed(error);
      http::async_read(wire(), buffer(), response_,
                       [this, own = shared_from_this()](Error failure, std::size_t) {
                         if (outcome()) return;
                         if (failure) return on_failed(failure);
                         end({EndReason::refused, static_cast<int>(response_.get().result_int()), 0, {}});
                       });
    });
  }

  void on_failed(Error error) {
    if (response_.is_header_done() && error == beast::error::timeout)
      return end(EndReason::refused, "no answer");
    if (error == beast::error::timeout) return end(EndReason::unreachable, unanswered);
    const bool is_lost = error == http::error::end_of_stream || error == asio::error::connection_reset ||
                         error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated;
    if (is_lost && response_.got_some()) return end(EndReason::refused, cut_off);
    if (is_lost) return end(EndReason::closed, ended);
    if (error == http::error::body_limit)
      return end(EndReason::refused,
                 "the response is longer than " + std::to_string(http_response_bytes_max) + " bytes");
    if (error == http::error::partial_message) return end(EndReason::refused, cut_off);
    if (error.category() == http::make_error_code(http::error::bad_version).category())
      return end(EndReason::refused, "the server there does not speak HTTP");
    end(EndReason::refused, error.message());
  }

  static constexpr const char* cut_off = "the response was cut off";

  http::request<http::string_body> request_;
  http::response_parser<http::string_body> response_;
};

}  // namespace

HttpResponse send_request(const DaemonAddress& address, const HttpRequest& request) {
  if (!address.unusable.empty()) return {.error = address.unusable, .end_reason = EndReason::unreachable};
  asio::io_context context(1);
  const auto exchange = std::make_shared<Exchange>(context, address, request);
  exchange->start();
  while (!exchange->outcome()) context.run_one();
  HttpResponse response = exchange->take_response();
  exchange->cancel();
  context.poll();  // the cancelled handlers
  return response;
}

HttpResult send_request(const DaemonAddresses& addresses, const HttpRequest& request) {
  HttpResult result;
  for (const DaemonAddress& address : addresses) {
    result.response = send_request(address, request);
    const HttpResponse& response = result.response;
    ConnectionOutcome outcome{response.end_reason, response.status, 0, response.error};
    if (response.error.empty()) outcome.text = "HTTP " + std::to_string(response.status);
    result.connect.outcomes.push_back(std::move(outcome));
    if (!response.unreachable()) break;
  }
  return result;
}

const char* browser_command() {
#ifdef __APPLE__
  return is_set("SSH_CONNECTION") ? nullptr : "open";
#else
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") ? "xdg-open" : nullptr;
#endif
}

bool is_web_address(std::string_view url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return false;
  for (const char c : url) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '`' || c == '\\') return false;
  }
  return true;
}

std::string query(std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  for (const auto& [name, value] : values) {
    if (value.empty()) continue;
    out += out.empty() ? '?' : '&';
    out += name;
    out += '=';
    for (const char c : value) {
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
      char encoded[4] = {c};
      if (!is_plain)
        std::snprintf(encoded, sizeof encoded, "%%%02X",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += encoded;
    }
  }
  return out;
}

std::string session_page(std::string_view url, std::string_view session, std::string_view host) {
  if (!is_web_address(url)) return {};
  std::string page(url.substr(0, url.find_first_of("?#")));
  if (page.find('/', page.find("://") + 3) == page.npos) page += '/';
  return page + query({{"session", session}, {"host", host}});
}

bool open_in_browser(const char* program, const std::string& url) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // ^C here is not meant for the browser
  std::string name = program, address = url;
  char* const words[] = {name.data(), address.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program, &files, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return false;
  const auto until = std::chrono::steady_clock::now() + opener_time_max;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) return true;
    std::this_thread::sleep_for(opener_beat);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace earshot::common
