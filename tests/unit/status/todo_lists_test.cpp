#include "status/todo_lists.hpp"

#include <catch2/catch.hpp>

#include "unit/status/opens.hpp"
#include "unit/status/tracker_fixture.hpp"

using namespace earshot::status;

#ifdef __linux__

namespace {

std::string task(int id, const std::string& subject, const std::string& status) {
  return R"({"id":")" + std::to_string(id) + R"(","subject":")" + subject + R"(","status":")" + status +
         R"(","blocks":[],"blockedBy":[]})";
}

std::vector<std::string> contents(const StatusTracker& board, const std::string& session) {
  std::vector<std::string> lines;
  if (const TodoList* list = board.todos_of(session)) {
    for (const auto& todo : list->todos) lines.push_back(todo.content + ":" + todo.status);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("task files that appear, change and go") {
  House house;
  std::filesystem::create_directories(house.root);
  house.board->start();
  house.board->transcript_changed("s", working_turn());
  const auto becomes = [&](const Lines& lines) {
    return house.until([&] { return contents(*house.board, "s") == lines; });
  };
  CHECK(house.board->todos_of("s") == nullptr);
  house.scratch.replace("root/tasks/s/1.json", task(1, "sow", "pending"));
  CHECK(becomes({"sow:pending"}));
  house.scratch.replace("root/tasks/s/2.json", task(2, "reap", "pending"));
  CHECK(becomes({"sow:pending", "reap:pending"}));
  house.scratch.replace("root/tasks/s/1.json", task(1, "sow", "completed"));
  CHECK(becomes({"sow:completed", "reap:pending"}));
  house.scratch.remove("root/tasks/s/1.json");
  CHECK(becomes({"reap:pending"}));
  house.scratch.remove("root/tasks/s");
  CHECK(house.until([&] { return house.board->todos_of("s") && house.board->todos_of("s")->todos.empty(); }));
  house.scratch.replace("root/tasks/s/1.json", task(1, "again", "pending"));
  CHECK(becomes({"again:pending"}));
}

TEST_CASE("a todo file that is rewritten") {
  House house;
  house.scratch.write("root/todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  house.scratch.write("root/todos/s-agent-a1.json", R"([{"content":"other","status":"pending"}])");
  house.board->start();
  house.board->transcript_changed("s", working_turn());
  REQUIRE(house.until([&] { return contents(*house.board, "s") == Lines{"sow:pending"}; }));
  CHECK(house.board->todos_of("s")->source == "todos");
  house.scratch.write("root/todos/s-agent-s.json", R"([{"content":"sow","status":"completed"}])");
  REQUIRE(house.until([&] { return contents(*house.board, "s") == Lines{"sow:completed"}; }));
  CHECK(std::set<std::string>(house.heard.todos.begin(), house.heard.todos.end()) ==
        std::set<std::string>{"s"});
}

TEST_CASE("a torn file keeps the last list and is read again without a ring") {
  QuietHouse house;
  house.root.write("todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  house.start();
  house.board->transcript_changed("s", working_turn({{"c", "Bash", "{}"}}));
  REQUIRE(house.until([&] { return contents(*house.board, "s") == Lines{"sow:pending"}; }));
  house.root.write("todos/s-agent-s.json", R"([{"content":"so)");
  Opens opens(house.root.at("todos"));
  house.board->on_change(house.root.at("todos/s-agent-s.json"));
  REQUIRE(
      house.until([&, seen = 0U]() mutable { return (seen += opens.names().size()) >= 2; }));  // read again
  CHECK(contents(*house.board, "s") == Lines{"sow:pending"});
  house.root.write("todos/s-agent-s.json", R"([{"content":"reap","status":"pending"}])");
  CHECK(house.until([&] { return contents(*house.board, "s") == Lines{"reap:pending"}; }));
}

TEST_CASE("an unchanged list is not told again") {
  QuietHouse house;
  house.root.write("tasks/s/1.json", task(1, "sow", "pending"));
  house.start();
  house.board->transcript_changed("s", working_turn({{"c", "Bash", "{}"}}));
  house.drain();
  CHECK(house.heard.todos == Lines{"s"});
  house.root.replace("tasks/s/1.json", task(1, "sow", "pending"));
  house.board->on_change(house.root.at("tasks/s/1.json"));
  house.drain();
  CHECK(house.heard.todos == Lines{"s"});
}

TEST_CASE("files of sessions that nobody knows are not even opened") {
  QuietHouse house;
  for (int n = 0; n < 500; ++n) {
    const std::string name = "old" + std::to_string(n);
    house.root.write("todos/" + name + "-agent-" + name + ".json", R"([{"content":"x","status":"pending"}])");
  }
  house.root.write("todos/s-agent-s.json", R"([{"content":"sow","status":"pending"}])");
  Opens opens(house.root.at("todos"));
  house.start();
  house.board->transcript_changed("s", working_turn({{"c", "Bash", "{}"}}));
  house.board->rescan();
  house.drain();
  CHECK(contents(*house.board, "s") == Lines{"sow:pending"});
  for (const std::string& name : opens.names()) CHECK(name == "s-agent-s.json");
}

#endif
