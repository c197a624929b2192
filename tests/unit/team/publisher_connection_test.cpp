#include "team/publisher_connection.hpp"

#include <catch2/catch.hpp>

namespace publisher_connection_test {

using namespace earshot::team;

namespace {

Message event(const std::string& subject, const std::string& payload) {
  return {Message::Target::events, subject, subject + payload, "t", "", payload};
}
std::vector<std::string> payloads(const std::vector<Outgoing>& messages) {
  std::vector<std::string> found;
  for (const Outgoing& each : messages) found.push_back(each.payload);
  return found;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a subject has one message in flight, which expects the last acknowledged sequence") {
  Outbox outbox;
  outbox.set_sequence("a", 7);
  for (const char* text : {"1", "2", "3"}) outbox.add(event("a", text));
  auto out = outbox.take_ready();
  REQUIRE(payloads(out) == Texts{"1"});
  CHECK(out[0].expected == 7);
  CHECK(outbox.take_ready().empty());
  CHECK(outbox.on_ack(out[0].number, 12));
  out = outbox.take_ready();
  REQUIRE(payloads(out) == Texts{"2"});
  CHECK(out[0].expected == 12);
}

TEST_CASE("subjects do not block each other") {
  Outbox outbox;
  outbox.add(event("a", "1")), outbox.add(event("a", "2")), outbox.add(event("b", "3"));
  const auto out = outbox.take_ready();
  CHECK(payloads(out) == Texts{"1", "3"});
  CHECK(out[1].expected == 0);
}

TEST_CASE("fault 125: a message that follows another subject waits for what that one had before") {
  Outbox outbox;
  const auto following = [](const char* subject, const char* text, const char* followed) {
    Message message = event(subject, text);
    message.follows = followed;
    return message;
  };
  outbox.add(event("a", "1")), outbox.add(event("a", "2"));
  outbox.add(following("b", "a is b", "a")), outbox.add(event("b", "3"));
  outbox.add(following("a", "b is a", "b")), outbox.add(event("a", "4"));
  outbox.add(event("c", "other"));
  Texts sent;
  std::uint64_t sequence = 0;
  for (auto out = outbox.take_ready(); !out.empty(); out = outbox.take_ready())
    for (const Outgoing& each : out) {
      sent.push_back(each.payload);
      outbox.on_ack(each.number, ++sequence);
    }
  std::erase(sent, "other");
  CHECK(sent == Texts{"1", "2", "a is b", "3", "b is a", "4"});
  CHECK(outbox.empty());
}

TEST_CASE("only the latest status waits, and it expects no sequence") {
  Outbox outbox;
  outbox.add_latest(event("s", "working"));
  const auto first = outbox.take_ready();
  outbox.add_latest(event("s", "waiting")), outbox.add_latest(event("s", "idle"));
  CHECK_FALSE(first[0].expected);
  CHECK(outbox.take_ready().empty());
  outbox.on_ack(first[0].number, 1);
  CHECK(payloads(outbox.take_ready()) == Texts{"idle"});
}

TEST_CASE("the limits include messages in flight") {
  Outbox outbox;
  for (std::size_t i = 0; i < Outbox::messages_max; ++i) {
    REQUIRE(outbox.has_room());
    outbox.add(event("a" + std::to_string(i), "x"));
  }
  CHECK_FALSE(outbox.has_room());
  const auto out = outbox.take_ready();
  CHECK(out.size() == Outbox::in_flight_max);
  CHECK_FALSE(outbox.has_room());
  outbox.on_ack(out[0].number, 1);
  CHECK(outbox.has_room());

  Outbox heavy;
  heavy.add(event("a", std::string(Outbox::bytes_max, 'x')));
  CHECK_FALSE(heavy.has_room());
  const auto one = heavy.take_ready();
  CHECK_FALSE(heavy.has_room());
  heavy.on_ack(one[0].number, 1);
  CHECK(heavy.has_room());
  CHECK(heavy.bytes() == 0);
}

TEST_CASE("an acknowledgement from before clear() is ignored") {
  Outbox outbox;
  outbox.add(event("a", "1"));
  const auto old = outbox.take_ready();
  outbox.clear();
  CHECK(outbox.empty());
  outbox.add(event("a", "1"));
  const auto next = outbox.take_ready();
  CHECK(next[0].number != old[0].number);
  CHECK_FALSE(outbox.on_ack(old[0].number, 1));
  CHECK(outbox.on_ack(next[0].number, 1));
}

TEST_CASE("a dropped message does not block its subject, which expects the same sequence") {
  Outbox outbox;
  outbox.set_sequence("a", 7);
  for (const char* text : {"1", "2"}) outbox.add(event("a", text));
  auto out = outbox.take_ready();
  REQUIRE(out.size() == 1);
  CHECK(outbox.drop(out[0].number));
  CHECK_FALSE(outbox.drop(out[0].number));
  out = outbox.take_ready();
  REQUIRE(payloads(out) == Texts{"2"});
  CHECK(out[0].expected == 7);
  CHECK(outbox.on_ack(out[0].number, 8));
  CHECK(outbox.empty());
  CHECK(outbox.bytes() == 0);
}

}  // namespace publisher_connection_test
