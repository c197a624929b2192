#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "agents/roots.hpp"
#include "core/transcript.hpp"
#include "demo/demo.hpp"
#include "unit/status/tracker_fixture.hpp"

using namespace earshot;
namespace fs = std::filesystem;

namespace {

/// The result of folding one file.
struct Folded final : EventSink {
  std::map<std::string, int> events;    // by type
  std::map<std::string, int> outcomes;  // `turn.finished completed`
  std::vector<Todo> todos;
  RecordCounts counts;
  std::shared_ptr<Transcript> transcript;
  std::size_t pending = 0;

  Folded(const fs::path& path, const std::string& own_agent, std::string_view program = "claude-code") {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t size = text.size();
    text.resize(size + feed_padding);
    TranscriptOptions options;
    options.own_agent = own_agent;
    options.format = &find_agent_program(program)->format();
    transcript = std::make_shared<Transcript>(options);
    Workspace workspace;
    transcript->feed({text.data(), size}, workspace, *this);
    counts = transcript->counts();
    pending = transcript->pending_bytes();
  }
  const StreamState& state() const { return transcript->state(); }
  void on_event(const Event& event) override {
    const std::string type(type_name(event.body));
    ++events[type];
    if (const auto* turn = std::get_if<event::TurnFinished>(&event.body))
      ++outcomes[type + " " + std::string(turn->outcome)];
    if (const auto* tool = std::get_if<event::ToolFinished>(&event.body))
      ++outcomes[type + " " + std::string(tool->outcome)];
    if (const auto* agent = std::get_if<event::AgentFinished>(&event.body))
      ++outcomes[type + " " + std::string(agent->outcome)];
    if (const auto* message = std::get_if<event::MessageAdded>(&event.body))
      ++outcomes[type + " " + std::string(message->role)];
    if (const auto* list = std::get_if<event::TodoUpdated>(&event.body))
      todos.assign(list->todos.begin(), list->todos.end());
  }
};

const Root& root_of(const demo::Demo& demo, std::string_view program) {
  return *std::find_if(demo.roots().begin(), demo.roots().end(),
                       [&](const Root& root) { return root.program->program() == program; });
}

std::vector<std::string> transcripts_in(const demo::Demo& demo, std::string_view program) {
  return transcripts_of(root_of(demo, program)).files;
}

std::set<fs::path> sessions_in(const std::string& root) {
  std::set<fs::path> found;
  const fs::path project = fs::path(root) / "projects/-home-keeper-lighthouse";
  if (!fs::exists(project)) return found;
  for (const auto& entry : fs::directory_iterator(project)) {
    if (entry.path().extension() == ".jsonl") found.insert(entry.path());
  }
  return found;
}

struct Stage : status::Loop {
  demo::Demo demo;
  explicit Stage(double speed) : demo(io, speed) {}
  std::string claude() const { return root_of(demo, "claude-code").path; }
  fs::path registry() const { return claude() + "/sessions/" + std::to_string(::getpid()) + ".json"; }
  /// Plays until this program's session is over: the next program's has begun.
  void play_until_after(std::string_view program) {
    const auto& roots = demo.roots();
    const auto at = std::find_if(roots.begin(), roots.end(),
                                 [&](const Root& root) { return root.program->program() == program; });
    const auto next = std::next(at) == roots.end() ? roots.begin() : std::next(at);
    demo.start();
    REQUIRE(until([&] { return !transcripts_of(*at).files.empty(); }));
    const std::size_t before = transcripts_of(*next).files.size();
    REQUIRE(until([&] { return transcripts_of(*next).files.size() > before; }));
    demo.stop();
  }
};

void check_complete(const Folded& folded) {
  CHECK(folded.counts.skipped_lines == 0);
  CHECK(folded.counts.unknown_types.empty());
  CHECK(folded.counts.undecided_records == 0);
  CHECK(folded.pending == 0);
  CHECK_FALSE(folded.state().turn_open);
  CHECK(folded.state().tools.empty());
  CHECK(folded.state().agents.empty());
}

}  // namespace

TEST_CASE("the demo's session of Claude Code is assembled completely") {
  Stage stage(200);
  stage.demo.start();
  REQUIRE(stage.until([&] { return fs::exists(stage.registry()); }));
  REQUIRE(stage.until([&] { return !fs::exists(stage.registry()); }));  // the session has ended
  stage.demo.stop();
  const auto sessions = sessions_in(stage.claude());
  REQUIRE(sessions.size() == 1);
  const Folded main(*sessions.begin(), "");
  CHECK(main.counts.skipped_lines == 0);
  CHECK(main.counts.unknown_types.empty());
  CHECK(main.counts.duplicates == 0);
  CHECK(main.pending == 0);
  CHECK(main.state().dialect == "claude-code");
  CHECK(main.state().title == "The thirteenth month");
  CHECK(main.state().cwd == "/home/keeper/lighthouse");
  CHECK_FALSE(main.state().turn_open);
  CHECK(main.state().tools.empty());
  CHECK(main.state().agents.empty());
  CHECK(main.events.at("session.started") == 1);
  CHECK(main.events.at("turn.started") == 2);
  CHECK(main.outcomes.at("turn.finished completed") == 2);
  CHECK(main.events.at("tool.invoked") == 9);
  CHECK(main.outcomes.at("tool.finished ok") == 9);
  CHECK(main.outcomes.at("agent.finished completed") == 1);
  CHECK(main.events.at("api.failed") == 2);
  CHECK(main.events.at("compaction.finished") == 1);
  CHECK(main.events.at("todo.updated") >= 4);
  CHECK(main.todos == std::vector<Todo>{{"1", "Ask the old logs", "completed", "Asking the old logs", ""},
                                        {"2", "Mend the month", "completed", "Mending the month", ""}});

  fs::path subagents = *sessions.begin();
  subagents.replace_extension();
  subagents /= "subagents";
  int transcripts = 0, metas = 0, compactions = 0;
  for (const auto& entry : fs::directory_iterator(subagents)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("agent-acompact-")) {
      ++compactions;
    } else if (name.ends_with(".meta.json")) {
      ++metas;
    } else {
      ++transcripts;
      const Folded agent(entry.path(), entry.path().stem().string().substr(6));
      CHECK(agent.counts.skipped_lines == 0);
      CHECK(agent.counts.unknown_types.empty());
      CHECK(agent.outcomes.at("turn.finished completed") == 1);
      CHECK(agent.outcomes.at("tool.finished ok") == 1);
    }
  }
  CHECK(transcripts == 1);
  CHECK(metas == 1);
  CHECK(compactions == 1);
}

TEST_CASE("the demo has a root of each program, and plays a session of each in turn") {
  Stage stage(0);
  std::vector<std::string> programs;
  for (const Root& root : stage.demo.roots()) {
    CHECK(root.name == "demo-" + std::string(root.program->program()));
    CHECK(fs::is_directory(root.path));
    programs.emplace_back(root.program->program());
  }
  CHECK(programs == std::vector<std::string>{"claude-code", "codex", "copilot", "pi"});
  for (const std::string& program : programs) {
    CAPTURE(program);
    stage.play_until_after(program);
    CHECK(programs_of_root(root_of(stage.demo, program).path).programs ==
          std::vector{find_agent_program(program)});
  }
}

TEST_CASE("the demo's session of Codex is assembled completely") {
  Stage stage(0);
  stage.play_until_after("codex");
  const auto files = transcripts_in(stage.demo, "codex");
  REQUIRE(files.size() == 2);  // one of the subagent
  Folded main(files[0], "", "codex"), agent(files[1], "", "codex");
  if (!main.state().parent.empty()) std::swap(main, agent);
  check_complete(main);
  check_complete(agent);
  CHECK(main.counts.duplicates == 0);
  CHECK(main.state().dialect == "codex-paginated");
  CHECK(main.state().cwd == "/home/keeper/lighthouse");
  CHECK(main.outcomes.at("turn.finished completed") == 1);
  CHECK(main.outcomes.at("tool.finished ok") == 5);
  CHECK(main.outcomes.at("tool.finished error") == 1);
  CHECK(main.outcomes.at("agent.finished completed") == 1);
  CHECK(main.outcomes.at("message.added assistant") == 3);
  CHECK(main.outcomes.at("message.added summary") == 1);
  CHECK(main.events.at("compaction.finished") == 1);
  CHECK(main.events.at("usage.updated") == 2);
  CHECK(main.events.at("limits.updated") == 2);
  CHECK(main.events.at("todo.updated") == 2);
  CHECK_FALSE(agent.state().parent.empty());
  CHECK(agent.outcomes.at("turn.finished completed") == 1);
  CHECK(agent.outcomes.at("tool.finished ok") == 1);
}

TEST_CASE("the demo's session of Copilot CLI is assembled completely") {
  Stage stage(0);
  stage.play_until_after("copilot");
  const auto files = transcripts_in(stage.demo, "copilot");
  REQUIRE(files.size() == 1);
  const Folded main(files[0], "", "copilot");
  check_complete(main);
  CHECK(main.counts.duplicates == 0);
  CHECK(main.state().is_closed);
  CHECK(main.outcomes.at("turn.finished completed") == 1);
  CHECK(main.outcomes.at("tool.finished ok") == 5);
  CHECK(main.outcomes.at("agent.finished completed") == 1);
  CHECK(main.events.at("compaction.started") == 1);
  CHECK(main.events.at("compaction.finished") == 1);
}

TEST_CASE("the demo's session of Pi is assembled completely") {
  Stage stage(0);
  stage.play_until_after("pi");
  const auto files = transcripts_in(stage.demo, "pi");
  REQUIRE(files.size() == 1);
  const Folded main(files[0], "", "pi");
  check_complete(main);
  CHECK(main.counts.duplicates == 0);
  CHECK(main.state().title == "Gulls");
  CHECK(main.outcomes.at("turn.finished completed") == 2);
  CHECK(main.outcomes.at("tool.finished ok") == 2);
  CHECK(main.outcomes.at("tool.finished error") == 1);
  CHECK(main.events.at("api.failed") == 1);
  CHECK(main.events.at("compaction.finished") == 1);
  CHECK(main.state().cost_usd.value_or(0) > 0);
}

#ifdef __linux__

TEST_CASE("the status tracker reads the demo's registry file") {
  struct Bench : status::Loop {
    demo::Demo demo{io, 100};
    watch::WatchMux mux;
    watch::Inotify inotify{io, [this](const watch::ChangeHint& hint) { mux.notify(hint); }};
    status::RecordingObserver observer;
    std::unique_ptr<status::StatusTracker> tracker;
  } bench;
  bench.mux.add_backend(bench.inotify);
  bench.tracker = std::make_unique<status::StatusTracker>(bench.io, bench.disk.get_executor(),
                                                          bench.demo.roots(), bench.mux, bench.observer);
  bench.tracker->start();
  bench.demo.start();
  const auto published = [&](const std::string& word) {
    for (const auto& [session, status] : bench.observer.statuses) {
      if (status.state == word) return true;
    }
    return false;
  };
  CHECK(bench.until([&] {
    return published("idle") && published("working") && published("waiting") && published("ended");
  }));
  bench.demo.stop();
  bench.tracker.reset();
  bench.disk.join();
}

#endif

TEST_CASE("the demo keeps a few old sessions and leaves nothing behind") {
  fs::path directory;
  {
    Stage stage(0);
    directory = fs::path(stage.claude()).parent_path();
    struct stat about {};
    REQUIRE(::stat(directory.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0700);
    stage.demo.start();
    std::set<std::string> seen;
    REQUIRE(stage.until([&] {
      std::size_t now = 0;
      for (const Root& root : stage.demo.roots()) {
        for (const std::string& file : transcripts_of(root).files) {
          if (file.find("/subagents/") != file.npos) continue;
          seen.insert(file);
          ++now;
        }
      }
      CHECK(now <= 2 * (demo::Demo::old_sessions_max + 1));  // one of Codex has two
      return seen.size() > 2 * (demo::Demo::old_sessions_max + 2);
    }));
    for (const Root& root : stage.demo.roots()) CHECK(transcripts_of(root).errors.empty());
  }
  CHECK_FALSE(fs::exists(directory));
}
