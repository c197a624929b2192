// Extra: runs when recorded sessions are there.
#include <simdjson.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "status/derive_status.hpp"
#include "unit/places.hpp"

using namespace earshot::status;
namespace fs = std::filesystem;

namespace {

/// The texts that registry files had, one after the other.
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

Status said_by(const RegistryEntry& entry) {
  Evidence evidence;
  evidence.entry = &entry;
  evidence.life = Liveness::alive;
  evidence.had_entry = true;
  return decide(evidence, TranscriptSummary{});
}

}  // namespace

TEST_CASE("every registry file that was recorded is understood") {
  const fs::path corpus = earshot::test::corpus();
  if (!fs::exists(corpus)) {
    WARN("skipped: no recorded sessions in " << corpus);
    return;
  }
  int whole = 0, empty = 0;
  for (const auto& entry : fs::recursive_directory_iterator(corpus)) {
    if (entry.path().filename() != "timeline.jsonl") continue;
    for (const std::string& text : registry_texts(entry.path())) {
      CAPTURE(entry.path(), text);
      const auto parsed = parse_entry(text);
      CHECK(parsed.has_value() == !text.empty());
      ++(parsed ? whole : empty);
      if (!parsed) continue;
      CHECK(parsed->pid > 0);
      CHECK_FALSE(parsed->session.empty());
      CHECK_FALSE(parsed->proc_start.empty());
      const Status status = said_by(*parsed);
      CHECK((status.source == "registry") == !parsed->status.empty());
      CHECK((status.state == "unknown") == parsed->status.empty());
    }
  }
  CHECK(whole > 100);
  INFO(empty << " were caught empty");
}

TEST_CASE("a recorded session with two permission prompts") {
  const fs::path timeline = earshot::test::corpus() / "claude-2.1.330/i_perm/timeline.jsonl";
  if (!fs::exists(timeline)) {
    WARN("skipped: no recorded session " << timeline);
    return;
  }
  std::vector<std::string> states;
  for (const std::string& text : registry_texts(timeline)) {
    const Status status = said_by(parse_entry(text).value());
    states.push_back(status.reason.empty() ? status.state : status.state + "/" + status.reason);
  }
  CHECK(states == std::vector<std::string>{"unknown", "idle", "working", "waiting/permission", "working",
                                           "waiting/permission", "idle", "working", "idle"});
}
