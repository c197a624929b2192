#include <catch2/catch.hpp>

#include "agents/claude_code/program.hpp"

using namespace earshot;

namespace {
const claude_code::ClaudeCode& claude = claude_code::program();
}

TEST_CASE("a registry file of the newest version is parsed") {
  const auto entry = claude.parse_registry_file(
      "0.json",
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
  CHECK(entry->process_start == "104676");
  CHECK(entry->pid_domain == "linux:3d:pid:[1]");
  CHECK(entry->state == "waiting");
  CHECK(entry->reason == "permission");
  CHECK(entry->updated_ms == 1795292999145);  // of the status; else of the file; else of the start
}

TEST_CASE("an older registry file has fewer fields") {
  const auto entry =
      claude.parse_registry_file("0.json", R"({"pid":7,"sessionId":"s","startedAt":5,"procStart":104676})");
  REQUIRE(entry);
  CHECK(entry->process_start == "104676");
  CHECK(entry->state.empty());
  CHECK(entry->updated_ms == 5);
}

TEST_CASE("text that is not one object is refused") {
  for (const char* text : {"", " ", "{", R"({"pid":7,"sessionId":"s)", R"({"pid":7} {"pid":8})", "[]", "7",
                           "null", "\"text\"", "{\"pid\":7}\xFF", "not JSON"}) {
    CAPTURE(text);
    CHECK_FALSE(claude.parse_registry_file("0.json", text));
  }
  CHECK_FALSE(claude.parse_registry_file("0.json", std::string(100, '\0')));
  CHECK_FALSE(claude.parse_registry_file(
      "0.json", R"({"name":")" + std::string(RegistryFiles::registry_bytes_max, 'x') + "\"}"));
}

TEST_CASE("no prefix of a registry file is accepted") {
  const std::string whole = R"({"pid":7,"sessionId":"s","procStart":"12","status":"busy","updatedAt":1.5e3})";
  REQUIRE(claude.parse_registry_file("0.json", whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(claude.parse_registry_file("0.json", whole.substr(0, length)));
}

TEST_CASE("fields of a wrong type are ignored") {
  const auto entry = claude.parse_registry_file(
      "0.json",
      R"({"pid":"7","sessionId":9,"cwd":null,"startedAt":"x","procStart":[],"pidDomain":{},"status":true,)"
      R"("updatedAt":1e300,"statusUpdatedAt":12.75})");
  REQUIRE(entry);
  RegistryEntry expected;
  expected.updated_ms = 12;
  CHECK(*entry == expected);
  REQUIRE(claude.parse_registry_file("0.json", "{}"));
  CHECK(*claude.parse_registry_file("0.json", "{}") == RegistryEntry{});
}

TEST_CASE("a registry file is named by its pid") {
  CHECK(claude.is_registry_file("31821.json"));
  CHECK(claude.parse_registry_file("31821.json", "{}")->pid == 31821);
  for (const char* name :
       {"31821.key", "31821.json.key", "31821.json.tmp", ".json", "x.json", "-1.json", "0.json", "1x.json",
        "+1.json", " 1.json", "99999999999999999999.json", "12", "", "a/1.json"}) {
    CAPTURE(name);
    CHECK_FALSE(claude.is_registry_file(name));
  }
}

TEST_CASE("states and reasons of a registry file are translated") {
  struct Row {
    std::string status, waiting_for, state, reason;
  };
  const Row rows[] = {
      {"busy", "", "working", ""},
      {"idle", "", "idle", ""},
      {"shell", "", "idle", "background"},
      {"waiting", "permission prompt", "waiting", "permission"},
      {"waiting", "input needed", "waiting", "question"},
      {"waiting", "dialog open", "waiting", "dialog"},
      {"new state", "permission prompt", "", ""},
  };
  for (const Row& row : rows) {
    const auto entry = claude.parse_registry_file(
        "7.json", R"({"status":")" + row.status + R"(","waitingFor":")" + row.waiting_for + "\"}");
    REQUIRE(entry);
    CHECK(entry->pid == 7);
    CHECK(entry->state == row.state);
    CHECK(entry->reason == row.reason);
  }
}

TEST_CASE("a todo file is an array of todos") {
  const auto todos = claude.parse_todo_list(
      R"([{"content":"Sweep","status":"completed","activeForm":"Sweeping"},)"
      R"({"content":"Mop","status":"in_progress","id":2,"priority":"high"},{"content":"Rest"},7,null])");
  REQUIRE(todos);
  CHECK(*todos == std::vector<Todo>{{"", "Sweep", "completed", "Sweeping", ""},
                                    {"2", "Mop", "in_progress", "", "high"},
                                    {"", "Rest", "pending", "", ""}});
  CHECK(claude.parse_todo_list("[]")->empty());
  for (const char* text : {"", "[", R"([{"content":"Sw)", "{}", "null"}) {
    CAPTURE(text);
    CHECK_FALSE(claude.parse_todo_list(text));
  }
}

TEST_CASE("a task file is one todo, its subject is the content") {
  const auto task = claude.parse_todo(
      R"({"id":"3","subject":"Oil the hinge","description":"all of them","activeForm":"Oiling","status":"in_progress",)"
      R"("owner":"","blocks":["4"],"blockedBy":[]})");
  REQUIRE(task);
  CHECK(*task == Todo{"3", "Oil the hinge", "in_progress", "Oiling", ""});
  for (const char* text : {"", "{", "{}", "[]", R"({"id":"3","status":"pending"})"}) {
    CAPTURE(text);
    CHECK_FALSE(claude.parse_todo(text));
  }
}

TEST_CASE("malformed meta files and fields are ignored") {
  REQUIRE(claude.parse_subagent_meta("") == SubagentMeta{});
  REQUIRE(claude.parse_subagent_meta("[1]") == SubagentMeta{});
  REQUIRE(claude.parse_subagent_meta(R"({"agentType":7,"spawnDepth":"x","description":"d"})") ==
          SubagentMeta{"", "d", "", "", 0});
}
