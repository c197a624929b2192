// Every tests/golden/**/<name>.jsonl yields exactly <name>.events.jsonl, however it is split. In the
// expected lines the hash of a cursor is `*`: it depends on every byte before it, and cursors have
// tests of their own.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "agents/agent.hpp"
#include "unit/places.hpp"
#include "unit/support/feed.hpp"

namespace earshot::test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Lines without_hashes(Lines events) {
  for (std::string& event : events) {
    constexpr std::string_view key = "\"cursor\":\"";
    const std::size_t begin = event.find(key);
    REQUIRE(begin != std::string::npos);
    const std::size_t end = event.find('"', begin + key.size());
    const std::size_t dot = event.rfind('.', end);
    REQUIRE(end - dot == 17);  // a dot and 16 digits
    event.erase(dot + 1, 15);
    event[dot + 1] = '*';
  }
  return events;
}

std::vector<fs::path> fixtures() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(sources() / "tests" / "golden")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".jsonl") && !name.ends_with(".events.jsonl")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Of the program whose transcript it is.
TranscriptOptions options_for(const std::string& bytes) {
  TranscriptOptions options = claude_code_options();
  if (const AgentProgram* program = detect_program(bytes)) options.format = &program->format();
  return options;
}

TEST_CASE("each golden transcript yields exactly its golden events") {
  const auto paths = fixtures();
  REQUIRE(paths.size() > 50);
  for (const fs::path& path : paths) {
    DYNAMIC_SECTION(path.stem().string()) {
      const std::string bytes = contents(path);
      const Lines expected = lines_of(contents(fs::path(path).replace_extension(".events.jsonl")));
      Feed whole(options_for(bytes));
      whole.write(bytes);
      CHECK(without_hashes(whole.events()) == expected);
      CHECK(whole.counts().dropped == 0);
      Feed bytewise(options_for(bytes));
      bytewise.write_bytewise(bytes);
      CHECK(bytewise.events() == whole.events());
      Workspace parsed_ahead;
      parsed_ahead.parse_ahead([](auto task) { task(); });
      Feed ahead(options_for(bytes));
      ahead.write(bytes.substr(0, bytes.find('\n') + 1), parsed_ahead);  // proves the dialect
      ahead.write(bytes.substr(bytes.find('\n') + 1), parsed_ahead);
      CHECK(ahead.events() == whole.events());
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Feed cut(options_for(bytes));
        cut.write_cut(bytes, seed, 97);
        CHECK(cut.events() == whole.events());
      }
    }
  }
}

}  // namespace
}  // namespace earshot::test
