// What holds for every combination of facts: their order does not matter, and a missing source makes a status
// weaker, never wrong.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "status/status.hpp"
#include "unit/status/tracker_fixture.hpp"

namespace earshot::status::property_test {
namespace {

/// What a session really does, and what each source shows of that.
struct World {
  std::string truth;                  // `working`, `waiting/question`, …
  std::string entry, waiting_for;     // of the registry
  bool turn_open = false;             // in the transcript
  std::vector<OpenCall> calls;        // likewise
  std::vector<OpenRequest> requests;  // likewise
  std::vector<BackgroundWork> background;
  bool is_alive = true;            // its process
  std::set<std::string> weaker{};  // what may be said where a source is missing
};

const OpenCall bash{"c1", "Bash", R"({"command":"make"})", "", "", 0, 1};
const OpenCall ask{
    "c2", "AskUserQuestion", R"({"questions":[{"question":"Which?","options":[]}]})", "", "", 0, 1};
const OpenRequest question{"c2", "question", "c2"};
const BackgroundWork agents{BackgroundWork::Kind::agent, 2, 0, true};
const BackgroundWork task{BackgroundWork::Kind::task, 1, 0, false, "Bash", R"({"command":"npm run dev"})"};
const BackgroundWork schedule{BackgroundWork::Kind::schedule, 1, 0, false, "", "", 1'700'000'100'000};

const std::vector<World> worlds = {
    {"working", "busy", "", true, {bash}, {}, {}},
    {"working", "busy", "", true, {}, {}, {agents, task}},
    {"waiting/permission", "waiting", "permission prompt", true, {bash}, {}, {}, true, {"working"}},
    {"waiting/question", "waiting", "input needed", true, {ask}, {question}, {}, true, {"waiting/question"}},
    {"waiting/permission",
     "waiting",
     "permission prompt",
     false,
     {},
     {},
     {agents},
     true,
     {"working/background"}},
    {"waiting/dialog", "waiting", "dialog open", false, {}, {}, {}, true, {"idle"}},
    {"working/background", "idle", "", false, {}, {}, {agents}, true, {"idle"}},
    {"idle/background", "shell", "", false, {}, {}, {task}, true, {}},
    {"idle/scheduled", "idle", "", false, {}, {}, {schedule}, true, {"idle"}},
    {"idle", "idle", "", false, {}, {}, {}},
    // It was killed: without its registry and its process nothing shows that.
    {"ended", "busy", "", true, {bash}, {}, {}, false, {"working"}},
    {"ended", "idle", "", false, {}, {}, {}, false, {"idle"}},
    {"ended", "waiting", "input needed", true, {ask}, {question}, {}, false, {"waiting/question"}},
};

enum Source : unsigned { registry = 1, transcript = 2, processes = 4, all = 7 };

std::string name_of(const Status& status) {
  return status.reason.empty() ? status.state : status.state + "/" + status.reason;
}

TranscriptSummary summary_of(const World& world) {
  TranscriptSummary summary;
  summary.known = true;
  summary.turn_open = world.turn_open;
  summary.turn_started = summary.last_activity = "2023-11-14T22:10:00.000Z";
  summary.calls = world.calls;
  summary.requests = world.requests;
  summary.background = world.background;
  return summary;
}

RegistryEntry entry_of(const World& world) {
  const std::string text = R"({"sessionId":"s","statusUpdatedAt":1700000000000,"status":")" + world.entry +
                           R"(","waitingFor":")" + world.waiting_for + "\"}";
  return default_program().registry()->parse_registry_file("42.json", text).value();
}

Status status_of(const World& world, unsigned sources, const TranscriptSummary& summary) {
  const RegistryEntry entry = entry_of(world);
  Evidence evidence;
  if (sources & registry) {
    evidence.entry = &entry;
    evidence.had_entry = true;
    evidence.liveness = world.is_alive ? Liveness::alive : Liveness::dead;
  } else if (sources & processes) {
    evidence.process = world.is_alive ? ProcessEvidence::present : ProcessEvidence::gone;
  }
  return derive_status(evidence, sources & transcript ? summary : TranscriptSummary{});
}

}  // namespace

TEST_CASE("a missing source makes a status weaker, never wrong") {
  for (const World& world : worlds) {
    CAPTURE(world.truth, world.entry, world.waiting_for);
    CHECK(name_of(status_of(world, all, summary_of(world))) == world.truth);
    for (unsigned sources = 0; sources < all; ++sources) {
      const std::string said = name_of(status_of(world, sources, summary_of(world)));
      CAPTURE(sources, said);
      CHECK((said == world.truth || said == "unknown" || world.weaker.contains(said)));
    }
  }
}

TEST_CASE("the order in which a transcript's facts are listed changes no state") {
  for (const World& world : worlds) {
    TranscriptSummary summary = summary_of(world);
    summary.calls.push_back({"c9", "Read", "{}", "", "", 2, 2});
    summary.background.push_back(schedule);
    const Status first = status_of(world, all, summary);
    std::reverse(summary.calls.begin(), summary.calls.end());
    std::reverse(summary.background.begin(), summary.background.end());
    CHECK(name_of(status_of(world, all, summary)) == name_of(first));
  }
}

TEST_CASE("the order in which facts arrive never changes the status") {
  for (const World& world : worlds) {
    CAPTURE(world.truth, world.entry, world.waiting_for);
    const auto described = [](const Status& status) {
      return name_of(status) + ": " + status.detail + " (" + status.source + ")";
    };
    const std::string expected = described(status_of(world, all, summary_of(world)));
    std::vector<int> order{0, 1, 2};  // the transcript, the registry entry, the end of the process
    do {
      CAPTURE(order);
      ManualFixture fixture;
      Child first, second;
      const std::string names[] = {registry_name(first.pid()), registry_name(second.pid())};
      const std::string texts[] = {registry_of(first.pid(), "s", world.entry, world.waiting_for),
                                   registry_of(second.pid(), "s", "idle")};
      fixture.start();
      const auto arrive = [&](int fact) {
        if (fact == 0) {
          TranscriptSummary summary = summary_of(world);
          summary.last_growth_ms = working_turn().last_growth_ms;
          fixture.tracker->transcript_changed("s", summary);
        } else if (fact == 1) {
          for (int n = 0; n < 2; ++n) {
            fixture.root.write(names[n], texts[n]);
            fixture.change(names[n]);
          }
        } else {
          if (!world.is_alive) first.end();
          second.end();
        }
      };
      for (const int fact : order) arrive(fact);
      std::string found;
      const bool is_reached =
          fixture.until([&] { return (found = described(fixture.tracker->status_of("s"))) == expected; });
      CAPTURE(found, expected);
      CHECK(is_reached);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

}  // namespace earshot::status::property_test
