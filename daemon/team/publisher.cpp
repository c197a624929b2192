#include "team/publisher.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/time.hpp"
#include "core/event_json.hpp"
#include "serve/auth/secrets.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace {

using std::chrono::milliseconds;
using watch::Clock;

constexpr milliseconds pause_first{200}, pause_last{10'000};  // between two tries to connect; doubles
constexpr milliseconds tick_every{1000};
constexpr milliseconds answer_patience{10'000};  // for the oldest answer; then the connection is given up
constexpr milliseconds unreadable_pause{30'000};
// A file that changed so much later than its last event says may have become another one.
constexpr std::int64_t quiet_change_ms = 60'000;
constexpr std::size_t asked_max = 16;  // records on their way; more are refused
constexpr std::size_t history_bytes = 4;
constexpr std::string_view ce_prefix = "dev.earshot.";

bool is_behind(const Cursor& a, const Cursor& b) {
  return a.offset > b.offset || (a.offset == b.offset && a.index > b.index);
}

}  // namespace

Publisher::Publisher(boost::asio::io_context& io, serve::Server& server, ForEach for_each,
                     PublisherOptions options)
    : io_(io),
      server_(server),
      for_each_(std::move(for_each)),
      options_(std::move(options)),
      engine_(make_engine(io, options_.link, *this)),
      retry_(io),
      ticker_(io),
      unreadable_(io) {}

Publisher::~Publisher() { stop(); }

void Publisher::start() {
  if (stopped_ || state_ != State::closed || !engine_) return;
  state_ = State::opening;
  engine_->open({options_.host, options_.owner, options_.instance, contested_});
}

void Publisher::stop() {
  if (std::exchange(stopped_, true)) return;
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  retry_.cancel();
  ticker_.cancel();
  unreadable_.cancel();
  if (engine_) engine_->close();
}

PublisherMetrics Publisher::figures() const {
  PublisherMetrics figures = figures_;
  figures.open = state_ == State::open;
  figures.on_the_way = outbox_.on_the_way();
  figures.waiting_bytes = outbox_.bytes();
  return figures;
}

// --- The connection ---

void Publisher::on_open(std::vector<Published> published, std::uint64_t beat_sequence) {
  if (stopped_) return;
  state_ = State::open;
  contested_ = false;
  ++figures_.opened;
  figures_.trouble.clear();
  outbox_.clear();
  // What was compared in this life need not be again.
  std::map<std::string, std::uint64_t> proven;
  for (const auto& [stream, place] : places_)
    if (place.proven_bytes > 0) proven[stream] = place.proven_bytes;
  places_.clear();
  statuses_.clear();
  attend_due_ = false;
  // Of two subjects of one stream (its session became another) the later message counts.
  std::sort(published.begin(), published.end(),
            [](const Published& a, const Published& b) { return a.sequence < b.sequence; });
  for (const Published& each : published) {
    outbox_.begin_at(each.subject, each.sequence);
    const auto parts = parts_of_id(options_.host, each.id);
    if (!parts) continue;
    Place place;
    place.subject = each.subject;
    // A reset, or that it was removed, has no cursor: what follows is told from the first line.
    if (const auto cursor = parse_cursor(parts->cursor)) place.last = *cursor;
    place.history = parts->history;
    place.told_ms = parse_time(each.time).value_or(0);
    place.ours = each.owner == options_.owner;
    if (const auto found = proven.find(std::string(parts->stream)); found != proven.end())
      place.proven_bytes = found->second;
    places_[std::string(parts->stream)] = place;
  }
  outbox_.begin_at(beat_subject(options_.host), beat_sequence);
  spdlog::info("relay: {} is there, with {} streams of {}", options_.link.where(), places_.size(),
               options_.host);
  answered_ = Clock::now();
  beat();
  attend();
  ticker_.expires_after(tick_every);
  ticker_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

void Publisher::on_failed(const std::string& why) { away(why); }
void Publisher::on_lost(const std::string& why) {
  if (state_ == State::open) away(why);
}

/// What was not answered is not known: the broker is asked when it is there again.
void Publisher::away(const std::string& why) {
  if (stopped_) return;
  if (figures_.trouble != why) spdlog::warn("relay: {}; it is tried again", why);
  figures_.trouble = why;
  if (state_ == State::open) pause_ = milliseconds(0);
  state_ = State::closed;
  engine_->close();
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  ticker_.cancel();
  unreadable_.cancel();
  outbox_.clear();
  asked_.clear();
  attend_due_ = false;
  pause_ = std::clamp(pause_ * 2, pause_first, pause_last);
  retry_.expires_after(pause_);
  retry_.async_wait([this](boost::system::error_code ec) {
    if (!ec) start();
  });
}

void Publisher::tick() {
  if (stopped_ || state_ != State::open) return;
  const auto now = Clock::now();
  if (outbox_.on_the_way() == 0) answered_ = now;
  if (now - answered_ > answer_patience) return away("JetStream does not answer");
  if (now - beaten_ >= milliseconds(BrokerClient::beat_ms)) beat();
  ticker_.expires_after(tick_every);
  ticker_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

void Publisher::beat() {
  beaten_ = Clock::now();
  Message message;
  message.to = Message::To::statuses;
  message.subject = beat_subject(options_.host);
  message.id = options_.host + "/beat/" + options_.instance + "." + std::to_string(++statuses_told_);
  message.type = std::string(ce_prefix) + "host";
  message.payload = beat_payload({options_.host, options_.owner, options_.instance});
  outbox_.add_newest(std::move(message), true);
  flush_soon();
}

void Publisher::on_acked(std::uint64_t number, std::uint64_t sequence) {
  if (state_ != State::open || !outbox_.acked(number, sequence)) return;
  ++figures_.published;
  answered_ = Clock::now();
  pause_ = milliseconds(0);
  flush_soon();
}

void Publisher::on_refused(std::uint64_t number, int error, const std::string& why) {
  if (state_ != State::open) return;
  const auto* refused = outbox_.find(number);
  if (!refused) return;
  ++figures_.refused;
  const bool of_beat = refused->subject == beat_subject(options_.host);
  if (error == wrong_last_sequence && of_beat) {
    contested_ = true;
    return away("another daemon has begun to publish as host `" + options_.host + "`");
  }
  if (error == message_too_long) {
    spdlog::warn("relay: {} is longer than the stream takes, and is left out", refused->id);
    outbox_.given_up(number);
    answered_ = Clock::now();
    return flush_soon();
  }
  // A message of an earlier connection may have come in after the broker was asked: it is asked again.
  away("JetStream did not take " + refused->id + ": " + why);
}

// --- Who listens ---

/// Everything that is live, from where the broker has it; what is cold only where its file has gone on.
void Publisher::attend() {
  if (local_client_) local_client_->leave();
  give_reads_up();
  ++rounds_;
  std::vector<std::string> cold;
  local_client_ = server_.attach(*this, options_.full ? serve::Audience::full : serve::Audience::meta);
  std::vector<std::string> after;
  for_each_([&](const tail::Stream& stream) {
    const auto known = places_.find(stream.name());
    const bool is_live = stream.transcript() != nullptr;
    if (known != places_.end()) known->second.round = rounds_;
    if (!is_live && known == places_.end()) return;
    if (!is_live && known->second.last.offset == stream.bytes()) {
      cold.push_back(stream.name());
      if (!is_doubtful(known->second, stream)) return;
    }
    Place& place = known == places_.end() ? places_[stream.name()] : known->second;
    place.round = rounds_;
    if (!is_live) place.proven_bytes = stream.bytes();
    place.unreadable = false;
    if (place.last == begin_cursor && !place.subject.empty() && place.history.empty())
      place.history = serve::random_hex(history_bytes);  // it was removed, and is there again
    after.push_back(stream.name() + ':' + (place.last == begin_cursor ? "" : to_string(place.last)));
  });
  const std::size_t entries_max = server_.context().limits.after_entries;
  for (std::size_t at = 0; at == 0 || at < after.size(); at += entries_max) {
    serve::message::Subscribe asked;
    asked.id = "relay" + std::to_string(++subscriptions_);
    asked.snapshot = at == 0;
    asked.catch_up = true;
    asked.after.emplace(
        after.begin() + static_cast<std::ptrdiff_t>(at),
        after.begin() + static_cast<std::ptrdiff_t>(std::min(at + entries_max, after.size())));
    local_client_->subscribe(std::move(asked));
  }
  settle_cold(cold);
  remove_gone();
}

/// Whether a cold one may be another file than the one that was published, though it is as long.
bool Publisher::is_doubtful(const Place& place, const tail::Stream& stream) const {
  if (place.proven_bytes == stream.bytes()) return false;
  return place.told_ms == 0 || stream.modified_ms() > place.told_ms + quiet_change_ms;
}

/// When one of them grows or is touched, what was published of it must still be there: else it is a reset.
void Publisher::settle_cold(const std::vector<std::string>& cold) {
  tail::Archive* archive = server_.context().archive;
  for (const std::string& name : cold) {
    const tail::Stream* stream = archive ? archive->find(name) : nullptr;
    const auto place = places_.find(name);
    if (stream && place != places_.end()) archive->told(*stream, place->second.last);
  }
}

/// What was published, and went while nobody was here to say so.
void Publisher::remove_gone() {
  if (!options_.is_gone) return;
  for (auto place = places_.begin(); place != places_.end();) {
    const bool gone = place->second.round != rounds_ && place->second.ours &&
                      !place->second.subject.empty() && place->second.last != begin_cursor &&
                      options_.is_gone(place->first);
    if (gone) publish_removed(place->first, place->second);
    place = gone ? places_.erase(place) : std::next(place);
  }
}

/// A stream came into view that had a history already: it is told from its first line, and nothing of what
/// was handed over is told again.
void Publisher::attend_again() {
  if (stopped_ || !local_client_ || state_ != State::open || std::exchange(attend_due_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<serve::InProcessClient>(local_client_)] {
    if (alive.expired() || stopped_ || state_ != State::open || !std::exchange(attend_due_, false)) return;
    attend();
  });
}

void Publisher::on_frame(std::string_view payload) {
  const auto frame = read_frame(payload);
  if (!frame || state_ != State::open) return;
  if (frame->is_event()) return on_event(*frame, payload);
  struct Rule {
    std::string_view type;
    void (Publisher::*call)(const Frame&);
  };
  constexpr Rule rules[] = {{"session", &Publisher::on_session},
                            {"reset", &Publisher::on_reset},
                            {"stream.removed", &Publisher::on_removed}};
  for (const Rule& each : rules)
    if (each.type == frame->type) return (this->*each.call)(*frame);
  if (frame->type == "status" && frame->status) publish_status(frame->session, *frame->status);
  if (frame->type == "lagged") attend_again();
  if (frame->type == "record" || frame->type == "error") on_record(*frame, payload);
}

void Publisher::on_event(const Frame& frame, std::string_view payload) {
  if (attend_due_) return;  // all of it comes again, in order
  auto place = places_.find(frame.stream);
  if (place == places_.end()) {
    // A new one is told from its first event; of any other nothing is known: it is attended from its first
    // line.
    if (frame.type != "session.started" || frame.cursor->index != 1) return attend_again();
    place = places_.emplace(frame.stream, Place{}).first;
  }
  if (place->second.unreadable || !is_behind(*frame.cursor, place->second.last)) return;
  Message message;
  message.after = to_string(place->second.last);
  place->second.last = *frame.cursor;
  place->second.ours = true;
  place->second.session = frame.session;
  if (place->second.subject.empty()) {
    place->second.subject = event_subject(options_.host, frame.session, frame.stream);
    // It was removed and came again.
    if (outbox_.knows(place->second.subject)) place->second.history = serve::random_hex(history_bytes);
  }
  message.subject = place->second.subject;
  message.id = message_id(options_.host, frame.stream, to_string(*frame.cursor), place->second.history);
  message.type = std::string(ce_prefix) + frame.type;
  message.time = frame.time;
  message.payload = fit(payload, payload_bytes_max);
  outbox_.add(std::move(message));
  flush_soon();
}

void Publisher::on_session(const Frame& frame) {
  if (frame.status) publish_status(frame.session, *frame.status);
  for (const std::string& each : frame.cursors) {
    const std::string_view stream = std::string_view(each).substr(0, each.rfind(':'));
    if (!places_.contains(stream)) return attend_again();
  }
}

void Publisher::on_reset(const Frame& frame) {
  if (attend_due_) return;
  const auto place = places_.find(frame.stream);
  if (place == places_.end()) return;
  if (frame.reason == "unreadable") {
    place->second.unreadable = true;
    unreadable_.expires_after(unreadable_pause);
    unreadable_.async_wait([this](boost::system::error_code ec) {
      if (!ec) attend_again();
    });
    return;
  }
  if (frame.reason == "unknown") return on_removed(frame);
  const std::string last = to_string(place->second.last);
  if (place->second.last != begin_cursor && !place->second.subject.empty()) {
    ++figures_.resets;
    Message message;
    message.subject = place->second.subject;
    place->second.history = serve::random_hex(history_bytes);
    message.id = message_id(options_.host, frame.stream, "reset-" + last, place->second.history);
    message.type = std::string(ce_prefix) + "reset";
    Frame told = frame;
    told.host = options_.host;
    message.payload = reset_payload(told, last);
    outbox_.add(std::move(message));
    flush_soon();
  }
  place->second.last = begin_cursor;
  // In answer to `after` only what is newer follows: the first line has to be asked for.
  if (!frame.id.empty()) attend_again();
}

void Publisher::on_removed(const Frame& frame) {
  const auto place = places_.find(frame.stream);
  if (place == places_.end()) return;
  if (!place->second.subject.empty()) publish_removed(frame.stream, place->second);
  places_.erase(place);
}

void Publisher::publish_removed(const std::string& stream, const Place& place) {
  Message message;
  message.subject = place.subject;
  message.id =
      message_id(options_.host, stream, "removed-" + to_string(place.last), serve::random_hex(history_bytes));
  message.type = std::string(ce_prefix) + "stream.removed";
  Frame told;
  told.host = options_.host;
  told.stream = stream;
  message.payload = removed_payload(told, place.session);
  outbox_.add(std::move(message));
  flush_soon();
}

void Publisher::publish_status(const std::string& session, const status::Status& status) {
  status::Status shown = status;
  if (!options_.full) shown.detail.clear();
  Message message;
  message.to = Message::To::statuses;
  message.subject = status_subject(options_.host, session);
  message.id = options_.host + "/status/" + options_.instance + "." + std::to_string(++statuses_told_);
  message.type = std::string(ce_prefix) + "status";
  message.payload = status_payload(options_.host, session, shown);
  std::string& last = statuses_[session];
  if (last == message.payload) return;
  last = message.payload;
  outbox_.add_newest(std::move(message));
  flush_soon();
}

// --- Records ---

void Publisher::on_asked(Asked asked) {
  const auto frame = read_frame(asked.text);
  const auto refuse = [&](std::string_view code, std::string_view why, bool retry = false) {
    engine_->answer(asked.reply, {serve::message::error("", code, why, retry)});
  };
  if (!frame || frame->stream.empty() || !frame->cursor) return refuse("bad_message", "no stream and cursor");
  if (!options_.read || !options_.full)
    return refuse("not_allowed", "host " + options_.host + " does not let records be read from elsewhere");
  if (asked_.size() >= asked_max || !local_client_)
    return refuse("busy", "too many records are being read", true);
  if (!asked_.insert(asked.reply).second) return;
  local_client_->read({asked.reply, frame->stream, *frame->cursor});
}

/// Who is asked for them is not here any more.
void Publisher::give_reads_up() {
  for (const std::string& reply : asked_)
    engine_->answer(reply, {serve::message::error("", "busy", "the host reads anew; ask again", true)});
  asked_.clear();
}

void Publisher::on_record(const Frame& frame, std::string_view payload) {
  const auto asked = asked_.find(frame.id);
  if (asked == asked_.end()) {
    if (frame.type == "error") spdlog::warn("relay: {}", frame.message);
    return;
  }
  // Handed on part by part: the last one says so itself.
  engine_->answer(frame.id, {std::string(payload)});
  if (frame.type == "error" || is_last_part(payload)) asked_.erase(asked);
}

// --- Out ---

void Publisher::flush() {
  if (state_ != State::open) return;
  auto out = outbox_.take();
  if (!out.empty()) engine_->publish(std::move(out));
  if (local_client_ && outbox_.has_room()) local_client_->wake();
}

/// Once for all that one turn of the loop brought.
void Publisher::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(io_, [this] {
    flush_posted_ = false;
    flush();
  });
}

}  // namespace earshot::team
