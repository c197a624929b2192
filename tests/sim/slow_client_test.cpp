// Clients that read slowly, in simulated time.
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "line.hpp"
#include "machine.hpp"
#include "serve/server.hpp"
#include "serve/websocket/session.hpp"

using namespace earshot;
using namespace std::chrono_literals;

TEST_CASE("fault 89: a client that reads a byte a second is dropped, one that reads slowly is not") {
  struct Row {
    std::size_t bytes_per_second;
    bool is_dropped;
  };
  for (const Row row : {Row{0, true}, Row{1, true}, Row{400, true}, Row{1000, false}}) {
    CAPTURE(row.bytes_per_second);
    sim::Machine machine(1);
    boost::asio::io_context io{1};
    serve::Server server(io, {.host = "h", .version = "0", .token = "t"});
    const auto poll = [&io] {
      io.restart();
      while (io.poll() > 0) io.restart();
    };
    const auto line = std::make_shared<sim::Connection>(io);
    line->room = 1 << 30;
    server.admit(sim::make_sim_transport(line), serve::TransportKind::unix_socket);
    line->incoming.push_back(R"({"type":"subscribe","id":"a","snapshot":false})");
    poll();
    line->room = 0;
    status::Status status;
    status.state = "waiting";
    status.detail = std::string(1 << 20, 'x');
    server.status_changed("s", status);
    poll();
    for (int seconds = 0; seconds < 120 && !line->ended; ++seconds) {
      line->room += row.bytes_per_second;
      if (line->moved) line->moved();
      machine.wait(1s);
      poll();
    }
    REQUIRE(line->ended == row.is_dropped);
    if (row.is_dropped) REQUIRE(line->close_code == serve::close_stalled);
    server.stop([] {});
    machine.wait(10s);
    poll();
  }
}
