#include "otlp/sender.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace earshot::otlp {
namespace {

/// Answers each request on its own connection with what `answer` writes to the socket.
class Collector {
 public:
  explicit Collector(std::function<void(Collector&, int)> answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, 8) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Collector() {
    is_stopped = true;
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1/traces"; }
  /// False: the sender has closed the connection, or the test is over.
  bool write(int to, std::string_view bytes) {
    while (!bytes.empty() && !is_stopped) {
      pollfd each{to, POLLOUT, 0};
      if (::poll(&each, 1, 20) <= 0) continue;
      const ssize_t written = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return !is_stopped;
  }

  std::atomic<bool> is_stopped = false;
  std::atomic<std::size_t> requests = 0;
  std::string request;  // the last one; read it after its answer

 private:
  void run() {
    while (!is_stopped) {
      pollfd each{listener_, POLLIN, 0};
      if (::poll(&each, 1, 20) <= 0) continue;
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      if (read(connection)) answer_(*this, connection);
      ::close(connection);
    }
  }
  /// A request whose body ends with `end`.
  bool read(int from) {
    std::string text;
    char bytes[4096];
    while (!text.ends_with("end") && !is_stopped) {
      pollfd each{from, POLLIN, 0};
      if (::poll(&each, 1, 20) <= 0) continue;
      const ssize_t count = ::recv(from, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      text.append(bytes, static_cast<std::size_t>(count));
    }
    request = text;
    ++requests;
    return !is_stopped;
  }

  const std::function<void(Collector&, int)> answer_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

constexpr std::int64_t generous_ms = 300'000;

Response send(const std::string& url, std::int64_t timeout_ms = generous_ms) {
  boost::asio::io_context io;
  auto work = boost::asio::make_work_guard(io);
  Sender sender(io);
  Response response;
  sender.send({url, {"X-Key: k"}, "body end", "", timeout_ms}, [&](Response received) {
    response = std::move(received);
    work.reset();
  });
  CHECK(sender.is_busy());
  io.run();
  CHECK_FALSE(sender.is_busy());
  return response;
}

Response send_to(std::function<void(Collector&, int)> answer, std::int64_t timeout_ms = generous_ms) {
  Collector collector(std::move(answer));
  return send(collector.url(), timeout_ms);
}

Response send_to(std::string text) {
  return send_to([text = std::move(text)](Collector& self, int to) { self.write(to, text); });
}

std::string http_date(std::time_t at) {
  char text[64];
  std::tm parts{};
  gmtime_r(&at, &parts);
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

}  // namespace

TEST_CASE("a request has its headers and its body, and its answer is passed on") {
  Collector collector([](Collector& self, int to) {
    self.write(to, "HTTP/1.1 202 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  });
  const Response response = send(collector.url());
  CHECK(response.status == 202);
  CHECK(response.content_type == "application/json");
  CHECK(response.body == "{}");
  CHECK(response.error.empty());
  CHECK(collector.request.starts_with("POST /v1/traces HTTP/1.1\r\n"));
  CHECK(collector.request.find("\r\nX-Key: k\r\n") != std::string::npos);
  CHECK(collector.request.find("\r\nExpect:") == std::string::npos);
  CHECK(collector.request.ends_with("\r\n\r\nbody end"));
}

TEST_CASE("Retry-After is a number of seconds or a date") {
  const auto after = [](const std::string& value) {
    return send_to("HTTP/1.1 503 Busy\r\nRetry-After: " + value + "\r\nContent-Length: 0\r\n\r\n")
        .retry_after_ms;
  };
  CHECK(after("7") == 7000);
  CHECK(after("-7") == 0);
  CHECK(after("soon") == 0);
  constexpr std::int64_t hour_ms = 3'600'000;
  const std::int64_t to_date = after(http_date(std::time(nullptr) + 3600));
  CHECK(to_date > hour_ms / 2);  // the time until the answer came is subtracted
  CHECK(to_date <= hour_ms);
  CHECK(after(http_date(std::time(nullptr) - 3600)) == 0);
  CHECK(after("99999999999999999999") <= 24 * hour_ms);
}

TEST_CASE("a redirect is an answer and is not followed") {
  Collector other(
      [](Collector& self, int to) { self.write(to, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); });
  const Response response =
      send_to("HTTP/1.1 307 Away\r\nLocation: " + other.url() + "\r\nContent-Length: 0\r\n\r\n");
  CHECK(response.status == 307);
  CHECK(other.requests == 0);
}

TEST_CASE("of an endless answer only the beginning is read") {
  std::size_t written = 0;
  const Response response = send_to([&](Collector& self, int to) {
    self.write(to, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n");
    const std::string piece(16 << 10, 'x');
    while (self.write(to, piece)) written += piece.size();
  });
  CHECK(response.status == 200);
  CHECK(response.body.size() <= Response::body_bytes_max);
  CHECK(written < (std::size_t{1} << 30));
}

TEST_CASE("endless headers are no answer") {
  const Response response = send_to([](Collector& self, int to) {
    self.write(to, "HTTP/1.1 200 OK\r\n");
    while (self.write(to, "X-Filler: " + std::string(1000, 'x') + "\r\n")) {
    }
  });
  CHECK(response.status == 0);
  CHECK_FALSE(response.error.empty());
}

TEST_CASE("garbage, half an answer and a closed connection are no answers") {
  for (const std::string text :
       {"\x16\x03\x01 garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", ""}) {
    CAPTURE(text);
    const Response response = send_to(text);
    CHECK(response.status == 0);
    CHECK_FALSE(response.error.empty());
  }
}

TEST_CASE("an answer that drips ends at the timeout") {
  constexpr std::int64_t timeout_ms = 300;
  const Response response = send_to(
      [](Collector& self, int to) {
        self.write(to, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while (self.write(to, "x")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      },
      timeout_ms);
  CHECK(response.status == 0);
  CHECK_FALSE(response.error.empty());
}

TEST_CASE("a compressed answer is passed on as it is") {
  const std::string body("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20);
  const Response response =
      send_to("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + body);
  CHECK(response.status == 200);
  CHECK(response.body == body);
}

TEST_CASE("the last response is waited for, and a destroyed sender calls nothing") {
  Collector collector(
      [](Collector& self, int to) { self.write(to, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); });
  boost::asio::io_context io;
  bool called = false;
  {
    Sender sender(io);
    sender.send({collector.url(), {}, "end", "", generous_ms}, [&](const Response&) { called = true; });
    const auto response = sender.finish(std::chrono::milliseconds(generous_ms));
    REQUIRE(response);
    CHECK(response->status == 200);
    CHECK_FALSE(sender.finish(std::chrono::milliseconds(generous_ms)));
  }
  io.run();
  CHECK_FALSE(called);
}

}  // namespace earshot::otlp
