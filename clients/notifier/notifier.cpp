#include "notifier/notifier.hpp"

#include <algorithm>
#include <ctime>
#include <random>

#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "common/diagnostics.hpp"
#include "common/format.hpp"
#include "common/http.hpp"
#include "common/web_page.hpp"
#include "notifier/command.hpp"
#include "notifier/payload.hpp"

namespace earshot::notifier {
namespace {

LocalTime local_time(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return {(parts.tm_wday + 6) % 7, parts.tm_hour * 60 + parts.tm_min};
}

State read_state(const std::string& path) {
  const PrivateFile file = read_private_file(path, State::bytes_max);
  auto state = file.text ? parse_state(*file.text) : std::nullopt;
  if (!file.error.empty()) common::print_message(common::safe_text(file.error));
  if (file.text && !state)
    common::print_message(common::safe_text(path) +
                          " is not a valid state file: starting with an empty state");
  if (!state) state.emplace();
  if (state->engine.since_ms == 0) state->engine.since_ms = now_ms();
  return std::move(*state);
}

ShownNotices shown_of(const State& state) {
  ShownNotices shown;
  shown.server = state.bus;
  for (const auto& [slot, id] : state.shown) {
    for (const auto& [of, notice] : state.shown_ids) {
      if (of == slot) shown.entries.push_back({slot, notice, id});
    }
  }
  return shown;
}

}  // namespace

std::string to_json(const Decision& decision) {
  std::string line;
  JsonWriter writer(line);
  writer.begin_object();
  writer.member("at_ms", decision.at_ms)
      .member("decision", decision.outcome)
      .member("rule", decision.rule)
      .member("type", decision.type);
  writer.member_if_any("session", decision.session)
      .member_if_any("project", decision.project)
      .member_if_any("title", decision.title)
      .member_if_any("why", decision.why);
  writer.end_object();
  return line;
}

Notifier::Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
                   const StatePaths& paths, bool verbose)
    : rules_(rules),
      daemon_(daemon),
      client_(client),
      paths_(paths),
      verbose_(verbose),
      before_(read_state(paths.state())),
      engine_(rules, local_time, before_.engine),
      subscription_(engine_, rules.types(), before_.cursors, before_.engine.since_ms),
      spool_(paths.spool()),
      queue_(rules, spool_, std::random_device{}(), now()),
      journal_(paths.journal()),
      dead_(paths.dead()),
      shown_(shown_of(before_)),
      desktop_(Desktop::make(make_callbacks(), shown_)),
      http_sender_(std::make_unique<HttpSender>([this](const std::string& key, const Delivery& delivery) {
        post_result({key, delivery});
      })) {
  for (const Notice& notice : before_.outgoing) queue_.add(notice, now());
  queue_.save();  // before the state is written, which then omits them
  engine_.resume(now());
  process();
}

Notifier::~Notifier() {
  worker_.stop();
  desktop_.reset();
  http_sender_.reset();
  process();
}

std::int64_t Notifier::now() { return now_ms(); }

std::string Notifier::begin() { return subscription_.begin(now(), rules_.max_age_ms); }

Desktop::Callbacks Notifier::make_callbacks() {
  Desktop::Callbacks callbacks;
  callbacks.on_done = [this](const std::string& key, const Delivery& delivery) {
    post_result({key, delivery});
  };
  callbacks.on_clicked = [this] { worker_.post([this] { open_page(); }); };
  callbacks.on_shown = [this](ShownNotices shown) {
    {
      const std::lock_guard lock(mutex_);
      shown_updates_.push_back(std::move(shown));
    }
    client_.post([this] { process(); });
  };
  callbacks.on_open_failed = [this](const std::string& url) {
    worker_.post([url] {
      const char* const program = common::browser_command();
      if (program == nullptr || !common::open_in_browser(program, url))
        common::print_message("cannot open a browser; `earshot open` prints the address");
    });
  };
  return callbacks;
}

void Notifier::post_result(Result report) {
  {
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(report));
  }
  client_.post([this] { process(); });
}

void Notifier::apply_results() {
  std::vector<Result> results;
  {
    const std::lock_guard lock(mutex_);
    results = std::exchange(results_, {});
    if (!shown_updates_.empty()) {
      shown_ = std::move(shown_updates_.back());
      shown_updates_.clear();
      shown_changed_ = true;
    }
  }
  for (const Result& each : results) queue_.report(each.key, each.delivery, now());
}

// On the worker's thread, as the request blocks.
void Notifier::open_page() {
  const auto found = common::find_daemon(daemon_);
  const auto* const addresses = std::get_if<common::DaemonAddresses>(&found);
  if (addresses == nullptr) return;
  const common::HttpResult result =
      common::send_request(*addresses, {.method = "POST", .target = "/v1/codes"});
  common::FrameParser parser;
  const auto frame = result.response.ok() ? parser.parse(result.response.body) : std::nullopt;
  const std::string url(frame ? frame->text("url") : std::string_view());
  if (!common::is_web_address(url))
    return common::print_message("cannot open the dashboard: the daemon returned no address");
  desktop_->open(url);
}

void Notifier::send(const QueuedNotice& queued) {
  const Sink* const sink = rules_.sink(queued.sink);
  if (sink == nullptr)
    return post_result(
        {queued.key(), {.permanent = true, .why = "the sink " + queued.sink + " was removed"}});
  if (sink->kind == SinkKind::desktop) return desktop_->show(queued);
  if (!sink->uses_http()) {
    worker_.post([this, sink, queued] {
      post_result({queued.key(),
                   sink->kind == SinkKind::bell ? write_bell(*sink) : run_command(*sink, queued.notice)});
    });
    return;
  }
  const auto credentials = read_credentials(*sink);
  if (const auto* error = std::get_if<SecretError>(&credentials))
    return post_result({queued.key(), {.why = error->why}});
  auto request = make_request(*sink, std::get<Credentials>(credentials), queued.notice, now());
  if (const auto* error = std::get_if<SecretError>(&request))
    return post_result({queued.key(), {.permanent = true, .why = error->why}});
  http_sender_->send(queued.key(), std::get<WebhookRequest>(std::move(request)));
}

// Notices that can be retracted are sent first, without waiting for the disk. The others are sent when the
// decision and the notice are on disk: after a crash before that the decision is made again, after a crash
// later the notice is in the spool.
void Notifier::process() {
  const std::int64_t now_ms = now();
  apply_results();
  engine_.tick(now_ms);
  const std::vector<Notice> notices = engine_.take_notices();
  const auto is_replaced = [&](const Close& close, const std::string& sink) {
    return std::any_of(notices.begin(), notices.end(), [&](const Notice& each) {
      return each.slot == close.slot && each.id != close.id &&
             std::find(each.sinks.begin(), each.sinks.end(), sink) != each.sinks.end();
    });
  };
  for (const Notice& notice : notices) queue_.add(notice, now_ms);
  for (const Close& close : engine_.take_closings()) {  // possibly of notices added just above
    for (const std::string& name : close.sinks) {
      const Sink* const sink = rules_.sink(name);
      if (sink != nullptr && sink->can_retract() && desktop_ && !is_replaced(close, name))
        desktop_->close(close.slot, close.id);
    }
    queue_.withdraw(close.id, close.sinks);
  }
  if (desktop_) {
    for (const QueuedNotice& queued : queue_.take_due(now_ms, true)) send(queued);
  }
  persist(notices, now_ms);
  if (http_sender_) {
    for (const QueuedNotice& queued : queue_.take_due(now_ms, false)) send(queued);
  }
  write_journal();
  for (const std::string& each : subscription_.take_diagnostics())
    common::print_message(common::safe_text(each));
  set_timer(now_ms);
}

// Writes the state with the outgoing notices, then the spool, then the state without them. After a crash at
// any point each notice is in at least one of both, under the same key.
void Notifier::persist(const std::vector<Notice>& notices, std::int64_t now_ms) {
  write_state(now_ms, notices);
  const std::string error = queue_.save();
  if (!error.empty() && error != disk_error_)
    common::print_message("cannot write the spool: " + common::safe_text(error));
  disk_error_ = error;
  if (notices.empty() || !error.empty()) return;
  state_text_.clear();
  write_state(now_ms, {});
}

void Notifier::write_state(std::int64_t now_ms, const std::vector<Notice>& outgoing) {
  const bool decided = engine_.changed();
  const bool due =
      decided || state_text_.empty() || std::exchange(shown_changed_, false) || !http_sender_ ||
      (subscription_.advance_count() != advances_written_ && now_ms - state_written_ms_ >= cursors_ms_max);
  if (!due) return;
  advances_written_ = subscription_.advance_count();
  State state;
  state.engine = engine_.state();
  state.outgoing = outgoing;
  // During a replay cursors are ahead of the decisions: notices of replayed events are held, and saved here.
  state.cursors = subscription_.cursors(State::cursors_max);
  state.bus = shown_.server;
  for (const ShownNotices::Entry& each : shown_.entries) {
    state.shown.emplace_back(each.slot, each.id);
    state.shown_ids.emplace_back(each.slot, each.notice);
  }
  std::string text = to_json(state);
  state_written_ms_ = now_ms;
  if (text == state_text_) return;
  const std::string error = write_private_file(paths_.state(), text);
  if (error.empty()) {
    state_text_ = std::move(text);
  } else {
    common::print_message("cannot write the state: " + common::safe_text(error));
  }
}

void Notifier::journal(const Decision& decision) {
  journal_.append(to_json(decision));
  if (!verbose_) return;
  std::string line = decision.outcome + " " + decision.rule;
  if (!decision.title.empty()) line += " “" + decision.title + "”";
  if (!decision.why.empty()) line += ": " + decision.why;
  common::print_message(common::safe_text(line));
}

void Notifier::write_journal() {
  for (const Decision& each : engine_.take_decisions()) journal(each);
  for (const DeliveryQueue::Event& event : queue_.take_events()) {
    using What = DeliveryQueue::Event::What;
    const Notice& notice = event.queued.notice;
    constexpr const char* words[] = {"sent", "not sent", "dead letter", "withdrawn"};
    const std::string why = "to " + event.queued.sink + (event.why.empty() ? "" : ": " + event.why);
    journal({now(), words[static_cast<int>(event.what)], notice.rule, notice.type, notice.session,
             notice.project, notice.title, why});
    if (event.what != What::dead) continue;
    std::string line;
    JsonWriter writer(line);
    writer.begin_object();
    writer.member("at_ms", now())
        .member("sink", event.queued.sink)
        .member("why", event.why)
        .member("attempts", event.queued.attempts);
    append_notice(writer.key("notice").next(), notice);
    writer.end_object();
    dead_.append(line);
    common::print_message("“" + common::safe_text(notice.title) + "” could not be sent to " +
                          event.queued.sink + ": " + common::safe_text(event.why));
  }
}

void Notifier::set_timer(std::int64_t now_ms) {
  std::optional<std::int64_t> next;
  const auto consider = [&](std::optional<std::int64_t> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  consider(engine_.next_ms());
  consider(queue_.next_ms(now_ms));
  if (subscription_.advance_count() != advances_written_) consider(state_written_ms_ + cursors_ms_max);
  if (next) client_.set_timer(std::max<std::int64_t>(0, *next - now_ms), [this] { process(); });
}

}  // namespace earshot::notifier
