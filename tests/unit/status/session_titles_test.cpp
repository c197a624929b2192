#include "status/session_titles.hpp"

#include <sys/stat.h>

#include "unit/status/tracker_fixture.hpp"

using namespace earshot;
using namespace earshot::status;
using test::TemporaryDirectory;

namespace {

struct Titles : Loop {
  std::vector<std::string> changed;
  SessionTitles titles{io, disk.get_executor(),
                       [this](const std::string& session) { changed.push_back(session); }};

  bool become(const std::string& session, const std::string& title) {
    return until([&] { return titles.of(session) == title; });
  }
};

Root root_of(const std::string& program, const TemporaryDirectory& directory) {
  Root root{"r", directory.path()};
  root.program = find_agent_program(program);
  return root;
}

}  // namespace

TEST_CASE("the last title of a thread in Codex's index counts, and other lines do not matter") {
  TemporaryDirectory directory;
  const Root root = root_of("codex", directory);
  const std::string transcript = root.path + "/sessions/2026/11/23/rollout-t1.jsonl";
  directory.write("session_index.jsonl", R"({"id":"t1","thread_name":"Lamp","updated_at":"x"})"
                                         "\nno json\n{\"id\":7}\n"
                                         R"({"id":"t2","thread_name":"Other"})"
                                         "\n"
                                         R"({"id":"t1","thread_name":"Lamp \u0007shade"})"
                                         "\n"
                                         R"({"id":"t1","thread_na)");
  Titles loop;
  loop.titles.track("t1", root, transcript);
  loop.titles.track("t3", root, transcript);
  REQUIRE(loop.become("t1", "Lamp  shade"));
  CHECK(loop.changed == std::vector<std::string>{"t1"});
  CHECK(loop.titles.of("t2").empty());
  CHECK(loop.titles.of("t3").empty());

  directory.write("session_index.jsonl", R"({"id":"t3","thread_name":"Third"})");
  loop.titles.on_change(root.path + "/history.jsonl");
  loop.titles.on_change(root.path + "/session_index.jsonl");
  REQUIRE(loop.become("t3", "Third"));
  CHECK(loop.titles.of("t1") == "Lamp  shade");
  CHECK(loop.changed == std::vector<std::string>{"t1", "t3"});

  directory.write("session_index.jsonl", R"({"id":"t1","thread_name":"Again"})");
  loop.titles.untrack("t3");
  loop.titles.rescan();
  REQUIRE(loop.become("t1", "Again"));
  CHECK(loop.titles.of("t3").empty());
}

TEST_CASE("the title in Copilot's workspace file is read in the forms that fit in a line") {
  struct Row {
    std::string text, title;
  };
  for (const Row& row : {Row{"id: s\nname: Mend the lamp\ncwd: /x\n", "Mend the lamp"},
                         Row{"name: \"Say \\\"on\\\" \\u00e9\"\n", "Say \"on\" \xC3\xA9"},
                         Row{"name: 'it''s on'\r\n", "it's on"}, Row{"name: lamp # a comment\n", "lamp"},
                         Row{"name: C#\n", "C#"}, Row{"name: Mend\n  the lamp\ncwd: /x\n", ""},
                         Row{"name: |-\n  Mend\n", ""}, Row{"name: 'open\n", ""}, Row{"name: \"open\n", ""},
                         Row{"name: 'a'b'\n", ""}, Row{"name: null\n", ""}, Row{"name:\n", ""},
                         Row{"user_named: true\n  name: nested\n", ""}, Row{"", ""}}) {
    CAPTURE(row.text);
    const auto titles = find_agent_program("copilot")->title_files()->parse_titles(row.text);
    REQUIRE(titles.size() == (row.title.empty() ? 0 : 1));
    if (titles.empty()) continue;
    CHECK(titles[0].session.empty());
    CHECK(titles[0].title == row.title);
  }
}

TEST_CASE("a title file that is missing, too long or irregular gives no title") {
  TemporaryDirectory directory;
  const Root root = root_of("copilot", directory);
  const std::string below = "session-state/";
  directory.write(below + "long/workspace.yaml",
                  "name: x\n" + std::string(TitleFiles::title_file_bytes_max, '#'));
  directory.write(below + "pipe/events.jsonl", "");
  REQUIRE(::mkfifo((directory / below + "pipe/workspace.yaml").c_str(), 0600) == 0);
  directory.write(below + "wide/workspace.yaml", "name: " + std::string(2 * title_bytes_max, 'w') + "\n");
  Titles loop;
  for (const std::string session : {"missing", "long", "pipe", "wide"})
    loop.titles.track(session, root, root.path + '/' + below + session + "/events.jsonl");
  loop.titles.track("old", root, root.path + '/' + below + "old.jsonl");
  REQUIRE(loop.become("wide", std::string(title_bytes_max, 'w')));
  CHECK(loop.changed == std::vector<std::string>{"wide"});
}
