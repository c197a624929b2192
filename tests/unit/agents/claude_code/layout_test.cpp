#include <catch2/catch.hpp>

#include "agents/claude_code/program.hpp"

namespace layout_test {

using namespace earshot;

namespace {
const claude_code::ClaudeCode& claude = claude_code::program();
}

TEST_CASE("session and agent come from the path") {
  struct Row {
    std::string below, session, agent, directory;
  };
  const Row rows[] = {
      {"-w/s", "s", "", "-w"},
      {"s", "s", "", ""},
      {"-w/agent-1a2b", "", "1a2b", "-w"},
      {"-w/s/subagents/agent-a1", "s", "a1", "-w"},
      {"-w/s/subagents/workflows/run/agent-a1", "s", "a1", "-w"},
      {"subagents/agent-a1", "", "a1", "subagents"},
      {"-w/agent-", "agent-", "", "-w"},
  };
  for (const Row& row : rows) {
    const StreamIdentity identity = claude.identify(row.below);
    CHECK(identity.session == row.session);
    CHECK(identity.agent == row.agent);
    CHECK(identity.directory == row.directory);
  }
}

TEST_CASE("files are classified by name and directory") {
  CHECK(claude.classify("/-w", "s.jsonl") == FileKind::transcript);
  CHECK(claude.classify("/-w", "agent-a1.jsonl") == FileKind::transcript);
  CHECK(claude.classify("/-w", "journal.jsonl") == FileKind::transcript);
  CHECK(claude.classify("/-w/s/subagents/workflows/r", "journal.jsonl") == FileKind::other);
  CHECK(claude.classify("/-w", "history.jsonl") == FileKind::other);
  CHECK(claude.classify("/-w", "agent-aprompt_suggestion-1.jsonl") == FileKind::other);
  CHECK(claude.classify("/-w", "agent-acompact-1.jsonl") == FileKind::compaction_marker);
  CHECK(claude.classify("/-w/s/subagents", "agent-a1.meta.json") == FileKind::subagent_meta);
  for (const char* name : {".jsonl", "s.json", "s.jsonl.tmp", "s.key", "s"})
    CHECK(claude.classify("/-w", name) == FileKind::other);
}

TEST_CASE("a session's main todo list is recognised by its file name") {
  CHECK(claude.session_of_todo_path("todos/ab-cd-agent-ab-cd.json") == "ab-cd");
  CHECK(claude.session_of_todo_path("todos/x-agent-y-agent-x-agent-y.json") == "x-agent-y");
  for (const char* name :
       {"ab-agent-cd.json", "ab.json", "-agent-.json", "ab-agent-ab", "ab-agent-ab.json.tmp", ""}) {
    CAPTURE(name);
    CHECK(claude.session_of_todo_path(std::string("todos/") + name).empty());
  }
  CHECK(claude.session_of_todo_path("tasks/s") == "s");
  CHECK(claude.session_of_todo_path("tasks/s/1.json") == "s");
  CHECK(claude.session_of_todo_path("todos").empty());
  CHECK(claude.session_of_todo_path("projects/s").empty());
}

TEST_CASE("a running instance is recognised by its command line") {
  using Arguments = std::vector<std::string>;
  for (const Arguments& arguments :
       {Arguments{"claude"}, Arguments{"/usr/local/bin/claude", "--resume"},
        Arguments{"node", "/usr/bin/claude"},
        Arguments{"/usr/bin/node", "/lib/node_modules/@anthropic-ai/claude-code/cli.js", "-p"}})
    CHECK(claude.matches_process(arguments));
  for (const Arguments& arguments :
       {Arguments{}, Arguments{"node"}, Arguments{"vim", "claude"}, Arguments{"claude-helper"}})
    CHECK_FALSE(claude.matches_process(arguments));
}

}  // namespace layout_test
