// What is folded when: recent files at start, cold ones when they grow or when someone asks; agents, their
// meta, compactions.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "agents/claude_code/subagent_meta.hpp"
#include "rig.hpp"
#include "unit/support/fake_filter.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

void age(const std::string& path, std::chrono::seconds by) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - by);
}

struct Impl {
  Impl() { fs::create_directories(root / "projects/p"); }
  std::string add(const std::string& name, const std::string& text, std::chrono::seconds old = 0s) {
    const std::string path = root / ("projects/p/" + name + ".jsonl");
    fs::create_directories(fs::path(path).parent_path());
    append(path, text);
    age(path, old);
    return path;
  }
  Scratch root;
};

}  // namespace

TEST_CASE("recent files are folded silently at start, others are only known") {
  Impl house;
  house.add("new", prompts(0, 3), 60s);
  house.add("old", prompts(3, 5), 48h);
  Rig rig(house.root.path());
  rig.start();
  REQUIRE(rig.heard.events == 0);
  REQUIRE(rig.heard.has("r/p/new"));
  REQUIRE_FALSE(rig.heard.has("r/p/old"));
  const auto counters = rig.tail->counters();
  REQUIRE(counters.known_files == 2);
  REQUIRE(counters.streams == 1);
  REQUIRE(counters.bytes_read == prompts(0, 3).size());
  REQUIRE(rig.tail->find("r/p/new")->transcript()->state().turn == 3);

  const tail::Stream* old = rig.tail->find("r/p/old");
  REQUIRE(old != nullptr);
  REQUIRE(old->transcript() == nullptr);
  REQUIRE(old->session() == "old");
  std::vector<std::string> names;
  rig.tail->for_each([&](const tail::Stream& stream) { names.push_back(stream.name()); });
  REQUIRE(names == std::vector<std::string>{"r/p/new", "r/p/old"});
  REQUIRE(rig.tail->find("r/p/none") == nullptr);
  REQUIRE(rig.tail->find("x/p/new") == nullptr);
  REQUIRE(rig.tail->find("r") == nullptr);
}

TEST_CASE("the filter reaches every transcript, also after its file was written anew") {
  const test::FakeFilter fake_filter;
  Impl house;
  std::string line = prompt(0);
  line.replace(line.find("prompt "), 7, "a lamp ");
  const std::string path = house.add("new", line);
  tail::Options options = Rig::options(house.root.path());
  options.filter = &fake_filter;
  Rig rig(std::move(options), Mode::both);
  rig.start();
  const auto told = [&] { return rig.tail->find("r/p/new")->transcript()->state().turn_prompt; };
  REQUIRE(told().starts_with("a ******"));
  std::ofstream(path, std::ios::trunc) << prompt(1) << line;
  rig.until([&] { return !rig.heard.streams["r/p/new"].resets.empty(); });
  rig.read("r/p/new");
  REQUIRE(rig.tail->find("r/p/new")->transcript()->state().turn == 2);
  REQUIRE(told().starts_with("a ******"));
}

TEST_CASE("a cold file that grows is folded silently up to what it was; the new lines are events") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  Impl house;
  // Torn where it stood: the line that straddles the border is new.
  const std::string was = prompts(0, 3) + prompt(3).substr(0, 20);
  const std::string path = house.add("old", was, 48h);
  Rig rig(house.root.path(), mode);
  rig.start();
  append(path, prompt(3).substr(20) + prompt(4));
  rig.until([&] { return rig.heard.has("r/p/old"); });
  rig.read("r/p/old");
  const Lines whole = fold_of(contents(path)), before = fold_of(was);
  REQUIRE(rig.heard.streams["r/p/old"].events ==
          Lines(whole.begin() + static_cast<long>(before.size()), whole.end()));
}

TEST_CASE("a cold file is folded when someone asks") {
  Impl house;
  const std::string path = house.add("old", prompts(0, 3), 48h);
  Rig rig(house.root.path());
  rig.start();
  int folded = 0;
  const auto then = [&](const tail::Stream* stream) {
    REQUIRE(stream != nullptr);
    REQUIRE(stream->transcript()->state().turn == 3);
    REQUIRE(rig.heard.has("r/p/old"));
    ++folded;
  };
  rig.tail->fold("r/p/old", then);
  rig.tail->fold("r/p/old", then);  // both are told, and it is folded once
  rig.until([&] { return folded == 2; });
  rig.tail->fold("r/p/old", then);
  REQUIRE(folded == 3);
  REQUIRE(rig.heard.streams["r/p/old"].appeared == 1);
  REQUIRE(rig.heard.events == 0);
  bool missing = false;
  rig.tail->fold("r/p/none", [&](const tail::Stream* stream) { missing = stream == nullptr; });
  REQUIRE(missing);
}

TEST_CASE("a cold file that is rewritten shorter is new") {
  Impl house;
  const std::string path = house.add("old", prompts(0, 3), 48h);
  Rig rig(house.root.path());
  rig.start();
  rewrite(path, prompts(5, 6));
  rig.same("r/p/old", path);
}

TEST_CASE("a file that is born later appears empty, then all its lines are events, however old they are") {
  Impl house;
  Rig rig(house.root.path());
  rig.start();
  const std::string path = house.root / "projects/p/copied.jsonl";
  append(path, prompts(0, 10));
  age(path, 10'000h);
  rig.same("r/p/copied", path);
}

TEST_CASE("many recent files larger than a turn's budget are folded at start, each whole") {
  Impl house;
  std::string bulk;
  for (int n = 0; bulk.size() < (3u << 20); ++n) bulk += prompt(n);
  for (const char* name : {"a", "b", "c"}) house.add(name, bulk);
  for (int n = 0; n < 20; ++n) house.add("small" + std::to_string(n), prompt(n));
  Rig rig(house.root.path());
  rig.start();
  REQUIRE(rig.tail->counters().streams == 23);
  REQUIRE(rig.tail->counters().open_files == 0);
  for (const char* name : {"r/p/a", "r/p/b", "r/p/c"})
    REQUIRE(rig.tail->find(name)->transcript()->bytes_read() == bulk.size());
  append(house.root / "projects/p/b.jsonl", prompt(1'000'000));
  rig.read("r/p/b");
  REQUIRE(rig.heard.streams["r/p/b"].resets.empty());
}

TEST_CASE("files under conversations/ are called as those of projects/, unless a name is taken") {
  Scratch root;
  fs::create_directories(root / "conversations/p");
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompt(0));
  fs::create_directories(root / "conversations");
  fs::create_directories(root / "projects/conversations");
  Rig rig(root.path());
  rig.start();
  append(root / "conversations/s.jsonl", prompt(0));
  append(root / "projects/conversations/s.jsonl", prompt(1));
  append(root / "conversations/p/s.jsonl", prompt(2));
  rig.same("r/s", root / "conversations/s.jsonl");
  rig.same("r/%63onversations/s", root / "projects/conversations/s.jsonl");
  rig.same("r/conversations/p/s", root / "conversations/p/s.jsonl");
  CHECK(rig.tail->find("r/s"));
  CHECK(rig.tail->find("r/conversations/p/s"));
}

TEST_CASE("what an agent's meta says is joined, whichever file comes first") {
  Impl house;
  house.add("s", prompt(0));
  house.add("s/subagents/agent-old", prompt(1));
  const std::string metas = house.root / "projects/p/s/subagents/";
  const std::string text =
      R"({"agentType":"Explore","description":"look","toolUseId":"toolu_1","parentAgentId":"a0","spawnDepth":2})";
  append(metas + "agent-old.meta.json", text);
  const tail::AgentMeta said{"Explore", "look", "toolu_1", "a0", 2};
  Rig rig(house.root.path());
  rig.start();
  REQUIRE(rig.heard.streams["r/p/s/subagents/agent-old"].meta == said);

  append(metas + "agent-first.meta.json", text);
  append(metas + "agent-first.jsonl", prompt(2));
  append(metas + "agent-second.jsonl", prompt(3));
  rig.until([&] { return rig.heard.has("r/p/s/subagents/agent-second"); });
  append(metas + "agent-second.meta.json", text.substr(0, 10));  // caught while it is written
  append(metas + "agent-second.meta.json", text.substr(10));
  rig.until([&] { return rig.heard.streams["r/p/s/subagents/agent-first"].meta == said; });
  rig.until([&] { return rig.heard.streams["r/p/s/subagents/agent-second"].meta == said; });
  REQUIRE(rig.heard.streams["r/p/s/subagents/agent-second"].session == "s");
}

TEST_CASE("meta of any other shape says nothing") {
  REQUIRE(tail::parse_meta("") == tail::AgentMeta{});
  REQUIRE(tail::parse_meta("[1]") == tail::AgentMeta{});
  REQUIRE(tail::parse_meta(R"({"agentType":7,"spawnDepth":"x","description":"d"})") ==
          tail::AgentMeta{"", "d", "", "", 0});
}

TEST_CASE("the birth of an internal compaction call is told for its session, once; old ones are not") {
  Impl house;
  house.add("s", prompt(0));
  house.add("agent-acompact-old", prompt(1, "s"));
  fs::create_directories(house.root / "projects/p/s/subagents");
  Rig rig(house.root.path(), GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  rig.start();
  const std::string beside = house.root / "projects/p/agent-acompact-1.jsonl";
  append(beside, "");
  append(beside, prompt(2, "parent"));
  rig.until([&] { return rig.heard.compacting == std::vector<std::string>{"parent"}; });
  append(beside, prompt(3, "parent"));
  append(house.root / "projects/p/s/subagents/agent-acompact-2.jsonl", prompt(4, "other"));
  rig.until([&] { return rig.heard.compacting == std::vector<std::string>{"parent", "s"}; });
  append(house.root / "projects/p/agent-aprompt_suggestion-1.jsonl", prompt(5));
  append(house.root / "projects/p/history.jsonl", prompt(6));
  append(house.root / "projects/p/mark.jsonl", prompt(7));
  rig.same("r/p/mark", house.root / "projects/p/mark.jsonl");
  rig.idle();
  REQUIRE(rig.heard.compacting.size() == 2);
  REQUIRE(rig.tail->counters().known_files == 2);
}

TEST_CASE("descriptors of quiet files are closed") {
  Impl house;
  auto options = Rig::options(house.root.path());
  options.quiet = 5ms;
  Rig rig(options, Mode::both);
  rig.start();
  const std::string path = house.add("s", prompt(0));
  rig.same("r/p/s", path);
  rig.until([&] { return rig.tail->counters().open_files == 0; });
  append(path, prompt(1));
  rig.same("r/p/s", path);
  REQUIRE(rig.heard.streams["r/p/s"].resets.empty());
}

TEST_CASE("fault 51: more files than descriptors") {
  Impl house;
  Rig rig(house.root.path());
  rig.start();
  const int files = 400;
  for (int round = 0; round < 2; ++round)
    for (int n = 0; n < files; ++n)
      append(house.root / ("projects/p/" + std::to_string(n) + ".jsonl"), prompt(n + round * files));
  for (int n = 0; n < files; ++n)
    rig.same("r/p/" + std::to_string(n), house.root / ("projects/p/" + std::to_string(n) + ".jsonl"));
  REQUIRE(rig.tail->counters().open_files <= 256);
}

TEST_CASE("after stop() the listener hears nothing") {
  Impl house;
  Rig rig(house.root.path());
  rig.start();
  rig.tail->stop();
  append(house.root / "projects/p/s.jsonl", prompt(0));
  rig.io.restart();
  rig.io.run_for(50ms);
  REQUIRE(rig.heard.streams.empty());
}

TEST_CASE("a root may end its life while work for it is under way") {
  Impl house;
  house.add("s", prompts(0, 1000));
  auto rig = std::make_unique<Rig>(house.root.path());
  rig->tail->start([] {});
  rig->io.poll_one();
  rig.reset();
  SUCCEED("no sanitizer spoke up");
}
