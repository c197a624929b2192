#include "notifier/notifier.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

#include "base/json_writer.hpp"
#include "common/format.hpp"
#include "common/http.hpp"

namespace earshot::notifier {
namespace {

LocalTime local_time(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return {(parts.tm_wday + 6) % 7, parts.tm_hour * 60 + parts.tm_min};
}

SavedState load_state(DeliveryQueue& queue) {
  SavedState state;
  const std::string error = queue.load(state, now_ms());
  if (!error.empty()) common::print_message(common::safe_text(error));
  if (state.engine.since_ms == 0) state.engine.since_ms = now_ms();
  return state;
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
      .member_if_any("why", decision.why)
      .member_if_any("sink", decision.sink);
  if (decision.next_ms > 0) writer.member("next_ms", decision.next_ms);
  writer.end_object();
  return line;
}

std::vector<std::string> focus_command(const common::ConnectOptions& daemon, const std::string& session) {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  program = error ? "earshot" : program.parent_path() / "earshot";
  std::vector<std::string> command{std::filesystem::exists(program, error) ? program.string() : "earshot",
                                   "focus"};
  const std::pair<const char*, const std::string&> options[] = {{"--connect", daemon.connect},
                                                                {"--socket", daemon.socket},
                                                                {"--token-file", daemon.token_file},
                                                                {"--tls-ca", daemon.tls_ca},
                                                                {"--state", daemon.state}};
  for (const auto& [name, value] : options) {
    if (!value.empty()) command.insert(command.end(), {name, value});
  }
  command.insert(command.end(), {"--", session});  // an id may begin with a dash
  return command;
}

Subscription::Subscription(RuleEngine& engine, std::vector<std::string> types,
                           const SavedState::Cursors& cursors, std::int64_t since_ms)
    : engine_(engine),
      since_ms_(since_ms),
      resumer_({.id = "notify", .filters = {.type = std::move(types)}, .since_ms = since_ms}) {
  for (const auto& [stream, cursor] : cursors) {
    resumer_.cursors().set(stream, cursor);
    advanced(stream);
  }
}

void Subscription::advanced(std::string_view stream) {
  advanced_at_.insert_or_assign(std::string(stream), ++advance_count_);
  if (advanced_at_.size() <= streams_max) return;
  const std::uint64_t oldest = advance_count_ - streams_max / 2;
  std::erase_if(advanced_at_, [&](const auto& each) { return each.second < oldest; });
}

SavedState::Cursors Subscription::cursors(std::size_t count_max) const {
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  for (const auto& [stream, move] : advanced_at_) order.emplace_back(move, stream);
  std::sort(order.begin(), order.end());
  if (order.size() > count_max)
    order.erase(order.begin(), order.end() - static_cast<std::ptrdiff_t>(count_max));
  SavedState::Cursors cursors;
  for (const auto& [move, stream] : order) {
    if (const std::string* const cursor = resumer_.cursors().find(stream))
      cursors.emplace_back(stream, *cursor);
  }
  return cursors;
}

std::string Subscription::begin(std::int64_t now_ms, std::int64_t max_age_ms) {
  resumer_.set_since(std::max(now_ms - max_age_ms, since_ms_));
  engine_.begin();
  return resumer_.begin();
}

void Subscription::receive(std::string_view json, std::int64_t now_ms) {
  using Phase = common::StreamResumer::Phase;
  const auto frame = parser_.parse(json);
  if (!frame) {
    diagnostics_.emplace_back("ignored a frame of the daemon that is not a JSON object");
    return;
  }
  const std::string_view type = frame->text("type"), stream = frame->text("stream");
  const Phase before = resumer_.phase();
  resumer_.receive(*frame);
  if (type == "session" || type == "status" || type == "welcome") {
    engine_.handle(*frame, json, now_ms);
  } else if (type == "stream.renamed") {
    if (auto moved = advanced_at_.extract(std::string(frame->text("from")))) {
      moved.key() = frame->text("to");
      advanced_at_.insert(std::move(moved));
    }
    engine_.handle(*frame, json, now_ms);
  } else if (type == "stream.removed") {
    if (const auto found = advanced_at_.find(stream); found != advanced_at_.end()) advanced_at_.erase(found);
  } else if (type == "error") {
    diagnostics_.push_back("the daemon reported an error: " + std::string(frame->text("message")) + " (" +
                           std::string(frame->text("code")) + ")");
  } else if (!frame->text("cursor").empty()) {
    advanced(stream);
    engine_.handle(*frame, json, now_ms);
  }
  resumer_.handled(*frame);
  if (before != Phase::live && resumer_.phase() == Phase::live) engine_.caught_up(now_ms);
}

Notifier::Notifier(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
                   const StatePaths& paths, bool verbose)
    : rules_(rules),
      daemon_(daemon),
      client_(client),
      paths_(paths),
      verbose_(verbose),
      queue_(rules, paths_.state(), std::random_device{}()),
      saved_(load_state(queue_)),
      engine_(rules, local_time, std::move(saved_.engine)),
      subscription_(engine_, rules.types(), saved_.cursors, engine_.state().since_ms),
      journal_(paths.journal()),
      dead_(paths.dead()),
      sinks_(make_callbacks(), saved_.shown) {
  engine_.resume(now_ms());
  process();
}

Notifier::~Notifier() {
  pages_.stop();
  requests_.stop();
  sinks_.stop();
  stopped_ = true;
  process();
}

std::string Notifier::begin() { return subscription_.begin(now_ms(), rules_.max_age_ms); }

Desktop::Callbacks Notifier::make_callbacks() {
  Desktop::Callbacks callbacks;
  callbacks.on_done = [this](const std::string& key, const Delivery& delivery) {
    post_result({key, delivery});
  };
  callbacks.on_clicked = [this](const ShownNotices::Entry& entry) {
    pages_.post([this, link = entry.link] { open_page(link); });
  };
  callbacks.on_focus = [this](const ShownNotices::Entry& entry) {
    pages_.post([this, session = entry.session] { focus(session); });
  };
  callbacks.on_run_failed = [this](const std::vector<std::string>& command) {
    pages_.post([this, command] { run(command); });
  };
  callbacks.on_shown = [this](ShownNotices shown) {
    {
      const std::lock_guard lock(mutex_);
      shown_updates_.push_back(std::move(shown));
    }
    client_.post(make_process());
  };
  callbacks.on_open_failed = [this](const std::string& url) {
    pages_.post([url] {
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
  client_.post(make_process());
}

// The client may call it when this is destroyed.
std::function<void()> Notifier::make_process() {
  return [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) process();
  };
}

void Notifier::apply_results() {
  std::vector<Result> results;
  {
    const std::lock_guard lock(mutex_);
    results = std::exchange(results_, {});
    if (!shown_updates_.empty()) {
      saved_.shown = std::move(shown_updates_.back());
      shown_updates_.clear();
      shown_changed_ = true;
    }
  }
  for (const Result& each : results) queue_.report(each.key, each.delivery, now_ms());
}

// On the worker's thread, as the request blocks. A hub gives codes to its owner only: others sign in there.
void Notifier::open_page(const std::string& link) {
  const auto found = common::find_daemon(daemon_);
  const auto* const addresses = std::get_if<common::DaemonAddresses>(&found);
  if (addresses == nullptr) return;
  const common::HttpResult result =
      common::send_request(*addresses, {.method = "POST", .target = "/v1/codes"});
  common::FrameParser parser;
  const auto frame = result.response.ok() ? parser.parse(result.response.body) : std::nullopt;
  std::string url(frame ? frame->text("url") : std::string_view());
  if (!common::is_web_address(url)) {
    if (common::is_web_address(link)) return sinks_.open(link);
    return common::print_message("cannot open the dashboard: the daemon returned no address");
  }
  if (const std::size_t query = link.find('?'); query != link.npos)
    url.insert(std::min(url.find('#'), url.size()), link, query, link.npos);
  sinks_.open(url);
}

// On the worker's thread. In a unit, the terminal cannot be reached from inside of its sandbox.
void Notifier::focus(const std::string& session) {
  const std::vector<std::string> command = focus_command(daemon_, session);
  std::getenv("INVOCATION_ID") != nullptr ? sinks_.run_outside(command) : run(command);
}

// On the worker's thread.
void Notifier::run(const std::vector<std::string>& command) {
  const Delivery done = run_program(command, {}, {}, focus_ms_max);
  if (!done.done) common::print_message(common::safe_text(done.why));
}

void Notifier::send(const QueuedNotice& queued) {
  if (const Sink* const sink = rules_.sink(queued.sink)) return sinks_.send(*sink, queued);
  post_result({queued.key(), {.permanent = true, .why = "the sink " + queued.sink + " was removed"}});
}

void Notifier::apply_decisions(std::int64_t now_ms) {
  const std::vector<Notice> notices = engine_.take_notices();
  const auto is_replaced = [&](const Close& close, const std::string& sink) {
    return std::any_of(notices.begin(), notices.end(), [&](const Notice& each) {
      return each.slot == close.slot && each.id != close.id &&
             std::find(each.sinks.begin(), each.sinks.end(), sink) != each.sinks.end();
    });
  };
  for (const Notice& notice : notices) queue_.add(notice, now_ms);
  for (const Notice& refined : engine_.take_refinements()) queue_.update(refined, now_ms);
  for (const Close& close : engine_.take_closings()) {  // possibly of notices added just above
    for (const std::string& name : close.sinks) {
      const Sink* const sink = rules_.sink(name);
      if (sink != nullptr && sink->can_retract() && !stopped_ && !is_replaced(close, name))
        sinks_.close(close.slot, close.id);
    }
    queue_.withdraw(close.id, close.sinks);
  }
}

// Once, on the desktop. Without one the journal, the log and `earshot doctor` report it.
void Notifier::report_failing_sinks(std::int64_t now_ms) {
  const auto desktop = std::find_if(rules_.sinks.begin(), rules_.sinks.end(),
                                    [](const auto& each) { return each.second.kind == SinkKind::desktop; });
  for (const DeliveryQueue::Failing& each : queue_.take_failing()) {
    Notice notice;
    notice.slot = "sink " + each.sink;
    notice.id = digest(notice.slot);
    notice.type = Notice::report_type;
    notice.time_ms = now_ms;
    notice.title = "Notices do not reach the sink " + each.sink;
    notice.body = clean_lines(each.why + "\nDetails: earshot-notify why");
    if (desktop != rules_.sinks.end()) notice.sinks = {desktop->first};
    if (!each.is_failing) {
      if (desktop != rules_.sinks.end()) {
        queue_.withdraw(notice.id, notice.sinks);
        if (!stopped_) sinks_.close(notice.slot, notice.id);
      }
      journal({now_ms, "works again", {}, notice.type, {}, {}, {}, "the sink " + each.sink, each.sink});
      continue;
    }
    const std::string why =
        std::to_string(common::SinkHealth::failures_tolerated + 1) + " attempts in a row failed: " + each.why;
    journal(
        {now_ms, "failing", {}, notice.type, {}, {}, {}, "the sink " + each.sink + ": " + why, each.sink});
    common::print_message("the sink " + each.sink + " fails: " + common::safe_text(each.why));
    const Sink* const failing = rules_.sink(each.sink);
    const bool is_desktop = failing != nullptr && failing->kind == SinkKind::desktop;
    if (!is_desktop && desktop != rules_.sinks.end()) queue_.add(notice, now_ms);
  }
}

// Events state the size of the context; its window, and the cost, are in `session` frames.
void Notifier::ask_for_figures(std::int64_t now_ms) {
  for (const std::string& session : engine_.take_figures_wanted(now_ms)) {
    requests_.post([this, session] {
      const auto found = common::find_daemon(daemon_);
      const auto* const addresses = std::get_if<common::DaemonAddresses>(&found);
      const std::string target = "/v1/sessions" + common::query({{"session", session}, {"view", "meta"}});
      common::HttpResult result;
      if (addresses != nullptr) result = common::send_request(*addresses, {.target = target});
      std::string body = result.response.ok() ? std::move(result.response.body) : std::string();
      client_.post([this, session, body = std::move(body), alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) apply_figures(session, body);
      });
    });
  }
}

// An answer without the session, or none, settles it too: its next event asks again.
void Notifier::apply_figures(const std::string& session, std::string_view body) {
  common::FrameParser parser;
  common::Fields own;
  if (const auto page = parser.parse(body))
    for (const common::Fields& frame : page->objects("sessions"))
      if (frame.text("session") == session) own = frame;
  engine_.apply_figures(session, own, now_ms());
  process();
}

void Notifier::report_bad_rules(const std::string& why) {
  journal({now_ms(), "not reloaded", {}, "rules", {}, {}, {}, why + "; the earlier rules stay in use"});
  queue_.set_rules_problem(why);
  process();
}

// Notices that can be retracted are sent first, without waiting for the disk. The others are sent when the
// state is on disk in which they are decided and being sent: after a crash before that the decision is made
// again, after a crash later the delivery is repeated once.
void Notifier::process() {
  const std::int64_t now = now_ms();
  apply_results();
  engine_.tick(now);
  apply_decisions(now);
  report_failing_sinks(now);
  if (!stopped_ && live()) ask_for_figures(now);
  std::vector<QueuedNotice> due;
  if (!stopped_) {
    for (const QueuedNotice& queued : queue_.take_due(now, true)) send(queued);
    due = queue_.take_due(now, false);
  }
  save_if_changed(now);
  for (const QueuedNotice& queued : due) send(queued);
  write_journal();
  for (const std::string& each : subscription_.take_diagnostics())
    common::print_message(common::safe_text(each));
  set_timer(now);
}

void Notifier::save_if_changed(std::int64_t now_ms) {
  const bool changed = engine_.changed() | queue_.changed() | std::exchange(shown_changed_, false);
  const bool advanced =
      subscription_.advance_count() != advances_written_ && now_ms - written_ms_ >= cursors_ms_max;
  if (!changed && !advanced && !stopped_) return;
  advances_written_ = subscription_.advance_count();
  written_ms_ = now_ms;
  // During a replay cursors are ahead of the decisions: notices of replayed events are held, and saved here.
  const std::string error = queue_.save(engine_.state(), subscription_.cursors(cursors_max), saved_.shown);
  if (!error.empty() && error != disk_error_)
    common::print_message("cannot write the state: " + common::safe_text(error));
  disk_error_ = error;  // deliveries start anyway: only a crash would repeat or lose them
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
    journal({now_ms(), words[static_cast<int>(event.what)], notice.rule, notice.type, notice.session,
             notice.project, notice.title, why, event.queued.sink, event.next_ms});
    if (event.what != What::dead) continue;
    std::string line;
    JsonWriter writer(line);
    writer.begin_object();
    writer.member("at_ms", now_ms())
        .member("sink", event.queued.sink)
        .member("why", event.why)
        .member("attempts", event.queued.attempts);
    write_notice(writer.key("notice"), notice);
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
  if (live()) consider(engine_.figures_due_ms());
  if (subscription_.advance_count() != advances_written_) consider(written_ms_ + cursors_ms_max);
  if (next) client_.set_timer(std::max<std::int64_t>(0, *next - now_ms), make_process());
}

}  // namespace earshot::notifier
