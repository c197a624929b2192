#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "agents/claude_code/reader.hpp"
#include "core/transcript.hpp"
#include "demo.hpp"
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
  StreamState state;
  std::size_t pending = 0;

  Folded(const fs::path& path, const std::string& own_agent) {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t size = text.size();
    text.resize(size + feed_padding);
    TranscriptOptions options;
    options.own_agent = own_agent;
    options.reader = &claude_code::reader();
    Transcript transcript(options);
    Workspace workspace;
    transcript.feed({text.data(), size}, workspace, *this);
    counts = transcript.counts();
    state = transcript.state();
    pending = transcript.pending_bytes();
  }
  void on_event(const Event& event) override {
    const std::string type(type_name(event.body));
    ++events[type];
    if (const auto* turn = std::get_if<event::TurnFinished>(&event.body))
      ++outcomes[type + " " + std::string(turn->outcome)];
    if (const auto* tool = std::get_if<event::ToolFinished>(&event.body))
      ++outcomes[type + " " + std::string(tool->outcome)];
    if (const auto* agent = std::get_if<event::AgentFinished>(&event.body))
      ++outcomes[type + " " + std::string(agent->outcome)];
    if (const auto* list = std::get_if<event::TodoUpdated>(&event.body))
      todos.assign(list->todos.begin(), list->todos.end());
  }
};

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
  fs::path registry() const { return demo.root() + "/sessions/" + std::to_string(::getpid()) + ".json"; }
};

}  // namespace

TEST_CASE("the demo's session is assembled completely") {
  Stage stage(200);
  stage.demo.start();
  REQUIRE(stage.until([&] { return fs::exists(stage.registry()); }));
  REQUIRE(stage.until([&] { return !fs::exists(stage.registry()); }));  // the session has ended
  stage.demo.stop();
  const auto sessions = sessions_in(stage.demo.root());
  REQUIRE(sessions.size() == 1);
  const Folded main(*sessions.begin(), "");
  CHECK(main.counts.skipped_lines == 0);
  CHECK(main.counts.unknown_types.empty());
  CHECK(main.counts.duplicates == 0);
  CHECK(main.pending == 0);
  CHECK(main.state.dialect == "claude-code");
  CHECK(main.state.title == "The thirteenth month");
  CHECK(main.state.cwd == "/home/keeper/lighthouse");
  CHECK_FALSE(main.state.turn_open);
  CHECK(main.state.tools.empty());
  CHECK(main.state.agents.empty());
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
                                                          std::vector<Root>{{"r", bench.demo.root()}},
                                                          bench.mux, bench.observer);
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
  std::string root;
  {
    Stage stage(0);
    root = stage.demo.root();
    struct stat about {};
    REQUIRE(::stat(root.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0700);
    stage.demo.start();
    std::set<fs::path> seen;
    REQUIRE(stage.until([&] {
      seen.merge(sessions_in(root));
      CHECK(sessions_in(root).size() <= demo::Demo::old_sessions_max + 1);
      return seen.size() > demo::Demo::old_sessions_max + 2;
    }));
  }
  CHECK_FALSE(fs::exists(root));
}
