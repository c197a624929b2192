#include "agents/claude_code/todo_files.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "unit/status/scratch.hpp"

using namespace earshot::status;
using earshot::Todo;

TEST_CASE("a todo file is an array of items") {
  const auto todos = parse_todos(
      R"([{"content":"Sweep","status":"completed","activeForm":"Sweeping"},)"
      R"({"content":"Mop","status":"in_progress","id":2,"priority":"high"},{"content":"Rest"},7,null])");
  REQUIRE(todos);
  CHECK(*todos == std::vector<Todo>{{"", "Sweep", "completed", "Sweeping", ""},
                                    {"2", "Mop", "in_progress", "", "high"},
                                    {"", "Rest", "pending", "", ""}});
  CHECK(parse_todos("[]")->empty());
  for (const char* text : {"", "[", R"([{"content":"Sw)", "{}", "null"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_todos(text));
  }
}

TEST_CASE("a task file is one item; its subject is the content") {
  const auto task = parse_task(
      R"({"id":"3","subject":"Oil the hinge","description":"all of them","activeForm":"Oiling","status":"in_progress",)"
      R"("owner":"","blocks":["4"],"blockedBy":[]})");
  REQUIRE(task);
  CHECK(*task == Todo{"3", "Oil the hinge", "in_progress", "Oiling", ""});
  for (const char* text : {"", "{", "{}", "[]", R"({"id":"3","status":"pending"})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_task(text));
  }
}

TEST_CASE("of todo files only a session's main list counts") {
  CHECK(session_of_todo_name("ab-cd-agent-ab-cd.json") == "ab-cd");
  CHECK(session_of_todo_name("x-agent-y-agent-x-agent-y.json") == "x-agent-y");
  for (const char* name :
       {"ab-agent-cd.json", "ab.json", "-agent-.json", "ab-agent-ab", "ab-agent-ab.json.tmp", ""}) {
    CAPTURE(name);
    CHECK(session_of_todo_name(name).empty());
  }
}

TEST_CASE("tasks are sorted by number, deleted ones dropped, other files left alone") {
  Scratch root;
  root.write("tasks/s/10.json", R"({"id":"10","subject":"ten","status":"pending"})");
  root.write("tasks/s/2.json", R"({"id":"2","subject":"two","status":"completed"})");
  root.write("tasks/s/3.json", R"({"id":"3","subject":"three","status":"deleted"})");
  root.write("tasks/s/4.json", R"({"subject":"four","status":"in_progress"})");
  root.write("tasks/s/.lock", "");
  root.write("tasks/s/notes.txt", "x");
  root.write("tasks/s/5.json.tmp.1", "{");
  const ListRead read = read_lists(root.path(), "s");
  REQUIRE(read.list);
  CHECK(read.list->source == "tasks");
  CHECK(read.list->todos == std::vector<Todo>{{"2", "two", "completed", "", ""},
                                              {"4", "four", "in_progress", "", ""},
                                              {"10", "ten", "pending", "", ""}});
  CHECK(read.list->modified_ms > 0);
  CHECK(read.list->modified.size() == std::string("2023-11-14T22:13:20.007Z").size());
  CHECK_FALSE(read.torn);
}

TEST_CASE("the newer of a todo file and the task files is the list") {
  Scratch root;
  root.write("todos/s-agent-s.json", R"([{"content":"old way","status":"pending"}])");
  root.write("tasks/s/1.json", R"({"id":"1","subject":"new way","status":"pending"})");
  root.age("todos/s-agent-s.json", 1000);
  CHECK(read_lists(root.path(), "s").list->source == "tasks");
  root.age("tasks/s/1.json", 5000);
  root.age("tasks/s", 5000);
  CHECK(read_lists(root.path(), "s").list->source == "todos");
}

TEST_CASE("a torn task file is told, and the others are there") {
  Scratch root;
  root.write("tasks/s/1.json", R"({"id":"1","subject":"whole","status":"pending"})");
  root.write("tasks/s/2.json", R"({"id":"2","subj)");
  const ListRead read = read_lists(root.path(), "s");
  CHECK(read.torn);
  REQUIRE(read.list);
  CHECK(read.list->todos.size() == 1);
}

TEST_CASE("what is too long, no file, or named from outside is left out") {
  Scratch root;
  root.write("todos/s-agent-s.json", "[\"" + std::string(list_bytes_max, 'x') + "\"]");
  CHECK_FALSE(read_lists(root.path(), "s").list);
  REQUIRE(::mkfifo(root.at("todos/f-agent-f.json").c_str(), 0600) == 0);
  CHECK_FALSE(read_lists(root.path(), "f").list);
  root.write("secret/1.json", R"({"id":"1","subject":"x","status":"pending"})");
  root.write("tasks/s/.keep", "");
  CHECK_FALSE(read_lists(root.path(), "../secret").list);
  CHECK_FALSE(read_lists(root.path(), "").list);
  CHECK_FALSE(read_lists(root.path(), "..").list);
}

TEST_CASE("at most 512 tasks of a session are kept: the lowest numbers") {
  Scratch root;
  for (int n = 1; n <= 520; ++n)
    root.write("tasks/s/" + std::to_string(n) + ".json",
               R"({"id":")" + std::to_string(n) + R"(","subject":"t","status":"pending"})");
  const ListRead read = read_lists(root.path(), "s");
  REQUIRE(read.list);
  CHECK(read.list->todos.size() == tasks_max);
  CHECK(read.list->todos.back().id == "512");
}
