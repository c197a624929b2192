// What is folded when: recent files at start, cold ones when they grow or on request; subagents, their meta
// files, compactions.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "agents/claude_code/program.hpp"
#include "unit/support/fake_filter.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

void age(const std::string& path, std::chrono::seconds by) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - by);
}

struct RootFixture {
  RootFixture() { fs::create_directories(root / "projects/p"); }
  std::string add(const std::string& name, const std::string& text, std::chrono::seconds old = 0s) {
    const std::string path = root / ("projects/p/" + name + ".jsonl");
    fs::create_directories(fs::path(path).parent_path());
    append(path, text);
    age(path, old);
    return path;
  }
  TemporaryDirectory root;
};

/// 40 MiB, read by two threads (FoldMemory::large_file_bytes): prompts of up to 64 KiB, one line that is
/// longer than a read, and one without its end.
std::string large_text() {
  std::string text;
  for (int n = 0; text.size() < (40u << 20); ++n) {
    std::string line = prompt(n);
    line.insert(line.size() - std::string_view("\"}}\n").size(),
                n == 700 ? 5u << 20 : static_cast<std::size_t>(n) * 7919 % 65'536, 'x');
    text += line;
  }
  return text + prompt(1'000'000).substr(0, 50);
}

}  // namespace

TEST_CASE("recent files are folded at start, others are cold") {
  RootFixture files;
  files.add("new", prompts(0, 3), 60s);
  files.add("old", prompts(3, 5), 48h);
  TailFixture fixture(files.root.path());
  fixture.start();
  REQUIRE(fixture.observer.events == 0);
  REQUIRE(fixture.observer.has("r/p/new"));
  REQUIRE_FALSE(fixture.observer.has("r/p/old"));
  const auto counters = fixture.tail->counters();
  REQUIRE(counters.known_files == 2);
  REQUIRE(counters.streams == 1);
  REQUIRE(counters.bytes_read == prompts(0, 3).size());
  REQUIRE(fixture.tail->find("r/p/new")->transcript()->state().turn == 3);

  const tail::Stream* old = fixture.tail->find("r/p/old");
  REQUIRE(old != nullptr);
  REQUIRE(old->transcript() == nullptr);
  REQUIRE(old->session() == "old");
  std::vector<std::string> names;
  fixture.tail->for_each([&](const tail::Stream& stream) { names.push_back(stream.name()); });
  REQUIRE(names == std::vector<std::string>{"r/p/new", "r/p/old"});
  REQUIRE(fixture.tail->find("r/p/none") == nullptr);
  REQUIRE(fixture.tail->find("x/p/new") == nullptr);
  REQUIRE(fixture.tail->find("r") == nullptr);
}

TEST_CASE("all streams are visited in parts of any size, while some come and go") {
  RootFixture files;
  for (int n = 10; n < 20; ++n) files.add("s" + std::to_string(n), prompt(n), n % 2 == 0 ? 60s : 48h);
  TailFixture fixture(files.root.path());
  fixture.start();
  std::vector<std::string> whole;
  fixture.tail->for_each([&](const tail::Stream& stream) { whole.push_back(stream.name()); });
  REQUIRE(whole.size() == 10);
  for (const std::size_t count : {1, 3, 10, 11}) {
    std::vector<std::string> names;
    tail::Tail::Place place;
    const auto add = [&](const tail::Stream& stream) { names.push_back(stream.name()); };
    std::size_t before = 0;
    while (fixture.tail->for_some(place, count, add)) {
      CHECK(names.size() == before + count);
      before = names.size();
    }
    CHECK(names == whole);
    CHECK_FALSE(fixture.tail->for_some(place, count, add));
  }
  std::vector<std::string> names;
  tail::Tail::Place place;
  const auto add = [&](const tail::Stream& stream) { names.push_back(stream.name()); };
  REQUIRE(fixture.tail->for_some(place, 2, add));
  std::filesystem::remove(fixture.tail->find("r/p/s11")->path());  // the last one that was visited
  std::filesystem::remove(fixture.tail->find("r/p/s12")->path());
  fixture.until([&] { return !fixture.tail->find("r/p/s11") && !fixture.tail->find("r/p/s12"); });
  CHECK_FALSE(fixture.tail->for_some(place, 100, add));
  std::erase(whole, "r/p/s12");
  CHECK(names == whole);
}

TEST_CASE("fault 35: a cold file is replaced, and the new one gets another name: it is one stream") {
  RootFixture files;
  const std::string path = files.add("old", prompt(1), 48h), other = files.root / "projects/p/other.jsonl";
  TailFixture fixture(files.root.path(), Mode::inotify);
  fixture.start();
  // As large and as old as before: it stays cold.
  append(files.root / "new", prompt(1));
  age(files.root / "new", 48h);
  fs::rename(files.root / "new", path);
  fixture.idle();
  fs::create_hard_link(path, other);
  append(other, prompt(2));
  fixture.until([&] { return fixture.observer.has("r/p/old"); });
  fixture.idle();
  CHECK_FALSE(fixture.observer.has("r/p/other"));
  CHECK(fixture.tail->counters().known_files == 1);
}

TEST_CASE("the filter is used for every transcript, also after a reset") {
  const test::FakeFilter fake_filter;
  RootFixture files;
  std::string line = prompt(0);
  line.replace(line.find("prompt "), 7, "a lamp ");
  const std::string path = files.add("new", line);
  tail::Options options = TailFixture::options(files.root.path());
  options.filter = &fake_filter;
  TailFixture fixture(std::move(options), Mode::both);
  fixture.start();
  const auto prompt_text = [&] { return fixture.tail->find("r/p/new")->transcript()->state().turn_prompt; };
  REQUIRE(prompt_text().starts_with("a ******"));
  std::ofstream(path, std::ios::trunc) << prompt(1) << line;
  fixture.until([&] { return !fixture.observer.streams["r/p/new"].resets.empty(); });
  fixture.read("r/p/new");
  REQUIRE(fixture.tail->find("r/p/new")->transcript()->state().turn == 2);
  REQUIRE(prompt_text().starts_with("a ******"));
}

TEST_CASE("a cold file that grows is folded up to its known size, the new lines are events") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  RootFixture files;
  // The line that crosses the known size is new.
  const std::string was = prompts(0, 3) + prompt(3).substr(0, 20);
  const std::string path = files.add("old", was, 48h);
  TailFixture fixture(files.root.path(), mode);
  fixture.start();
  append(path, prompt(3).substr(20) + prompt(4));
  fixture.until([&] { return fixture.observer.has("r/p/old"); });
  fixture.read("r/p/old");
  const Lines complete = fold_of(contents(path)), before = fold_of(was);
  REQUIRE(fixture.observer.streams["r/p/old"].events ==
          Lines(complete.begin() + static_cast<long>(before.size()), complete.end()));
}

TEST_CASE("a cold file is folded on request") {
  RootFixture files;
  const std::string path = files.add("old", prompts(0, 3), 48h);
  TailFixture fixture(files.root.path());
  fixture.start();
  int folded = 0;
  const auto then = [&](const tail::Stream* stream) {
    REQUIRE(stream != nullptr);
    REQUIRE(stream->transcript()->state().turn == 3);
    REQUIRE(fixture.observer.has("r/p/old"));
    ++folded;
  };
  fixture.tail->fold("r/p/old", then);
  fixture.tail->fold("r/p/old", then);  // both callbacks are called, and it is folded once
  fixture.until([&] { return folded == 2; });
  fixture.tail->fold("r/p/old", then);
  REQUIRE(folded == 3);
  REQUIRE(fixture.observer.streams["r/p/old"].added == 1);
  REQUIRE(fixture.observer.events == 0);
  bool missing = false;
  fixture.tail->fold("r/p/none", [&](const tail::Stream* stream) { missing = stream == nullptr; });
  REQUIRE(missing);
}

TEST_CASE("a cold file that is rewritten shorter is a new history") {
  RootFixture files;
  const std::string path = files.add("old", prompts(0, 3), 48h);
  TailFixture fixture(files.root.path());
  fixture.start();
  rewrite(path, prompts(5, 6));
  fixture.same("r/p/old", path);
}

TEST_CASE("a file created later is added empty, then all its lines are events, whatever their age") {
  RootFixture files;
  TailFixture fixture(files.root.path());
  fixture.start();
  const std::string path = files.root / "projects/p/copied.jsonl";
  append(path, prompts(0, 10));
  age(path, 10'000h);
  fixture.same("r/p/copied", path);
}

TEST_CASE("many recent files larger than a batch are folded completely at start") {
  RootFixture files;
  std::string bulk;
  for (int n = 0; bulk.size() < (3u << 20); ++n) bulk += prompt(n);
  for (const char* name : {"a", "b", "c"}) files.add(name, bulk);
  for (int n = 0; n < 20; ++n) files.add("small" + std::to_string(n), prompt(n));
  TailFixture fixture(files.root.path());
  fixture.start();
  REQUIRE(fixture.tail->counters().streams == 23);
  REQUIRE(fixture.tail->counters().open_files == 0);
  for (const char* name : {"r/p/a", "r/p/b", "r/p/c"})
    REQUIRE(fixture.tail->find(name)->transcript()->bytes_read() == bulk.size());
  append(files.root / "projects/p/b.jsonl", prompt(1'000'000));
  fixture.read("r/p/b");
  REQUIRE(fixture.observer.streams["r/p/b"].resets.empty());
}

TEST_CASE("a large file has the same state, whichever thread reads and parses its parts") {
  RootFixture files;
  const std::string text = large_text();
  const std::string path = files.add("large", text);
  const int threads = GENERATE(1, 2);
  boost::asio::thread_pool folds(static_cast<std::size_t>(threads));  // of one, none is left to do it ahead
  tail::Options options = TailFixture::options(files.root.path());
  options.fold_executor = folds.get_executor();
  TailFixture fixture(options, Mode::both);
  fixture.start();
  const Fold expected(text);
  const Transcript& transcript = *fixture.tail->find("r/p/large")->transcript();
  REQUIRE(transcript.bytes_read() == text.size());
  REQUIRE(transcript.end() == expected.end);
  append(path, prompt(1'000'000).substr(50) + prompt(1'000'001));
  fixture.read("r/p/large");
  const Lines all = fold_of(contents(path));
  REQUIRE(fixture.observer.streams["r/p/large"].events ==
          Lines(all.begin() + static_cast<std::ptrdiff_t>(expected.events.size()), all.end()));
  folds.join();
}

TEST_CASE("a large file that is changed between two parts of its fold is a new history") {
  RootFixture files;
  const std::string text = large_text();
  const std::string path = files.add("large", text, 10s);
  boost::asio::io_context folds;  // the test's thread runs one task of it at a time
  tail::Options options = TailFixture::options(files.root.path());
  options.fold_executor = folds.get_executor();
  TailFixture fixture(options, Mode::both);
  fixture.tail->start([] {});
  const auto run_one = [&folds] {
    folds.restart();
    return folds.poll_one() > 0;
  };
  fixture.until(run_one);
  std::string reason;
  SECTION("truncated") {
    fs::resize_file(path, text.size() / 2);
    reason = "truncated";
  }
  SECTION("rewritten") {
    std::string other = text;
    std::replace(other.begin(), other.end(), 'x', 'y');
    write_file(path, other, 0);
    reason = "rewritten";
  }
  fixture.until([&] {
    run_one();
    return fixture.observer.streams["r/p/large"].resets == Lines{reason};
  });
  fixture.same("r/p/large", path);
}

TEST_CASE("files below conversations/ are named like those of projects/ unless the name is taken") {
  TemporaryDirectory root;
  fs::create_directories(root / "conversations/p");
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompt(0));
  fs::create_directories(root / "conversations");
  fs::create_directories(root / "projects/conversations");
  TailFixture fixture(root.path());
  fixture.start();
  append(root / "conversations/s.jsonl", prompt(0));
  append(root / "projects/conversations/s.jsonl", prompt(1));
  append(root / "conversations/p/s.jsonl", prompt(2));
  fixture.same("r/s", root / "conversations/s.jsonl");
  fixture.same("r/%63onversations/s", root / "projects/conversations/s.jsonl");
  fixture.same("r/conversations/p/s", root / "conversations/p/s.jsonl");
  CHECK(fixture.tail->find("r/s"));
  CHECK(fixture.tail->find("r/conversations/p/s"));
}

TEST_CASE("a meta file and its transcript may appear in any order") {
  RootFixture files;
  files.add("s", prompt(0));
  files.add("s/subagents/agent-old", prompt(1));
  const std::string metas = files.root / "projects/p/s/subagents/";
  const std::string text =
      R"({"agentType":"Explore","description":"look","toolUseId":"toolu_1","parentAgentId":"a0","spawnDepth":2})";
  append(metas + "agent-old.meta.json", text);
  const SubagentMeta expected{"Explore", "look", "toolu_1", "a0", 2};
  TailFixture fixture(files.root.path());
  fixture.start();
  REQUIRE(fixture.observer.streams["r/p/s/subagents/agent-old"].meta == expected);

  append(metas + "agent-first.meta.json", text);
  append(metas + "agent-first.jsonl", prompt(2));
  append(metas + "agent-second.jsonl", prompt(3));
  fixture.until([&] { return fixture.observer.has("r/p/s/subagents/agent-second"); });
  append(metas + "agent-second.meta.json", text.substr(0, 10));  // incomplete
  append(metas + "agent-second.meta.json", text.substr(10));
  fixture.until([&] { return fixture.observer.streams["r/p/s/subagents/agent-first"].meta == expected; });
  fixture.until([&] { return fixture.observer.streams["r/p/s/subagents/agent-second"].meta == expected; });
  REQUIRE(fixture.observer.streams["r/p/s/subagents/agent-second"].session == "s");
}

TEST_CASE("malformed meta files are ignored") {
  RootFixture files;
  files.add("s", prompt(0));
  files.add("s/subagents/agent-a", prompt(1));
  const std::string file = files.root / "projects/p/s/subagents/agent-a.meta.json";
  append(file, R"({"agentType":"Explore","description":"look"})");
  TailFixture fixture(files.root.path());
  fixture.start();
  const auto meta = [&] { return fixture.observer.streams["r/p/s/subagents/agent-a"].meta; };
  const SubagentMeta known{"Explore", "look", "", "", 0};
  REQUIRE(meta() == known);
  for (const std::string text :
       {"", "{", "null", "[]", "\xff", R"({"agentType":7,"description":[]})", R"({"agentType":"Plan")"}) {
    CAPTURE(text);
    rewrite(file, text);
    fixture.idle();
    REQUIRE(meta() == known);
  }
  REQUIRE(fixture.tail->problems().empty());
  rewrite(file, R"({"agentType":"Plan","spawnDepth":"x"})");
  fixture.until([&] { return meta() == SubagentMeta{"Plan", "", "", "", 0}; });
}

TEST_CASE("a new compaction marker is reported for its session, once, old ones are not") {
  RootFixture files;
  files.add("s", prompt(0));
  files.add("agent-acompact-old", prompt(1, "s"));
  fs::create_directories(files.root / "projects/p/s/subagents");
  TailFixture fixture(files.root.path(), GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  fixture.start();
  const std::string beside = files.root / "projects/p/agent-acompact-1.jsonl";
  append(beside, "");
  append(beside, prompt(2, "parent"));
  fixture.until([&] { return fixture.observer.compacting == std::vector<std::string>{"parent"}; });
  append(beside, prompt(3, "parent"));
  append(files.root / "projects/p/s/subagents/agent-acompact-2.jsonl", prompt(4, "other"));
  fixture.until([&] { return fixture.observer.compacting == std::vector<std::string>{"parent", "s"}; });
  append(files.root / "projects/p/agent-aprompt_suggestion-1.jsonl", prompt(5));
  append(files.root / "projects/p/history.jsonl", prompt(6));
  append(files.root / "projects/p/mark.jsonl", prompt(7));
  fixture.same("r/p/mark", files.root / "projects/p/mark.jsonl");
  fixture.idle();
  REQUIRE(fixture.observer.compacting.size() == 2);
  REQUIRE(fixture.tail->counters().known_files == 2);
}

TEST_CASE("descriptors of unused files are closed") {
  RootFixture files;
  auto options = TailFixture::options(files.root.path());
  options.quiet = 5ms;
  TailFixture fixture(options, Mode::both);
  fixture.start();
  const std::string path = files.add("s", prompt(0));
  fixture.same("r/p/s", path);
  fixture.until([&] { return fixture.tail->counters().open_files == 0; });
  append(path, prompt(1));
  fixture.same("r/p/s", path);
  REQUIRE(fixture.observer.streams["r/p/s"].resets.empty());
}

TEST_CASE("fault 51: more files than descriptors") {
  RootFixture files;
  TailFixture fixture(files.root.path());
  fixture.start();
  const int count = 400;
  for (int round = 0; round < 2; ++round)
    for (int n = 0; n < count; ++n)
      append(files.root / ("projects/p/" + std::to_string(n) + ".jsonl"), prompt(n + round * count));
  for (int n = 0; n < count; ++n)
    fixture.same("r/p/" + std::to_string(n), files.root / ("projects/p/" + std::to_string(n) + ".jsonl"));
  REQUIRE(fixture.tail->counters().open_files <= 256);
}

TEST_CASE("after stop() the observer receives nothing") {
  RootFixture files;
  TailFixture fixture(files.root.path());
  fixture.start();
  fixture.tail->stop();
  append(files.root / "projects/p/s.jsonl", prompt(0));
  fixture.io.restart();
  fixture.io.run_for(50ms);
  REQUIRE(fixture.observer.streams.empty());
}

TEST_CASE("a tail can be destroyed while work is in progress") {
  RootFixture files;
  files.add("s", prompts(0, 1000));
  auto fixture = std::make_unique<TailFixture>(files.root.path());
  fixture->tail->start([] {});
  fixture->io.poll_one();
  fixture.reset();
  SUCCEED("no sanitizer spoke up");
}

TEST_CASE("fault 82: finding the cold streams of a session does not depend on the number of files") {
  struct CountingProgram final : claude_code::ClaudeCode {
    mutable int identified = 0;
    StreamIdentity identify(std::string_view below) const override {
      ++identified;
      return ClaudeCode::identify(below);
    }
  } program;
  RootFixture files;
  constexpr int count = 500;
  for (int n = 0; n < count; ++n) files.add("old" + std::to_string(n), prompt(n), 48h);
  files.add("old7/subagents/agent-a1", prompt(1), 48h);
  auto options = TailFixture::options(files.root.path());
  options.roots.front().program = &program;
  TailFixture fixture(options, Mode::inotify);
  fixture.start();
  const auto find = [&](const char* session) {
    auto names = fixture.tail->cold_streams_of(session);
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(find("none").empty());
  program.identified = 0;
  for (int n = 0; n < 100; ++n) CHECK(find("none").empty());
  CHECK(program.identified == 0);
  CHECK(find("old3") == Lines{"r/p/old3"});
  CHECK(find("old7") == Lines{"r/p/old7", "r/p/old7/subagents/agent-a1"});
  CHECK(program.identified < 10);
  fixture.tail->fold("r/p/old3", [](const tail::Stream*) {});
  fixture.until([&] { return fixture.observer.has("r/p/old3"); });
  CHECK(find("old3").empty());
}

TEST_CASE("fault 110: cold files are removed, then their directories, while their sessions are looked up") {
  RootFixture files;
  for (int n = 0; n < 13; ++n)
    files.add("../p" + std::to_string(n) + "/old" + std::to_string(n), prompt(n), 72h);
  TailFixture fixture(files.root.path());
  fixture.start();
  const auto find = [&](int n) { return fixture.tail->cold_streams_of("old" + std::to_string(n)); };
  const auto directory = [&](int n) { return files.root / ("projects/p" + std::to_string(n)); };
  for (int n = 0; n < 13; ++n) CHECK(find(n).size() == 1);
  const std::size_t directories = fixture.tail->counters().directories;
  for (int n = 0; n < 13; ++n) std::filesystem::remove(directory(n) + "/old" + std::to_string(n) + ".jsonl");
  fixture.until([&] { return fixture.tail->counters().known_files == 0; });
  for (int n = 0; n < 13; ++n) CHECK(find(n).empty());
  for (int n = 0; n < 13; ++n) std::filesystem::remove(directory(n));
  fixture.until([&] { return fixture.tail->counters().directories == directories - 13; });
  for (int n = 0; n < 13; ++n) CHECK(find(n).empty());
}
