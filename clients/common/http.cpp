#include "common/http.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "common/format.hpp"

extern char** environ;

namespace earshot::common {
namespace {

constexpr std::chrono::seconds opener_time_max{3};  // one that takes longer is at work: it is left alone
constexpr std::chrono::milliseconds opener_beat{20};

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, ListDeleter>;

void add_header(Headers& headers, const std::string& header) {
  headers.reset(curl_slist_append(headers.release(), header.c_str()));
}

std::size_t append_body(char* bytes, std::size_t, std::size_t size, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size > http_response_bytes_max) return 0;  // aborts the transfer
  text.append(bytes, size);
  return size;
}

std::string error_text(CURLcode code, const char* details) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return "no answer";
    case CURLE_WRITE_ERROR:
      return "the response is longer than " + std::to_string(http_response_bytes_max) + " bytes";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
      return "the server there does not speak HTTP";
    case CURLE_PARTIAL_FILE:
      return "the response was cut off";
    default:
      return details[0] != '\0' ? details : curl_easy_strerror(code);
  }
}

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] != '\0';
}

}  // namespace

HttpResponse send_request(const DaemonAddress& address, const HttpRequest& request) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  HttpResponse response;
  const std::unique_ptr<CURL, EasyDeleter> easy(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (!easy) {
    response.error = "libcurl cannot be initialised";
    return response;
  }
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy.get(), option, value); };
  const std::string url = "http://" + address.endpoint.authority() + std::string(request.target);
  const std::string method(request.method), agent = user_agent(), body(request.body);
  Headers headers;
  add_header(headers, "Expect:");
  add_header(headers, "Accept:");
  if (!address.token.empty()) add_header(headers, "Authorization: Bearer " + address.token);
  if (method == "POST") {
    add_header(headers, "Content-Type: application/json");
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.c_str());
  } else {
    set(CURLOPT_CUSTOMREQUEST, method.c_str());
  }
  char details[CURL_ERROR_SIZE] = {};
  set(CURLOPT_ERRORBUFFER, details);
  set(CURLOPT_URL, url.c_str());
  if (address.endpoint.is_unix()) set(CURLOPT_UNIX_SOCKET_PATH, address.endpoint.socket.c_str());
  set(CURLOPT_PROXY, "");  // the token goes to the daemon only, whatever http_proxy contains
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_USERAGENT, agent.c_str());
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP09_ALLOWED, 0L);
  set(CURLOPT_TIMEOUT, static_cast<long>(http_seconds_max));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_WRITEFUNCTION, &append_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&response.body));
  const CURLcode code = curl_easy_perform(easy.get());
  long status = 0, connected = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK) {
    response.status = static_cast<int>(status);
    return response;
  }
  response.body.clear();
  response.error = error_text(code, details);
  // A server that accepted the connection but sent nothing counts as unreachable too: the next address is
  // tried.
  curl_easy_getinfo(easy.get(), CURLINFO_NUM_CONNECTS, &connected);
  response.unreachable = status == 0 && (connected == 0 || code == CURLE_COULDNT_CONNECT ||
                                         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_GOT_NOTHING);
  return response;
}

HttpResult send_request(const DaemonAddresses& addresses, const HttpRequest& request) {
  HttpResult result;
  for (const DaemonAddress& address : addresses) {
    result.response = send_request(address, request);
    const HttpResponse& response = result.response;
    ConnectionOutcome outcome{response.unreachable ? EndReason::unreachable : EndReason::refused,
                              response.status, 0, response.error};
    if (response.status != 0) outcome.text = "HTTP " + std::to_string(response.status);
    result.connect.outcomes.push_back(std::move(outcome));
    if (!response.unreachable) break;
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
