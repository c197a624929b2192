// How a sweep spreads its work, in simulated time.
#include "watch/sweep.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "machine.hpp"

using namespace earshot;
using namespace std::chrono_literals;

TEST_CASE("a sweep beside notifications examines every file once an interval, in turns") {
  struct Row {
    int files;
    std::chrono::seconds within;  // from the change
  };
  for (const Row row : {Row{10, 60s}, Row{2'000, 60s}, Row{90'000, 90s}}) {
    CAPTURE(row.files);
    sim::Machine machine(1);
    boost::asio::io_context io{1}, disk{1};
    std::set<std::string> found;
    std::size_t most_at_once = 0;
    watch::Sweep sweep(
        io, disk.get_executor(), [&](const watch::ChangeHint& hint) { found.insert(hint.path); }, {},
        [] { return false; });
    const auto turn = [&] {
      const std::size_t before = found.size();
      io.restart();
      disk.restart();
      while (io.poll() + disk.poll() > 0) {
        io.restart();
        disk.restart();
      }
      most_at_once = std::max(most_at_once, found.size() - before);
    };
    const auto change_all = [&] {
      for (const auto& [path, file] : machine.files("/d")) machine.append(file, "x");
    };
    const auto run = [&](std::chrono::nanoseconds time) {
      for (const auto until = machine.now + time; machine.now < until; machine.wait(100ms)) turn();
      turn();
    };
    for (int n = 0; n < row.files; ++n)
      machine.create("/d/" + std::to_string(n % 100) + '/' + std::to_string(n));
    machine.wait(10s);
    sweep.watch("/d");
    for (int n = 0; n < std::min(row.files, 100); ++n) sweep.watch("/d/" + std::to_string(n));
    turn();
    change_all();
    run(row.within + 15s);  // it does not begin at once
    REQUIRE(found.size() == static_cast<std::size_t>(row.files));
    REQUIRE(most_at_once <= watch::Sweep::slow_slices * watch::Sweep::slice_stats);
    found.clear();  // some of these files are checked more often now
    change_all();
    run(row.within + 1s);
    REQUIRE(found.size() == static_cast<std::size_t>(row.files));
  }
}
