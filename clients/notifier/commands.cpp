#include "notifier/commands.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <iostream>

#include "base/file.hpp"
#include "base/quantities.hpp"
#include "common/client.hpp"
#include "common/format.hpp"
#include "notifier/notifier.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/rules_file.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {
namespace {

using common::print_message;
using common::safe_text;

// Without a rule that uses text the daemon is asked to send none.
void request_meta_view(common::DaemonAddresses& addresses) {
  for (common::DaemonAddress& address : addresses) address.endpoint.path += "?view=meta";
}

struct SinkProblem {
  std::string sink, why;
  bool fatal;  // the sink is unusable
};

// Checks sinks without sending anything.
std::vector<SinkProblem> check_sinks(const Rules& rules) {
  std::vector<SinkProblem> problems;
  for (const auto& [name, sink] : rules.sinks) {
    const bool used = std::any_of(rules.rules.begin(), rules.rules.end(), [&](const Rule& rule) {
      return std::find(rule.sinks.begin(), rule.sinks.end(), name) != rule.sinks.end();
    });
    if (!used) {
      if (sink.line > 0) problems.push_back({name, "no rule uses it", false});
      continue;
    }
    const auto keys = read_credentials(sink);
    if (const auto* error = std::get_if<SecretError>(&keys)) problems.push_back({name, error->why, true});
    if (const auto* read = std::get_if<Credentials>(&keys)) {
      const bool is_secret = !read->token.empty() || !read->secret.empty() || sink.url_source.is_set();
      const bool is_private_target = read->url.starts_with("http://127.") ||
                                     read->url.starts_with("http://localhost") ||
                                     read->url.starts_with("http://[::1]");
      if (is_secret && read->url.starts_with("http://") && !is_private_target)
        problems.push_back({name, "the secret is sent unencrypted: use https://", false});
    }
    struct stat status {};
    if (!sink.ca_file.empty() && ::stat(sink.ca_file.c_str(), &status) != 0)
      problems.push_back({name, sink.ca_file + ": No such file or directory", true});
  }
  return problems;
}

void print_json(const ReadRules& read, const std::vector<SinkProblem>& problems) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().member("good", read.problems.empty());
  writer.key("problems").array(read.problems, [&](const Problem& each) {
    writer.begin_object()
        .member("file", each.file)
        .member("line", each.line)
        .member("why", each.why)
        .end_object();
  });
  writer.key("sinks").array(problems, [&](const SinkProblem& each) {
    writer.begin_object().member("sink", each.sink).member("why", each.why).member("fatal", each.fatal);
    writer.end_object();
  });
  writer.key("rules").array(read.rules.rules, [&](const Rule& rule) {
    writer.begin_object().member("name", rule.name).member("file", rule.file).member("line", rule.line);
    writer.array_member("on", rule.on).array_member("sinks", rule.sinks);
    writer.member("view", rule.view == View::full ? "full" : "meta");
    writer.member("description", explain(rule, read.rules)).end_object();
  });
  writer.end_object();
  std::cout << out << "\n";
}

}  // namespace

std::string notifier_directory(const Options& options) {
  return options.daemon.state_directory() + "/notify";
}

int run_command(const Options& options) {
  ReadRules read = load_rules(options.rules);
  for (const Problem& each : read.problems) print_message(safe_text(each.text()));
  if (!read.problems.empty()) {
    print_message("the rules have errors; `earshot-notify check` validates them without starting");
    return exit_usage;
  }
  const Rules rules = std::move(read.rules);
  const StatePaths paths{notifier_directory(options)};
  if (const std::string why = make_private_directory(paths.directory); !why.empty()) {
    print_message("cannot create " + safe_text(why));
    return exit_failed;
  }
  const FileLock lock = lock_file(paths.lock());
  if (!lock.fd && lock.error != EWOULDBLOCK) {
    print_message("cannot lock " + safe_text(paths.lock()) + ": " + std::strerror(lock.error));
    return exit_failed;
  }
  if (!lock.fd) {
    print_message("another earshot-notify runs already with " + safe_text(paths.directory) +
                  ": two would send each notice twice");
    return exit_failed;
  }
  remove_unfinished_files(paths.directory);
  common::Client client;
  Notifier notifier(rules, options.daemon, client, paths, options.verbose);
  common::Backoff backoff;
  std::string last_message;
  const auto print_once = [&](const std::string& text) {  // failed attempts are reported once
    if (text != last_message) print_message(text);
    last_message = text;
  };
  while (true) {
    // On each attempt, as a restarted daemon may have another address and token.
    auto found = common::find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      print_once(safe_text(*why));
      if (!options.daemon.connect.empty() || !options.daemon.socket.empty()) return exit_usage;
      if (!client.pause(backoff.next_ms())) return exit_ok;
      continue;
    }
    common::DaemonAddresses addresses = std::get<common::DaemonAddresses>(std::move(found));
    if (!rules.wants_text()) request_meta_view(addresses);
    bool is_open = false, is_live = false;
    common::Handlers handlers;
    handlers.on_open = [&] {
      is_open = true;
      client.send(notifier.begin());
    };
    handlers.on_frame = [&](std::string_view json) {
      notifier.receive(json);
      return true;
    };
    handlers.on_idle = [&] {
      notifier.process();
      if (!is_live && notifier.live()) print_once("listening to the daemon");
      is_live = is_live || notifier.live();
    };
    const common::ConnectResult result = client.run_any(addresses, handlers);
    if (result.last().end_reason == common::EndReason::stopped) return exit_ok;
    if (is_open) {
      backoff.reset();
      print_once("lost the daemon (" + safe_text(result.last().text) + "); reconnecting");
    } else {
      print_once(format_connect_error(result, addresses) + "\n  Retrying until it is available.");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

int check_command(const Options& options) {
  const ReadRules read = load_rules(options.rules);
  const std::vector<SinkProblem> problems =
      read.problems.empty() ? check_sinks(read.rules) : std::vector<SinkProblem>{};
  const bool bad =
      std::any_of(problems.begin(), problems.end(), [](const SinkProblem& each) { return each.fatal; });
  const int exit_code = !read.problems.empty() ? exit_usage : bad ? exit_failed : exit_ok;
  if (options.json) {
    print_json(read, problems);
    return exit_code;
  }
  if (!read.problems.empty()) {
    for (const Problem& each : read.problems) std::cout << safe_text(each.text()) << "\n";
    return exit_code;
  }
  for (const Rule& rule : read.rules.rules) std::cout << explain(rule, read.rules) << "\n";
  if (read.rules.rules.empty()) std::cout << "There are no rules: no notices are sent.\n\n";
  std::cout << "Sinks\n";
  for (const auto& [name, sink] : read.rules.sinks) std::cout << "  " << explain(sink);
  std::cout << "\nEvents older than " << duration_literal(common::Ms(read.rules.max_age_ms))
            << " cause no notices. "
            << (read.rules.wants_text() ? "Session text is requested, as a rule uses it.\n"
                                        : "No session text is requested: only names, times and numbers.\n");
  for (const SinkProblem& each : problems)
    std::cout << (each.fatal ? "WRONG: " : "note: ") << "sink " << each.sink << ": " << safe_text(each.why)
              << "\n";
  return exit_code;
}

// --- `earshot-notify test EVENT`: shows what the rules would send; --send sends it

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
  print_message(
      safe_text(event) + ": " +
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
  for (const Problem& each : read.problems) print_message(safe_text(each.text()));
  if (!read.problems.empty()) return exit_usage;
  const std::string json = read_frame(options.event);
  if (json.empty()) return exit_usage;
  common::FrameParser parser, session_parser;
  const auto frame = parser.parse(json);
  if (!frame || frame->text("type").empty() || frame->text("session").empty()) {
    print_message(
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
      if (!options.json) std::cout << rule.name << ": no, " << safe_text(miss.why) << "\n";
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
      print_message(name + ": " + (delivery.done ? "sent" : "not sent: " + safe_text(delivery.why)));
    }
  }
  if (matched == 0 && !options.json) std::cout << "No rule matches.\n";
  return all_sent ? exit_ok : exit_failed;
}

// --- `earshot-notify why`

int why_command(const Options& options) {
  const StatePaths paths{notifier_directory(options)};
  const std::vector<std::string> lines = BoundedLog(paths.journal()).last(options.count);
  if (lines.empty()) {
    print_message("no decisions yet (" + safe_text(paths.journal()) + "): is earshot-notify running?");
    return exit_failed;
  }
  common::FrameParser parser;
  for (const std::string& line : lines) {
    if (options.json) {
      std::cout << to_display_json(line) << "\n";
      continue;
    }
    const auto fields = parser.parse(line);
    if (!fields) continue;
    std::string text = format_local_clock(fields->integer("at_ms").value_or(0)) + " ";
    std::string outcome(fields->text("decision"));
    outcome.resize(std::max<std::size_t>(outcome.size(), 11), ' ');
    text += outcome + " " + std::string(fields->text("rule"));
    const std::string_view project = fields->text("project");
    if (!project.empty()) text += " · " + std::string(common::last_component(project));
    if (!fields->text("session").empty())
      text += " · " + std::string(common::short_id(fields->text("session")));
    if (!fields->text("title").empty()) text += " “" + std::string(fields->text("title")) + "”";
    if (!fields->text("why").empty()) text += " — " + std::string(fields->text("why"));
    std::cout << safe_text(text) << "\n";
  }
  return exit_ok;
}

}  // namespace earshot::notifier
