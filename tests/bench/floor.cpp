// Lower bounds of this machine.
//
// usage: bench_floor stat DIR    statx of every file below; prints {"files":N,"seconds":S}
//        bench_floor read DIR    reads every byte of every file below; prints the same
//        bench_floor asio        an idle server; prints {"rss":BYTES} and ends with its input
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <cstdio>
#include <string_view>
#include <vector>

#include "net.hpp"

namespace {

using bench::check;
std::vector<char> buffer(1 << 20);

void stat_entry(const FTSENT& entry) {
  struct statx found {};
  check(statx(AT_FDCWD, entry.fts_accpath, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &found),
        entry.fts_path);
}

void read_all(const FTSENT& entry) {
  const int fd = check(open(entry.fts_accpath, O_RDONLY | O_CLOEXEC), entry.fts_path);
  while (check(static_cast<int>(read(fd, buffer.data(), buffer.size())), entry.fts_path) > 0) {
  }
  close(fd);
}

/// Calls `each` for every file below `top`. The walk itself needs no stat if directories have entry types.
int walk(char* top, void (*each)(const FTSENT&)) {
  const auto start = bench::Clock::now();
  char* const tops[] = {top, nullptr};
  FTS* tree = fts_open(tops, FTS_PHYSICAL | FTS_NOSTAT, nullptr);
  if (!tree) bench::die(top);
  std::size_t files = 0;
  while (const FTSENT* entry = fts_read(tree)) {
    if (entry->fts_info != FTS_F && entry->fts_info != FTS_NSOK) continue;
    each(*entry);
    ++files;
  }
  fts_close(tree);
  std::printf("{\"files\":%zu,\"seconds\":%.6f}\n", files, bench::seconds_since(start));
  return 0;
}

int asio() {
  namespace asio = boost::asio;
  asio::io_context io(1);
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio::posix::stream_descriptor input(io, STDIN_FILENO);
  acceptor.async_accept([](boost::system::error_code, asio::ip::tcp::socket) {});
  char byte;
  input.async_read_some(asio::buffer(&byte, 1), [&](boost::system::error_code, std::size_t) { io.stop(); });
  io.poll();
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  long pages = 0;
  if (!statm || std::fscanf(statm, "%*d %ld", &pages) != 1) bench::die("/proc/self/statm");
  std::printf("{\"rss\":%ld}\n", pages * sysconf(_SC_PAGESIZE));
  std::fflush(stdout);
  io.run();
  return 0;
}

}  // namespace

int main(int count, char** given) {
  const std::string_view what = count > 1 ? given[1] : "";
  if (what == "stat" && count == 3) return walk(given[2], stat_entry);
  if (what == "read" && count == 3) return walk(given[2], read_all);
  if (what == "asio" && count == 2) return asio();
  return std::fprintf(stderr, "usage: bench_floor stat DIR | read DIR | asio\n"), 2;
}
