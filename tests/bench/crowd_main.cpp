// Many subscribers that connect at once.
//
// usage: bench_crowd PORT TOKEN SUBSCRIBERS FILTER hold|again
//
// hold: prints {"seconds":S} when all are ready, then reads until its input ends.
// again: all disconnect and connect again until its input ends; prints the object each time.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "crowd.hpp"
#include "net.hpp"

namespace {

constexpr int look_ms = 20;

bool input_ended() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, 0) > 0;
}

}  // namespace

int main(int count, char** given) {
  if (count != 6)
    return std::fprintf(stderr, "usage: bench_crowd PORT TOKEN SUBSCRIBERS FILTER hold|again\n"), 2;
  bench::raise_descriptor_limit();
  const std::string subscribe = bench::subscription(given[4], true);
  const bool again = std::string_view(given[5]) == "again";
  do {
    const auto start = bench::Clock::now();
    bench::Crowd crowd(std::atoi(given[1]), given[2], std::strtoul(given[3], nullptr, 10), subscribe);
    crowd.until_ready();
    std::printf("{\"seconds\":%.6f}\n", bench::seconds_since(start));
    std::fflush(stdout);
    while (!again && !input_ended()) crowd.until_quiet(look_ms);
  } while (!input_ended());
}
