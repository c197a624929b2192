#include "cli/follower.hpp"

#include <catch2/catch.hpp>
#include <memory>

#include "common/captured.hpp"
#include "common/format.hpp"

using namespace earshot::cli;
using namespace earshot::common::test;

namespace {

std::string event(const std::string& stream, const std::string& cursor, const std::string& time,
                  const std::string& type = "message.added") {
  return R"({"type":")" + type + R"(","host":"h","stream":")" + stream + R"(","session":"s","cursor":")" +
         cursor + "\"" + (time.empty() ? "" : R"(,"time":"2026-11-24T)" + time + "Z\"") + R"(,"turn":1})";
}

std::string session(const std::string& places, const std::string& activity,
                    const std::string& state = "idle") {
  return R"({"type":"session","host":"h","session":"s","cursors":[)" + places +
         R"(],"last_activity":"2026-11-24T)" + activity + R"(Z","status":{"state":")" + state + R"("}})";
}

const char* const look_ready = R"({"type":"ready","id":"look"})";
const char* const ready = R"({"type":"ready","id":"cli"})";
const char* const complete = R"({"type":"bookmark","id":"cli","cursors":[],"complete":true})";

// One `tail --json`, connection after connection; what it wrote and asked for.
class Tail {
 public:
  explicit Tail(std::optional<std::int64_t> since_ms = {}, bool snapshot = true) {
    options_.since_ms = since_ms;
    options_.snapshot = snapshot;
    follower_ = std::make_unique<Follower>(options_, false);
  }
  /// A connection brings these; what was written.
  std::vector<std::string> brings(const std::vector<std::string>& frames) {
    const Printed printed = printed_by([&] {
      for (const std::string& frame : frames) {
        more = follower_->take(frame) && more;
        for (const std::string& request : follower_->take_requests()) asked.push_back(request);
      }
      follower_->flush();
      return 0;
    });
    return lines(printed.out);
  }
  void connects() { asked = {follower_->begin()}; }
  std::vector<std::string> loses(std::int64_t now = *parse_time("2026-11-24T12:00:00Z")) {
    return lines(printed_by([&] {
                   follower_->end(now);
                   follower_->flush();
                   return 0;
                 }).out);
  }
  bool asked_for(const std::string& text) const { return asked.back().find(text) != std::string::npos; }
  std::vector<std::string> asked;
  bool more = true;

 private:
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
  TailOptions options_;
  std::unique_ptr<Follower> follower_;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the first connection asks for a snapshot and tells all that comes") {
  Tail tail;
  tail.connects();
  CHECK(tail.asked_for(R"("snapshot":true)"));
  CHECK(tail.asked_for(R"("on_lag":"catch_up")"));
  const Lines frames{session("\"a:1.1.x\"", "10:00:00"), ready, event("a", "2.1.x", "10:00:01")};
  CHECK(tail.brings(frames) == frames);
  CHECK(tail.asked.size() == 1);
}

TEST_CASE("what was missed comes in order of time, each stream in its own order, nothing twice") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\",\"b:1.1.x\"", "10:00:00"), ready, event("a", "2.1.x", "10:00:01")});
  tail.loses();
  tail.connects();
  CHECK(tail.asked_for(R"("id":"look")"));
  CHECK(tail.asked_for(R"("deliver":"state")"));
  // What comes before the answer to `after` comes again with it.
  CHECK(tail.brings(
                {session("\"a:4.1.x\",\"b:3.1.x\"", "10:05:00"), look_ready, event("a", "9.9.x", "10:05:00")})
            .empty());
  REQUIRE(tail.asked.size() == 3);
  CHECK(tail.asked[1] == R"({"type":"unsubscribe","id":"look"})");
  CHECK(tail.asked_for(R"("after":["a:2.1.x","b:1.1.x"])"));
  const std::string a3 = event("a", "3.1.x", "10:03:00"), a4 = event("a", "4.1.x", "10:01:00");
  const std::string b2 = event("b", "2.1.x", "10:02:00"), b3 = event("b", "3.1.x", "");
  CHECK(tail.brings({ready, a3, a4, b2, b3}) == Lines{ready});
  CHECK(tail.brings({complete}) == Lines{b2, b3, a3, a4, complete});
  const std::string live = event("a", "5.1.x", "09:00:00");
  CHECK(tail.brings({live}) == Lines{live});
}

TEST_CASE(
    "a stream that was born meanwhile is told from its beginning, an old one that is new here from now on") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00"), ready});
  tail.loses(*parse_time("2026-11-24T12:00:00Z"));
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00"), session("\"born:7.1.x\"", "12:00:30"),
               session("\"old:8.1.x\"", "09:00:00"), look_ready});
  CHECK(tail.asked_for(R"("after":["born:","a:1.1.x","old:8.1.x"])"));
  const std::string told = event("born", "7.1.x", "12:00:30");
  CHECK(tail.brings({ready, event("born", "6.1.x", "08:00:00"), told, complete}) ==
        Lines{ready, told, complete});
}

TEST_CASE("a rewritten stream begins anew after a reset, and a vanished one is forgotten") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\",\"b:1.1.x\",\"c:1.1.x\"", "10:00:00"), ready,
               R"({"type":"reset","session":"s","stream":"a","reason":"rewritten"})",
               R"({"type":"stream.removed","session":"s","stream":"c"})"});
  tail.loses();
  tail.connects();
  tail.brings({session("\"a:3.1.x\",\"b:1.1.x\"", "10:00:00"), look_ready});
  CHECK(tail.asked_for(R"("after":["a:","b:1.1.x"])"));
  const std::string a = event("a", "1.1.y", "01:00:00");  // old, but of the new history: it was never told
  const Lines told =
      tail.brings({ready, R"({"type":"reset","id":"cli","stream":"b","reason":"unknown"})", a, complete});
  CHECK(std::count(told.begin(), told.end(), a) == 1);
  tail.loses();
  tail.connects();
  tail.brings({look_ready});
  CHECK(tail.asked_for(R"("after":["a:1.1.y"])"));
}

TEST_CASE("a stream that was rewritten meanwhile goes on where its session frame stands") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\",\"b:1.1.x\"", "10:00:00"), ready});
  tail.loses();
  tail.connects();
  tail.brings({session("\"a:1.1.y\",\"b:5.1.x\"", "10:00:00"), look_ready, ready,
               R"({"type":"reset","id":"cli","stream":"a","reason":"rewritten"})",
               session("\"a:8.1.y\",\"b:5.1.x\"", "10:00:00"), event("a", "9.1.y", "10:00:02")});
  // The connection breaks before b's events have come: they are asked for again, a's are not.
  CHECK(tail.loses() == Lines{event("a", "9.1.y", "10:00:02")});
  tail.connects();
  tail.brings({look_ready});
  CHECK(tail.asked_for("\"a:9.1.y\""));
  CHECK(tail.asked_for("\"b:1.1.x\""));
}

TEST_CASE("bookmarks move streams on of which nothing matched") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00"), ready, R"({"type":"bookmark","cursors":["a:6.0.x"]})"});
  tail.loses();
  tail.connects();
  tail.brings({look_ready});
  CHECK(tail.asked_for(R"("after":["a:6.0.x"])"));
}

TEST_CASE("a stream that is born between the look and the subscription is told from its first event") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00"), ready, event("a", "2.1.x", "10:00:01")});
  tail.loses(*parse_time("2026-11-24T10:00:02Z"));
  tail.connects();
  tail.brings({session("\"a:2.1.x\"", "10:00:01"), look_ready});
  CHECK(tail.asked_for(R"("after":["a:2.1.x"])"));
  const std::string both = session("\"a:2.1.x\",\"b:2.1.x\"", "10:00:03");
  CHECK(tail.brings({both, ready, event("b", "3.1.x", "10:00:03")}).empty());
  REQUIRE(tail.asked.size() == 5);
  CHECK(tail.asked[3] == R"({"type":"unsubscribe","id":"cli"})");
  CHECK(tail.asked_for(R"("id":"look")"));
  tail.brings({both, look_ready});
  CHECK(tail.asked_for(R"("after":["a:2.1.x","b:"])"));
  const std::string b1 = event("b", "1.1.x", "10:00:02"), b3 = event("b", "3.1.x", "10:00:03");
  const Lines told = tail.brings({both, ready, b1, b3, complete});
  CHECK(Lines(told.end() - 3, told.end()) == Lines{b1, b3, complete});
}

TEST_CASE("--since begins with what happened since, from the files") {
  Tail tail(*parse_time("2026-11-24T10:00:00Z"));
  tail.connects();
  CHECK(tail.asked_for(R"("id":"look")"));
  tail.brings({session("\"a:5.1.x\",\"a/agent:3.1.x\"", "11:00:00"), session("\"quiet:2.1.x\"", "09:00:00"),
               look_ready});
  CHECK(tail.asked_for(R"("after":["a:","a/agent:","quiet:2.1.x"])"));
  const std::string a = event("a", "5.1.x", "10:30:00"), sub = event("a/agent", "3.1.x", "10:15:00");
  const Lines told = tail.brings({ready, event("a", "1.1.x", ""), event("a", "2.1.x", "09:59:59"),
                                  event("a", "3.1.x", ""), a, sub, complete});
  CHECK(Lines(told.end() - 4, told.end()) == Lines{ready, sub, a, complete});
  CHECK(told.size() == 5);  // and the session frame, once
}

TEST_CASE("without anything to catch up with nothing is waited for") {
  Tail tail(*parse_time("2026-11-24T10:00:00Z"));
  tail.connects();
  tail.brings({look_ready});
  CHECK(tail.asked.back().find("after") == std::string::npos);
  const std::string live = event("a", "1.1.x", "08:00:00");
  CHECK(tail.brings({ready, live}) == Lines{ready, live});
}

TEST_CASE("a daemon that cannot resume is followed all the same, but not for --since") {
  const std::string unsupported =
      R"({"type":"error","id":"cli","code":"unsupported","message":"not yet","retry":false})";
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00"), ready});
  tail.loses();
  tail.connects();
  tail.brings({look_ready, unsupported});
  CHECK(tail.more);
  CHECK(tail.asked_for(R"("id":"cli")"));
  const std::string live = event("a", "2.1.x", "10:00:00");
  CHECK(tail.brings({ready, live}) == Lines{ready, live});

  Tail since(0);
  since.connects();
  since.brings({session("\"a:1.1.x\"", "10:00:00"), look_ready, unsupported});
  CHECK_FALSE(since.more);
}

TEST_CASE("a cursor that cannot be used does not end it") {
  Tail tail;
  tail.connects();
  tail.brings({ready, R"({"type":"error","id":"cli","code":"bad_cursor","message":"a:1","retry":false})"});
  CHECK(tail.more);
  tail.brings({R"({"type":"error","id":"cli","code":"bad_filter","message":"x","retry":false})"});
  CHECK_FALSE(tail.more);
}

TEST_CASE("a session that stands otherwise than it was told is told again after a break") {
  Tail tail;
  tail.connects();
  tail.brings({session("\"a:1.1.x\"", "10:00:00", "working"), ready});
  tail.loses();
  tail.connects();
  const std::string waiting = session("\"a:1.1.x\"", "10:00:00", "waiting");
  tail.brings({waiting, look_ready});
  CHECK(tail.brings({ready, complete}) == Lines{waiting, ready, complete});
  tail.loses();
  tail.connects();
  tail.brings({waiting, look_ready});
  CHECK(tail.brings({ready, complete}) == Lines{ready, complete});
}

TEST_CASE("--since without a snapshot tells events only") {
  Tail tail(*parse_time("2026-11-24T10:00:00Z"), false);
  tail.connects();
  tail.brings({session("\"a:5.1.x\"", "11:00:00", "waiting"), look_ready});
  const std::string a = event("a", "5.1.x", "10:30:00");
  CHECK(tail.brings({ready, a, complete}) == Lines{ready, a, complete});
}
