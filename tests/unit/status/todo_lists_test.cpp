#include "status/todo_lists.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "unit/status/open_recorder.hpp"
#include "unit/status/tracker_fixture.hpp"

using namespace earshot;
using namespace earshot::status;
using test::TemporaryDirectory;

TEST_CASE("tasks are sorted by number, deleted ones and other files are ignored") {
  TemporaryDirectory root;
  root.write("tasks/s/10.json", R"({"id":"10","subject":"ten","status":"pending"})");
  root.write("tasks/s/2.json", R"({"id":"2","subject":"two","status":"completed"})");
  root.write("tasks/s/3.json", R"({"id":"3","subject":"three","status":"deleted"})");
  root.write("tasks/s/4.json", R"({"subject":"four","status":"in_progress"})");
  root.write("tasks/s/.lock", "");
  root.write("tasks/s/notes.txt", "x");
  root.write("tasks/s/5.json.tmp.1", "{");
  const TodoRead read = read_todo_list({"r", root.path()}, "s");
  REQUIRE(read.list);
  CHECK(read.list->source == "tasks");
  CHECK(read.list->todos == std::vector<earshot::Todo>{{"2", "two", "completed", "", ""},
                                                       {"4", "four", "in_progress", "", ""},
                                                       {"10", "ten", "pending", "", ""}});
  CHECK(read.list->modified_ms > 0);
  CHECK(read.list->modified.size() == std::string("2023-11-14T22:13:20.007Z").size());
  CHECK_FALSE(read.is_incomplete);
}

TEST_CASE("the newer of a todo file and the task files is the list") {
  TemporaryDirectory root;
  root.write("todos/s-agent-s.json", R"([{"content":"old way","status":"pending"}])");
  root.write("tasks/s/1.json", R"({"id":"1","subject":"new way","status":"pending"})");
  root.age("todos/s-agent-s.json", std::chrono::seconds(1000));
  CHECK(read_todo_list({"r", root.path()}, "s").list->source == "tasks");
  root.age("tasks/s/1.json", std::chrono::seconds(5000));
  root.age("tasks/s", std::chrono::seconds(5000));
  CHECK(read_todo_list({"r", root.path()}, "s").list->source == "todos");
}

TEST_CASE("an incomplete task file is reported, and the others are read") {
  TemporaryDirectory root;
  root.write("tasks/s/1.json", R"({"id":"1","subject":"whole","status":"pending"})");
  root.write("tasks/s/2.json", R"({"id":"2","subj)");
  const TodoRead read = read_todo_list({"r", root.path()}, "s");
  CHECK(read.is_incomplete);
  REQUIRE(read.list);
  CHECK(read.list->todos.size() == 1);
}

TEST_CASE("files that are too long, irregular or outside the directory are ignored") {
  TemporaryDirectory root;
  root.write("todos/s-agent-s.json", "[\"" + std::string(earshot::TodoFiles::todo_bytes_max, 'x') + "\"]");
  CHECK_FALSE(read_todo_list({"r", root.path()}, "s").list);
  REQUIRE(::mkfifo((root / "todos/f-agent-f.json").c_str(), 0600) == 0);
  CHECK_FALSE(read_todo_list({"r", root.path()}, "f").list);
  root.write("secret/1.json", R"({"id":"1","subject":"x","status":"pending"})");
  root.write("tasks/s/.keep", "");
  CHECK_FALSE(read_todo_list({"r", root.path()}, "../secret").list);
  CHECK_FALSE(read_todo_list({"r", root.path()}, "").list);
  CHECK_FALSE(read_todo_list({"r", root.path()}, "..").list);
}

TEST_CASE("at most 512 tasks of a session are kept: the lowest numbers") {
  TemporaryDirectory root;
  for (int n = 1; n <= 520; ++n)
    root.write("tasks/s/" + std::to_string(n) + ".json",
               R"({"id":")" + std::to_string(n) + R"(","subject":"t","status":"pending"})");
  const TodoRead read = read_todo_list({"r", root.path()}, "s");
  REQUIRE(read.list);
  CHECK(read.list->todos.size() == earshot::TodoFiles::todos_max);
  CHECK(read.list->todos.back().id == "512");
}

#ifdef __linux__

namespace {

std::string task(int id, const std::string& subject, const std::string& status) {
  return R"({"id":")" + std::to_string(id) + R"(","subject":")" + subject + R"(","status":")" + status +
         R"(","blocks":[],"blockedBy":[]})";
}

std::vector<std::string> contents(const StatusTracker& tracker, const std::string& session) {
  std::vector<std::string> lines;
  if (const TodoList* list = tracker.todos_of(session)) {
    for (const auto& todo : list->todos) lines.push_back(todo.content + ":" + todo.status);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("task files appear, change and are removed") {
  TrackerFixture fixture;
  std::filesystem::create_directories(fixture.root);
  fixture.tracker->start();
  fixture.tracker->transcript_changed("s", working_turn());
  const auto becomes = [&](const Lines& lines) {
    return fixture.until([&] { return contents(*fixture.tracker, "s") == lines; });
  };
  CHECK(fixture.tracker->todos_of("s") == nullptr);
  fixture.scratch.replace("root/tasks/s/1.json", task(1, "sow", "pending"));
  CHECK(becomes({"sow:pending"}));
  fixture.scratch.replace("root/tasks/s/2.json", task(2, "reap", "pending"));
  CHECK(becomes({"sow:pending", "reap:pending"}));
  fixture.scratch.replace("root/tasks/s/1.json", task(1, "sow", "completed"));
  CHECK(becomes({"sow:completed", "reap:pending"}));
  fixture.scratch.remove("root/tasks/s/1.json");
  CHECK(becomes({"reap:pending"}));
  fixture.scratch.remove("root/tasks/s");
  CHECK(fixture.until(
      [&] { return fixture.tracker->todos_of("s") && fixture.tracker->todos_of("s")->todos.empty(); }));
  fixture.scratch.replace("root/tasks/s/1.json", task(1, "again", "pending"));
  CHECK(becomes({"again:pending"}));
}

TEST_CASE("a todo file is rewritten") {
  TrackerFixture fixture;
  fixture.scratch.write("root/todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  fixture.scratch.write("root/todos/s-agent-a1.json", R"([{"content":"other","status":"pending"}])");
  fixture.tracker->start();
  fixture.tracker->transcript_changed("s", working_turn());
  REQUIRE(fixture.until([&] { return contents(*fixture.tracker, "s") == Lines{"sow:pending"}; }));
  CHECK(fixture.tracker->todos_of("s")->source == "todos");
  fixture.scratch.write("root/todos/s-agent-s.json", R"([{"content":"sow","status":"completed"}])");
  REQUIRE(fixture.until([&] { return contents(*fixture.tracker, "s") == Lines{"sow:completed"}; }));
  CHECK(std::set<std::string>(fixture.observer.todos.begin(), fixture.observer.todos.end()) ==
        std::set<std::string>{"s"});
}

TEST_CASE("an incomplete file keeps the last list and is read again without a hint") {
  ManualFixture fixture;
  fixture.root.write("todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  fixture.start();
  fixture.tracker->transcript_changed("s", finished_turn());
  REQUIRE(fixture.until([&] { return contents(*fixture.tracker, "s") == Lines{"sow:pending"}; }));
  fixture.root.write("todos/s-agent-s.json", R"([{"content":"so)");
  OpenRecorder opens(fixture.root / "todos");
  fixture.tracker->on_change(fixture.root / "todos/s-agent-s.json");
  REQUIRE(
      fixture.until([&, seen = 0U]() mutable { return (seen += opens.names().size()) >= 2; }));  // read again
  CHECK(contents(*fixture.tracker, "s") == Lines{"sow:pending"});
  fixture.root.write("todos/s-agent-s.json", R"([{"content":"reap","status":"pending"}])");
  CHECK(fixture.until([&] { return contents(*fixture.tracker, "s") == Lines{"reap:pending"}; }));
}

TEST_CASE("an unchanged list is not published again") {
  ManualFixture fixture;
  fixture.root.write("tasks/s/1.json", task(1, "sow", "pending"));
  fixture.start();
  fixture.tracker->transcript_changed("s", finished_turn());
  fixture.drain();
  CHECK(fixture.observer.todos == Lines{"s"});
  fixture.root.replace("tasks/s/1.json", task(1, "sow", "pending"));
  fixture.tracker->on_change(fixture.root / "tasks/s/1.json");
  fixture.drain();
  CHECK(fixture.observer.todos == Lines{"s"});
}

TEST_CASE("files of unknown sessions are not opened") {
  ManualFixture fixture;
  for (int n = 0; n < 500; ++n) {
    const std::string name = "old" + std::to_string(n);
    fixture.root.write("todos/" + name + "-agent-" + name + ".json",
                       R"([{"content":"x","status":"pending"}])");
  }
  fixture.root.write("todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  OpenRecorder opens(fixture.root / "todos");
  fixture.start();
  fixture.tracker->transcript_changed("s", finished_turn());
  fixture.tracker->rescan();
  fixture.drain();
  CHECK(contents(*fixture.tracker, "s") == Lines{"sow:pending"});
  for (const std::string& name : opens.names()) CHECK(name == "s-agent-s.json");
}

#endif
