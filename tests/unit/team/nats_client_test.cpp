// The connection to a real nats-server on loopback; those tests are skipped where it is not installed.
#include "team/nats_client.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "serve/server_context.hpp"
#include "team/publisher_connection.hpp"
#include "unit/support/temporary_directory.hpp"

using namespace earshot;
using namespace earshot::team;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// Waits for the condition, at most a minute.
bool wait_until(const std::function<bool()>& is_true) {
  for (int i = 0; i < 6000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

/// A nats-server without JetStream.
class Server {
 public:
  Server() {
    for (const char* path : {"/usr/sbin/nats-server", "/usr/bin/nats-server"})
      if (::access(path, X_OK) == 0) program_ = path;
    if (program_.empty()) return;
    const std::string directory = scratch_ / "ports";
    std::filesystem::create_directory(directory);
    std::string words[] = {program_, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", directory};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int output : {1, 2})
      posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
    REQUIRE(::posix_spawn(&process_, program_.c_str(), &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    const std::string ports = directory + "/nats-server_" + std::to_string(process_) + ".ports";
    REQUIRE(wait_until([&] { return read_url(ports); }));
  }
  ~Server() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  bool is_installed() const {
    if (process_ == 0) WARN("skipped: nats-server is not installed");
    return process_ > 0;
  }
  void send_signal(int signal) const { ::kill(process_, signal); }
  BrokerConfig config() const {
    BrokerConfig config;
    config.urls = {url_};
    return config;
  }

 private:
  bool read_url(const std::string& path) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto begin = text.find("nats://"), end = text.find('"', begin);
    if (begin == text.npos || end == text.npos) return false;
    url_ = text.substr(begin, end - begin);
    return true;
  }

  test::TemporaryDirectory scratch_;
  std::string program_, url_;
  pid_t process_ = 0;
};

/// Runs the task on a broker thread and waits for it.
void run_on(const std::shared_ptr<BrokerThread>& thread, const std::function<void()>& task) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  thread->post([task, done] {
    task();
    *done = true;
  });
  REQUIRE(wait_until([&] { return done->load(); }));
}

/// For the tests' threads, which use what the test owns.
void wait_for_all_threads() {
  for (int i = 0; i < 60; ++i) BrokerThread::wait_for_all();  // returns at once if there are none
}

}  // namespace

TEST_CASE("where() omits the credentials of a URL") {
  BrokerConfig config;
  CHECK(config.where() == "NATS");
  config.urls = {"nats://ada:sec@ret@broker.example:4222", "nats://b"};
  CHECK(config.where() == "nats://broker.example:4222");
  config.urls = {"tls://broker.example"};
  CHECK(config.where() == "tls://broker.example");
  config.urls = {"token@broker.example:4222"};
  CHECK(config.where() == "broker.example:4222");
}

TEST_CASE("a broker thread runs tasks in order, and calls nothing on the loop after stop()") {
  boost::asio::io_context io;
  const auto thread = BrokerThread::start(io);
  std::string order;
  thread->post([&] { order += "a"; });
  run_on(thread, [&] { order += "b"; });
  CHECK(order == "ab");
  int calls = 0;
  thread->post_to_loop([&] { ++calls; });
  io.run();
  CHECK(calls == 1);
  thread->post_to_loop([&] { ++calls; });
  auto state = std::make_shared<int>();
  const std::weak_ptr<int> weak = state;
  thread->stop(std::move(state));
  thread->post_to_loop([&] { ++calls; });
  io.restart();
  io.run();
  CHECK(calls == 1);
  CHECK_FALSE(thread->pause(seconds(60)));
  BrokerThread::wait_for_all();
  CHECK(weak.expired());
}

TEST_CASE("fault 109: what a library keeps for a broker thread is released before the process ends") {
  static std::atomic<int> released = 0;  // OpenSSL releases its random generators in such a destructor
  pthread_key_t key;
  REQUIRE(pthread_key_create(&key, [](void*) {
            std::this_thread::sleep_for(milliseconds(50));  // a slow one
            ++released;
          }) == 0);
  boost::asio::io_context io;
  for (int i = 0; i < 2; ++i) {
    const auto thread = BrokerThread::start(io);
    run_on(thread, [&] { pthread_setspecific(key, &key); });
    thread->stop();
  }
  BrokerThread::wait_for_all();
  CHECK(released == 2);
  pthread_key_delete(key);
}

TEST_CASE("fault 109: connections under load end without a crash, with requests and subscriptions open") {
  Server server;
  if (!server.is_installed()) return;
  constexpr int connections = 100, subscriptions_each = 10, requests_each = 10;
  boost::asio::io_context io;
  const auto load_thread = BrokerThread::start(io), echo_thread = BrokerThread::start(io);
  std::atomic<bool> finished = false;
  std::atomic<int> answered = 0, received = 0;

  std::unique_ptr<NatsClient> echo;
  run_on(echo_thread, [&] {
    echo = std::make_unique<NatsClient>(server.config(), echo_thread);
    // reset() clears the pointer before the destructor waits for the handler.
    echo->subscribe("echo", [client = echo.get()](const NatsMessage& message) {
      const std::string reply(message.reply());
      try {
        for (int i = 0; i < 3; ++i) client->publish(reply, {}, message.data());  // two of them are late
      } catch (const BrokerError&) {                                             // closed
      }
    });
  });
  load_thread->post([&] {
    NatsClient client(server.config(), load_thread);
    const std::string text(200, 'x');
    while (!finished) {
      for (int i = 0; i < 50; ++i) client.publish("load", {}, text);
      load_thread->pause(milliseconds(1));
    }
  });

  const auto hammer = [&] {
    for (int n = 0; n < connections / 2; ++n) {
      const auto thread = BrokerThread::start(io);
      auto client = std::make_shared<std::unique_ptr<NatsClient>>();
      const auto ready = std::make_shared<std::atomic<int>>(0);
      const auto failed = std::make_shared<std::atomic<bool>>(false);
      thread->post([&, thread, client, ready, failed] {
        try {
          *client = std::make_unique<NatsClient>(server.config(), thread);
          for (int i = 0; i < subscriptions_each; ++i)
            (*client)->subscribe("load", [&](const NatsMessage&) { ++received; });
          for (int i = 0; i < requests_each; ++i) {
            answered += (*client)->request("echo", "text").data() == "text";
            ++*ready;
          }
          while (true) {
            (*client)->request("echo", "text");
            ++*ready;
          }
        } catch (const BrokerError&) {  // stopped, or the broker did not respond in time
          *failed = true;
        }
      });
      // Every other connection is stopped in the middle of its requests.
      const int wanted = n % 2 == 0 ? requests_each : requests_each / 2;
      while (*ready < wanted && !*failed) std::this_thread::sleep_for(milliseconds(1));
      thread->stop(std::move(client));
    }
  };
  std::thread other(hammer);
  hammer();
  other.join();
  finished = true;
  run_on(echo_thread, [&] { echo.reset(); });
  load_thread->stop();
  echo_thread->stop();
  wait_for_all_threads();
  CHECK(answered >= connections * requests_each / 2);
  CHECK(received > 0);
}

TEST_CASE("fault 109: a lost connection ends its inboxes and requests with the reason") {
  Server server;
  if (!server.is_installed()) return;
  boost::asio::io_context io;
  const auto thread = BrokerThread::start(io);
  std::atomic<bool> is_connected = false, is_lost = false;
  std::string reason;
  std::atomic<bool> done = false;
  thread->post([&] {
    NatsClient client(server.config(), thread, [&](const std::string&) { is_lost = true; });
    is_connected = true;
    try {
      NatsClient::Inbox inbox(client);
      inbox.next(seconds(60));
    } catch (const BrokerError& error) {
      reason = error.what();
    }
    done = true;
  });
  REQUIRE(wait_until([&] { return is_connected.load(); }));
  server.send_signal(SIGKILL);
  REQUIRE(wait_until([&] { return done.load(); }));
  CHECK(is_lost);
  CHECK_FALSE(reason.empty());
  thread->stop();
  wait_for_all_threads();
}

TEST_CASE("fault 99: a paused broker delays neither the owner nor the exit") {
  // On a slow machine an attempt may take longer for another reason.
  auto shortest = Clock::duration::max();
  for (int attempt = 0; attempt < 5 && shortest >= seconds(2); ++attempt) {
    Server server;
    if (!server.is_installed()) return;
    boost::asio::io_context io;
    const auto thread = BrokerThread::start(io);
    std::atomic<bool> is_connected = false;
    thread->post([&] {
      NatsClient client(server.config(), thread);
      server.send_signal(SIGSTOP);
      is_connected = true;
      const std::string text(512 << 10, 'x');
      try {
        for (int i = 0; i < 100; ++i) client.publish("load", {}, text);  // fills the socket's buffers
        client.request("none", "");
      } catch (const BrokerError&) {
      }
    });
    REQUIRE(wait_until([&] { return is_connected.load(); }));
    auto connection = std::make_unique<PublisherConnection>(io, server.config(), Heartbeat{"ada", "o", "i"},
                                                            [](const BrokerEvent&) {});
    auto records = std::make_unique<RecordClient>(io, server.config());
    records->read(R"({"type":"x","host":"ada","stream":"s","cursor":"1.1.0000000000000001"})",
                  [](const serve::RemoteRecord&) {});
    const auto begin = Clock::now();
    connection.reset();
    records.reset();
    thread->stop();
    BrokerThread::wait_for_all();
    shortest = std::min(shortest, Clock::now() - begin);
    server.send_signal(SIGCONT);
    wait_for_all_threads();
  }
  CHECK(shortest < seconds(2));
}
