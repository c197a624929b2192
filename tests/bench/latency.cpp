// The latency from an append to the event at a subscriber, compared with the minimum: inotify, pread, send.
//
// usage: bench_latency PORT TOKEN PROJECT_DIR FLOOR_DIR TAG APPENDS NEW_FILES BURSTS STREAMS
//                      [OTHER_PORT OTHER_TOKEN OTHER_PROJECT_DIR]
//
// Another daemon takes the place of the minimum, to compare the two: FLOOR_DIR is then not used.
//
// PROJECT_DIR is a directory below projects/ of a root of a running daemon. Both are measured in turn, append
// by append, with the same line, pause and blocking reader. Appends rotate among STREAMS files,
// stream-0.jsonl and so on. TAG makes new names unique. Prints one JSON object in seconds.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net.hpp"

namespace {

using bench::append;
using bench::check;
using bench::Clock;
using bench::line_of;
constexpr auto pause_between =
    std::chrono::microseconds(500);  // agents write rarely: the readers are asleep again
constexpr int warm_ups = 100;
constexpr int burst_lines = 20'000;
constexpr std::size_t burst_text_bytes = 500;
constexpr timeval patience{.tv_sec = 20, .tv_usec = 0};

/// Reads until `marker` arrives. Frames are not parsed: markers are unique and sent unescaped.
class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {
    check(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "SO_RCVTIMEO");
  }

  void until(std::string_view marker) {
    while (true) {
      if (auto at = seen_.find(marker); at != std::string::npos)
        return void(seen_.erase(0, at + marker.size()));
      if (seen_.find(R"("type":"lagged")") != std::string::npos) lagged_ = true;
      if (seen_.size() > 64) seen_.erase(0, seen_.size() - 64);
      ssize_t got = recv(fd_, buffer_, sizeof buffer_, 0);
      if (got <= 0) bench::die(lagged_ ? "the subscriber lagged: recv" : "recv");
      seen_.append(buffer_, got);
    }
  }

 private:
  bool lagged_ = false;
  int fd_;
  char buffer_[1 << 16];
  std::string seen_;
};

/// The floor: one thread that waits for inotify, reads the appended bytes and sends them. New files are found
/// by the name in the notification.
void serve_floor(int notify, std::string directory, int out) {
  struct File {
    int fd;
    off_t offset = 0;
  };
  std::map<std::string, File, std::less<>> files;
  alignas(inotify_event) char notes[4096];
  static char bytes[1 << 16];
  for (ssize_t length; (length = read(notify, notes, sizeof notes)) > 0;) {
    for (ssize_t at = 0; at < length;) {
      const auto& note = *reinterpret_cast<const inotify_event*>(notes + at);
      at += static_cast<ssize_t>(sizeof note) + note.len;
      auto file = files.find(std::string_view(note.name));
      if (file == files.end())
        file =
            files.emplace(note.name, File{open((directory + "/" + note.name).c_str(), O_RDONLY | O_CLOEXEC)})
                .first;
      auto& [fd, offset] = file->second;
      for (ssize_t got; (got = pread(fd, bytes, sizeof bytes, offset)) > 0; offset += got)
        if (send(out, bytes, got, MSG_NOSIGNAL) < 0) return;
    }
  }
}

/// Reader of the floor; its server runs on a thread that ends with the process.
int start_floor(const std::string& directory) {
  int notify = check(inotify_init1(IN_CLOEXEC), "inotify_init1");
  check(inotify_add_watch(notify, directory.c_str(), IN_MODIFY), "inotify_add_watch");
  int port = 0;
  const int listener = bench::listen_anywhere(port);
  const int in = bench::connect_to(port);
  const int out = check(accept(listener, nullptr, nullptr), "accept");
  int no_delay = 1;
  check(setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay), "TCP_NODELAY");
  std::thread(serve_floor, notify, directory, out).detach();
  return in;
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

struct Pair {
  std::vector<double> live, floor;
};

std::string figures(std::vector<double> samples) {
  if (samples.empty()) return "null";
  std::sort(samples.begin(), samples.end());
  char text[128];
  std::snprintf(text, sizeof text, R"({"p50":%.9f,"p99":%.9f})", samples[samples.size() / 2],
                samples[samples.size() * 99 / 100]);
  return text;
}

std::string figures(const Pair& pair) {
  return R"({"live":)" + figures(pair.live) + R"(,"floor":)" + figures(pair.floor) + "}";
}

/// A connection subscribed to all events of this benchmark.
int subscribe(int port, const std::string& token) {
  int fd = bench::connect_to(port);
  bench::send_all(fd, bench::upgrade_request(port, token));
  Reader(fd).until("\"type\":\"welcome\"");
  bench::send_all(
      fd, bench::text_frame(bench::subscription(R"({"session":["stream-*","newborn-*","burst-*"]})", false)));
  return fd;
}

}  // namespace

int main(int count, char** given) {
  const bool has_other = count == 13;
  if (count != 10 && !has_other)
    return std::fprintf(stderr,
                        "usage: bench_latency PORT TOKEN PROJECT_DIR FLOOR_DIR TAG APPENDS NEW_FILES BURSTS "
                        "STREAMS [OTHER_PORT OTHER_TOKEN OTHER_PROJECT_DIR]\n"),
           2;
  const std::string project = given[3], floor_dir = given[has_other ? 12 : 4], tag = given[5];
  const int appends = std::atoi(given[6]), new_files = std::atoi(given[7]), bursts = std::atoi(given[8]),
            streams = std::atoi(given[9]);

  Reader events(subscribe(std::atoi(given[1]), given[2]));
  events.until(R"("type":"ready")");
  Reader bare(has_other ? subscribe(std::atoi(given[10]), given[11]) : start_floor(floor_dir));
  if (has_other) bare.until(R"("type":"ready")");

  const auto one = [](Reader& reader, const std::string& path, const std::string& bytes,
                      const std::string& marker) {
    std::this_thread::sleep_for(pause_between);
    auto before = append(path, bytes);
    reader.until(marker + ".");
    return seconds(Clock::now() - before);
  };
  const auto both = [&](Pair& pair, const std::string& name, const std::string& bytes,
                        const std::string& marker) {
    pair.floor.push_back(one(bare, floor_dir + "/" + name, bytes, marker));
    pair.live.push_back(one(events, project + "/" + name, bytes, marker));
  };

  Pair grown, born, burst;
  for (int n = 0; n < warm_ups + appends; ++n) {
    if (n == warm_ups) grown = {};
    const std::string marker = "append-" + tag + "-" + std::to_string(100'000 + n);
    both(grown, "stream-" + std::to_string(n % streams) + ".jsonl", line_of(marker, n, 200), marker);
  }
  for (int n = 0; n < new_files; ++n) {
    const std::string marker = "newborn-" + tag + "-" + std::to_string(1000 + n);
    both(born, marker + ".jsonl", line_of(marker, n, 200), marker);
  }
  for (int round = 0; round < bursts; ++round) {
    std::string lines, last;
    for (int n = 0; n < burst_lines; ++n)
      lines +=
          line_of(last = "burst-" + tag + "-" + std::to_string(round) + "-" + std::to_string(100'000 + n), n,
                  burst_text_bytes);
    both(burst, "burst-" + tag + "-" + std::to_string(round) + ".jsonl", lines, last);
  }
  std::printf("{\"append\":%s,\"new_file\":%s,\"burst\":%s}\n", figures(grown).c_str(), figures(born).c_str(),
              figures(burst).c_str());
  std::fflush(stdout);
  std::_Exit(0);  // the floor's thread still waits for a notification
}
