// Skipped without the recorded sessions.
#include <simdjson.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "status/status.hpp"
#include "unit/places.hpp"

using namespace earshot::status;
namespace fs = std::filesystem;

namespace {

/// The successive contents of registry files.
std::vector<std::string> registry_texts(const fs::path& timeline) {
  std::vector<std::string> texts;
  std::ifstream file(timeline);
  simdjson::dom::parser parser;
  for (std::string line; std::getline(file, line);) {
    simdjson::dom::element change;
    std::string_view op, path, text;
    REQUIRE(parser.parse(line).get(change) == simdjson::SUCCESS);
    if (change["op"].get(op) == simdjson::SUCCESS && op == "write" &&
        change["path"].get(path) == simdjson::SUCCESS && path.starts_with("sessions/") &&
        change["text"].get(text) == simdjson::SUCCESS)
      texts.emplace_back(text);
  }
  return texts;
}

Status status_of(const earshot::RegistryEntry& entry) {
  Evidence evidence;
  evidence.entry = &entry;
  evidence.liveness = Liveness::alive;
  evidence.had_entry = true;
  return derive_status(evidence, TranscriptSummary{});
}

}  // namespace

TEST_CASE("every recorded registry file is parsed") {
  const fs::path corpus = earshot::test::corpus();
  if (!fs::exists(corpus)) {
    WARN("skipped: no recorded sessions in " << corpus);
    return;
  }
  int complete = 0, empty = 0;
  for (const auto& entry : fs::recursive_directory_iterator(corpus)) {
    const std::string program = fs::relative(entry.path(), corpus).begin()->string();
    const bool is_read = program == "claude-2.1.197" || program == "claude-2.1.330";
    if (entry.path().filename() != "timeline.jsonl" || !is_read) continue;
    for (const std::string& text : registry_texts(entry.path())) {
      CAPTURE(entry.path(), text);
      const auto parsed = earshot::default_program().registry()->parse_registry_file("0.json", text);
      CHECK(parsed.has_value() == !text.empty());
      ++(parsed ? complete : empty);
      if (!parsed) continue;
      CHECK(parsed->pid > 0);
      CHECK_FALSE(parsed->session.empty());
      CHECK_FALSE(parsed->process_start.empty());
      const Status status = status_of(*parsed);
      CHECK(status.source == "registry");
      CHECK(status.state == (parsed->state.empty() ? "idle" : parsed->state));
    }
  }
  CHECK(complete > 100);
  INFO(empty << " were empty");
}

TEST_CASE("a recorded session with two permission prompts") {
  const fs::path timeline = earshot::test::corpus() / "claude-2.1.330/i_perm/timeline.jsonl";
  if (!fs::exists(timeline)) {
    WARN("skipped: no recorded sessions: " << timeline);
    return;
  }
  std::vector<std::string> states;
  for (const std::string& text : registry_texts(timeline)) {
    const Status status =
        status_of(earshot::default_program().registry()->parse_registry_file("0.json", text).value());
    states.push_back(status.reason.empty() ? status.state : status.state + "/" + status.reason);
  }
  CHECK(states == std::vector<std::string>{"idle", "idle", "working", "waiting/permission", "working",
                                           "waiting/permission", "idle", "working", "idle"});
}
