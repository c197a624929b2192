// `earshot-notify test EVENT`: shows what the rules would send; --send sends it.
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <sstream>

#include "base/quantities.hpp"
#include "common/diagnostics.hpp"
#include "common/format.hpp"
#include "notifier/command.hpp"
#include "notifier/commands.hpp"
#include "notifier/desktop.hpp"
#include "notifier/http_sender.hpp"
#include "notifier/payload.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/rules_file.hpp"
#include "notifier/sample_events.hpp"
#include "notifier/session_cache.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t event_bytes_max = 1 << 20;

// The session frame of the sample events.
constexpr const char* sample_session =
    R"({"type":"session","host":"here","session":"5a3b1e00-0000-4000-8000-000000000001","directory":"-home-ada-lighthouse","project":"/home/ada/lighthouse","title":"Repair the fog signal","model":"a-model","git_branch":"main","tools":[{"call":"toolu_1","tool":"Bash"}],"usage":{"cost_usd":6.4}})";

// The frame of a sample, a file or stdin. Empty: none, and an error was printed.
std::string read_frame(const std::string& event) {
  if (std::string made = sample_event(event, now_ms()); !made.empty()) return made;
  std::ostringstream text;
  std::ifstream file;
  if (event == "-") {
    text << std::cin.rdbuf();
  } else {
    file.open(event, std::ios::binary);
    if (file) text << file.rdbuf();
  }
  std::string json = text.str();
  if (event != "-" && !file) {
    std::string names;
    for (const std::string_view each : sample_names())
      names += (names.empty() ? "" : ", ") + std::string(each);
    common::print_message("no event and no file is named " + common::safe_text(event) +
                          "; events are: " + names);
    return {};
  }
  if (json.size() > event_bytes_max) {
    common::print_message("the frame is longer than 1 MiB");
    return {};
  }
  return json;
}

// Sends one notice to one sink and waits for the result.
class SyncSender {
 public:
  Delivery send(const Sink& sink, const Notice& notice) {
    if (sink.kind == SinkKind::command) return run_command(sink, notice);
    if (sink.kind == SinkKind::bell) return write_bell(sink);
    QueuedNotice queued;
    queued.notice = notice;
    queued.sink = sink.name;
    const auto done = [this](const std::string&, const Delivery& delivery) {
      const std::lock_guard lock(mutex_);
      delivery_ = delivery;
      wake_.notify_one();
    };
    std::unique_ptr<Desktop> desktop;
    std::unique_ptr<HttpSender> sender;
    if (sink.kind == SinkKind::desktop) {
      Desktop::Callbacks callbacks{done, [] {}, [](const ShownNotices&) {}, [](const std::string&) {}};
      desktop = Desktop::make(std::move(callbacks), {});
      desktop->show(queued);
    } else {
      const auto credentials = read_credentials(sink);
      if (const auto* error = std::get_if<SecretError>(&credentials)) return {.why = error->why};
      auto request = make_request(sink, std::get<Credentials>(credentials), notice, now_ms());
      if (const auto* error = std::get_if<SecretError>(&request)) return {.why = error->why};
      sender = std::make_unique<HttpSender>(done);
      sender->send(queued.key(), std::get<WebhookRequest>(std::move(request)));
    }
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return delivery_.has_value(); });
    return *std::exchange(delivery_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Delivery> delivery_;
};

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
  const bool is_session = frame->text("type") == "session";
  const EventContext context = is_session ? session_cache.status_context(*frame, json, now_ms())
                                          : session_cache.event_context(*frame, json, now_ms());
  SyncSender sender;
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
      append_notice(line, notice);
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
      const Delivery delivery = sender.send(*sink, notice);
      all_sent = all_sent && delivery.done;
      common::print_message(name + ": " +
                            (delivery.done ? "sent" : "not sent: " + common::safe_text(delivery.why)));
    }
  }
  if (matched == 0 && !options.json) std::cout << "No rule matches.\n";
  return all_sent ? exit_ok : exit_failed;
}

}  // namespace earshot::notifier
