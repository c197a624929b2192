// Todo lists: complete after every change.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

std::string todo(std::string_view content, std::string_view status) {
  return R"({"content":")" + std::string(content) + R"(","status":")" + std::string(status) + R"("})";
}

Lines lists(const Feed& feed) { return feed.fields("todo.updated", {"todos", "source"}); }

/// A TodoWrite and its ok result with these newTodos; without toolUseResult if `kept` is empty.
std::string wrote(Records& r, std::string_view id, std::string_view todos, std::string_view kept) {
  const std::string call = r.call(id, "TodoWrite", R"({"todos":)" + std::string(todos) + "}");
  return call + r.result(id, "kept",
                         kept.empty()
                             ? ""
                             : R"("toolUseResult":{"oldTodos":[],"newTodos":)" + std::string(kept) + "}");
}

TEST_CASE("a todo list is emitted at the ok result, from newTodos") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "TodoWrite", R"({"todos":[{"content":"a","status":"pending"}]})")});
  CHECK(lists(feed).empty());
  feed.write(r.result(
      "c1", "kept",
      R"("toolUseResult":{"oldTodos":[],"newTodos":[{"content":"a","status":"in_progress","activeForm":"Doing a"}]})"));
  CHECK(lists(feed) ==
        Lines{R"([{"content":"a","status":"in_progress","active_form":"Doing a"}] TodoWrite)"});
  CHECK(feed.summary().back() == "todo.updated 1 TodoWrite");
  REQUIRE(feed.state().todos.size() == 1);
  CHECK(feed.state().todos[0] == Todo{"", "a", "in_progress", "Doing a", ""});
  CHECK(feed.state().todos_time == Records::at(3));
}

TEST_CASE("without newTodos the list is that of the call") {
  Records r;
  CHECK(lists(Feed({r.user("go"), wrote(r, "c1", "[" + todo("a", "pending") + "]", "")})) ==
        Lines{R"([{"content":"a","status":"pending"}] TodoWrite)"});
}

TEST_CASE("a list whose result is an error is ignored") {
  Records r;
  CHECK(lists(Feed({r.user("go"), r.call("c1", "TodoWrite", "{\"todos\":[" + todo("a", "pending") + "]}"),
                    r.error("c1", "InputValidationError")}))
            .empty());
}

TEST_CASE("an unchanged list is no event") {
  Records r;
  const std::string one = "[" + todo("a", "pending") + "]";
  const std::string two = "[" + todo("a", "completed") + "]";
  CHECK(lists(Feed({r.user("go"), wrote(r, "c1", one, one), wrote(r, "c2", one, one),
                    wrote(r, "c3", two, two)}))
            .size() == 2);
}

TEST_CASE("a cleared list is an empty list") {
  Records r;
  const Feed feed({r.user("go"), wrote(r, "c1", "[" + todo("a", "pending") + "]", ""),
                   wrote(r, "c2", "[" + todo("a", "completed") + "]", "[]")});
  CHECK(lists(feed).back() == "[] TodoWrite");
  CHECK(feed.state().todos.empty());
}

TEST_CASE("ids and priorities of old lists are kept") {
  Records r;
  const char* old = R"([{"content":"a","status":"pending","priority":"high","id":"7"}])";
  CHECK(lists(Feed({r.user("go"), wrote(r, "c1", old, old)})) ==
        Lines{R"([{"id":"7","content":"a","status":"pending","priority":"high"}] TodoWrite)"});
}

TEST_CASE("each chain has its own list, and the state shows the own chain's") {
  Records r;
  const char* side = R"("isSidechain":true,"parentUuid":"u2")";
  const Feed feed({r.user("go"), r.user("do", R"("isSidechain":true,"parentUuid":null)"),
                   r.call("s1", "TodoWrite", "{\"todos\":[" + todo("theirs", "pending") + "]}", side),
                   r.result("s1", "kept", side), wrote(r, "c1", "[" + todo("ours", "pending") + "]", "")});
  CHECK(feed.fields("todo.updated", {"agent", "todos"}) ==
        Lines{R"(u2 [{"content":"theirs","status":"pending"}])",
              R"(- [{"content":"ours","status":"pending"}])"});
  REQUIRE(feed.state().todos.size() == 1);
  CHECK(feed.state().todos[0].content == "ours");
}

// ---- tasks

std::string created(Records& r, std::string_view call, std::string_view subject, std::string_view id) {
  const std::string line =
      r.call(call, "TaskCreate",
             R"({"subject":")" + std::string(subject) + R"(","description":"d","activeForm":"Doing )" +
                 std::string(subject) + "\"}");
  return line + r.result(call, "created",
                         id.empty() ? ""
                                    : R"("toolUseResult":{"task":{"id":")" + std::string(id) +
                                          R"(","subject":")" + std::string(subject) + "\"}}");
}
std::string updated(Records& r, std::string_view call, std::string_view id, std::string_view to) {
  const std::string line = r.call(
      call, "TaskUpdate", R"({"taskId":")" + std::string(id) + R"(","status":")" + std::string(to) + "\"}");
  return line + r.result(call, "updated",
                         R"("toolUseResult":{"success":true,"taskId":")" + std::string(id) +
                             R"(","updatedFields":["status"],"statusChange":{"from":"pending","to":")" +
                             std::string(to) + "\"}}");
}

TEST_CASE("a created task gets its id from the result") {
  Records r;
  CHECK(lists(Feed({r.user("go"), created(r, "c1", "dig", "1")})) ==
        Lines{R"([{"id":"1","content":"dig","status":"pending","active_form":"Doing dig"}] TaskCreate)"});
}

TEST_CASE("a created task without a toolUseResult has no id") {
  Records r;
  CHECK(lists(Feed({r.user("go"), created(r, "c1", "dig", "")})) ==
        Lines{R"([{"content":"dig","status":"pending","active_form":"Doing dig"}] TaskCreate)"});
}

TEST_CASE("an updated task keeps its place, a deleted one is removed") {
  Records r;
  const Feed feed({r.user("go"), created(r, "c1", "dig", "1"), created(r, "c2", "sow", "2"),
                   updated(r, "c3", "1", "in_progress"), updated(r, "c4", "1", "in_progress"),
                   updated(r, "c5", "1", "deleted")});
  const Lines told = lists(feed);
  REQUIRE(told.size() == 4);
  CHECK(
      told[2] ==
      R"([{"id":"1","content":"dig","status":"in_progress","active_form":"Doing dig"},{"id":"2","content":"sow","status":"pending","active_form":"Doing sow"}] TaskUpdate)");
  CHECK(told[3] == R"([{"id":"2","content":"sow","status":"pending","active_form":"Doing sow"}] TaskUpdate)");
}

TEST_CASE("an update that did not succeed changes nothing") {
  Records r;
  const Feed feed(
      {r.user("go"), created(r, "c1", "dig", "1"),
       r.call("c2", "TaskUpdate", R"({"taskId":"9","status":"completed"})"),
       r.result(
           "c2", "Task not found",
           R"("toolUseResult":{"success":false,"taskId":"9","updatedFields":[],"error":"Task not found"})"),
       r.call("c3", "TaskUpdate", R"({"taskId":"1","status":"completed"})"),
       r.result("c3", "no",
                R"("toolUseResult":{"success":false,"taskId":"1","updatedFields":[],"error":"locked"})")});
  CHECK(lists(feed).size() == 1);
}

TEST_CASE("a listing of tasks replaces the list") {
  Records r;
  const Feed feed(
      {r.user("go"), created(r, "c1", "dig", "1"), r.call("c2", "TaskList"),
       r.result(
           "c2", "…",
           R"("toolUseResult":{"tasks":[{"id":"3","subject":"reap","status":"completed","blockedBy":[]}]})")});
  CHECK(lists(feed).back() == R"([{"id":"3","content":"reap","status":"completed"}] TaskList)");
}

TEST_CASE("a reminder is authoritative and emitted only if it differs") {
  Records r;
  const std::string reminder =
      R"({"type":"task_reminder","itemCount":1,"content":[{"id":"1","subject":"dig","description":"d","activeForm":"Digging","status":"completed","blocks":[],"blockedBy":[]}]})";
  const Feed feed(
      {r.user("go"), created(r, "c1", "dig", "1"), r.attachment(reminder), r.attachment(reminder)});
  CHECK(lists(feed).size() == 2);
  CHECK(lists(feed).back() ==
        R"([{"id":"1","content":"dig","status":"completed","active_form":"Digging"}] task_reminder)");
}

TEST_CASE("an empty reminder without a list is no event") {
  Records r;
  CHECK(lists(Feed({r.user("go"), r.attachment(R"({"type":"task_reminder","content":[],"itemCount":0})")}))
            .empty());
}

TEST_CASE("todo.updated follows tool.finished") {
  Records r;
  const Feed feed({r.user("go"), created(r, "c1", "dig", "1")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 TaskCreate",
                                "tool.finished 1 c1 ok", "todo.updated 1 TaskCreate"});
}

}  // namespace
}  // namespace earshot::test
