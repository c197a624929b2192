// session.started, once, and session.updated, on change.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

const char* place = R"("cwd":"/home/pat/mill","gitBranch":"main","version":"2.1.9")";

std::string metadata(std::string_view type, std::string_view name, std::string_view value) {
  return R"({"type":")" + std::string(type) + R"(",")" + std::string(name) + R"(":")" + std::string(value) +
         R"(","sessionId":"t"})"
         "\n";
}

TEST_CASE("session.started is emitted at the first record with a uuid, with the fields known by then") {
  Records r;
  const Feed feed({metadata("mode", "mode", "normal"), metadata("permission-mode", "permissionMode", "plan"),
                   metadata("ai-title", "aiTitle", "Mill work"), r.user("hi", place)});
  REQUIRE(feed.events().size() == 2);
  CHECK(feed.fields("session.started", {"dialect", "version", "cwd", "git_branch", "project", "title", "mode",
                                        "permission_mode", "turn"}) ==
        Lines{"claude-code 2.1.9 /home/pat/mill main /home/pat/mill Mill work normal plan 0"});
}

TEST_CASE("metadata before the first uuid makes no session.updated") {
  Records r;
  Feed feed({metadata("mode", "mode", "normal"), metadata("ai-title", "aiTitle", "Mill work")});
  CHECK(feed.events().empty());
  CHECK(feed.state().title == "Mill work");
  CHECK_FALSE(feed.state().started);
  feed.write(r.user("hi"));
  CHECK(feed.count("session.updated") == 0);
  CHECK(feed.state().started);
}

TEST_CASE("the first record of any kind with a uuid starts the session") {
  Records r;
  CHECK(Feed({r.attachment(R"({"type":"date","date":"2026-01-01"})")}).count("session.started") == 1);
  CHECK(Feed({r.system("turn_duration", R"("durationMs":1)")}).count("session.started") == 1);
}

TEST_CASE("session.started is emitted once") {
  Records r;
  const Feed feed({r.user("a", place), r.user("b", place), r.text("c", "null", place)});
  CHECK(feed.count("session.started") == 1);
  CHECK(feed.count("session.updated") == 0);
}

TEST_CASE("a later cwd is an update, the first one is the project") {
  Records r;
  const Feed feed({r.user("a"), r.user("b", R"("cwd":"/one")"), r.user("c", R"("cwd":"/one/two")"),
                   r.user("d", R"("cwd":"/one/two")")});
  CHECK(feed.fields("session.started", {"cwd", "project"}) == Lines{"- -"});
  CHECK(feed.fields("session.updated", {"cwd"}) == Lines{"/one", "/one/two"});
  CHECK(feed.state().project == "/one");
  CHECK(feed.state().cwd == "/one/two");
}

TEST_CASE("session.updated has only the fields that changed") {
  Records r;
  const Feed feed({r.user("a", place),
                   r.user("b", R"("cwd":"/home/pat/mill","gitBranch":"side","version":"2.1.9")"),
                   r.user("c", R"("cwd":"/home/pat/mill","gitBranch":"side","version":"2.2.0")")});
  CHECK(feed.fields("session.updated", {"git_branch", "version", "cwd"}) == Lines{"side - -", "- 2.2.0 -"});
}

TEST_CASE("session.updated precedes the record's own events and follows session.started") {
  Records r;
  const Feed feed(
      {r.assistant(R"({"type":"text","text":"x"})", "null",
                   R"("message":{"id":"m","model":"some-model","content":[{"type":"text","text":"x"}]})")});
  REQUIRE(feed.events().size() == 4);
  CHECK(field(feed.events()[0], "type") == "session.started");
  CHECK(field(feed.events()[1], "model") == "some-model");
  CHECK(field(feed.events()[2], "type") == "turn.started");
  CHECK(field(feed.events()[3], "type") == "message.added");
}

TEST_CASE("the first of the leading summaries names the session that this one continues") {
  Records r;
  const Feed feed({R"({"type":"summary","summary":"one","leafUuid":"leaf-1"})"
                   "\n",
                   R"({"type":"summary","summary":"two","leafUuid":"leaf-2"})"
                   "\n",
                   r.user("hi")});
  CHECK(feed.fields("session.started", {"continues", "title"}) == Lines{"leaf-1 -"});
}

TEST_CASE("a summary after other records does not set continues") {
  Records r;
  const Feed feed({metadata("mode", "mode", "normal"), r.user("hi"),
                   R"({"type":"summary","summary":"one","leafUuid":"leaf-1"})"
                   "\n"});
  CHECK(feed.fields("session.started", {"continues"}) == Lines{"-"});
  CHECK(feed.state().continues.empty());
}

// ---- titles

std::string summary(std::string_view title, std::string_view leaf) {
  return R"({"type":"summary","summary":")" + std::string(title) + R"(","leafUuid":")" + std::string(leaf) +
         "\"}\n";
}

TEST_CASE("a summary is a title only if its leaf is in this file") {
  Records r;
  const Feed feed({r.user("hi"), summary("elsewhere", "x9"), summary("here", "u1")});
  CHECK(feed.fields("session.updated", {"title"}) == Lines{"here"});
}

TEST_CASE("titles: custom over ai over summary over agent name, in any order") {
  Records r;
  const std::string agent = metadata("agent-name", "agentName", "by agent");
  const std::string by_summary = summary("by summary", "u1");
  const std::string ai = metadata("ai-title", "aiTitle", "by ai");
  const std::string custom = metadata("custom-title", "customTitle", "by hand");
  CHECK(Feed({r.user("hi"), agent, by_summary, ai, custom}).fields("session.updated", {"title"}) ==
        Lines{"by agent", "by summary", "by ai", "by hand"});
  CHECK(Feed({r.user("hi"), custom, ai, agent}).fields("session.updated", {"title"}) == Lines{"by hand"});
}

TEST_CASE("an unchanged title is no event, a different one of the same rank is") {
  Records r;
  const std::string one = metadata("custom-title", "customTitle", "one");
  const Feed feed({r.user("hi"), one, one, one, metadata("custom-title", "customTitle", "two"), one});
  CHECK(feed.fields("session.updated", {"title"}) == Lines{"one", "two", "one"});
}

// ---- model, modes

std::string by_model(Records& r, std::string_view model, std::string_view extra = "") {
  std::string message = R"("message":{"id":"m","model":")" + std::string(model) +
                        R"(","content":[{"type":"text","text":"x"}]})";
  if (!extra.empty()) message += "," + std::string(extra);
  return r.record("assistant", "", message);
}

TEST_CASE("the model is read from assistant records of the own chain, on change, never from synthetic ones") {
  Records r;
  const Feed feed({r.user("hi"), by_model(r, "big"), by_model(r, "big"), by_model(r, "<synthetic>"),
                   by_model(r, "small", R"("isSidechain":true,"parentUuid":null)"), by_model(r, "bigger")});
  CHECK(feed.fields("session.updated", {"model"}) == Lines{"big", "bigger"});
  CHECK(feed.state().model == "bigger");
}

TEST_CASE("in an agent's own file its model is the stream's") {
  Records r;
  TranscriptOptions options;
  options.own_agent = "abc";
  const Feed feed({r.user("hi", R"("isSidechain":true,"agentId":"abc")"),
                   by_model(r, "small", R"("isSidechain":true,"agentId":"abc")")},
                  options);
  CHECK(feed.fields("session.updated", {"model", "agent"}) == Lines{"small abc"});
}

TEST_CASE("the permission mode is read from its own records and from prompts, on change") {
  Records r;
  const Feed feed({r.user("a", R"("permissionMode":"default")"), r.user("b", R"("permissionMode":"default")"),
                   r.user("c", R"("permissionMode":"plan")"),
                   metadata("permission-mode", "permissionMode", "plan"),
                   metadata("permission-mode", "permissionMode", "acceptEdits"),
                   metadata("permission-mode", "permissionMode", "acceptEdits")});
  CHECK(feed.fields("session.started", {"permission_mode"}) == Lines{"default"});
  CHECK(feed.fields("session.updated", {"permission_mode"}) == Lines{"plan", "acceptEdits"});
}

TEST_CASE("the mode is emitted on change") {
  Records r;
  const Feed feed({r.user("a"), metadata("mode", "mode", "normal"), metadata("mode", "mode", "normal"),
                   metadata("mode", "mode", "fast")});
  CHECK(feed.fields("session.updated", {"mode"}) == Lines{"normal", "fast"});
}

// ---- sessions and deleted records

TEST_CASE("the first sessionId is kept, later ones change nothing") {
  Records r;
  const Feed feed({r.user("a", R"("sessionId":"first")"), r.user("b", R"("sessionId":"second")")});
  CHECK(feed.count("session.started") == 1);
  CHECK(feed.count("turn.started") == 2);
  CHECK(feed.transcript().recorded_session() == "first");
}

TEST_CASE("without lines there is no recorded session") {
  CHECK(Feed().transcript().recorded_session().empty());
}

TEST_CASE("a deleted record makes no event, session.started included") {
  Records r;
  Feed feed({r.user("gone", R"("isDeleted":true)")});
  CHECK(feed.events().empty());
  feed.write(r.user("here"));
  CHECK(feed.summary() == Lines{"turn.started 1 human here"});
  CHECK(feed.count("session.started") == 1);
}

TEST_CASE("isDeleted that is false deletes nothing") {
  Records r;
  CHECK(Feed({r.user("here", R"("isDeleted":false)")}).summary() == Lines{"turn.started 1 human here"});
}

}  // namespace
}  // namespace earshot::test
