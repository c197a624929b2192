#include "notifier/commands.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>

#include "base/display_text.hpp"
#include "base/file.hpp"
#include "base/help_text.hpp"
#include "base/quantities.hpp"
#include "common/client.hpp"
#include "common/format.hpp"
#include "common/notifier_health.hpp"
#include "common/output.hpp"
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

// The page of a daemon that does not state its address: where the daemon is reached. Empty: unknown.
std::string page_of(const common::DaemonAddresses& addresses) {
  for (const common::DaemonAddress& each : addresses) {
    const bool is_guess = each.address_source.starts_with("the default");
    if (each.endpoint.is_unix() || !each.unusable.empty() || is_guess) continue;
    return (each.endpoint.tls ? "https://" : "http://") + each.endpoint.authority() + "/";
  }
  return {};
}

bool has_terminal() { return static_cast<bool>(Fd(::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY))); }

// Whether the program ends with its terminal, which sends the same signal as who wants it to reload.
bool ends_with_terminal() {
  struct sigaction action {};
  const bool is_ignored = ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  return has_terminal() && !is_ignored;  // nohup
}

// Prints the problems of rules that are not taken over and returns them in one line.
std::string report_problems(const std::vector<Problem>& problems) {
  for (const Problem& each : problems) print_message(safe_text(each.text()));
  print_message("the rules are not reloaded: the earlier ones stay in use");
  std::string why = problems.front().text();
  if (problems.size() > 1) why += " (and " + std::to_string(problems.size() - 1) + " more)";
  return why;
}

struct SinkProblem {
  std::string sink, why;
  bool fatal;  // the sink is unusable
};

// Checks sinks without sending anything.
std::vector<SinkProblem> check_sinks(const Rules& rules) {
  std::vector<SinkProblem> problems;
  for (const auto& [name, sink] : rules.sinks) {
    if (!rules.is_used(name)) {
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

std::string check_json(const ReadRules& read, const std::vector<SinkProblem>& problems) {
  std::string json;
  JsonWriter writer(json);
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
    if (!rule.escalations.empty())
      writer.key("escalate").array(rule.escalations, [&](const Escalation& each) {
        writer.begin_object()
            .member("after_ms", each.after_ms)
            .array_member("sinks", each.sinks)
            .end_object();
      });
    writer.member("description", explain(rule, read.rules)).end_object();
  });
  writer.end_object();
  return json;
}

// Lines that fit the terminal.
void write_lines(std::string_view text, common::Output& out) {
  constexpr std::size_t lines_max = 1000;
  const std::size_t columns = common::is_terminal(STDOUT_FILENO) ? help_columns() : 0;
  for (const std::string& line : wrap_text(text, columns, common::charset_of_locale(), lines_max).lines)
    out.write(line + "\n");
}

void write_check(const ReadRules& read, const std::vector<SinkProblem>& problems, common::Output& out) {
  if (!read.problems.empty()) {
    for (const Problem& each : read.problems) out.write(safe_text(each.text()) + "\n");
    return;
  }
  for (const Rule& rule : read.rules.rules) {
    write_lines(explain(rule, read.rules), out);
    out.write("\n");
  }
  if (read.rules.rules.empty()) out.write("There are no rules: no notices are sent.\n\n");
  out.write("Sinks\n");
  for (const auto& [name, sink] : read.rules.sinks) write_lines("  " + explain(sink), out);
  out.write("\n");
  write_lines("Events older than " + duration_literal(common::Ms(read.rules.max_age_ms)) +
                  " cause no notices. " +
                  (read.rules.wants_text() ? "Session text is requested, as a rule uses it."
                                           : "No session text is requested: only names, times and numbers."),
              out);
  for (const SinkProblem& each : problems)
    out.write(safe_text((each.fatal ? "WRONG: sink " : "note: sink ") + each.sink + ": " + each.why) + "\n");
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
  auto rules = std::make_unique<const Rules>(std::move(read.rules));
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
  const auto start = [&] {
    return std::make_unique<Notifier>(*rules, options.daemon, client, paths, options.verbose);
  };
  std::unique_ptr<Notifier> notifier;
  std::unique_ptr<const Rules> new_rules;
  const bool had_terminal = ends_with_terminal();
  client.handle_hangup([&] {
    if (had_terminal && !has_terminal()) {  // it was closed
      std::raise(SIGTERM);
      return;
    }
    ReadRules again = load_rules(options.rules);
    if (!again.problems.empty()) return notifier->report_bad_rules(report_problems(again.problems));
    new_rules = std::make_unique<const Rules>(std::move(again.rules));
    client.interrupt();  // the daemon is asked for other events, and perhaps in another view
  });
  notifier = start();
  common::Backoff backoff;
  std::string last_message;
  const auto print_once = [&](const std::string& text) {  // failed attempts are reported once
    if (text != last_message) print_message(text);
    last_message = text;
  };
  while (true) {
    if (new_rules) {
      notifier.reset();  // saves its state, from which the next one continues
      rules = std::move(new_rules);
      notifier = start();
      print_once("reloaded the rules");
    }
    // On each attempt, as a restarted daemon may have another address and token.
    auto found = common::find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      print_once(safe_text(*why));
      if (!options.daemon.connect.empty() || !options.daemon.socket.empty()) return exit_usage;
      if (!client.pause(backoff.next_ms())) return exit_ok;
      continue;
    }
    common::DaemonAddresses addresses = std::get<common::DaemonAddresses>(std::move(found));
    notifier->set_page(page_of(addresses));
    if (!rules->wants_text()) request_meta_view(addresses);
    bool is_open = false, is_live = false;
    common::Handlers handlers;
    handlers.on_open = [&] {
      is_open = true;
      client.send(notifier->begin());
    };
    handlers.on_frame = [&](std::string_view json) {
      notifier->receive(json);
      return true;
    };
    handlers.on_idle = [&] {
      notifier->process();
      if (!is_live && notifier->live()) print_once("listening to the daemon");
      is_live = is_live || notifier->live();
    };
    const common::ConnectResult result = client.run_any(addresses, handlers);
    if (new_rules) continue;
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
  common::Output out;
  if (options.json)
    out.write_json_line(check_json(read, problems));
  else
    write_check(read, problems, out);
  if (finish(out) != exit_ok) return exit_failed;
  return exit_code;
}

// --- `earshot-notify test EVENT`: shows what the rules would send; --send sends it

namespace {

constexpr std::size_t event_bytes_max = 1 << 20;

// The daemon and the session of the sample events.
constexpr const char* sample_welcome = R"({"type":"welcome","host":"here","url":"http://127.0.0.1:7717/"})";
constexpr const char* sample_session =
    R"({"type":"session","host":"here","session":"5a3b1e00-0000-4000-8000-000000000001","directory":"-home-ada-lighthouse","project":"/home/ada/lighthouse","title":"Repair the fog signal","model":"a-model","git_branch":"main","tools":[{"call":"toolu_1","tool":"Bash"}],"usage":{"context":120000,"context_window":200000,"cost_usd":6.4}})";

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
    {"auth", "status", R"("state":"waiting","reason":"auth","source":"transcript","since":"NOW")"},
    {"status", "status",
     R"("state":"waiting","reason":"permission","detail":"approve Bash: make soak","source":"registry","since":"NOW")"},
    {"done", "status",
     R"("state":"idle","source":"registry","since":"NOW","done":{"outcome":"completed","turn":3,"turns":2,"prompted":"NOW","duration_ms":95000,"waited_ms":4000})"},
    {"turn.started", "turn.started", R"("turn":3,"prompt":"Repair the fog signal.","origin":"human")"},
    {"turn.finished", "turn.finished",
     R"("turn":3,"outcome":"completed","stop_reason":"end_turn","duration_ms":95000,"tools":7,"usage":{"input":20,"output":900,"cache_read":0,"cache_write":0})"},
    {"turn.failed", "turn.finished",
     R"("turn":3,"outcome":"failed","duration_ms":12000,"tools":2,"usage":{"input":20,"output":0,"cache_read":0,"cache_write":0})"},
    {"limits.updated", "limits.updated",
     R"("turn":3,"limit":"codex","plan":"plus","windows":[{"name":"primary","used_percent":92.5,"window_minutes":300}])"},
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
     R"("turn":3,"message":"msg_1","model":"a-model","input":20,"output":900,"cache_read":170000,"cache_write":800,"total":{"input":20,"output":900,"cache_read":170000,"cache_write":800},"cost_usd":6.4)"},
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
  for (std::size_t at; (at = fields.find("NOW")) != fields.npos;) fields.replace(at, 3, time);
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
  const auto on_action = [](const ShownNotices::Entry&) {};
  Sinks sinks({.on_done = on_done,
               .on_clicked = on_action,
               .on_focus = on_action,
               .on_shown = [](const ShownNotices&) {}},
              {});
  sinks.send(sink, {notice, sink.name});
  return result.get_future().get();
}

// What would go out, with secrets as dots.
std::string preview(const Sink& sink, const Notice& notice) {
  if (sink.kind == SinkKind::desktop) {
    std::string text = "a notice of urgency " + std::string(urgency_name(notice.urgency)) + ":";
    for (const std::string& part : {notice.title, notice.body, notice.link}) {
      for (std::size_t at = 0; at < part.size(); at = std::min(part.find('\n', at), part.size()) + 1)
        text += "\n      " + part.substr(at, std::min(part.find('\n', at), part.size()) - at);
    }
    return text + "\n";
  }
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

std::string sample_words() {
  std::string words;
  for (const Sample& each : samples) {
    words += each.name;
    words += '\n';
  }
  return words;
}

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
  for (const char* const sample : {sample_welcome, sample_session}) {
    if (const auto sample_frame = session_parser.parse(sample)) session_cache.update(*sample_frame);
  }
  session_cache.update(*frame);
  const EventContext as_event = session_cache.event_context(*frame, json, now_ms());
  const auto as_done = session_cache.done_context(*frame, as_event);  // a status may state this, too
  bool all_sent = true;
  std::size_t matched = 0;
  common::Output out;
  for (const Rule& rule : read.rules.rules) {
    const bool is_done = as_done && find_mismatch(rule, *as_done).why.empty();
    const EventContext& context = is_done ? *as_done : as_event;
    const Mismatch miss = find_mismatch(rule, context);
    if (!miss.why.empty()) {
      if (!options.json) out.write(safe_text(rule.name + ": no, " + miss.why) + "\n");
      continue;
    }
    ++matched;
    const Notice notice = RuleEngine::make_notice(rule, context, rule.sinks);
    if (options.json) {
      std::string line;
      JsonWriter writer(line);
      write_notice(writer, notice);
      out.write_json_line(line);
    } else {
      out.write(safe_text(rule.name) + ": yes\n");
    }
    const auto show = [&](const std::string& name, std::int64_t hold, std::string_view when) {
      const Sink* const sink = read.rules.sink(name);
      if (sink == nullptr) return;
      if (hold < 0) hold = rule.hold_ms_for(*sink);
      if (!options.json)
        out.write("  " + name + (hold > 0 ? " after " + duration_literal(common::Ms(hold)) : " immediately") +
                  std::string(when) + ": " + preview(*sink, notice));
      if (!options.send) return;
      out.flush();
      const Delivery delivery = send(*sink, notice);
      all_sent = all_sent && delivery.done;
      print_message(name + ": " + (delivery.done ? "sent" : "not sent: " + safe_text(delivery.why)));
    };
    for (const std::string& name : rule.sinks) show(name, -1, "");
    for (const Escalation& step : rule.escalations) {
      for (const std::string& name : step.sinks) show(name, step.after_ms, " without an answer");
    }
  }
  if (matched == 0 && !options.json) out.write("No rule matches.\n");
  return finish(out) == exit_ok && all_sent ? exit_ok : exit_failed;
}

// --- `earshot-notify why`

namespace {

std::string describe(const common::SinkHealth& sink) {
  std::string text = sink.sent_ms == 0 ? "nothing sent yet"
                                       : "sent " + format_local_clock(sink.sent_ms) +
                                             (sink.answer.empty() ? "" : ": " + sink.answer);
  if (sink.failures > 0)
    text += "; " + common::plural(static_cast<std::uint64_t>(sink.failures), "attempt") +
            " failed since, the last " + format_local_clock(sink.failed_ms) + ": " + sink.why;
  if (sink.next_ms > 0) text += "; next try " + format_local_clock(sink.next_ms);
  return text;
}

void write_health(const common::NotifierHealth& health, bool json, common::Output& out) {
  if (json) {
    std::string line;
    JsonWriter writer(line);
    writer.begin_object();
    common::write_health(writer, health);
    writer.end_object();
    return out.write_json_line(line);
  }
  if (!health.sinks.empty()) out.write("\nSinks\n");
  for (const auto& [name, sink] : health.sinks)
    out.write("  " + safe_text(name + ": " + describe(sink)) + "\n");
  if (!health.rules_problem.empty())
    out.write("\nThe rules were not reloaded: " + safe_text(health.rules_problem) + "\n");
}

}  // namespace

int why_command(const Options& options) {
  const StatePaths paths{notifier_directory(options)};
  const std::vector<std::string> lines = BoundedLog(paths.journal()).last(options.count);
  if (lines.empty()) {
    print_message("no decisions yet (" + safe_text(paths.journal()) + "): is earshot-notify running?");
    return exit_failed;
  }
  common::FrameParser parser;
  common::Output out;
  for (const std::string& line : lines) {
    if (options.json) {
      out.write_json_line(line);
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
    if (const std::int64_t next_ms = fields->integer("next_ms").value_or(0); next_ms > 0)
      text += "; next try " + format_local_clock(next_ms);
    out.write(safe_text(text) + "\n");
  }
  common::NotifierHealth health;
  if (common::read_notifier_health(paths.directory, health)) write_health(health, options.json, out);
  return finish(out);
}

}  // namespace earshot::notifier
