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
    common::print_message(common::safe_text(path) + " is not what this program wrote: it begins anew");
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

std::string written(const Verdict& verdict) {
  std::string line;
  Object object(line);
  object.add("at_ms", verdict.at_ms)
      .add("verdict", verdict.word)
      .add("rule", verdict.rule)
      .add("type", verdict.type);
  object.maybe("session", verdict.session)
      .maybe("project", verdict.project)
      .maybe("title", verdict.title)
      .maybe("why", verdict.why);
  object.close();
  return line;
}

Station::Station(const Rules& rules, const common::ConnectOptions& daemon, common::Client& client,
                 const Places& places, bool verbose)
    : rules_(rules),
      daemon_(daemon),
      client_(client),
      places_(places),
      verbose_(verbose),
      before_(read_state(places.state())),
      decider_(rules, local_time, before_.memory),
      following_(decider_, rules.types(), before_.cursors, before_.memory.since_ms),
      spool_(places.spool()),
      office_(rules, spool_, std::random_device{}(), now()),
      journal_(places.journal()),
      dead_(places.dead()),
      shown_(shown_of(before_)),
      desktop_(Desktop::make(hooks(), shown_)),
      courier_(std::make_unique<WebCourier>([this](const std::string& key, const Delivery& delivery) {
        put({key, delivery});
      })) {
  for (const Notice& notice : before_.outgoing) office_.take(notice, now());
  office_.save();  // before the state is written, which need not name them then
  decider_.resume(now());
  settle();
}

Station::~Station() {
  worker_.stop();
  desktop_.reset();
  courier_.reset();
  settle();
}

std::int64_t Station::now() { return now_ms(); }

std::string Station::begin() { return following_.begin(now(), rules_.max_age_ms); }

Desktop::Hooks Station::hooks() {
  Desktop::Hooks hooks;
  hooks.done = [this](const std::string& key, const Delivery& delivery) { put({key, delivery}); };
  hooks.opened = [this] { worker_.post([this] { open_page(); }); };
  hooks.shown = [this](Shown shown) {
    {
      const std::lock_guard lock(mutex_);
      shown_mail_.push_back(std::move(shown));
    }
    client_.post([this] { settle(); });
  };
  hooks.cannot_open = [this](const std::string& url) {
    worker_.post([url] {
      const char* const program = common::browser_command();
      if (program == nullptr || !common::open_in_browser(program, url))
        common::print_message("no browser could be opened: earshot open tells the address");
    });
  };
  return hooks;
}

void Station::put(Report report) {
  {
    const std::lock_guard lock(mutex_);
    mail_.push_back(std::move(report));
  }
  client_.post([this] { settle(); });
}

void Station::read_mail() {
  std::vector<Report> mail;
  {
    const std::lock_guard lock(mutex_);
    mail = std::exchange(mail_, {});
    if (!shown_mail_.empty()) {
      shown_ = std::move(shown_mail_.back());
      shown_mail_.clear();
      shown_changed_ = true;
    }
  }
  for (const Report& each : mail) office_.report(each.key, each.delivery, now());
}

// On the worker's thread: the daemon is asked, which takes its time.
void Station::open_page() {
  const auto found = common::find_daemon(daemon_);
  const auto* const addresses = std::get_if<common::DaemonAddresses>(&found);
  if (addresses == nullptr) return;
  const common::HttpResult result =
      common::send_request(*addresses, {.method = "POST", .target = "/v1/codes"});
  common::FrameParser parser;
  const auto answer = result.response.ok() ? parser.parse(result.response.body) : std::nullopt;
  const std::string url(answer ? answer->text("url") : std::string_view());
  if (!common::is_web_address(url))
    return common::print_message("the dashboard cannot be opened: the daemon does not tell its address");
  desktop_->open(url);
}

void Station::send(const Letter& letter) {
  const Sink* const sink = rules_.sink(letter.sink);
  if (sink == nullptr)
    return put({letter.key(), {.hopeless = true, .why = "there is no sink " + letter.sink + " any more"}});
  if (sink->kind == SinkKind::desktop) return desktop_->show(letter);
  if (!sink->is_web()) {
    worker_.post([this, sink, letter] {
      put({letter.key(),
           sink->kind == SinkKind::bell ? ring_bell(*sink) : run_command(*sink, letter.notice)});
    });
    return;
  }
  const auto keys = read_keys(*sink);
  if (const auto* trouble = std::get_if<SecretTrouble>(&keys))
    return put({letter.key(), {.why = trouble->why}});
  auto request = web_request(*sink, std::get<Keys>(keys), letter.notice, now());
  if (const auto* trouble = std::get_if<SecretTrouble>(&request))
    return put({letter.key(), {.hopeless = true, .why = trouble->why}});
  courier_->send(letter.key(), std::get<WebRequest>(std::move(request)));
}

// What can be taken back goes out first, and at once. The rest goes out when both it and that it was decided
// are on disk: a crash before that decides it anew, a crash after that finds it in the spool.
void Station::settle() {
  const std::int64_t now_ms = now();
  read_mail();
  decider_.tick(now_ms);
  const std::vector<Notice> notices = decider_.take_notices();
  const auto is_replaced = [&](const Close& close, const std::string& sink) {
    return std::any_of(notices.begin(), notices.end(), [&](const Notice& each) {
      return each.slot == close.slot && each.id != close.id &&
             std::find(each.sinks.begin(), each.sinks.end(), sink) != each.sinks.end();
    });
  };
  for (const Notice& notice : notices) office_.take(notice, now_ms);
  for (const Close& close : decider_.take_closings()) {  // perhaps of what was told in the same moment
    for (const std::string& name : close.sinks) {
      const Sink* const sink = rules_.sink(name);
      if (sink != nullptr && sink->takes_back() && desktop_ && !is_replaced(close, name))
        desktop_->close(close.slot, close.id);
    }
    office_.withdraw(close.id, close.sinks);
  }
  if (desktop_) {
    for (const Letter& letter : office_.collect(now_ms, true)) send(letter);
  }
  write_down(notices, now_ms);
  if (courier_) {
    for (const Letter& letter : office_.collect(now_ms, false)) send(letter);
  }
  write_journal();
  for (const std::string& each : following_.take_complaints()) common::print_message(common::safe_text(each));
  set_alarm(now_ms);
}

// The state says what was decided and what of it is outgoing; then that is in the spool; then the state need
// not say so. Between any two of these a crash finds each notice in one of both, or in both under the same
// name.
void Station::write_down(const std::vector<Notice>& told, std::int64_t now_ms) {
  write_state(now_ms, told);
  const std::string trouble = office_.save();
  if (!trouble.empty() && trouble != disk_trouble_)
    common::print_message("the spool cannot be written: " + common::safe_text(trouble));
  disk_trouble_ = trouble;
  if (told.empty() || !trouble.empty()) return;
  state_text_.clear();
  write_state(now_ms, {});
}

void Station::write_state(std::int64_t now_ms, const std::vector<Notice>& outgoing) {
  const bool decided = decider_.changed();
  const bool due = decided || state_text_.empty() || std::exchange(shown_changed_, false) || !courier_ ||
                   (following_.moves() != moves_written_ && now_ms - state_written_ms_ >= cursors_ms_max);
  if (!due) return;
  moves_written_ = following_.moves();
  State state;
  state.memory = decider_.memory();
  state.outgoing = outgoing;
  // While the past is read, streams are not where they were handled to: what is held is written down with
  // them.
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
    common::print_message("the state cannot be written: " + common::safe_text(trouble));
  }
}

void Station::journal(const Verdict& verdict) {
  journal_.append(written(verdict));
  if (!verbose_) return;
  std::string line = verdict.word + " " + verdict.rule;
  if (!verdict.title.empty()) line += " “" + verdict.title + "”";
  if (!verdict.why.empty()) line += ": " + verdict.why;
  common::print_message(common::safe_text(line));
}

void Station::write_journal() {
  for (const Verdict& each : decider_.take_verdicts()) journal(each);
  for (const PostOffice::Event& event : office_.take_events()) {
    using What = PostOffice::Event::What;
    const Notice& notice = event.letter.notice;
    constexpr const char* words[] = {"sent", "not sent", "dead letter", "withdrawn"};
    const std::string why = "to " + event.letter.sink + (event.why.empty() ? "" : ": " + event.why);
    journal({now(), words[static_cast<int>(event.what)], notice.rule, notice.type, notice.session,
             notice.project, notice.title, why});
    if (event.what != What::dead) continue;
    std::string line;
    Object object(line);
    object.add("at_ms", now())
        .add("sink", event.letter.sink)
        .add("why", event.why)
        .add("attempts", event.letter.attempts);
    append_notice(object.begin("notice"), notice);
    object.close();
    dead_.append(line);
    common::print_message("“" + common::safe_text(notice.title) + "” could not be sent to " +
                          event.letter.sink + ": " + common::safe_text(event.why));
  }
}

void Station::set_alarm(std::int64_t now_ms) {
  std::optional<std::int64_t> next;
  const auto consider = [&](std::optional<std::int64_t> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  consider(decider_.next_ms());
  consider(office_.next_ms(now_ms));
  if (following_.moves() != moves_written_) consider(state_written_ms_ + cursors_ms_max);
  if (next) client_.set_timer(std::max<std::int64_t>(0, *next - now_ms), [this] { settle(); });
}

}  // namespace earshot::notifier
