#include "common/http.hpp"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/sockets.hpp"
#include "common/format.hpp"

extern char** environ;

namespace earshot::common {
namespace {

constexpr std::chrono::seconds opener_time_max{3};  // one that takes longer is at work: it is left alone
constexpr std::chrono::milliseconds opener_beat{20};

#ifdef __APPLE__
constexpr const char* curl_library = "libcurl.4.dylib";
#else
constexpr const char* curl_library = "libcurl.so.4";
#endif

// libcurl brings 27 other libraries, and loading them takes longer than most commands run. So it is loaded
// for the first request, and stays.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  std::string error;  // empty: it can be used

  Curl() {
    void* const library = ::dlopen(curl_library, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      error = std::string("libcurl cannot be loaded: ") + ::dlerror();
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr && error.empty()) error = std::string(curl_library) + " has no " + name;
    };
    find(global_init, "curl_global_init");
    find(easy_init, "curl_easy_init");
    find(easy_setopt, "curl_easy_setopt");
    find(easy_getinfo, "curl_easy_getinfo");
    find(easy_perform, "curl_easy_perform");
    find(easy_strerror, "curl_easy_strerror");
    find(easy_cleanup, "curl_easy_cleanup");
    find(slist_append, "curl_slist_append");
    find(slist_free_all, "curl_slist_free_all");
    if (error.empty() && global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      error = "libcurl cannot be initialised";
  }
};

const Curl& curl() {
  static const Curl loaded;
  return loaded;
}

struct EasyDeleter {
  void operator()(CURL* easy) const { curl().easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, ListDeleter>;

void add_header(Headers& headers, const std::string& header) {
  headers.reset(curl().slist_append(headers.release(), header.c_str()));
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
    case CURLE_PEER_FAILED_VERIFICATION:
      return std::string("TLS: ") + details + "; trust its authority with --tls-ca FILE";
    case CURLE_PARTIAL_FILE:
      return "the response was cut off";
    default:
      return details[0] != '\0' ? details : curl().easy_strerror(code);
  }
}

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] != '\0';
}

// Once the daemon has proven what it is, the connection must not be replaced by another.
curl_socket_t open_socket(void* may_connect, curlsocktype, curl_sockaddr* address) {
  if (!*static_cast<const bool*>(may_connect)) return CURL_SOCKET_BAD;
  return earshot::open_socket(address->family, address->socktype, address->protocol).release();
}

// One transfer after another on the same connection.
class Transfer {
 public:
  explicit Transfer(const DaemonAddress& address)
      : address_(address), easy_(curl().error.empty() ? curl().easy_init() : nullptr) {
    if (!easy_) return;
    set(CURLOPT_ERRORBUFFER, details_);
    if (address.endpoint.is_unix()) set(CURLOPT_UNIX_SOCKET_PATH, address.endpoint.socket.c_str());
    if (!address.tls_ca.empty()) set(CURLOPT_CAINFO, address.tls_ca.c_str());
    set(CURLOPT_PROXY, "");  // the token is sent to the daemon only, whatever http_proxy contains
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_USERAGENT, user_agent().c_str());
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_HTTP09_ALLOWED, 0L);
    set(CURLOPT_TIMEOUT, static_cast<long>(http_seconds_max));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_WRITEFUNCTION, &append_body);
    set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(&may_connect_));
  }

  HttpResponse run(const HttpRequest& request, bool with_token) {
    HttpResponse response;
    response.error = curl().error.empty() ? "libcurl cannot start a transfer" : curl().error;
    if (!easy_) return response;
    const std::string url = (address_.endpoint.tls ? "https://" : "http://") + address_.endpoint.authority() +
                            std::string(request.target);
    const std::string body(request.body);
    Headers headers;
    add_header(headers, "Expect:");
    add_header(headers, "Accept:");
    if (with_token) add_header(headers, "Authorization: Bearer " + address_.token);
    if (request.method == "POST") {
      add_header(headers, "Content-Type: application/json");
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      set(CURLOPT_POSTFIELDS, body.c_str());
    } else {
      set(CURLOPT_HTTPGET, 1L);
    }
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_WRITEDATA, static_cast<void*>(&response.body));
    details_[0] = '\0';
    const CURLcode code = curl().easy_perform(easy_.get());
    if (code == CURLE_OK) {
      response.status = static_cast<int>(number(CURLINFO_RESPONSE_CODE));
      response.error.clear();
      return response;
    }
    response.body.clear();
    const bool replaced = !may_connect_ && code == CURLE_COULDNT_CONNECT;
    // The system's words are those of the other commands; curl's name `localhost` for a Unix socket.
    const long system_error = code == CURLE_COULDNT_CONNECT ? number(CURLINFO_OS_ERRNO) : 0;
    response.error = replaced            ? "the connection was closed after the proof"
                     : system_error != 0 ? std::strerror(static_cast<int>(system_error))
                                         : error_text(code, details_);
    // A server that accepted the connection but sent nothing counts as unreachable too: the next address is
    // tried.
    const bool unreachable = number(CURLINFO_RESPONSE_CODE) == 0 &&
                             (number(CURLINFO_NUM_CONNECTS) == 0 || code == CURLE_COULDNT_CONNECT ||
                              code == CURLE_OPERATION_TIMEDOUT || code == CURLE_GOT_NOTHING);
    if (unreachable && may_connect_) response.end_reason = EndReason::unreachable;
    return response;
  }

  /// Nothing if the daemon proved that it has the token; else why it did not.
  std::optional<HttpResponse> prove() {
    const std::string nonce = make_nonce();
    HttpResponse answer = run({.target = "/v1/proof?nonce=" + nonce}, false);
    may_connect_ = false;
    if (answer.unreachable()) return answer;
    const char* ip = nullptr;
    if (answer.status == 200 && curl().easy_getinfo(easy_.get(), CURLINFO_PRIMARY_IP, &ip) == CURLE_OK &&
        ip != nullptr &&
        is_proof(answer.body, address_.token, nonce,
                 host_and_port(ip, static_cast<unsigned>(number(CURLINFO_PRIMARY_PORT)))))
      return std::nullopt;
    const ConnectionOutcome outcome = not_proven(answer.status, answer.error);
    const bool busy = outcome.end_reason == EndReason::refused;
    return HttpResponse{busy ? outcome.http_status : 0, {}, outcome.text, outcome.end_reason};
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl().easy_setopt(easy_.get(), option, value);
  }
  long number(CURLINFO info) const {
    long value = 0;
    curl().easy_getinfo(easy_.get(), info, &value);
    return value;
  }

  const DaemonAddress& address_;
  bool may_connect_ = true;
  char details_[CURL_ERROR_SIZE] = {};
  std::unique_ptr<CURL, EasyDeleter> easy_;
};

}  // namespace

HttpResponse send_request(const DaemonAddress& address, const HttpRequest& request) {
  if (!address.unusable.empty()) return {.error = address.unusable, .end_reason = EndReason::unreachable};
  Transfer transfer(address);
  if (address.needs_proof())
    if (auto failed = transfer.prove()) return std::move(*failed);
  return transfer.run(request, !address.token.empty());
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
