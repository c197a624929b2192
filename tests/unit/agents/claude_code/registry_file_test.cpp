#include "agents/claude_code/registry_file.hpp"

#include <catch2/catch.hpp>

using namespace earshot::status;

TEST_CASE("a registry file of the newest version is read whole") {
  const auto entry = parse_entry(
      R"({"pid":31821,"sessionId":"931c","cwd":"/home/dev/x","startedAt":1795292997253,"procStart":"104676",)"
      R"("version":"2.1.330","peerFeatures":["a"],"pidDomain":"linux:3d:pid:[1]","asksForConvertedSkills":null,)"
      R"("name":"x-22","status":"waiting","updatedAt":1795292999146,"statusUpdatedAt":1795292999145,)"
      R"("waitingFor":"permission prompt"})");
  REQUIRE(entry);
  CHECK(entry->pid == 31821);
  CHECK(entry->session == "931c");
  CHECK(entry->cwd == "/home/dev/x");
  CHECK(entry->name == "x-22");
  CHECK(entry->version == "2.1.330");
  CHECK(entry->proc_start == "104676");
  CHECK(entry->pid_domain == "linux:3d:pid:[1]");
  CHECK(entry->status == "waiting");
  CHECK(entry->waiting_for == "permission prompt");
  CHECK(entry->started_ms == 1795292997253);
  CHECK(entry->updated_ms == 1795292999146);
  CHECK(entry->status_updated_ms == 1795292999145);
  CHECK(entry->said_ms() == 1795292999145);
}

TEST_CASE("an older registry file says less") {
  const auto entry = parse_entry(R"({"pid":7,"sessionId":"s","startedAt":5,"procStart":104676})");
  REQUIRE(entry);
  CHECK(entry->proc_start == "104676");
  CHECK(entry->status.empty());
  CHECK(entry->said_ms() == 5);
}

TEST_CASE("what is not one object is no entry") {
  for (const char* text : {"", " ", "{", R"({"pid":7,"sessionId":"s)", R"({"pid":7} {"pid":8})", "[]", "7",
                           "null", "\"text\"", "{\"pid\":7}\xFF", "not JSON"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_entry(text));
  }
  CHECK_FALSE(parse_entry(std::string(100, '\0')));
  CHECK_FALSE(parse_entry(R"({"name":")" + std::string(entry_bytes_max, 'x') + "\"}"));
}

TEST_CASE("no beginning of a registry file is taken for the whole") {
  const std::string whole = R"({"pid":7,"sessionId":"s","procStart":"12","status":"busy","updatedAt":1.5e3})";
  REQUIRE(parse_entry(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(parse_entry(whole.substr(0, length)));
}

TEST_CASE("fields of a wrong type are as if absent") {
  const auto entry = parse_entry(
      R"({"pid":"7","sessionId":9,"cwd":null,"startedAt":"x","procStart":[],"pidDomain":{},"status":true,)"
      R"("updatedAt":1e300,"statusUpdatedAt":12.75})");
  REQUIRE(entry);
  RegistryEntry expected;
  expected.status_updated_ms = 12;
  CHECK(*entry == expected);
  REQUIRE(parse_entry("{}"));
  CHECK(*parse_entry("{}") == RegistryEntry{});
}

TEST_CASE("only a pid and .json names a registry file") {
  CHECK(pid_of_name("31821.json") == 31821);
  for (const char* name :
       {"31821.key", "31821.json.key", "31821.json.tmp", ".json", "x.json", "-1.json", "0.json", "1x.json",
        "+1.json", " 1.json", "99999999999999999999.json", "12", "", "a/1.json"}) {
    CAPTURE(name);
    CHECK_FALSE(pid_of_name(name));
  }
}
