// `earshot-notify test EVENT`: shows what the rules would send; --send sends it.
#include <algorithm>
#include <future>
#include <iostream>

#include "base/file.hpp"
#include "base/quantities.hpp"
#include "common/format.hpp"
#include "notifier/commands.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/rules_file.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t event_bytes_max = 1 << 20;

// The session frame of the sample events.
constexpr const char* sample_session =
    R"({"type":"session","host":"here","session":"5a3b1e00-0000-4000-8000-000000000001","directory":"-home-ada-lighthouse","project":"/home/ada/lighthouse","title":"Repair the fog signal","model":"a-model","git_branch":"main","tools":[{"call":"toolu_1","tool":"Bash"}],"usage":{"cost_usd":6.4}})";

struct Sample {
  std::string_view name;
  std::string_view type;
  std::string_view fields;  // NOW is replaced by the time
};
constexpr Sample samples[] = {
    {"permission", "status",
     R"("state":"waiting","reason":"permission","detail":"approve Bash: make soak","source":"registry","since":"NOW")"},
    {"question", "status",
     R"("state":"waiting","reason":"question","detail":"Which database?","source":"registry","since":"NOW")"},
    {"plan", "status",
     R"("state":"waiting","reason":"plan","detail":"1. add an index","source":"registry","since":"NOW")"},
    {"status", "status",
     R"("state":"waiting","reason":"permission","detail":"approve Bash: make soak","source":"registry","since":"NOW")"},
    {"turn.started", "turn.started", R"("turn":3,"prompt":"Repair the fog signal.","origin":"human")"},
    {"turn.finished", "turn.finished",
     R"("turn":3,"outcome":"completed","stop_reason":"end_turn","duration_ms":95000,"tools":7,"usage":{"input":20,"output":900,"cache_read":0,"cache_write":0})"},
    {"turn.failed", "turn.finished",
     R"("turn":3,"outcome":"failed","duration_ms":12000,"tools":2,"usage":{"input":20,"output":0,"cache_read":0,"cache_write":0})"},
    {"api.failed", "api.failed", R"("turn":3,"fatal":true,"status":529,"error":"Overloaded")"},
    {"tool.invoked", "tool.invoked",
     R"("turn":3,"call":"toolu_1","tool":"Bash","input":{"command":"make soak"},"message":"msg_1")"},
    {"tool.finished", "tool.finished",
     R"("turn":3,"call":"toolu_1","tool":"Bash","outcome":"error","output":"make: *** No rule to make target 'soak'.","duration_ms":64000)"},
    {"agent.finished", "agent.finished",
     R"("turn":3,"outcome":"completed","call":"toolu_2","subagent":"a1","duration_ms":48000,"tokens":5200,"tools":9)"},
    {"task.finished", "task.finished",
     R"("turn":3,"task":"b1","outcome":"completed","summary":"the soak is over")"},
    {"usage.updated", "usage.updated",
     R"("turn":3,"message":"msg_1","total":{"input":20,"output":900,"cache_read":0,"cache_write":0},"cost_usd":6.4)"},
    {"message.added", "message.added",
     R"("turn":3,"role":"assistant","kind":"text","text":"The index is added.","message":"msg_1")"},
    {"compaction.finished", "compaction.finished",
     R"("turn":3,"kind":"full","trigger":"auto","pre_tokens":160000,"duration_ms":40000)"},
    {"todo.updated", "todo.updated", R"("turn":3,"todos":[],"source":"tool")"},
};

// The frame of a sample with the given time; empty: unknown name.
std::string sample_event(std::string_view name, std::int64_t now_ms) {
  const auto found = std::find_if(std::begin(samples), std::end(samples),
                                  [&](const Sample& each) { return each.name == name; });
  if (found == std::end(samples)) return {};
  const std::string time = format_time(now_ms);
  std::string fields(found->fields);
  if (const std::size_t at = fields.find("NOW"); at != fields.npos) fields.replace(at, 3, time);
  std::string frame = R"({"type":")" + std::string(found->type) +
                      R"(","host":"here","session":"5a3b1e00-0000-4000-8000-000000000001")";
  if (found->type != "status")
    frame +=
        R"(,"stream":"claude/-home-ada-lighthouse/5a3b1e00-0000-4000-8000-000000000001","cursor":"1.1.0000000000000001","time":")" +
        time + "\"";
  return frame + "," + fields + "}";
}

// The frame of a sample, a file or stdin. Empty: none, and an error was printed.
std::string read_frame(const std::string& event) {
  if (std::string made = sample_event(event, now_ms()); !made.empty()) return made;
  if (event == "-") {
    std::string text(event_bytes_max, '\0');  // a longer frame is cut, and then not valid
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::cin.gcount()));
    return text;
  }
  SmallFile file = read_small_file(event, event_bytes_max, Symlinks::follow);
  if (file.ok()) return std::move(file.text);
  std::string names;
  for (const Sample& each : samples) names += (names.empty() ? "" : ", ") + std::string(each.name);
  common::print_message(
      common::safe_text(event) + ": " +
      (file.is_missing() ? "no event and no file has this name; events are: " + names : file.error_text()));
  return {};
}

// Sends the notice and waits for the result.
Delivery send(const Sink& sink, const Notice& notice) {
  std::promise<Delivery> result;
  const auto on_done = [&](const std::string&, const Delivery& delivery) { result.set_value(delivery); };
  Sinks sinks({on_done, [] {}, [](const ShownNotices&) {}, [](const std::string&) {}}, {});
  sinks.send(sink, {notice, sink.name});
  return result.get_future().get();
}

// What would go out, with secrets as dots.
std::string preview(const Sink& sink, const Notice& notice) {
  if (sink.kind == SinkKind::desktop)
    return "a notice of urgency " + std::string(urgency_name(notice.urgency)) + ":\n      " + notice.title +
           "\n      " + notice.body + "\n";
  if (sink.kind == SinkKind::bell) return "BEL, to " + (sink.tty.empty() ? "the terminal" : sink.tty) + "\n";
  if (sink.kind == SinkKind::command) {
    std::string text = "runs";
    for (const std::string& argument : sink.command) text += " " + argument;
    return text + "\n      with " + notice_json(notice) + "\n";
  }
  Credentials credentials;
  credentials.url = sink.url.empty() ? "https://…/…" : sink.url;
  credentials.token = sink.token.is_set() ? "…" : "";
  credentials.secret = sink.secret.is_set() ? "…" : "";
  const auto request = make_request(sink, credentials, notice, now_ms());
  if (const auto* error = std::get_if<SecretError>(&request)) return error->why + "\n";
  const auto& web = std::get<WebhookRequest>(request);
  std::string text = "POST " + web.url + "\n";
  for (const std::string& header : web.headers)
    text +=
        "      " +
        (header.starts_with("X-Earshot-Signature") ? std::string("X-Earshot-Signature: sha256=…") : header) +
        "\n";
  for (const std::string& header : web.secret_headers) text += "      " + header + "\n";
  return text + "      " + web.body + "\n";
}

}  // namespace

int test_command(const Options& options) {
  const ReadRules read = load_rules(options.rules);
  for (const Problem& each : read.problems) common::print_message(common::safe_text(each.text()));
  if (!read.problems.empty()) return exit_usage;
  const std::string json = read_frame(options.event);
  if (json.empty()) return exit_usage;
  common::FrameParser parser, session_parser;
  const auto frame = parser.parse(json);
  if (!frame || frame->text("type").empty() || frame->text("session").empty()) {
    common::print_message(
        "that is not a frame: it must be a JSON object with `type` and `session`, as earshot tail --json "
        "prints them");
    return exit_usage;
  }
  SessionCache session_cache;
  if (const auto session_frame = session_parser.parse(sample_session)) session_cache.update(*session_frame);
  session_cache.update(*frame);
  const EventContext context = session_cache.event_context(*frame, json, now_ms());
  bool all_sent = true;
  std::size_t matched = 0;
  for (const Rule& rule : read.rules.rules) {
    const Mismatch miss = find_mismatch(rule, context);
    if (!miss.why.empty()) {
      if (!options.json) std::cout << rule.name << ": no, " << common::safe_text(miss.why) << "\n";
      continue;
    }
    ++matched;
    const Notice notice = RuleEngine::make_notice(rule, context, rule.sinks);
    if (options.json) {
      std::string line;
      JsonWriter writer(line);
      write_notice(writer, notice);
      std::cout << line << "\n";
    } else {
      std::cout << rule.name << ": yes\n";
    }
    for (const std::string& name : rule.sinks) {
      const Sink* const sink = read.rules.sink(name);
      if (sink == nullptr) continue;
      const std::int64_t hold = rule.hold_ms_for(*sink);
      if (!options.json)
        std::cout << "  " << name
                  << (hold > 0 ? " after " + duration_literal(common::Ms(hold)) : " immediately") << ": "
                  << preview(*sink, notice);
      if (!options.send) continue;
      const Delivery delivery = send(*sink, notice);
      all_sent = all_sent && delivery.done;
      common::print_message(name + ": " +
                            (delivery.done ? "sent" : "not sent: " + common::safe_text(delivery.why)));
    }
  }
  if (matched == 0 && !options.json) std::cout << "No rule matches.\n";
  return all_sent ? exit_ok : exit_failed;
}

}  // namespace earshot::notifier
