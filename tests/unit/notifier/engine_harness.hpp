// A rule engine with a simulated clock and simulated frames of a daemon.
#pragma once
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/quantities.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/rules_file.hpp"
#include "unit/support/temporary_directory.hpp"

namespace earshot::notifier::test {

using earshot::test::TemporaryDirectory;

constexpr std::int64_t noon_ms = 1'774'872'000'000;  // 2026-03-30T12:00:00Z, a Monday

inline Rules rules_of(const std::string& text) {
  ReadRules read = read_rules(text, "notify.toml", "/home/ada");
  std::string problems;
  for (const Problem& each : read.problems) problems += each.text() + "\n";
  INFO(problems);
  REQUIRE(read.problems.empty());
  return std::move(read.rules);
}

inline LocalTime utc(std::int64_t ms) {
  const std::int64_t minutes = ms / 60'000;
  return {static_cast<int>((minutes / 1440 + 3) % 7),
          static_cast<int>(minutes % 1440)};  // 1970 began on a Thursday
}

inline Notice sample_notice(const std::string& title, const std::string& body) {
  Notice notice;
  notice.id = "0123";
  notice.rule = "waiting";
  notice.title = title;
  notice.body = body;
  return notice;
}

/// Owns the engine and its rules and collects its output. restart() creates a new engine with the saved
/// state.
class EngineHarness {
 public:
  explicit EngineHarness(const std::string& rules = {}, std::int64_t now = noon_ms, std::int64_t since_ms = 0)
      : now_ms(now), rules_(rules_of(rules)) {
    EngineState state;
    state.since_ms = since_ms;
    engine_ = std::make_unique<RuleEngine>(rules_, utc, std::move(state));
  }

  void restart() {
    EngineState state = engine_->state();
    engine_ = std::make_unique<RuleEngine>(rules_, utc, std::move(state));
    engine_->resume(now_ms);
  }
  void receive(const std::string& json) {
    const auto fields = parser_.parse(json);
    REQUIRE(fields);
    engine_->handle(*fields, json, now_ms);
    drain();
  }
  void begin() { engine_->begin(); }
  void caught_up() {
    engine_->caught_up(now_ms);
    drain();
  }
  /// Advances the clock and calls tick() when due.
  void advance(std::int64_t ms) {
    const std::int64_t until = now_ms + ms;
    while (const auto next = engine_->next_ms()) {
      if (*next > until) break;
      now_ms = std::max(now_ms, *next);
      engine_->tick(now_ms);
      drain();
    }
    now_ms = until;
  }

  /// The daemon's answer to the engine that asks for the figures of session s.
  void figures(const std::string& usage) {
    static_cast<void>(engine_->take_figures_wanted(now_ms));
    answer_figures(usage);
  }
  void answer_figures(const std::string& usage) {
    const auto frame = parser_.parse(R"({"session":"s","usage":{)" + usage + "}}");
    REQUIRE(frame);
    engine_->apply_figures("s", *frame, now_ms);
    drain();
  }

  /// A wait that is not refined.
  void set_waiting(const std::string& session, const std::string& reason = "permission",
                   std::int64_t since = 0) {
    set_status(session, "waiting", reason, since);
    advance(RuleEngine::refine_ms);
  }
  void set_status(const std::string& session, const std::string& state, const std::string& reason = {},
                  std::int64_t since = 0) {
    receive(R"({"type":"status","host":"h","session":")" + session + R"(","state":")" + state + "\"" +
            (reason.empty() ? "" : R"(,"reason":")" + reason + "\"") + R"(,"source":"registry","since":")" +
            format_time(since == 0 ? now_ms : since) + R"("})");
  }
  std::string event(const std::string& session, const std::string& type, int turn,
                    const std::string& more = {}, std::int64_t at = 0) {
    return R"({"type":")" + type + R"(","host":"h","stream":"c/p/)" + session + R"(","session":")" + session +
           R"(","cursor":"1.1.0000000000000001","time":")" + format_time(at == 0 ? now_ms : at) +
           R"(","turn":)" + std::to_string(turn) + more + "}";
  }
  /// The end of a turn that a prompt began, and what it led to.
  void finish_turn(const std::string& session, int turn, std::int64_t took_ms = 60'000,
                   const std::string& outcome = "completed", std::int64_t at = 0) {
    receive(event(
        session, "turn.finished", turn,
        R"(,"outcome":")" + outcome + R"(","duration_ms":)" + std::to_string(took_ms) + R"(,"tools":2)", at));
    set_done(session, turn, took_ms, outcome, at);
  }
  void set_done(const std::string& session, int turn, std::int64_t took_ms = 60'000,
                const std::string& outcome = "completed", std::int64_t at = 0, const std::string& more = {}) {
    const std::int64_t end_ms = at == 0 ? now_ms : at;
    receive(R"({"type":"status","host":"h","session":")" + session +
            R"(","state":"idle","source":"transcript","since":")" + format_time(end_ms) +
            R"(","done":{"outcome":")" + outcome + R"(","turn":)" + std::to_string(turn) +
            R"(,"turns":1,"prompted":")" + format_time(end_ms - took_ms) + R"(","duration_ms":)" +
            std::to_string(took_ms) + R"(,"waited_ms":0)" + more + "}}");
  }
  void finish_tool(const std::string& session, const std::string& call, const std::string& more = {}) {
    receive(event(session, "tool.finished", 1,
                  R"(,"call":")" + call + R"(","tool":"Bash","outcome":"ok")" + more));
  }
  void start_turn(const std::string& session, int turn) {
    receive(event(session, "turn.started", turn, R"(,"origin":"human")"));
  }
  void set_project(const std::string& session, const std::string& path) {
    receive(R"({"type":"session","host":"h","session":")" + session + R"(","project":")" + path +
            R"(","directory":"d","cursors":[]})");
  }

  std::vector<std::string> titles() {
    std::vector<std::string> out;
    for (const Notice& each : notices) out.push_back(each.title);
    return out;
  }
  std::string outcomes() {
    std::string out;
    for (const Decision& each : decisions) out += (out.empty() ? "" : " ") + each.outcome;
    return out;
  }
  void clear() {
    notices.clear();
    refined.clear();
    closed.clear();
    decisions.clear();
  }
  const EngineState& state() const { return engine_->state(); }
  RuleEngine& engine() { return *engine_; }
  const Rules& rules() const { return rules_; }

  std::int64_t now_ms;
  std::vector<Notice> notices, refined;
  std::vector<Close> closed;
  std::vector<Decision> decisions;

 private:
  void drain() {
    for (Notice& each : engine_->take_notices()) notices.push_back(std::move(each));
    for (Notice& each : engine_->take_refinements()) refined.push_back(std::move(each));
    for (Close& each : engine_->take_closings()) closed.push_back(std::move(each));
    for (Decision& each : engine_->take_decisions()) decisions.push_back(std::move(each));
  }
  Rules rules_;
  common::FrameParser parser_;
  std::unique_ptr<RuleEngine> engine_;
};

}  // namespace earshot::notifier::test
