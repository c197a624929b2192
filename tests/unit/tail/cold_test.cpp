// What happens to a transcript that is only known: whoever was told of it from its file hears that it went or
// became another.
#include <catch2/catch.hpp>

#include "agents/claude_code/reader.hpp"
#include "rig.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

struct Cold {
  explicit Cold(const std::string& text) {
    fs::create_directories(root / "projects/p");
    append(file, text);
    tail::Options options = Rig::options(root.path());
    options.recent = std::chrono::seconds(-3600);  // nothing is folded at start
    rig = std::make_unique<Rig>(options, watch::Mode::both);
    rig->start();
    REQUIRE(rig->tail->find(name)->transcript() == nullptr);
  }
  /// Somebody reads the whole of it from its file.
  void tell() {
    std::string bytes = contents(file);
    const std::size_t size = bytes.size();
    bytes.resize(size + feed_padding);
    Transcript transcript({.hash_key = key, .reader = &claude_code::reader()});
    Workspace workspace;
    Lines lines;
    Written written(lines);
    transcript.feed(std::span<const char>(bytes).first(size), workspace, written);
    rig->tail->told(*rig->tail->find(name), transcript.end());
  }
  const Heard::Told& told() { return rig->heard.streams[name]; }

  Scratch root;
  const std::string name = "r/p/s";
  const std::string file = root / "projects/p/s.jsonl";
  std::unique_ptr<Rig> rig;
};

}  // namespace

TEST_CASE("a cold transcript that shrinks is a reset, and told from its first line") {
  Cold cold(prompts(0, 9));
  rewrite(cold.file, prompts(20, 23));
  cold.rig->same(cold.name, cold.file);
  REQUIRE(cold.told().resets == Lines{"truncated"});
}

TEST_CASE("a cold transcript that goes is told as removed") {
  Cold cold(prompts(0, 9));
  SECTION("alone") { fs::remove(cold.file); }
  SECTION("with its directory") { fs::remove_all(cold.root / "projects/p"); }
  cold.rig->until([&] { return cold.rig->heard.streams.contains(cold.name); });
  REQUIRE_FALSE(cold.told().present);
  REQUIRE(cold.told().appeared == 0);
}

TEST_CASE("what came to a cold transcript since it was looked at is told when it is folded on demand") {
  Cold cold(prompts(0, 9));
  const std::size_t known = cold.rig->tail->find(cold.name)->bytes();
  append(cold.file,
         prompts(9, 12));  // not heard of yet, and whoever resumes is promised what follows `known`
  bool folded = false;
  cold.rig->tail->fold(cold.name, [&](const tail::Stream* stream) { folded = stream != nullptr; });
  cold.rig->until([&] { return folded && !cold.told().events.empty(); });
  cold.rig->idle();
  Lines rest;
  Written written(rest);
  std::string bytes = contents(cold.file);
  const std::size_t size = bytes.size();
  bytes.resize(size + feed_padding);
  Transcript transcript({.hash_key = key, .reader = &claude_code::reader()});
  Workspace workspace;
  Lines silent;
  Written passed(silent);
  transcript.feed(std::span<const char>(bytes).first(known), workspace, passed);
  transcript.feed(std::span<const char>(bytes).subspan(known, size - known), workspace, written);
  REQUIRE(cold.told().events == rest);
}

TEST_CASE("what somebody was told of a cold transcript is proven when it is followed") {
  Cold cold(prompts(0, 9));
  cold.tell();
  const bool rewritten = GENERATE(true, false);
  if (rewritten)
    rewrite(cold.file, prompts(20, 40));  // longer: by its size it only grew
  else
    append(cold.file, prompts(9, 12));
  cold.rig->until([&] {
    const auto* stream = cold.rig->tail->find(cold.name);
    return stream && stream->transcript() && stream->transcript()->bytes_read() == contents(cold.file).size();
  });
  cold.rig->idle();
  REQUIRE(cold.told().resets == (rewritten ? Lines{"rewritten"} : Lines{}));
  if (rewritten) cold.rig->same(cold.name, cold.file);
}

TEST_CASE("two histories told of one cold transcript are both withdrawn") {
  Cold cold(prompts(0, 9));
  cold.tell();
  rewrite(cold.file, prompts(50, 59));  // the loop does not run
  cold.tell();
  append(cold.file, prompts(59, 60));
  cold.rig->same(cold.name, cold.file);
  REQUIRE(cold.told().resets == Lines{"rewritten"});
}
