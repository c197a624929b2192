#include "notifier/rules_file.hpp"

#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

// All problems, one per line.
std::string problems(const std::string& text) {
  std::string all;
  for (const Problem& each : read_rules(text, "n.toml", "/home/ada").problems) all += each.text() + "\n";
  return all;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

std::vector<std::string> names(const Rules& rules) {
  std::vector<std::string> out;
  for (const Rule& each : rules.rules) out.push_back(each.name);
  return out;
}

}  // namespace

TEST_CASE("by default the built-in rules notify the desktop") {
  const Rules rules = rules_of("");
  CHECK(names(rules) == std::vector<std::string>{"waiting", "finished", "failed", "limit"});
  for (const Rule& each : rules.rules) {
    CHECK(each.sinks == std::vector<std::string>{"desktop"});
    CHECK(each.view == View::meta);
  }
  CHECK_FALSE(rules.wants_text());
  CHECK(rules.max_age_ms == 300'000);
}

TEST_CASE("waiting is sent immediately to sinks that can retract, after 5 s to others") {
  const Rules rules = rules_of(
      "sinks = [\"desktop\", \"phone\"]\n[sink.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.sh/t\"\n");
  const Rule& waiting = rules.rules[0];
  CHECK(waiting.sinks.size() == 2);
  CHECK(waiting.hold_ms_for(*rules.sink("desktop")) == 0);
  CHECK(waiting.hold_ms_for(*rules.sink("phone")) == 5000);
  CHECK(rules.rules[1].hold_ms_for(*rules.sink("desktop")) == 5000);
}

TEST_CASE("a rule replaces or disables the built-in rule of its name") {
  CHECK(names(rules_of("[[rule]]\nname = \"finished\"\non = \"turn.finished\"\n")) ==
        std::vector<std::string>{"waiting", "failed", "limit", "finished"});
  CHECK(names(rules_of("[[rule]]\nname = \"finished\"\nenabled = false\n")) ==
        std::vector<std::string>{"waiting", "failed", "limit"});
  CHECK(names(rules_of("defaults = false\n")).empty());
}

TEST_CASE("all keys of a rule are read") {
  const Rules rules = rules_of(R"(
max_age = "10m"
quiet = "22:00-07:00"
defaults = false
[[rule]]
name = "all"
on = ["tool", "agent.finished"]
project = "api*"
host = ["dev7", "dev8"]
session = "2eaa"
tool = "Bash"
outcome = ["error", "failed"]
duration = ">1m"
cost = ">2.50"
text = "(?i)segfault"
subagents = true
sinks = "bell"
title = "{tool}: {output}"
body = "{duration}"
urgency = "low"
hold = "0"
throttle = "10m"
throttle_per = "project"
once = "turn"
quiet = ["sat,sun", "12:00-13:00"]
after_quiet = true
view = "full"
)");
  REQUIRE(rules.rules.size() == 1);
  const Rule& rule = rules.rules[0];
  CHECK(rule.on == std::vector<std::string>{"tool.*", "agent.finished"});
  CHECK(rule.conditions.size() == 8);
  CHECK(rule.subagents);
  CHECK(rule.sinks == std::vector<std::string>{"bell"});
  CHECK(rule.urgency == Urgency::low);
  CHECK(rule.hold_ms == 0);
  CHECK(rule.throttle_ms == 600'000);
  CHECK(rule.per == Rule::Per::project);
  CHECK(rule.once == Rule::Once::turn);
  CHECK(rule.quiet.size() == 2);
  CHECK(rule.after_quiet);
  CHECK(rule.line == 5);
  CHECK(rules.max_age_ms == 600'000);
  CHECK(rules.wants_text());
  const auto types = rules.types();
  CHECK(std::find(types.begin(), types.end(), "agent.finished") != types.end());
}

TEST_CASE("problems have a line and list the allowed values") {
  struct Row {
    std::string text;
    int line;
    const char* what;
  };
  // In a rule with a name, whose next line is 3; in a table [sink.x].
  const auto rule = [](const std::string& lines) { return "[[rule]]\nname = \"a\"\n" + lines; };
  const auto turn = [&](const std::string& line) { return rule("on = \"turn\"\n" + line); };
  const auto sink = [](const std::string& lines) { return "[sink.x]\n" + lines; };
  const Row rows[] = {
      {rule("on = \"turn.finished\"\ntitel = \"x\""), 4, "did you mean `title`?"},
      {rule("on = \"turn.finish\""), 3, "did you mean \"turn.finished\"?"},
      {rule("status = \"wating\""), 3, "did you mean \"waiting\"?"},
      {turn("duration = \"30\""), 4, "such as \">30s\", not \"30\""},
      {turn("duration = 30"), 4, "`duration` is a string, not an integer"},
      {turn("cost = \">x\""), 4, "such as \">2.50\""},
      {turn("used = \"most\""), 4, "such as \">=90\""},
      {turn("text = \"(\""), 4, "not a valid regular expression"},
      {turn("urgency = \"high\""), 4, "\"low\", \"normal\" or \"critical\""},
      {turn("quiet = \"22-7\""), 4, "22:00-07:00"},
      {turn("hold = \"soon\""), 4, "\"1h30m\", not \"soon\""},
      {turn("title = \"{nme}\""), 4, "did you mean {name}?"},
      {turn("title = \"{name\""), 4, "a } is missing"},
      {turn("title = \"{prompt}\""), 4, "add view = \"full\""},
      {turn("sinks = \"desktpo\""), 1, "did you mean \"desktop\"?"},
      {"[[rule]]\non = \"turn\"", 1, "a rule needs a `name`"},
      {rule(""), 1, "a rule needs `on` or `status`"},
      {rule("on = [\"status\", \"turn.*\"]"), 1, "write two rules"},
      {rule("on = \"turn.finished\"\nstatus = \"waiting\""), 1, "events do not have them"},
      {turn(rule("on = \"turn\"")), 4, "two rules named a"},
      {"defalts = false", 1, "did you mean `defaults`?"},
      {"max_age = \"2d\"", 1, "from 1s to 1d"},
      {"rule = 3", 1, "[[rule]]"},
      {"a = = b", 1, ""},
      {sink("kind = \"slak\""), 2, "not \"slak\""},
      {sink("url = \"https://a\""), 1, "has no `kind`"},
      {sink("kind = \"slack\""), 1, "exactly one of `url`, `url_file` and `url_env`"},
      {sink("kind = \"slack\"\nurl = \"ftp://a\""), 1, "https://"},
      {sink("kind = \"json\"\nurl = \"https://ada:secret@a/\""), 1, "a password"},
      {sink("kind = \"slack\"\nurl = \"https://a\"\ntoken = \"abc\""), 4, "unknown key `token`"},
      {sink("kind = \"gotify\"\nurl = \"https://a\""), 1, "token_file"},
      {sink("kind = \"command\"\ncommand = \"rm -rf\""), 3, "there is no shell"},
      {sink("kind = \"command\"\ncommand = [\"a\"]\ntimeout = \"5m\""), 4, "from 100ms to 1m"},
      {turn("escalate = \"2m\""), 4, "`escalate` is a table, { after"},
      {turn("escalate = { after = \"2m\" }"), 4, "needs `after` and `sinks`"},
      {turn("escalate = { after = \"2m\", sinks = [] }"), 4, "needs `after` and `sinks`"},
      {turn("escalate = { after = 2, sinks = [\"bell\"] }"), 4, "`after` is a duration in quotes"},
      {turn("escalate = { aftr = \"2m\", sinks = [\"bell\"] }"), 4, "did you mean `after`?"},
      {turn("escalate = { after = \"2m\", sinks = [\"bel\"] }"), 1, "did you mean \"bell\"?"},
      {turn("escalate = { after = \"0\", sinks = [\"bell\"] }"), 1, "`escalate` has no time"},
      {turn("escalate = { after = \"2m\", sinks = [\"desktop\"] }"), 1, "the sink desktop a second time"},
      {turn("escalate = [{ after = \"2m\", sinks = \"bell\" }, { after = \"3m\", sinks = \"bell\" }]"), 1,
       "the sink bell a second time"},
      {turn("context = \"full\""), 4, "such as \">80%\""},
      {turn("context = \">80%\"\nonce = \"session\""), 1, "omit `once`"},
      {"view = \"all\"", 1, "\"full\" or \"meta\", not \"all\""},
      {"[sink.\"a/b\"]\nkind = \"bell\"", 1, "letters, digits"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const std::string problem_text = problems(row.text);
    CHECK(has(problem_text, "n.toml:" + std::to_string(row.line) + ": "));
    CHECK(has(problem_text, row.what));
  }
}

TEST_CASE("all problems are reported in the order of lines") {
  const std::string problem_text =
      problems("[[rule]]\nname = \"a\"\non = \"turn\"\nfoo = 1\n[sink.x]\nkind = \"nope\"\nmax_age = 3\n");
  CHECK(has(problem_text, "n.toml:4: "));
  CHECK(problem_text.find("n.toml:4:") < problem_text.find("n.toml:6:"));
}

TEST_CASE("a rule is explained") {
  const Rules rules = rules_of("");
  const std::string waiting = explain(rules.rules[0], rules);
  CHECK(has(waiting, "the status is waiting, the reason is permission, question, plan or auth"));
  CHECK(has(waiting, "notify desktop immediately; close when answered"));
  CHECK(has(waiting, "without text"));
  const std::string finished = explain(rules.rules[1], rules);
  CHECK(has(finished, "it took more than 30s"));
  CHECK(has(finished, "after 5s unless answered"));
}

TEST_CASE("an escalation is read and explained, its sinks are used") {
  const Rules rules = rules_of(
      "[sink.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.sh/t\"\n[[rule]]\nname = \"waiting\"\nstatus = "
      "\"waiting\"\nescalate = [{ after = \"10m\", sinks = \"bell\" }, { after = \"2m\", sinks = [\"phone\"] "
      "}]\n");
  const Rule& rule = rules.rules.back();
  REQUIRE(rule.escalations.size() == 2);
  CHECK(rule.escalations[0].after_ms == 120'000);
  CHECK(rules.is_used("phone"));
  CHECK(rules.is_used("bell"));
  CHECK_FALSE(rules.is_used("none"));
  const std::string text = explain(rule, rules);
  CHECK(has(text, "notify phone if it is unanswered 2m after it was sent"));
  CHECK(has(text, "notify bell if it is unanswered 10m after it was sent"));
}

TEST_CASE("the view of the file is that of rules without one, the built-in ones included") {
  const Rules rules = rules_of(
      "view = \"full\"\n[[rule]]\nname = \"a\"\non = \"turn\"\ntitle = \"{prompt}\"\n[[rule]]\nname = "
      "\"b\"\non = "
      "\"turn\"\nview = \"meta\"\n");
  for (const Rule& each : rules.rules) CHECK(each.view == (each.name == "b" ? View::meta : View::full));
  CHECK(rules.wants_text());
}

TEST_CASE("a condition on the context applies to usage.updated, and needs to know of compactions") {
  const Rules rules = rules_of("[[rule]]\nname = \"a\"\ncontext = \">80%\"\n");
  CHECK(rules.rules.back().on == std::vector<std::string>{"usage.updated"});
  const auto types = rules.types();
  CHECK(std::find(types.begin(), types.end(), "compaction.finished") != types.end());
  CHECK(has(explain(rules.rules.back(), rules), "more than 80% of the context is used"));
  CHECK(has(explain(rules.rules.back(), rules), "again after its context was compacted"));
  CHECK_FALSE(rules_of("").uses_context());
}

TEST_CASE("the commented example of the built-in rules is valid") {
  std::string text = default_rules_text;
  const std::size_t begin = text.find("#[[rule]]");
  REQUIRE(begin != text.npos);
  text = text.substr(begin, text.find("\n\n", begin) - begin);
  std::string rule;
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1)
    rule += text.substr(at + 1, std::min(text.find('\n', at), text.size()) - at - 1) + '\n';
  const Rules rules = rules_of(rule);
  CHECK(names(rules).back() == "context");
  CHECK(rules.uses_context());
}

TEST_CASE("a text condition does not change the view of a rule") {
  const Rules rules = rules_of("[[rule]]\nname = \"a\"\non = \"message\"\ntext = \"done\"\n");
  CHECK(rules.wants_text());
  CHECK(rules.rules.back().view == View::meta);
}

TEST_CASE("paths of secrets may begin with ~/") {
  const Rules rules =
      rules_of("[sink.x]\nkind = \"json\"\nurl_file = \"~/hook\"\nsecret_env = \"HOOK_KEY\"\n");
  CHECK(rules.sink("x")->url_source.file == "/home/ada/hook");
  CHECK(rules.sink("x")->secret.variable == "HOOK_KEY");
}
