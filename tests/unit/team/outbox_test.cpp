#include "team/outbox.hpp"

#include <catch2/catch.hpp>

using namespace earshot::team;

namespace {

Message event(const std::string& subject, const std::string& payload) {
  return {Message::To::events, subject, subject + payload, "t", "", payload};
}
std::vector<std::string> payloads(const std::vector<Outgoing>& messages) {
  std::vector<std::string> found;
  for (const Outgoing& each : messages) found.push_back(each.payload);
  return found;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("of a subject one message is on its way at a time, and expects what the broker said last") {
  Outbox outbox;
  outbox.begin_at("a", 7);
  for (const char* text : {"1", "2", "3"}) outbox.add(event("a", text));
  auto out = outbox.take();
  REQUIRE(payloads(out) == Texts{"1"});
  CHECK(out[0].expected == 7);
  CHECK(outbox.take().empty());
  CHECK(outbox.acked(out[0].number, 12));
  out = outbox.take();
  REQUIRE(payloads(out) == Texts{"2"});
  CHECK(out[0].expected == 12);
}

TEST_CASE("subjects do not wait for each other") {
  Outbox outbox;
  outbox.add(event("a", "1")), outbox.add(event("a", "2")), outbox.add(event("b", "3"));
  const auto out = outbox.take();
  CHECK(payloads(out) == Texts{"1", "3"});
  CHECK(out[1].expected == 0);
}

TEST_CASE("of a status only the newest waits, and nothing is expected") {
  Outbox outbox;
  outbox.add_newest(event("s", "working"));
  const auto first = outbox.take();
  outbox.add_newest(event("s", "waiting")), outbox.add_newest(event("s", "idle"));
  CHECK_FALSE(first[0].expected);
  CHECK(outbox.take().empty());
  outbox.acked(first[0].number, 1);
  CHECK(payloads(outbox.take()) == Texts{"idle"});
}

TEST_CASE("it takes no more than it may hold, counting what is on its way") {
  Outbox outbox;
  for (std::size_t i = 0; i < Outbox::messages_max; ++i) {
    REQUIRE(outbox.has_room());
    outbox.add(event("a" + std::to_string(i), "x"));
  }
  CHECK_FALSE(outbox.has_room());
  const auto out = outbox.take();
  CHECK(out.size() == Outbox::on_the_way_max);
  CHECK_FALSE(outbox.has_room());
  outbox.acked(out[0].number, 1);
  CHECK(outbox.has_room());

  Outbox heavy;
  heavy.add(event("a", std::string(Outbox::bytes_max, 'x')));
  CHECK_FALSE(heavy.has_room());
  const auto one = heavy.take();
  CHECK_FALSE(heavy.has_room());
  heavy.acked(one[0].number, 1);
  CHECK(heavy.has_room());
  CHECK(heavy.bytes() == 0);
}

TEST_CASE("an answer from before it was cleared is nobody's") {
  Outbox outbox;
  outbox.add(event("a", "1"));
  const auto old = outbox.take();
  outbox.clear();
  CHECK(outbox.empty());
  outbox.add(event("a", "1"));
  const auto fresh = outbox.take();
  CHECK(fresh[0].number != old[0].number);
  CHECK_FALSE(outbox.acked(old[0].number, 1));
  CHECK(outbox.acked(fresh[0].number, 1));
}

TEST_CASE("what the broker will never take is given up, and what follows it goes on from the same place") {
  Outbox outbox;
  outbox.begin_at("a", 7);
  for (const char* text : {"1", "2"}) outbox.add(event("a", text));
  auto out = outbox.take();
  REQUIRE(out.size() == 1);
  CHECK(outbox.given_up(out[0].number));
  CHECK_FALSE(outbox.given_up(out[0].number));
  out = outbox.take();
  REQUIRE(payloads(out) == Texts{"2"});
  CHECK(out[0].expected == 7);
  CHECK(outbox.acked(out[0].number, 8));
  CHECK(outbox.empty());
  CHECK(outbox.bytes() == 0);
}
