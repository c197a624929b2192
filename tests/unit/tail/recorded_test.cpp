// Recorded sessions that grow in pieces. Skipped without the corpus.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "unit/places.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

TEST_CASE("recorded sessions that grow in arbitrary pieces yield the events of their final bytes") {
  constexpr std::uintmax_t bytes_max = 4 << 20;  // larger transcripts are left to other tests
  std::vector<std::string> files;
  if (fs::is_directory(corpus()))
    for (const auto& entry : fs::recursive_directory_iterator(corpus())) {
      const std::string path = entry.path().string();
      if (entry.is_regular_file() && entry.path().extension() == ".jsonl" && entry.file_size() <= bytes_max &&
          path.find("/tree/projects/") != std::string::npos)
        files.push_back(path);
    }
  if (files.empty()) {
    WARN("skipped: no recorded sessions below " << corpus());
    return;
  }
  std::sort(files.begin(), files.end());

  struct Growing {
    std::string path, name, own_agent, bytes;
    std::size_t written = 0;
  };
  TemporaryDirectory root;
  std::vector<Growing> all;
  for (const std::string& file : files) {
    const std::string stem = fs::path(file).stem().string();
    if (stem.starts_with("agent-acompact-") || stem.starts_with("agent-aprompt_suggestion-") ||
        stem == "journal")
      continue;
    Growing one;
    const std::string below = "p" + std::to_string(all.size()) + "/" + stem;
    one.path = root / ("projects/" + below + ".jsonl");
    one.name = "r/" + below;
    if (stem.starts_with("agent-")) one.own_agent = stem.substr(6);
    one.bytes = contents(file);
    all.push_back(std::move(one));
  }

  fs::create_directories(root / "projects");
  TailFixture fixture(root.path());
  fixture.start();
  std::minstd_rand random(7);
  for (bool grown = true; grown;) {
    grown = false;
    for (Growing& one : all) {
      if (one.written == one.bytes.size()) continue;
      if (one.written == 0) fs::create_directories(fs::path(one.path).parent_path());
      const std::size_t piece = random() % 3 ? 1 + random() % 200 : 1 + random() % 60'000;
      append(one.path, std::string_view(one.bytes).substr(one.written, piece));
      one.written = std::min(one.bytes.size(), one.written + piece);
      grown = true;
      if (random() % 8 == 0) {
        fixture.io.restart();
        fixture.io.poll();
      }
    }
  }
  const auto is_repeated = [&](const Growing& one) {  // by a fork, or of what it forks
    const auto at = one.bytes.find("\"uuid\":\"");
    const std::string uuid = at == std::string::npos ? std::string() : one.bytes.substr(at, 45);
    return !uuid.empty() && std::any_of(all.begin(), all.end(), [&](const Growing& other) {
      return &other != &one && other.bytes.find(uuid) != std::string::npos;
    });
  };
  for (const Growing& one : all) {
    CAPTURE(one.name);
    fixture.read(one.name);
    const Lines events = fold_of(one.bytes, one.own_agent);
    const Lines& received = fixture.observer.streams[one.name].events;
    if (is_repeated(one) && received.size() < events.size())
      REQUIRE(std::equal(received.rbegin(), received.rend(), events.rbegin()));
    else
      REQUIRE(received == events);
    REQUIRE(fixture.observer.streams[one.name].resets.empty());
  }
}
