#include "cli/follower.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t snapshot_frames_max = 20'000;  // more sessions are not introduced
constexpr std::size_t snapshot_lines_max = 12;  // of sessions at rest no more are told than fit with these
constexpr std::int64_t live_ms =
    24LL * 3600 * 1000;  // what the daemon calls live, unless it was told otherwise

// A stream that was born while nobody listened begins at its first event; how long that may have been before
// it was noticed.
constexpr std::int64_t silence_ms = (Client::silence_seconds_max + 10) * 1000LL;

constexpr const char* look_id = "look";
constexpr const char* own_id = "cli";

std::string status_text(const Fields& status) {
  std::string text;
  for (const char* key : {"state", "reason", "detail"}) text += std::string(status.text(key)) + '\n';
  return text;
}

}  // namespace

Follower::Follower(const TailOptions& options, bool pretty)
    : options_(options),
      pretty_(pretty),
      safe_json_(is_terminal(STDOUT_FILENO)),
      cut_ms_(options.since_ms.value_or(0)),
      formatter_(stdout_display(options.colour), options.verbose) {}

std::string Follower::begin() {
  const bool plain = first_ && !options_.since_ms;
  introduced_ = false;
  snapshot_.clear();
  seen_.clear();
  news_.clear();
  from_the_beginning_.clear();
  rewritten_.clear();
  if (plain) {
    first_ = false;
    phase_ = Phase::live;
    // Names are learned from the snapshot, shown or not.
    return subscribe_request(options_.filters, {.snapshot = options_.snapshot || pretty_, .catch_up = true});
  }
  introduced_ = true;  // sessions are not introduced again; with --since events come first
  return display();
}

std::string Follower::display() {
  phase_ = Phase::looking;
  seen_.clear();
  news_.clear();
  late_ = false;
  Filters filters = options_.filters;
  filters.type.clear();
  const bool all = options_.since_ms && cut_ms_ == *options_.since_ms && cut_ms_ < now_ms() - live_ms;
  return subscribe_request(filters, {.id = look_id, .all = all, .state = true});
}

void Follower::end(std::int64_t now_ms) {
  if (phase_ == Phase::catching_up) return caught_up();  // what did not come yet is asked for again
  if (phase_ == Phase::live) cut_ms_ = now_ms - silence_ms;
}

bool Follower::take(std::string_view json) {
  const auto frame = parser_.parse(json);
  if (!frame) {
    print_message("the daemon sent what is no JSON object: ignored");
    return true;
  }
  const std::string_view type = frame->text("type");
  bool more = true;
  if (type == "error") {
    more = take_error(*frame);
    if (!pretty_) write_json(json);
  } else if (type == "session") {
    take_session(*frame, json);
  } else if (type == "ready") {
    take_ready(frame->text("id"), *frame, json);
  } else if (type == "reset") {
    take_reset(*frame, json);
  } else if (type == "bookmark") {
    take_bookmark(*frame, json);
  } else if (!frame->text("cursor").empty()) {
    take_event(*frame, json);
  } else {
    if (type == "stream.removed") cursors_.forget(frame->text("stream"));
    if (type == "status") remember_status(frame->text("session"), *frame);
    show(*frame, json);
  }
  out_.spill();
  return more && !out_.closed() && out_.error().empty();
}

bool Follower::take_error(const Fields& frame) {
  const std::string_view code = frame.text("code"), id = frame.text("id");
  const bool ours = id == own_id || id == look_id;
  if (ours && code == "unsupported" && phase_ == Phase::asking && !options_.since_ms) {
    print_message("this daemon is older than this program: what happened meanwhile is not shown");
    phase_ = Phase::live;
    requests_.push_back(subscribe_request(options_.filters, {.snapshot = pretty_}));
    return true;
  }
  print_message("the daemon says: " + safe_text(frame.text("message")) + " (" + safe_text(code) + ")");
  if (ours && code == "unsupported") print_message("this daemon is older than this program: start it anew");
  // A cursor that cannot be used costs only its stream: the subscription stands.
  const bool hopeless = ours && code != "bad_cursor" && !frame.flag("retry");
  failed_ = failed_ || hopeless;
  return !hopeless;
}

void Follower::take_ready(std::string_view id, const Fields& frame, std::string_view json) {
  if (id == look_id) {
    if (phase_ == Phase::looking) ask();
    return;
  }
  if (phase_ == Phase::asking) {
    if (late_) {
      requests_.push_back(unsubscribe_request(own_id));
      requests_.push_back(display());
      return;
    }
    phase_ = Phase::catching_up;
    if (!pretty_) {
      if (!options_.snapshot && first_) news_.clear();
      show_news();
      write_json(json);
    }
    if (!awaits_bookmark_) caught_up();
    return;
  }
  if (pretty_) return introduce();
  show(frame, json);
}

// Between two events nothing is lost: the display brought no events, and what came after it comes with
// `after`. A stream that came into being after the display is in the snapshot, its events so far are not:
// then it is looked once more.
void Follower::ask() {
  looked_at_.clear();
  for (const SeenStream& each : seen_) looked_at_.insert(each.name);
  After after = cursors_.after(seen_, cut_ms_);
  if (after.left_out > 0)
    print_message(std::to_string(after.left_out) + " transcripts are followed only from now on: use filters");
  from_the_beginning_ = std::move(after.from_the_beginning);
  awaits_bookmark_ = !after.places.empty();
  phase_ = Phase::asking;
  requests_.push_back(unsubscribe_request(look_id));
  requests_.push_back(subscribe_request(
      options_.filters, {.snapshot = true, .catch_up = true, .after = std::move(after.places)}));
}

void Follower::take_session(const Fields& frame, std::string_view json) {
  if (phase_ == Phase::looking || phase_ == Phase::asking) {
    formatter_.observe(frame);
    if (phase_ == Phase::looking) append_seen(frame, seen_);
    if (phase_ == Phase::looking && status_is_news(frame)) news_.emplace_back(json);
    if (phase_ == Phase::asking) {
      std::vector<SeenStream> there;
      append_seen(frame, there);
      late_ = late_ || std::any_of(there.begin(), there.end(),
                                   [&](const auto& each) { return !looked_at_.contains(each.name); });
    }
    return;
  }
  if (phase_ == Phase::live) cursors_.learn(frame);
  if (phase_ == Phase::catching_up) cursors_.learn(frame, &rewritten_);
  remember_status(frame.text("session"), frame.object("status"));
  if (!pretty_) return show(frame, json);
  formatter_.observe(frame);
  if (!introduced_ && options_.snapshot && snapshot_.size() < snapshot_frames_max) keep(frame, json);
}

void Follower::take_reset(const Fields& frame, std::string_view json) {
  const std::string_view stream = frame.text("stream");
  if (frame.text("id").empty()) {
    cursors_.restart(stream);
  } else {
    cursors_.forget(stream);  // unknown: it is gone; rewritten: its session frame says where it is now
    if (frame.text("reason") != "unknown") rewritten_.emplace(stream);
    if (pretty_ && frame.text("reason") == "unknown") return;
  }
  show(frame, json);
}

void Follower::take_bookmark(const Fields& frame, std::string_view json) {
  if (phase_ == Phase::catching_up) {
    if (frame.text("id") != own_id) return;  // it may be older than events that are kept back
    bookmarks_.emplace_back(json);
    if (frame.flag("complete")) caught_up();
    return;
  }
  cursors_.learn(frame);
  show(frame, json);
}

void Follower::take_event(const Fields& frame, std::string_view json) {
  if (phase_ == Phase::looking || phase_ == Phase::asking) return;  // it comes again, after what was missed
  if (phase_ == Phase::catching_up) {
    formatter_.observe(frame);  // who a subagent is may be known only when it has finished
    const bool cut = from_the_beginning_.contains(frame.text("stream"));
    caught_up_.add(frame, json, cut ? std::optional(cut_ms_) : std::nullopt);
    if (caught_up_.full()) {
      caught_up_.drain([this](std::string_view kept) {
        if (const auto event = later_parser_.parse(kept)) show(*event, kept);
      });
    }
    return;
  }
  cursors_.handled(frame.text("stream"), frame.text("cursor"));
  show(frame, json);
}

// What was missed is told, in order of time; then who waits now.
void Follower::caught_up() {
  phase_ = Phase::live;
  first_ = false;
  caught_up_.drain([this](std::string_view json) {
    const auto event = later_parser_.parse(json);
    if (!event) return;
    show(*event, json);
  });
  for (const std::string& json : std::exchange(bookmarks_, {})) {
    const auto frame = later_parser_.parse(json);
    if (!frame) continue;
    cursors_.learn(*frame);
    show(*frame, json);
  }
  rewritten_.clear();
  show_news();
}

// In JSON a session frame for each whose status is another; for people those that wait.
void Follower::show_news() {
  for (const std::string& json : std::exchange(news_, {})) {
    const auto frame = later_parser_.parse(json);
    if (!frame) continue;
    const Fields status = frame->object("status");
    if (!status_is_news(*frame)) continue;  // a status frame has come since
    remember_status(frame->text("session"), status);
    if (pretty_ && status.text("state") != "waiting") continue;
    show(*frame, json);
  }
}

bool Follower::status_is_news(const Fields& session_frame) const {
  const std::string* const told = statuses_.find(session_frame.text("session"));
  return told == nullptr || *told != status_text(session_frame.object("status"));
}

void Follower::remember_status(std::string_view session, const Fields& status) {
  statuses_[session] = status_text(status);
}

void Follower::show(const Fields& frame, std::string_view json) {
  const std::string_view cursor = frame.text("cursor");
  if (!cursor.empty()) cursors_.handled(frame.text("stream"), cursor);
  if (!pretty_) return write_json(json);
  formatter_.set_columns(terminal_columns());
  formatter_.format(frame, out_.buffer());
  out_.spill();
}

void Follower::write_json(std::string_view json) {
  if (safe_json_ || json.find('\n') != json.npos) {
    out_.write(to_display_json(json));
  } else {
    out_.write(json);
  }
  out_.write("\n");
}

void Follower::keep(const Fields& frame, std::string_view json) {
  const std::string_view state = frame.object("status").text("state");
  snapshot_.push_back({std::string(json), parse_time(frame.text("last_activity")).value_or(0),
                       state == "working" || state == "waiting"});
}

// The snapshot's lines, once all names are known: the least recent first, as in a log. All that are active,
// and those at rest that there is room for.
void Follower::introduce() {
  if (introduced_) return;
  introduced_ = true;
  formatter_.set_columns(terminal_columns());
  std::vector<Kept> kept = std::exchange(snapshot_, {});
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Kept& a, const Kept& b) { return a.activity_ms > b.activity_ms; });
  std::vector<const Kept*> shown;
  std::size_t left_out = 0;
  for (const Kept& each : kept) {
    if (each.active || shown.size() < snapshot_lines_max) {
      shown.push_back(&each);
    } else {
      ++left_out;
    }
  }
  for (auto each = shown.rbegin(); each != shown.rend(); ++each) {
    if (const auto frame = later_parser_.parse((*each)->json)) formatter_.format(*frame, out_.buffer());
  }
  if (left_out > 0) out_.write("and " + std::to_string(left_out) + " more at rest: earshot ls\n");
  if (kept.empty() && options_.snapshot) out_.write("listening; no session is live\n");
}

}  // namespace earshot::cli
