// How long after an append a subscriber has the event, beside the least that any program could do: inotify,
// pread, send.
//
// usage: bench_latency PORT TOKEN PROJECT_DIR FLOOR_DIR APPENDS
//
// PROJECT_DIR is a directory below a root's projects/ of a running daemon. The two are measured in turn,
// append by append, with the same line, the same pause and the same blocking reader. Prints one JSON object,
// in microseconds.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto pause_between =
    std::chrono::microseconds(500);  // an agent is no firehose: whoever listens has gone to sleep again
constexpr int new_files = 50;
constexpr int burst_lines = 20'000;
constexpr std::size_t burst_text_bytes = 500;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int check(int result, const char* what) {
  if (result < 0) die(what);
  return result;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty())
    bytes.remove_prefix(check(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), "send"));
}

int connect_to(int port) {
  int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "connect");
  return fd;
}

/// Reads whatever comes until `marker` was in it. Frames need no parsing for that: markers are unique, and
/// text stays as it is.
class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {
    timeval patience{.tv_sec = 20, .tv_usec = 0};
    check(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "SO_RCVTIMEO");
  }

  void until(std::string_view marker) {
    while (true) {
      if (auto at = seen_.find(marker); at != std::string::npos)
        return void(seen_.erase(0, at + marker.size()));
      if (seen_.find(R"("type":"lagged")") != std::string::npos) lagged_ = true;
      if (seen_.size() > 64) seen_.erase(0, seen_.size() - 64);
      ssize_t got = recv(fd_, buffer_, sizeof buffer_, 0);
      if (got <= 0) die(lagged_ ? "the subscriber lagged: recv" : "recv");
      seen_.append(buffer_, got);
    }
  }

 private:
  bool lagged_ = false;
  int fd_;
  char buffer_[1 << 16];
  std::string seen_;
};

/// The floor: one thread that waits for inotify, reads what was appended and sends it on.
void serve_floor(int notify, int file, int out) {
  char notes[4096];
  char bytes[1 << 16];
  off_t offset = 0;
  while (read(notify, notes, sizeof notes) > 0) {
    for (ssize_t got; (got = pread(file, bytes, sizeof bytes, offset)) > 0; offset += got)
      if (send(out, bytes, got, MSG_NOSIGNAL) < 0) return;
  }
}

std::string line_of(const std::string& marker, int number, std::size_t text_bytes) {
  std::string text(text_bytes, 'x');
  char head[512];
  std::snprintf(
      head, sizeof head,
      R"({"parentUuid":null,"isSidechain":false,"type":"assistant","uuid":"%08x-0000-4000-8000-%012d",)"
      R"("timestamp":"2026-01-01T00:00:00.000Z","sessionId":"bench","version":"2.1.330","cwd":"/home/ada/bench",)",
      static_cast<unsigned>(std::hash<std::string>{}(marker)), number);
  return std::string(head) + R"("message":{"id":"msg_)" + marker +
         R"(","type":"message","role":"assistant","model":"m","content":)" + R"([{"type":"text","text":")" +
         text + " " + marker + R"(."}],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}})" +
         "\n";
}

/// As the agent program does: open, one write, close. Gives the time just before the write.
Clock::time_point append(const std::string& path, const std::string& bytes) {
  int fd = check(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), "open");
  auto before = Clock::now();
  for (std::string_view rest = bytes; !rest.empty();)
    rest.remove_prefix(check(write(fd, rest.data(), rest.size()), "write"));
  close(fd);
  return before;
}

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

std::string figures(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  char text[128];
  std::snprintf(text, sizeof text, R"({"p50":%.1f,"p99":%.1f})", samples[samples.size() / 2],
                samples[samples.size() * 99 / 100]);
  return text;
}

/// A connection that is told every event.
int subscribe(int port, const std::string& token) {
  int fd = connect_to(port);
  send_all(fd, "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                   "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "
                   "earshot.v1\r\nAuthorization: Bearer " +
                   token + "\r\n\r\n");
  Reader(fd).until("\"type\":\"welcome\"");
  std::string request = R"({"type":"subscribe","id":"bench","snapshot":false})";
  std::string frame = {'\x81', static_cast<char>(0x80 | request.size()), 0, 0, 0, 0};  // masked with zeros
  send_all(fd, frame + request);
  return fd;
}

}  // namespace

int main(int count, char** given) {
  if (count != 6)
    return std::fprintf(stderr, "usage: bench_latency PORT TOKEN PROJECT_DIR FLOOR_DIR APPENDS\n"), 2;
  const int port = std::atoi(given[1]);
  const std::string token = given[2], project = given[3], floor_dir = given[4];
  const int appends = std::atoi(given[5]);

  Reader events(subscribe(port, token));
  events.until(R"("type":"ready")");

  const std::string floor_file = floor_dir + "/floor.jsonl";
  append(floor_file, "");
  int notify = check(inotify_init1(IN_CLOEXEC), "inotify_init1");
  check(inotify_add_watch(notify, floor_dir.c_str(), IN_MODIFY), "inotify_add_watch");
  int pair_listener = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(pair_listener, reinterpret_cast<sockaddr*>(&any), sizeof any), "bind");
  check(listen(pair_listener, 1), "listen");
  socklen_t size = sizeof any;
  check(getsockname(pair_listener, reinterpret_cast<sockaddr*>(&any), &size), "getsockname");
  Reader bare(connect_to(ntohs(any.sin_port)));
  int out = check(accept(pair_listener, nullptr, nullptr), "accept");
  int no_delay = 1;
  check(setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay), "TCP_NODELAY");
  std::thread(serve_floor, notify, check(open(floor_file.c_str(), O_RDONLY | O_CLOEXEC), "open"), out)
      .detach();

  auto one = [](Reader& reader, const std::string& path, const std::string& marker, int number) {
    std::this_thread::sleep_for(pause_between);
    std::string line = line_of(marker, number, 200);
    auto before = append(path, line);
    reader.until(marker + ".");
    return microseconds(Clock::now() - before);
  };

  std::vector<double> floor, live, born, burst;
  const std::string session = project + "/bench.jsonl";
  for (int n = -100; n < appends; ++n) {  // the first hundred only warm up
    char marker[32];
    std::snprintf(marker, sizeof marker, "append-%06d", n + 100);
    double bare_us = one(bare, floor_file, marker, n + 100);
    double live_us = one(events, session, marker, n + 100);
    if (n >= 0) floor.push_back(bare_us), live.push_back(live_us);
  }
  for (int n = 0; n < new_files; ++n) {
    std::string marker = "newborn-" + std::to_string(1000 + n);
    born.push_back(one(events, project + "/" + marker + ".jsonl", marker, n));
  }
  for (int round = 0; round < 5; ++round) {
    std::string lines, last;
    for (int n = 0; n < burst_lines; ++n)
      lines += line_of(last = "burst-" + std::to_string(round) + "-" + std::to_string(100'000 + n), n,
                       burst_text_bytes);
    auto before = append(project + "/burst-" + std::to_string(round) + ".jsonl", lines);
    events.until(last + ".");
    burst.push_back(microseconds(Clock::now() - before));
  }
  std::printf("{\"floor\":%s,\"live\":%s,\"new_file\":%s,\"burst\":%s}\n", figures(floor).c_str(),
              figures(live).c_str(), figures(born).c_str(), figures(burst).c_str());
  std::fflush(stdout);
  std::_Exit(0);  // the floor's thread waits for a notification that will not come
}
