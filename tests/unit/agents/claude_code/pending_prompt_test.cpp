#include <catch2/catch.hpp>
#include <vector>

#include "agents/claude_code/program.hpp"
#include "base/display_text.hpp"

using namespace earshot;

namespace {

constexpr std::size_t detail_bytes_max = 200;

/// As in the detail of a status.
std::string detail_of(std::string_view tool, std::string_view input) {
  return replace_controls(claude_code::program().describe_prompt(tool, input), detail_bytes_max);
}

}  // namespace

TEST_CASE("a detail describes the pending call") {
  struct Row {
    std::string tool, input, detail;
  };
  const std::vector<Row> rows = {
      {"Bash", R"({"command":"ls"})", "approve Bash: ls"},
      {"Bash", R"({"command":{"text":"cat <<EOF","bytes":9000,"truncated":true}})",
       "approve Bash: cat <<EOF"},
      {"Bash", R"({"command":7})", "approve Bash"},
      {"Bash", R"({"comm)", "approve Bash"},
      {"Bash", "", "approve Bash"},
      {"Edit", R"({"file_path":"/a b"})", "approve Edit: /a b"},
      {"NotebookEdit", R"({"notebook_path":"/n.ipynb"})", "approve NotebookEdit: /n.ipynb"},
      {"WebFetch", R"({"url":"https://example.org/"})", "approve WebFetch: https://example.org/"},
      {"mcp__db__drop", R"({"table":"users"})", "approve mcp__db__drop"},
      {"AskUserQuestion", R"({"questions":[]})", ""},
      {"AskUserQuestion", R"({"question":"Really?"})", "Really?"},
      {"ExitPlanMode", R"({})", "plan"},
      {"ExitPlanMode", R"({"plan":"\n\n## One\nTwo"})", "plan: One"},
      {"Bash", R"({"command":"a\nb\u001b[31m\u009bc\u007f"})", "approve Bash: a b [31m  c "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.tool, row.input);
    CHECK(detail_of(row.tool, row.input) == row.detail);
  }
}

TEST_CASE("a long detail is cut on a character boundary") {
  std::string command;
  for (int i = 0; i < 400; ++i) command += "ä";
  const std::string detail = detail_of("Bash", R"({"command":")" + command + "\"}");
  CHECK(detail.size() <= detail_bytes_max);
  CHECK(detail.size() >= detail_bytes_max - 1);
  CHECK(detail.ends_with("ä"));
  CHECK(replace_controls("aä", 2) == "a");
  CHECK(replace_controls("aä", 3) == "aä");
}
