#include "notifier/notifier.hpp"

#include <algorithm>
#include <ctime>
#include <random>

#include "common/diagnostics.hpp"
#include "common/format.hpp"
#include "common/http.hpp"
#include "common/web_page.hpp"
#include "notifier/command.hpp"
#include "notifier/json.hpp"
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
  const auto text = read_whole(path, State::bytes_max);
  auto state = text ? parse_state(*text) : std::nullopt;
  if (text && !state)
    common::print_message(common::safe_text(path) + " is not a valid state file: starting with an empty state");
  if (!state) state.emplace();
  if (state->memory.since_ms == 0) state->memory.since_ms = now_ms();
  return std::move(*state);
}

Shown shown_of(const State& state) {
  Shown shown;
  shown.server = state.bus;
  for (const auto& [slot, id] : state.shown) {
    for (const auto& [of, notice] : state.shown_ids) {
      if (of == slot) shown.places.push_back({slot, notice, id});
    }
  }
  return shown;
}

}  // namespace

std::string written(const Decision& decision) {
  std::string line;
  Object object(line);
  object.add("at_ms", decision.at_ms)
      .add("verdict", decision.word)
      .add("rule", decision.rule)
      .add("type", decision.type);
  object.maybe("session", decision.session)
      .maybe("project", decision.project)
      .maybe("title", decision.title)
      .maybe("why", decision.why);
  object.close();
  return line;
}

Notifier::Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
                   const Places& places, bool verbose)
    : rules_(rules),
      daemon_(daemon),
      client_(client),
      places_(places),
      verbose_(verbose),
      before_(read_state(places.state())),
      engine_(rules, local_time, before_.memory),
      following_(engine_, rules.types(), before_.cursors, before_.memory.since_ms),
      spool_(places.spool()),
      queue_(rules, spool_, std::random_device{}(), now()),
      journal_(places.journal()),
      dead_(places.dead()),
      shown_(shown_of(before_)),
      desktop_(Desktop::make(hooks(), shown_)),
      http_sender_(std::make_unique<HttpSender>([this](const std::string& key, const Delivery& delivery) {
        put({key, delivery});
      })) {
  for (const Notice& notice : before_.outgoing) queue_.take(notice, now());
  queue_.save();  // before the state is written, which then omits them
  engine_.resume(now());
  settle();
}

Notifier::~Notifier() {
  worker_.stop();
  desktop_.reset();
  http_sender_.reset();
  settle();
}

std::int64_t Notifier::now() { return now_ms(); }

std::string Notifier::begin() { return following_.begin(now(), rules_.max_age_ms); }

Desktop::Hooks Notifier::hooks() {
  Desktop::Hooks hooks;
  hooks.done = [this](const std::string& key, const Delivery& delivery) { put({key, delivery}); };
  hooks.opened = [this] { worker_.post([this] { open_page(); }); };
  hooks.shown = [this](Shown shown) {
    {
      const std::lock_guard lock(mutex_);
      shown_reports_.push_back(std::move(shown));
    }
    client_.post([this] { settle(); });
  };
  hooks.cannot_open = [this](const std::string& url) {
    worker_.post([url] {
      const char* const program = common::browser_command();
      if (program == nullptr || !common::open_in_browser(program, url))
        common::print_message("cannot open a browser; `earshot open` prints the address");
    });
  };
  return hooks;
}

void Notifier::put(Report report) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
  }
  client_.post([this] { settle(); });
}

void Notifier::apply_reports() {
  std::vector<Report> mail;
  {
    const std::lock_guard lock(mutex_);
    mail = std::exchange(reports_, {});
    if (!shown_reports_.empty()) {
      shown_ = std::move(shown_reports_.back());
      shown_reports_.clear();
      shown_changed_ = true;
    }
  }
  for (const Report& each : mail) queue_.report(each.key, each.delivery, now());
}

// On the worker's thread, as the request blocks.
void Notifier::open_page() {
  const auto found = common::find_daemon(daemon_);
  const auto* const addresses = std::get_if<common::DaemonAddresses>(&found);
  if (addresses == nullptr) return;
  const common::HttpResult result =
      common::send_request(*addresses, {.method = "POST", .target = "/v1/codes"});
  common::FrameParser parser;
  const auto answer = result.response.ok() ? parser.parse(result.response.body) : std::nullopt;
  const std::string url(answer ? answer->text("url") : std::string_view());
  if (!common::is_web_address(url))
    return common::print_message("cannot open the dashboard: the daemon returned no address");
  desktop_->open(url);
}

void Notifier::send(const QueuedNotice& queued) {
  const Sink* const sink = rules_.sink(queued.sink);
  if (sink == nullptr)
    return put({queued.key(), {.permanent = true, .why = "the sink " + queued.sink + " was removed"}});
  if (sink->kind == SinkKind::desktop) return desktop_->show(queued);
  if (!sink->is_web()) {
    worker_.post([this, sink, queued] {
      put({queued.key(),
           sink->kind == SinkKind::bell ? ring_bell(*sink) : run_command(*sink, queued.notice)});
    });
    return;
  }
  const auto keys = read_keys(*sink);
  if (const auto* trouble = std::get_if<SecretTrouble>(&keys))
    return put({queued.key(), {.why = trouble->why}});
  auto request = web_request(*sink, std::get<Keys>(keys), queued.notice, now());
  if (const auto* trouble = std::get_if<SecretTrouble>(&request))
    return put({queued.key(), {.permanent = true, .why = trouble->why}});
  http_sender_->send(queued.key(), std::get<WebRequest>(std::move(request)));
}

// Notices that can be retracted are sent first, without waiting for the disk. The others are sent when the
// decision and the notice are on disk: after a crash before that the decision is made again, after a crash later
// the notice is in the spool.
void Notifier::settle() {
  const std::int64_t now_ms = now();
  apply_reports();
  engine_.tick(now_ms);
  const std::vector<Notice> notices = engine_.take_notices();
  const auto is_replaced = [&](const Close& close, const std::string& sink) {
    return std::any_of(notices.begin(), notices.end(), [&](const Notice& each) {
      return each.slot == close.slot && each.id != close.id &&
             std::find(each.sinks.begin(), each.sinks.end(), sink) != each.sinks.end();
    });
  };
  for (const Notice& notice : notices) queue_.take(notice, now_ms);
  for (const Close& close : engine_.take_closings()) {  // possibly of notices added just above
    for (const std::string& name : close.sinks) {
      const Sink* const sink = rules_.sink(name);
      if (sink != nullptr && sink->can_retract() && desktop_ && !is_replaced(close, name))
        desktop_->close(close.slot, close.id);
    }
    queue_.withdraw(close.id, close.sinks);
  }
  if (desktop_) {
    for (const QueuedNotice& queued : queue_.collect(now_ms, true)) send(queued);
  }
  persist(notices, now_ms);
  if (http_sender_) {
    for (const QueuedNotice& queued : queue_.collect(now_ms, false)) send(queued);
  }
  write_journal();
  for (const std::string& each : following_.take_diagnostics())
    common::print_message(common::safe_text(each));
  set_alarm(now_ms);
}

// Writes the state with the outgoing notices, then the spool, then the state without them. After a crash at any
// point each notice is in at least one of both, under the same key.
void Notifier::persist(const std::vector<Notice>& told, std::int64_t now_ms) {
  write_state(now_ms, told);
  const std::string trouble = queue_.save();
  if (!trouble.empty() && trouble != disk_error_)
    common::print_message("cannot write the spool: " + common::safe_text(trouble));
  disk_error_ = trouble;
  if (told.empty() || !trouble.empty()) return;
  state_text_.clear();
  write_state(now_ms, {});
}

void Notifier::write_state(std::int64_t now_ms, const std::vector<Notice>& outgoing) {
  const bool decided = engine_.changed();
  const bool due = decided || state_text_.empty() || std::exchange(shown_changed_, false) || !http_sender_ ||
                   (following_.moves() != advances_written_ && now_ms - state_written_ms_ >= cursors_ms_max);
  if (!due) return;
  advances_written_ = following_.moves();
  State state;
  state.memory = engine_.memory();
  state.outgoing = outgoing;
  // During a replay cursors are ahead of the decisions: notices of replayed events are held, and saved here.
  state.cursors = following_.places(State::cursors_max);
  state.bus = shown_.server;
  for (const Shown::Place& each : shown_.places) {
    state.shown.emplace_back(each.slot, each.id);
    state.shown_ids.emplace_back(each.slot, each.notice);
  }
  std::string text = written(state);
  state_written_ms_ = now_ms;
  if (text == state_text_) return;
  const std::string trouble = write_whole(places_.state(), text);
  if (trouble.empty()) {
    state_text_ = std::move(text);
  } else {
    common::print_message("cannot write the state: " + common::safe_text(trouble));
  }
}

void Notifier::journal(const Decision& decision) {
  journal_.append(written(decision));
  if (!verbose_) return;
  std::string line = decision.word + " " + decision.rule;
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
    Object object(line);
    object.add("at_ms", now())
        .add("sink", event.queued.sink)
        .add("why", event.why)
        .add("attempts", event.queued.attempts);
    append_notice(object.begin("notice"), notice);
    object.close();
    dead_.append(line);
    common::print_message("“" + common::safe_text(notice.title) + "” could not be sent to " +
                          event.queued.sink + ": " + common::safe_text(event.why));
  }
}

void Notifier::set_alarm(std::int64_t now_ms) {
  std::optional<std::int64_t> next;
  const auto consider = [&](std::optional<std::int64_t> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  consider(engine_.next_ms());
  consider(queue_.next_ms(now_ms));
  if (following_.moves() != advances_written_) consider(state_written_ms_ + cursors_ms_max);
  if (next) client_.set_timer(std::max<std::int64_t>(0, *next - now_ms), [this] { settle(); });
}

}  // namespace earshot::notifier
