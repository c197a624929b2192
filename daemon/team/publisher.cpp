#include "team/publisher.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "log/log.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::team {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds connect_delay_min{200},
    connect_delay_max{10'000};  // between two attempts to connect; doubles
constexpr milliseconds publish_interval{1000};
constexpr milliseconds numbers_interval{
    3000};  // between two messages of a session of which only numbers changed
constexpr milliseconds ack_timeout{10'000};  // without any acknowledgement; then it reconnects
constexpr milliseconds unreadable_retry_delay{30'000};
// A file that was modified this much later than its last event may have been replaced.
constexpr std::int64_t quiet_change_ms = 60'000;
constexpr std::size_t pending_reads_max = 16;  // records being read; further requests are refused
constexpr std::size_t history_bytes = 4;
constexpr std::string_view ce_prefix = "dev.earshot.";

bool is_after(const Cursor& a, const Cursor& b) {
  return a.offset > b.offset || (a.offset == b.offset && a.index > b.index);
}

/// Of a session in several projects.
std::vector<std::string> projects_of(const serve::Session& session, const TextFilter* filter) {
  std::vector<std::string> projects;
  std::string scratch;
  for (const std::string& each : serve::projects_of(session))
    projects.emplace_back(filter ? filter->clean(each, scratch) : each);
  return projects.size() > 1 ? projects : std::vector<std::string>();
}

}  // namespace

Publisher::Publisher(boost::asio::io_context& io, serve::Server& server, ForEach for_each,
                     PublisherOptions options)
    : io_(io),
      server_(server),
      for_each_(std::move(for_each)),
      options_(std::move(options)),
      retry_timer_(io),
      tick_timer_(io),
      unreadable_timer_(io) {}

Publisher::~Publisher() { stop(); }

void Publisher::start() {
  if (stopped_ || connection_) return;
  connection_ = std::make_unique<PublisherConnection>(
      io_, options_.broker, Heartbeat{options_.host, options_.owner, options_.instance, is_contested_},
      [this](BrokerEvent event) {
        std::visit([this](auto& each) { on_broker_event(std::move(each)); }, event);
      });
}

void Publisher::stop() {
  if (std::exchange(stopped_, true)) return;
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  retry_timer_.cancel();
  tick_timer_.cancel();
  unreadable_timer_.cancel();
  is_open_ = false;
  connection_.reset();
}

void Publisher::call_after(Timer& timer, milliseconds delay, void (Publisher::*call)()) {
  timer.expires_after(delay);
  timer.async_wait([this, call](boost::system::error_code ec) {
    if (!ec) (this->*call)();
  });
}

PublisherMetrics Publisher::metrics() const {
  PublisherMetrics metrics = metrics_;
  metrics.open = is_open_;
  metrics.in_flight = outbox_.in_flight();
  metrics.waiting_bytes = outbox_.bytes();
  return metrics;
}

// --- The connection ---

void Publisher::on_broker_event(BrokerOpened opened) {
  is_open_ = true;
  is_contested_ = false;
  ++metrics_.opened;
  metrics_.problem.clear();
  outbox_.clear();
  // Streams that were verified since the start are not verified again.
  std::map<std::string, std::uint64_t> verified;
  for (const auto& [stream, progress] : streams_)
    if (progress.verified_bytes > 0) verified[stream] = progress.verified_bytes;
  streams_.clear();
  last_statuses_.clear();
  numbers_due_.clear();
  resubscribe_pending_ = false;
  // A stream whose session changed may have two subjects: the later message applies.
  std::sort(opened.published.begin(), opened.published.end(),
            [](const LastMessage& a, const LastMessage& b) { return a.sequence < b.sequence; });
  for (const LastMessage& each : opened.published) {
    outbox_.set_sequence(each.subject, each.sequence);
    const auto parts = parts_of_id(options_.host, each.id);
    if (!parts) continue;
    StreamProgress progress;
    progress.subject = each.subject;
    // A reset or a removal has no cursor: publish from the first line.
    if (const auto cursor = parse_cursor(parts->cursor)) progress.last = *cursor;
    progress.history = parts->history;
    progress.last_event_ms = parse_time(each.time).value_or(0);
    progress.is_ours = each.owner == options_.owner;
    if (const auto found = verified.find(std::string(parts->stream)); found != verified.end())
      progress.verified_bytes = found->second;
    streams_[std::string(parts->stream)] = progress;
  }
  outbox_.set_sequence(heartbeat_subject(options_.host), opened.heartbeat_sequence);
  log_info("relay: connected to {}, which has {} streams of {}", options_.broker.where(), streams_.size(),
           options_.host);
  last_ack_ = Clock::now();
  send_heartbeat();
  subscribe_all();
  call_after(tick_timer_, publish_interval, &Publisher::tick);
}

/// The state of unacknowledged messages is unknown; it is read from the broker after the next connect.
void Publisher::disconnect(const std::string& reason) {
  if (stopped_) return;
  if (metrics_.problem != reason) log_warn("relay: {}; retrying", reason);
  metrics_.problem = reason;
  if (std::exchange(is_open_, false)) retry_delay_ = milliseconds(0);
  connection_.reset();
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  tick_timer_.cancel();
  unreadable_timer_.cancel();
  outbox_.clear();
  pending_reads_.clear();
  resubscribe_pending_ = false;
  retry_delay_ = std::clamp(retry_delay_ * 2, connect_delay_min, connect_delay_max);
  call_after(retry_timer_, retry_delay_, &Publisher::start);
}

void Publisher::tick() {
  if (stopped_ || !is_open_) return;
  const auto now = Clock::now();
  if (outbox_.in_flight() == 0) last_ack_ = now;
  if (now - last_ack_ > ack_timeout) return disconnect("JetStream does not respond");
  if (now - last_heartbeat_ >= milliseconds(heartbeat_ms)) send_heartbeat();
  if (now - last_numbers_ >= numbers_interval) publish_numbers();
  call_after(tick_timer_, publish_interval, &Publisher::tick);
}

void Publisher::send_heartbeat() {
  last_heartbeat_ = Clock::now();
  Message message;
  message.target = Message::Target::statuses;
  message.subject = heartbeat_subject(options_.host);
  message.id = options_.host + "/beat/" + options_.instance + "." + std::to_string(++statuses_sent_);
  message.source = event_source(options_.host, "");
  message.type = std::string(ce_prefix) + "host";
  message.payload = heartbeat_payload(
      {options_.host, options_.owner, options_.instance, false, format_time_if_valid(wall_now_ms())});
  outbox_.add_latest(std::move(message), true);
  flush_soon();
}

void Publisher::on_broker_event(const MessageAcked& acked) {
  if (!outbox_.on_ack(acked.number, acked.sequence)) return;
  ++metrics_.published;
  last_ack_ = Clock::now();
  retry_delay_ = milliseconds(0);
  flush_soon();
}

void Publisher::on_broker_event(const MessageRefused& refused) {
  const auto* message = outbox_.find(refused.number);
  if (!message) return;
  ++metrics_.refused;
  const bool is_heartbeat = message->subject == heartbeat_subject(options_.host);
  if (refused.error == wrong_last_sequence && is_heartbeat) {
    is_contested_ = true;
    return disconnect("another daemon started to publish as host `" + options_.host + "`");
  }
  if (refused.error == message_too_long) {
    log_warn("relay: {} exceeds the size limit of the stream; skipped", message->id);
    outbox_.drop(refused.number);
    last_ack_ = Clock::now();
    return flush_soon();
  }
  // A message of an earlier connection may have been stored after the positions were read: read them again.
  disconnect("JetStream refused " + message->id + ": " + refused.reason);
}

// --- Subscriptions ---

/// Subscribes to all live streams from their published position, and to cold streams whose file has grown or
/// must be verified.
void Publisher::subscribe_all() {
  if (local_client_) local_client_->leave();
  cancel_reads();
  ++rounds_;
  find_renamed();
  std::vector<std::string> cold;
  local_client_ = server_.attach(*this, options_.full ? serve::Audience::full : serve::Audience::meta);
  std::vector<std::string> after;
  for_each_([&](const tail::Stream& stream) {
    const auto known = streams_.find(stream.name());
    const bool is_live = stream.transcript() != nullptr;
    if (known != streams_.end()) known->second.subscription_round = rounds_;
    if (!is_live && known == streams_.end()) return;
    const std::uint64_t bytes = stream.published_bytes();
    if (!is_live && bytes == unknown_bytes && !must_verify(known->second, stream)) return;
    if (!is_live && known->second.last.offset == bytes) {
      cold.push_back(stream.name());
      if (!must_verify(known->second, stream)) return;
    }
    StreamProgress& progress = known == streams_.end() ? streams_[stream.name()] : known->second;
    progress.subscription_round = rounds_;
    if (!is_live) progress.verified_bytes = bytes;
    progress.unreadable = false;
    if (progress.last == begin_cursor && !progress.subject.empty() && progress.history.empty())
      progress.history = random_hex(history_bytes);  // removed and created again
    after.push_back(stream.name() + ':' + (progress.last == begin_cursor ? "" : to_string(progress.last)));
  });
  const std::size_t entries_max = server_.context().limits.after_entries;
  for (std::size_t at = 0; at == 0 || at < after.size(); at += entries_max) {
    serve::message::Subscribe request;
    request.id = "relay" + std::to_string(++subscriptions_);
    request.snapshot = at == 0;
    request.catch_up = true;
    request.after.emplace(
        after.begin() + static_cast<std::ptrdiff_t>(at),
        after.begin() + static_cast<std::ptrdiff_t>(std::min(at + entries_max, after.size())));
    local_client_->subscribe(std::move(request));
  }
  mark_cold_published(cold);
  publish_deleted();
}

/// Streams that were renamed while nothing was published.
void Publisher::find_renamed() {
  const tail::Archive* archive = server_.context().archive;
  if (!archive) return;
  struct Renamed {
    std::string from, to, session;
  };
  std::vector<Renamed> renamed;
  for (const auto& [name, progress] : streams_) {
    if (!progress.is_ours || progress.last == begin_cursor) continue;
    const tail::Stream* stream = archive->find_present(name);
    if (stream && stream->name() != name) renamed.push_back({name, stream->name(), stream->session()});
  }
  for (const Renamed& each : renamed) rename(each.from, each.to, each.session);
}

/// True if a cold file of the published length may have been replaced.
bool Publisher::must_verify(const StreamProgress& progress, const tail::Stream& stream) const {
  if (progress.verified_bytes == stream.published_bytes()) return false;
  return progress.last_event_ms == 0 || stream.modified_ms() > progress.last_event_ms + quiet_change_ms;
}

/// Sets the published prefix of cold streams: a later change that does not preserve it is a reset.
void Publisher::mark_cold_published(const std::vector<std::string>& cold) {
  tail::Archive* archive = server_.context().archive;
  for (const std::string& name : cold) {
    const tail::Stream* stream = archive ? archive->find(name) : nullptr;
    const auto progress = streams_.find(name);
    if (stream && progress != streams_.end()) archive->mark_published(*stream, progress->second.last);
  }
}

/// Publishes the removal of streams that were deleted while the daemon was not running.
void Publisher::publish_deleted() {
  if (!options_.is_deleted) return;
  for (auto progress = streams_.begin(); progress != streams_.end();) {
    const bool deleted = progress->second.subscription_round != rounds_ && progress->second.is_ours &&
                         !progress->second.subject.empty() && progress->second.last != begin_cursor &&
                         options_.is_deleted(progress->first);
    if (deleted) publish_removed(progress->first, progress->second);
    progress = deleted ? streams_.erase(progress) : std::next(progress);
  }
}

/// Subscribes again, for a stream that became visible with existing events: those are published from the
/// first line, and no event of another stream is repeated.
void Publisher::resubscribe() {
  if (stopped_ || !local_client_ || !is_open_ || std::exchange(resubscribe_pending_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<serve::InProcessClient>(local_client_)] {
    if (alive.expired() || stopped_ || !is_open_ || !std::exchange(resubscribe_pending_, false)) return;
    subscribe_all();
  });
}

void Publisher::on_frame(std::string_view payload) {
  const auto frame = read_frame(payload);
  if (!frame || !is_open_) return;
  if (frame->is_event()) return on_event(*frame, payload);
  struct Rule {
    std::string_view type;
    void (Publisher::*call)(const Frame&);
  };
  constexpr Rule rules[] = {{"session", &Publisher::on_session},
                            {"reset", &Publisher::on_reset},
                            {"stream.renamed", &Publisher::on_renamed},
                            {"stream.removed", &Publisher::on_removed}};
  for (const Rule& each : rules)
    if (each.type == frame->type) return (this->*each.call)(*frame);
  if (frame->type == "status" && frame->status) publish_status(frame->session, *frame->status);
  if (frame->type == "lagged") resubscribe();
  if (frame->type == "record" || frame->type == "error") on_record(*frame, payload);
}

void Publisher::on_event(const Frame& frame, std::string_view payload) {
  if (resubscribe_pending_) return;  // the next subscription repeats it in order
  auto progress = streams_.find(frame.stream);
  if (progress == streams_.end()) {
    // A new stream starts with its first event; any other needs a subscription from its first line.
    if (frame.type != "session.started" || frame.cursor->index != 1) return resubscribe();
    progress = streams_.emplace(frame.stream, StreamProgress{}).first;
  }
  if (frame.type == "usage.updated" || frame.type == "limits.updated") numbers_due_.insert(frame.session);
  if (progress->second.unreadable || !is_after(*frame.cursor, progress->second.last)) return;
  Message message;
  message.after = to_string(progress->second.last);
  progress->second.last = *frame.cursor;
  progress->second.is_ours = true;
  progress->second.session = frame.session;
  if (progress->second.subject.empty()) {
    progress->second.subject = event_subject(options_.host, frame.session, frame.stream);
    // Removed and created again.
    if (outbox_.has_subject(progress->second.subject)) progress->second.history = random_hex(history_bytes);
  }
  message.subject = progress->second.subject;
  message.id = message_id(options_.host, frame.stream, to_string(*frame.cursor), progress->second.history);
  message.source = event_source(options_.host, frame.stream);
  message.type = std::string(ce_prefix) + frame.type;
  message.time = frame.time;
  message.payload = shorten_event(payload, payload_bytes_max);
  outbox_.add(std::move(message));
  flush_soon();
}

void Publisher::on_session(const Frame& frame) {
  if (frame.status) publish_status(frame.session, *frame.status);
  for (const std::string& each : frame.cursors) {
    const std::string_view stream = std::string_view(each).substr(0, each.rfind(':'));
    if (!streams_.contains(stream)) return resubscribe();
  }
}

void Publisher::on_reset(const Frame& frame) {
  if (resubscribe_pending_) return;
  const auto progress = streams_.find(frame.stream);
  if (progress == streams_.end()) return;
  if (frame.reason == "unreadable") {
    progress->second.unreadable = true;
    call_after(unreadable_timer_, unreadable_retry_delay, &Publisher::resubscribe);
    return;
  }
  if (frame.reason == "unknown") return on_removed(frame);
  const std::string last = to_string(progress->second.last);
  if (progress->second.last != begin_cursor && !progress->second.subject.empty()) {
    ++metrics_.resets;
    Message message;
    message.subject = progress->second.subject;
    progress->second.history = random_hex(history_bytes);
    message.id = message_id(options_.host, frame.stream, "reset-" + last, progress->second.history);
    message.source = event_source(options_.host, frame.stream);
    message.type = std::string(ce_prefix) + "reset";
    Frame notice = frame;
    notice.host = options_.host;
    message.payload = reset_payload(notice, last);
    outbox_.add(std::move(message));
    flush_soon();
  }
  progress->second.last = begin_cursor;
  // The response to `after` has newer events only: subscribe from the first line.
  if (!frame.id.empty()) resubscribe();
}

void Publisher::on_renamed(const Frame& frame) { rename(frame.from, frame.to, frame.session); }

/// What was published goes on in the subject of the new name.
void Publisher::rename(const std::string& from, const std::string& to, const std::string& session_name) {
  const auto known = streams_.find(from);
  if (known == streams_.end()) return;
  if (const auto other = streams_.find(to); other != streams_.end() && other->second.last == begin_cursor) {
    streams_.erase(other);               // it was removed, or nothing of it is published
  } else if (other != streams_.end()) {  // its events came before this frame
    if (!known->second.subject.empty()) publish_removed(from, known->second);
    streams_.erase(known);
    return;
  }
  auto moved = streams_.extract(known);
  moved.key() = to;
  StreamProgress& progress = streams_.insert(std::move(moved)).position->second;
  const bool is_published = !progress.subject.empty() && progress.last != begin_cursor;
  const std::string& session = session_name.empty() ? progress.session : session_name;
  std::string follows = std::move(progress.subject);
  progress.subject = is_published ? event_subject(options_.host, session, to) : std::string();
  progress.history = random_hex(history_bytes);
  if (!is_published) return;
  Message message;
  message.subject = progress.subject;
  message.follows = std::move(follows);
  message.id = message_id(options_.host, to, to_string(progress.last), progress.history);
  message.source = event_source(options_.host, to);
  message.type = std::string(ce_prefix) + "stream.renamed";
  message.payload = renamed_payload(options_.host, session, from, to);
  outbox_.add(std::move(message));
  flush_soon();
}

void Publisher::on_removed(const Frame& frame) {
  const auto progress = streams_.find(frame.stream);
  if (progress == streams_.end()) return;
  if (!progress->second.subject.empty()) publish_removed(frame.stream, progress->second);
  streams_.erase(progress);
}

void Publisher::publish_removed(const std::string& stream, const StreamProgress& progress) {
  Message message;
  message.subject = progress.subject;
  message.id =
      message_id(options_.host, stream, "removed-" + to_string(progress.last), random_hex(history_bytes));
  message.source = event_source(options_.host, stream);
  message.type = std::string(ce_prefix) + "stream.removed";
  Frame notice;
  notice.host = options_.host;
  notice.stream = stream;
  message.payload = removed_payload(notice, progress.session);
  outbox_.add(std::move(message));
  flush_soon();
}

void Publisher::publish_status(const std::string& session, const status::Status& status) {
  status::Status shown = status;
  if (!options_.full) shown.detail.clear(), shown.title.clear();
  const serve::Session* known = server_.context().sessions.find(session);
  if (known && known->status) shown.done = known->status->done;  // frames tell it once, the broker keeps it
  if (known) shown.projects = projects_of(*known, server_.context().filter);
  Message message;
  message.target = Message::Target::statuses;
  message.subject = status_subject(options_.host, session);
  message.id = options_.host + "/status/" + options_.instance + "." + std::to_string(++statuses_sent_);
  message.source = event_source(options_.host, "");
  message.type = std::string(ce_prefix) + "status";
  message.payload = status_payload(
      options_.host, session, shown,
      known ? serve::numbers_of(*known, server_.context().sessions.models(), server_.context().filter)
            : serve::ReportedNumbers{});
  std::string& last = last_statuses_[session];
  if (last == message.payload) return;
  last = message.payload;
  outbox_.add_latest(std::move(message));
  flush_soon();
}

void Publisher::publish_numbers() {
  last_numbers_ = Clock::now();
  for (const std::string& session : std::exchange(numbers_due_, {})) {
    const serve::Session* known = server_.context().sessions.find(session);
    if (known && known->status) publish_status(session, *known->status);
  }
}

// --- Records ---

void Publisher::on_broker_event(const RecordRequest& request) {
  const auto frame = read_frame(request.text);
  const auto refuse = [&](std::string_view code, std::string_view reason, bool retry = false) {
    connection_->send_reply(request.reply, serve::error_frame("", code, reason, retry));
  };
  if (!frame || frame->stream.empty() || !frame->cursor) return refuse("bad_message", "no stream and cursor");
  if (!options_.read || !options_.full)
    return refuse("not_allowed", "host " + options_.host + " does not allow other hosts to read records");
  if (pending_reads_.size() >= pending_reads_max || !local_client_)
    return refuse("busy", "too many records are being read", true);
  if (!pending_reads_.insert(request.reply).second) return;
  local_client_->read({request.reply, frame->stream, *frame->cursor});
}

/// The in-process client that reads them was replaced.
void Publisher::cancel_reads() {
  for (const std::string& reply : pending_reads_)
    connection_->send_reply(reply, serve::error_frame("", "busy", "the host resubscribed; retry", true));
  pending_reads_.clear();
}

void Publisher::on_record(const Frame& frame, std::string_view payload) {
  const auto request = pending_reads_.find(frame.id);
  if (request == pending_reads_.end()) {
    if (frame.type == "error") log_warn("relay: {}", frame.message);
    return;
  }
  // Parts are forwarded as they arrive; the last one is marked.
  connection_->send_reply(frame.id, std::string(payload));
  if (frame.type == "error" || is_last_part(payload)) pending_reads_.erase(request);
}

// --- Sending ---

void Publisher::flush() {
  if (!is_open_) return;
  auto out = outbox_.take_ready();
  if (!out.empty()) connection_->publish(std::move(out));
  if (local_client_ && outbox_.has_room()) local_client_->resume();
}

/// Flushes once for all messages of one event loop iteration.
void Publisher::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(io_, [this] {
    flush_posted_ = false;
    flush();
  });
}

}  // namespace earshot::team
