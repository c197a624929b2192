#include "serve/stream/live_log.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "unit/serve/support.hpp"

namespace live_log_test {

using namespace earshot;
using namespace earshot::serve;

namespace {

std::string_view text(std::span<const char> bytes) { return {bytes.data(), bytes.size()}; }

std::string payload(int n, std::size_t size) {
  std::string out = std::to_string(n) + ":";
  out.resize(std::max(size, out.size()), static_cast<char>('a' + n % 26));
  return out;
}

/// All frames from a position on.
std::string all_from(const LiveLog& log, Position from, std::size_t bytes_max) {
  std::string bytes;
  while (from < log.head()) {
    const LiveLog::Run run = log.contiguous(from, log.head(), bytes_max);
    bytes += text(run.bytes);
    from = run.next;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a frame's header has the shortest form for its length") {
  struct Row {
    std::size_t payload_bytes;
    std::string header;
  };
  const Row rows[] = {
      {0, std::string("\x81\x00", 2)},
      {125, std::string("\x81\x7d", 2)},
      {126, std::string("\x81\x7e\x00\x7e", 4)},
      {65535, std::string("\x81\x7e\xff\xff", 4)},
      {65536, std::string("\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.payload_bytes);
    const std::string body(row.payload_bytes, 'x');
    REQUIRE(*make_frame(body) == row.header + body);
    LiveLog log;
    log.append(body, {});
    REQUIRE(text(log.contiguous(0, 1, 1 << 20).bytes) == row.header + body);
  }
}

TEST_CASE("a frame longer than limits.outbound_bytes is replaced by an error") {
  const std::string longest(outbound_bytes_max, 'x'), longer = longest + 'x';
  REQUIRE(make_frame(longest)->size() == longest.size() + frame_header_bytes_max);
  const std::string error = test::unframe(*make_frame(longer)).front();
  REQUIRE(test::at(error, "/code") == "\"limit\"");
  LiveLog log;
  log.append(longer, {});
  REQUIRE(text(log.contiguous(0, 1, 1 << 20).bytes) == *make_frame(longer));
}

TEST_CASE("frames are adjacent and unchanged") {
  LiveLog log(8 << 20);
  std::vector<std::string> payloads;
  for (int i = 0; i < 3000; ++i) {
    payloads.push_back(payload(i, static_cast<std::size_t>(i) * 7 % 900));
    REQUIRE(log.append(payloads.back(), {}) == static_cast<Position>(i));
  }
  for (const std::size_t bytes_max : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 30}) {
    CAPTURE(bytes_max);
    REQUIRE(test::unframe(all_from(log, 0, bytes_max)) == payloads);
  }
}

TEST_CASE("a contiguous run respects its limits") {
  LiveLog log;
  for (int i = 0; i < 10; ++i) log.append(std::string(98, 'x'), {});  // 100 bytes each
  REQUIRE(log.contiguous(2, 10, 350).next == 5);
  REQUIRE(log.contiguous(2, 10, 400).next == 6);
  REQUIRE(log.contiguous(2, 4, 1000).next == 4);
  REQUIRE(log.contiguous(2, 10, 1).next == 3);  // never less than one frame
}

TEST_CASE("old segments are evicted completely, and memory stays bounded") {
  constexpr std::size_t bytes_max = 4 * LiveLog::segment_bytes;
  LiveLog log(bytes_max);
  REQUIRE(log.holds(0));
  for (int i = 0; i < 10000; ++i) {
    log.append(payload(i, 1000), {});
    REQUIRE(log.bytes() <= bytes_max);
  }
  REQUIRE(log.head() == 10000);
  REQUIRE_FALSE(log.holds(log.first() - 1));
  REQUIRE(log.holds(log.first()));
  REQUIRE(log.holds(log.head()));
  const auto kept = test::unframe(all_from(log, log.first(), 1 << 18));
  REQUIRE(kept.size() == log.head() - log.first());
  REQUIRE(kept.front() == payload(static_cast<int>(log.first()), 1000));
  REQUIRE(kept.back() == payload(9999, 1000));
}

TEST_CASE("a frame longer than a segment has its own segment") {
  LiveLog log(2 << 20);
  log.append("before", {});
  log.append(std::string(700 << 10, 'L'), {});
  log.append("after", {});
  const auto frames = test::unframe(all_from(log, 0, 1 << 18));
  REQUIRE(frames.size() == 3);
  REQUIRE(frames[1].size() == 700 << 10);
  REQUIRE(frames[2] == "after");
  log.append(std::string(3 << 20, 'M'), {});  // longer than the log: only it is kept
  REQUIRE(log.first() == 3);
  REQUIRE(test::unframe(all_from(log, 3, 1)).front().size() == 3 << 20);
}

TEST_CASE("matching frames are selected, adjacent ones as one run") {
  LiveLog log;
  const std::string wanted = "0110111000";
  for (std::size_t i = 0; i < wanted.size(); ++i)
    log.append(payload(static_cast<int>(i), 50), {wanted[i] == '1' ? 7u : 8u, 0});
  const auto is_seven = [](Tags tags) { return tags.session == 7; };
  std::vector<std::pair<Position, Position>> runs;
  Position at = 0;
  for (;;) {
    const LiveLog::Run run = log.matching(at, log.head(), 1 << 18, is_seven);
    at = run.next;
    if (run.first == run.next) break;
    runs.emplace_back(run.first, run.next);
  }
  REQUIRE(runs == std::vector<std::pair<Position, Position>>{{1, 3}, {4, 7}});
  REQUIRE(at == log.head());
  REQUIRE(log.matching(4, 10, 104, is_seven).next == 6);  // two frames of 52 bytes
  REQUIRE(log.matching(4, 5, 1 << 18, is_seven).next == 5);
}

TEST_CASE("matching frames are found across segments") {
  LiveLog log;
  for (int i = 0; i < 2000; ++i) log.append(payload(i, 1000), {i == 0 || i == 1999 ? 7u : 8u, 0});
  const auto run = log.matching(1, log.head(), 1 << 18, [](Tags tags) { return tags.session == 7; });
  REQUIRE(run.first == 1999);
  REQUIRE(run.next == 2000);
}

TEST_CASE("after a write is cut at any byte, the rest and the following frames complete it") {
  LiveLog log;
  for (int i = 0; i < 6; ++i) log.append(payload(i, static_cast<std::size_t>(i) * 40), {});
  const LiveLog::Run run = log.contiguous(1, 5, 1 << 18);
  const std::string whole(text(run.bytes));
  for (std::size_t sent = 0; sent < whole.size(); ++sent) {
    CAPTURE(sent);
    const LiveLog::Cut cut = log.cut(run, sent);
    std::string rest(text(cut.rest));
    if (cut.next < run.next) rest += text(log.contiguous(cut.next, run.next, 1 << 18).bytes);
    REQUIRE(whole.substr(0, sent) + rest == whole);
    REQUIRE(cut.rest.size() < 250);  // never more than the one frame that was cut
  }
}

TEST_CASE("frames for patient readers alone are appended when the log is settled") {
  AudienceLog audience(1 << 20);
  audience.readers = audience.patient_readers = 1;
  audience.append("first", {.session = 1});
  audience.append("second", {.session = 2});
  CHECK_FALSE(audience.is_settled());
  CHECK(audience.log.head() == 0);
  audience.settle();
  CHECK(audience.is_settled());
  REQUIRE(audience.log.head() == 2);
  CHECK(audience.log.frame(0) == *make_frame("first"));
  CHECK(audience.log.frame(1) == *make_frame("second"));
  CHECK(audience.log.tags(1).session == 2);
}

TEST_CASE("with another reader frames are appended at once, after those that were kept") {
  AudienceLog audience(1 << 20);
  audience.readers = audience.patient_readers = 1;
  audience.append("kept", {});
  ++audience.readers;
  audience.append("at once", {});
  CHECK(audience.is_settled());
  REQUIRE(audience.log.head() == 2);
  CHECK(audience.log.frame(0) == *make_frame("kept"));
  CHECK(audience.log.frame(1) == *make_frame("at once"));
}

TEST_CASE("what is kept for patient readers is bounded") {
  AudienceLog audience(16 << 20);
  audience.readers = audience.patient_readers = 1;
  const std::string frame = payload(1, 1000);
  bool was_kept = false;
  for (int n = 0; n < 1000; ++n) {
    audience.append(frame, {});
    was_kept |= !audience.is_settled();
    REQUIRE(static_cast<std::size_t>(n) + 1 - audience.log.head() < 100);
  }
  CHECK(was_kept);
  audience.append(payload(2, 1 << 20), {});
  CHECK(audience.is_settled());
}

TEST_CASE("positions are the same in all logs, whoever reads them") {
  LogSet logs(1 << 20);
  logs.of(Audience::full).readers = 1;
  logs.of(Audience::meta).readers = logs.of(Audience::meta).patient_readers = 1;
  const auto append = [&] { logs.append({}, [](Audience, std::string& out) { out = "frame"; }); };
  for (int n = 0; n < 5; ++n) append();
  CHECK(logs.head() == 5);
  for (const Audience each : all_audiences) CHECK(logs.of(each).log.head() == 5);
  append();
  logs.of(Audience::meta).readers = logs.of(Audience::meta).patient_readers = 0;  // it left
  append();
  CHECK(logs.head() == 7);
  for (const Audience each : all_audiences) CHECK(logs.of(each).log.head() == 7);
}

}  // namespace live_log_test
