// The cost of sending a burst to many subscribers, compared with one Beast async_write per event and
// subscriber, as a server with a queue per client does.
//
// usage: bench_fanout PORT TOKEN DAEMON_PID PROJECT_DIR SUBSCRIBERS BURST_LINES ROUNDS FILTER floor|alone
//
//        bench_fanout idle SESSIONS        prints {"bytes":B}: the memory of an idle Beast session
//
// PROJECT_DIR is below projects/ of a root of a running daemon. Both servers send the same texts to the same
// number of plain sockets of this process, in turn. Prints one JSON object: CPU and wall-clock nanoseconds
// per event and subscriber, one number per round.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crowd.hpp"
#include "net.hpp"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using bench::Clock;
using tcp = asio::ip::tcp;
constexpr std::size_t text_bytes = 200;
constexpr int quiet_ms = 100;                    // without a byte: the burst is complete
constexpr int bursts_a_round = 8;                // of the daemon; the floor is slow enough with one
constexpr std::size_t deliveries_max = 400'000;  // of a round: with more subscribers there are fewer bursts

/// The floor: a process with one thread and prepared texts; each is sent to each session with one write, the
/// next one when that is complete.
class Floor {
 public:
  /// Forks. A byte into `commands` is one burst.
  Floor(std::vector<std::string> texts, std::size_t sessions) {
    int commands[2];
    bench::check(pipe(commands), "pipe");
    const int listener = bench::listen_anywhere(port);
    process = bench::check(fork(), "fork");
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(commands[1]);
      serve(listener, commands[0], std::move(texts), sessions);
      std::_Exit(0);
    }
    close(listener), close(commands[0]);
    commands_ = commands[1];
  }
  ~Floor() {
    close(commands_);  // the process ends with its input
    waitpid(process, nullptr, 0);
  }
  void burst() { bench::check(static_cast<int>(write(commands_, "b", 1)), "write"); }

  int port = 0;
  pid_t process = 0;

 private:
  using Texts = std::vector<std::string>;
  struct Session : std::enable_shared_from_this<Session> {
    Session(tcp::socket socket, const Texts& all) : stream(std::move(socket)), texts(all) {}
    beast::websocket::stream<tcp::socket> stream;
    const Texts& texts;
    std::size_t queued = 0, sent = 0;

    void publish() {
      if (queued++ == sent) send();
    }
    void send() {
      stream.async_write(asio::buffer(texts[sent % texts.size()]),
                         [self = shared_from_this()](beast::error_code ec, std::size_t) {
                           if (!ec && ++self->sent < self->queued) self->send();
                         });
    }
  };

  static void serve(int listener, int commands, const Texts& texts, std::size_t count) {
    asio::io_context io(1);
    tcp::acceptor acceptor(io, tcp::v4(), listener);
    std::vector<std::shared_ptr<Session>> sessions;
    for (std::size_t n = 0; n < count; ++n) {
      auto session = std::make_shared<Session>(acceptor.accept(), texts);
      session->stream.next_layer().set_option(tcp::no_delay(true));
      session->stream.set_option(beast::websocket::stream_base::decorator(
          [](auto& answer) { answer.set("Sec-WebSocket-Protocol", "earshot.v1"); }));
      session->stream.accept();
      session->stream.text(true);
      session->stream.auto_fragment(false);
      sessions.push_back(std::move(session));
    }
    asio::posix::stream_descriptor bell(io, commands);
    char byte = 0;
    std::function<void()> next = [&] {
      bell.async_read_some(asio::buffer(&byte, 1), [&](beast::error_code ec, std::size_t) {
        if (ec) return io.stop();
        for (std::size_t n = 0; n < texts.size(); ++n)
          for (auto& session : sessions) session->publish();
        next();
      });
    };
    next();
    io.run();
  }

  int commands_ = -1;
};

struct Samples {
  std::vector<double> cpu, wall;  // nanoseconds per event and subscriber

  template <class Burst>
  void round(pid_t process, int bursts, double deliveries, Burst burst) {
    const double cpu_before = bench::cpu_seconds(process);
    const auto start = Clock::now();
    for (int n = 0; n < bursts; ++n) burst();
    wall.push_back(bench::seconds_since(start) * 1e9 / (deliveries * bursts));
    cpu.push_back((bench::cpu_seconds(process) - cpu_before) * 1e9 / (deliveries * bursts));
  }
};

std::string list_of(const std::vector<double>& numbers) {
  std::string text;
  for (const double one : numbers) text += (text.empty() ? "[" : ",") + std::to_string(one);
  return text.empty() ? "[]" : text + "]";
}

std::string json_of(const Samples& samples) {
  return R"({"cpu":)" + list_of(samples.cpu) + R"(,"wall":)" + list_of(samples.wall) + "}";
}

double resident_bytes(pid_t process) {
  std::FILE* statm = std::fopen(("/proc/" + std::to_string(process) + "/statm").c_str(), "r");
  long pages = 0;
  if (!statm || std::fscanf(statm, "%*d %ld", &pages) != 1) bench::die("statm");
  std::fclose(statm);
  return double(pages) * double(sysconf(_SC_PAGESIZE));
}

int idle(std::size_t sessions) {
  Floor floor({}, sessions + 1);
  bench::Crowd first(floor.port, "", 1, "");  // excludes one-time costs
  first.until_ready();
  const double before = resident_bytes(floor.process);
  bench::Crowd crowd(floor.port, "", sessions, "");
  crowd.until_ready();
  std::printf("{\"bytes\":%.1f}\n", (resident_bytes(floor.process) - before) / double(sessions));
  return 0;
}

}  // namespace

int main(int count, char** given) {
  bench::raise_descriptor_limit();
  if (count == 3 && std::string_view(given[1]) == "idle") return idle(std::strtoul(given[2], nullptr, 10));
  if (count != 10)
    return std::fprintf(
               stderr,
               "usage: bench_fanout PORT TOKEN DAEMON_PID PROJECT_DIR SUBSCRIBERS BURST_LINES ROUNDS "
               "FILTER floor|alone\n"),
           2;
  const std::string file = std::string(given[4]) + "/fanout.jsonl";
  const pid_t daemon = std::atoi(given[3]);
  const std::size_t subscribers = std::strtoul(given[5], nullptr, 10);
  const int lines = std::atoi(given[6]), rounds = std::atoi(given[7]);
  const bool with_floor = std::string_view(given[9]) == "floor";

  int number = 0;
  const std::string tag = "event-" + std::to_string(getpid()) + "-";  // the file may be there already
  const auto burst = [&] {
    std::string text;
    for (int n = 0; n < lines; ++n) text += bench::line_of(tag + std::to_string(number++), n, text_bytes);
    bench::append(file, text);
  };
  bench::Crowd live(std::atoi(given[1]), given[2], subscribers, bench::subscription(given[8], false));
  live.until_ready();
  burst(), live.until_quiet(quiet_ms);  // the start of the session
  burst();
  const std::vector<std::string> texts = live.until_quiet(quiet_ms);
  if (texts.empty()) bench::give_up("no event came that the filter lets through");
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();

  const double deliveries = double(texts.size()) * double(subscribers);
  const int bursts = std::clamp(static_cast<int>(deliveries_max / deliveries), 1, bursts_a_round);
  Samples of_live, of_floor;
  std::unique_ptr<Floor> floor;
  std::unique_ptr<bench::Crowd> bare;
  if (with_floor) {
    floor = std::make_unique<Floor>(texts, subscribers);
    bare = std::make_unique<bench::Crowd>(floor->port, "", subscribers, "");
    bare->until_ready();
  }
  for (int round = -1; round < rounds; ++round) {  // the first one only warms up
    Samples warm_up, &a = round < 0 ? warm_up : of_live, &b = round < 0 ? warm_up : of_floor;
    a.round(daemon, bursts, deliveries, [&] { burst(), live.until_events(texts.size()); });
    if (floor)
      b.round(floor->process, 1, deliveries, [&] { floor->burst(), bare->until_events(texts.size()); });
  }
  std::printf(
      "{\"subscribers\":%zu,\"lines\":%d,\"events\":%zu,\"event_bytes\":%zu,\"live\":%s,\"floor\":%s}\n",
      subscribers, lines, texts.size(), bytes / texts.size(), json_of(of_live).c_str(),
      json_of(of_floor).c_str());
}
