#include "cli/tail.hpp"

#include <stdlib.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <memory>

#include "common/format.hpp"
#include "unit/common/captured.hpp"

namespace tail_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common::test;

namespace {

std::string make_event(const std::string& stream, const std::string& cursor, const std::string& time,
                       const std::string& type = "message.added") {
  return R"({"type":")" + type + R"(","host":"h","stream":")" + stream + R"(","session":"s","cursor":")" +
         cursor + "\"" + (time.empty() ? "" : R"(,"time":"2026-11-24T)" + time + "Z\"") + R"(,"turn":1})";
}

std::string session(const std::string& places, const std::string& activity,
                    const std::string& state = "idle") {
  return R"({"type":"session","host":"h","session":"s","cursors":[)" + places +
         R"(],"last_activity":"2026-11-24T)" + activity + R"(Z","status":{"state":")" + state + R"("}})";
}

const char* const ready = R"({"type":"ready","id":"cli"})";
const char* const complete = R"({"type":"bookmark","id":"cli","cursors":[],"complete":true})";

using Lines = std::vector<std::string>;

// `tail --json` over several connections: its output and its requests.
class Tail {
 public:
  explicit Tail(std::optional<std::int64_t> since_ms = {}, bool snapshot = true) {
    options_.since_ms = since_ms;
    options_.snapshot = snapshot;
    options_.json = true;
    printer_ = std::make_unique<TailPrinter>(options_);
  }
  /// The output for these frames.
  Lines receive(const Lines& frames) {
    const Printed printed = printed_by([&] {
      for (const std::string& frame : frames) more = printer_->receive(frame) && more;
      printer_->flush();
      return 0;
    });
    return lines(printed.out);
  }
  void connect() { request = printer_->begin(); }
  Lines lose(std::int64_t now = *earshot::parse_time("2026-11-24T12:00:00Z")) {
    return lines(printed_by([&] {
                   printer_->end(now);
                   printer_->flush();
                   return 0;
                 }).out);
  }
  bool requests(const std::string& text) const { return request.find(text) != std::string::npos; }
  std::string request;
  bool more = true;

 private:
  static Lines lines(const std::string& text) {
    Lines out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
  TailOptions options_;
  std::unique_ptr<TailPrinter> printer_;
};

// 2026-11-24 14:30:00 in Berlin, where it is winter.
const std::int64_t now = *parse_time("2026-11-24T13:30:00Z");

struct Berlin {
  Berlin() {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~Berlin() {
    unsetenv("TZ");
    tzset();
  }
};

}  // namespace

TEST_CASE("the first connection requests a snapshot and prints every frame") {
  Tail tail;
  tail.connect();
  CHECK(tail.requests(R"("snapshot":true)"));
  CHECK(tail.requests(R"("on_lag":"catch_up")"));
  const Lines frames{session("\"a:1.1.x\"", "10:00:00"), ready, make_event("a", "2.1.x", "10:00:01")};
  CHECK(tail.receive(frames) == frames);
}

TEST_CASE("missed events are printed by time, each stream in its own order, and only once") {
  Tail tail;
  tail.connect();
  tail.receive({session("\"a:1.1.x\",\"b:1.1.x\"", "10:00:00"), ready, make_event("a", "2.1.x", "10:00:01")});
  tail.lose();
  tail.connect();
  CHECK(tail.requests(R"("after":["a:2.1.x","b:1.1.x"])"));
  CHECK(tail.requests(R"("since":"2026-11-24T11:58:35.000Z")"));
  const std::string a3 = make_event("a", "3.1.x", "10:03:00"), a4 = make_event("a", "4.1.x", "10:01:00");
  const std::string b2 = make_event("b", "2.1.x", "10:02:00"), b3 = make_event("b", "3.1.x", "");
  CHECK(tail.receive({session("\"a:4.1.x\",\"b:3.1.x\"", "10:05:00"), ready, a3, a4, b2, b3}) ==
        Lines{ready});
  CHECK(tail.receive({complete}) == Lines{b2, b3, a3, a4, complete});
  const std::string live = make_event("a", "5.1.x", "09:00:00");
  CHECK(tail.receive({live}) == Lines{live});
}

TEST_CASE("missed events of several hosts are in order also if the clock of one is off") {
  Tail tail;
  tail.connect();
  const auto host_event = [](const std::string& host, const std::string& cursor, const std::string& time) {
    return R"({"type":"message.added","host":")" + host + R"(","stream":")" + host + R"(","session":"s@)" +
           host + R"(","cursor":")" + cursor + R"(","time":"2026-11-24T)" + time + R"(Z","turn":1})";
  };
  const auto host_session = [](const std::string& host, const std::string& more) {
    return R"({"type":"session","host":")" + host + R"(","session":"s@)" + host + R"(","cursors":[")" + host +
           R"(:1.1.x"],"status":{"state":"idle"})" + more + "}";
  };
  const Lines sessions{host_session("slow", R"(,"clock_offset_ms":3600000)"), host_session("right", ""),
                       ready};
  tail.receive(sessions);
  tail.lose();
  tail.connect();
  tail.receive(sessions);
  const std::string late = host_event("slow", "2.1.x", "09:30:00"),
                    early = host_event("right", "2.1.x", "10:00:00");
  tail.receive({late, early});
  CHECK(tail.receive({complete}) == Lines{early, late, complete});
}

TEST_CASE("events of a connection that is lost while catching up are printed and not requested again") {
  Tail tail;
  tail.connect();
  tail.receive({session("\"a:1.1.x\",\"b:1.1.x\"", "10:00:00"), ready});
  tail.lose();
  tail.connect();
  tail.receive({ready, R"({"type":"reset","id":"cli","stream":"a","reason":"rewritten"})",
                session("\"a:8.1.y\",\"b:5.1.x\"", "10:00:00"), make_event("a", "9.1.y", "10:00:02")});
  CHECK(tail.lose() == Lines{make_event("a", "9.1.y", "10:00:02")});
  tail.connect();
  CHECK(tail.requests("\"a:9.1.y\""));
  CHECK(tail.requests("\"b:1.1.x\""));
}

TEST_CASE("the option --since starts with the past events, by time") {
  Tail tail(*earshot::parse_time("2026-11-24T10:00:00Z"));
  tail.connect();
  CHECK(tail.requests(R"("since":"2026-11-24T10:00:00.000Z")"));
  const std::string first = session("\"a:5.1.x\",\"a/agent:3.1.x\"", "11:00:00");
  const std::string a = make_event("a", "5.1.x", "10:30:00"),
                    sub = make_event("a/agent", "3.1.x", "10:15:00");
  CHECK(tail.receive({first, ready, a, sub, complete}) == Lines{first, ready, sub, a, complete});
}

TEST_CASE("without sessions there is nothing to catch up with") {
  Tail tail(*earshot::parse_time("2026-11-24T10:00:00Z"));
  tail.connect();
  const std::string live = make_event("a", "1.1.x", "08:00:00");
  CHECK(tail.receive({ready, live}) == Lines{ready, live});
}

TEST_CASE("without sessions tail says what it waits for") {
  const auto first_line = [](Filters filters) {
    TailOptions options;
    options.filters = std::move(filters);
    TailPrinter printer(options);
    return printed_by([&] {
             printer.begin();
             printer.receive(ready);
             printer.flush();
             return 0;
           })
        .out;
  };
  CHECK(first_line({}) == "no live session yet; waiting for events\n");
  CHECK(first_line({.project = {"api"}}) == "no live session matches the filters; waiting for events\n");
}

TEST_CASE("the option --since without events since then says so, once") {
  const auto printed = [](const Lines& frames) {
    TailOptions options;
    options.since_ms = *earshot::parse_time("2026-11-24T10:00:00Z");
    TailPrinter printer(options);
    return printed_by([&] {
             printer.begin();
             for (const std::string& frame : frames) printer.receive(frame);
             printer.flush();
             return 0;
           })
        .out;
  };
  const std::string nothing = "no events since then; waiting for events\n";
  const std::string known = session("\"a:1.1.x\"", "09:00:00");
  const std::string late =
      R"({"type":"turn.started","host":"h","stream":"a","session":"s","cursor":"2.1.x","time":"2026-11-24T10:00:01Z","turn":1,"origin":"human"})";
  CHECK(printed({ready}) == nothing);
  CHECK(printed({known, ready, complete}) == nothing);
  CHECK(printed({known, ready, late, complete}).find(nothing) == std::string::npos);
  CHECK(printed({ready, complete, late}).starts_with(nothing));
}

TEST_CASE("a cursor that cannot be used does not end the subscription, other errors do") {
  Tail tail;
  tail.connect();
  tail.receive({ready, R"({"type":"error","id":"cli","code":"bad_cursor","message":"a:1","retry":false})"});
  CHECK(tail.more);
  tail.receive({R"({"type":"error","id":"cli","code":"bad_filter","message":"x","retry":false})"});
  CHECK_FALSE(tail.more);
}

TEST_CASE("after a reconnect sessions are printed again only if their status changed") {
  Tail tail;
  tail.connect();
  tail.receive({session("\"a:1.1.x\"", "10:00:00", "working"), ready});
  tail.lose();
  tail.connect();
  const std::string waiting = session("\"a:1.1.x\"", "10:00:00", "waiting");
  CHECK(tail.receive({waiting, ready, complete}) == Lines{waiting, ready, complete});
  tail.lose();
  tail.connect();
  CHECK(tail.receive({waiting, ready, complete}) == Lines{ready, complete});
}

TEST_CASE("the option --since with --no-snapshot prints events only") {
  Tail tail(*earshot::parse_time("2026-11-24T10:00:00Z"), false);
  tail.connect();
  const std::string a = make_event("a", "5.1.x", "10:30:00");
  CHECK(tail.receive({session("\"a:5.1.x\"", "11:00:00", "waiting"), ready, a, complete}) ==
        Lines{ready, a, complete});
}

TEST_CASE("events before the first time of their stream are sorted by that time") {
  Tail tail(*earshot::parse_time("2026-11-24T10:00:00Z"));
  tail.connect();
  const std::string a1 = make_event("a", "1.1.x", ""), a2 = make_event("a", "2.1.x", "10:30:00"),
                    b = make_event("b", "1.1.x", "10:15:00");
  CHECK(tail.receive({session("\"a:2.1.x\",\"b:1.1.x\"", "11:00:00"), ready, a1, a2, b, complete}).size() ==
        6);
}

TEST_CASE("a duration is subtracted from now") {
  CHECK(parse_since("90s", now) == now - 90'000);
  CHECK(parse_since("10m", now) == now - 600'000);
  CHECK(parse_since("2h", now) == now - 7'200'000);
  CHECK(parse_since("3d", now) == now - 3 * 86'400'000LL);
  CHECK(parse_since("0s", now) == now);
}

TEST_CASE("a time without a date is the latest such time") {
  const Berlin here;
  CHECK(parse_since("14:03", now) == parse_time("2026-11-24T13:03:00Z"));
  CHECK(parse_since("14:03:07", now) == parse_time("2026-11-24T13:03:07Z"));
  CHECK(parse_since("15:00", now) == parse_time("2026-11-23T14:00:00Z"));
}

TEST_CASE("a date is local, a zone is respected") {
  const Berlin here;
  CHECK(parse_since("2026-11-24", now) == parse_time("2026-11-23T23:00:00Z"));
  CHECK(parse_since("2026-07-01 12:00", now) == parse_time("2026-07-01T10:00:00Z"));
  CHECK(parse_since("2026-11-24T14:00:01", now) == parse_time("2026-11-24T13:00:01Z"));
  CHECK(parse_since("2024-02-29", now) == parse_time("2024-02-28T23:00:00Z"));
  CHECK(parse_since("2026-11-24T14:00:01Z", now) == parse_time("2026-11-24T14:00:01Z"));
}

TEST_CASE("other text is not a time") {
  for (const char* text : {"", "m", "10", "-5m", "10x", "1.5h", "25:00", "14:61", "yesterday", "2026-13-01",
                           "2026-02-31", "2026-02-29 12:00", "99999999999d", "10m "}) {
    CAPTURE(text);
    CHECK_FALSE(parse_since(text, now));
  }
}

}  // namespace tail_test
