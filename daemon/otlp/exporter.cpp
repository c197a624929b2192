#include "otlp/exporter.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "log/log.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::otlp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds tick_interval{1000};
constexpr milliseconds resubscribe_delay{500};  // after the first reset, for further ones
constexpr milliseconds unreadable_retry_delay{30'000};
constexpr std::int64_t file_time_slack_ms = 10'000;  // of a file, after the time of its last event

std::string key_of(std::string_view session, std::string_view key) {
  return std::string(session) + '\n' + std::string(key);
}

}  // namespace

/// Takes the spans of one event.
class Exporter::Sink final : public SpanSink {
 public:
  Sink(Exporter& exporter, const WireFrame& frame, std::string_view program, const Stream& stream,
       bool is_new)
      : exporter_(exporter), frame_(frame), program_(program), stream_(stream), is_new_(is_new) {}
  void on_span(const Span& span) override {
    if (is_new_) exporter_.add_span(span, frame_.host, program_, stream_.counted_ms);
  }
  void on_subagent(std::string_view key, const SpanContext& span) override {
    exporter_.add_subagent(frame_.session, key, span);
  }

 private:
  Exporter& exporter_;
  const WireFrame& frame_;
  const std::string_view program_;
  const Stream& stream_;
  const bool is_new_;  // otherwise its spans were exported before the start
};

Exporter::Stream::Stream(const Position& from)
    : spans(from.anchor, from.anchor_ms),
      last(from.anchor),
      exported(from.exported),
      newest_ms(from.newest_ms),
      stored_parent(from.parent) {}

Position Exporter::Stream::position() const {
  const SpanContext* parent = spans.parent();
  return {is_after(exported, last) ? exported : last, spans.anchor(), newest_ms,
          parent ? std::optional(*parent) : stored_parent, spans.anchor_ms()};
}

void Exporter::Stream::read_again() {
  const Position before = position();
  exported = before.exported;
  stored_parent = before.parent;
  spans = StreamSpans();
  last = begin_cursor;
}

void Exporter::Stream::export_again() {
  read_again();
  exported = begin_cursor;
  counted_ms = std::max(counted_ms, std::exchange(newest_ms, 0));
}

Exporter::Exporter(boost::asio::io_context& io, boost::asio::any_io_executor disk, serve::Server& server,
                   ForEach for_each, Config config, const std::string& state)
    : server_(server),
      for_each_(std::move(for_each)),
      config_(std::move(config)),
      file_(io, disk, {state + "/otlp.json", "what was exported", "recent events are exported again"},
            [this] {
              positions_.drop_before(wall_now_ms() - config_.retain.count());
              return [positions = positions_] { return positions.text(); };
            }),
      tick_timer_(io),
      unreadable_timer_(io),
      resubscribe_timer_(io),
      requests_(io, std::move(disk), config_),
      uploader_(io, config_, requests_, *this, std::random_device{}()),
      metric_exporter_(config_.metrics.is_on()
                           ? std::make_unique<MetricExporter>(io, config_, requests_, server,
                                                              [this] {
                                                                if (local_client_) local_client_->flush();
                                                              })
                           : nullptr) {
  if (auto found = file_.read(Positions::text_bytes_max, Positions::parse)) positions_ = std::move(*found);
}

Exporter::~Exporter() { stop(); }

void Exporter::start() {
  log_info("otlp: exporting the {} view", config_.full ? "full" : "meta");
  subscribe_all();
  if (metric_exporter_) metric_exporter_->start();
}

/// Events that are not exported yet are read from the transcripts after the next start. The metrics since the
/// last interval would be lost: they are sent now, with the events that were not read yet.
void Exporter::stop() {
  if (std::exchange(stopped_, true)) return;
  if (local_client_ && metric_exporter_) metric_exporter_->stop();
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  uploader_.stop();
  for (Timer* timer : {&tick_timer_, &unreadable_timer_, &resubscribe_timer_}) timer->cancel();
}

void Exporter::flush_positions() {
  uploader_.finish();
  if (metric_exporter_) metric_exporter_->finish();
  file_.flush();
}

void Exporter::call_after(Timer& timer, milliseconds delay, void (Exporter::*call)()) {
  timer.expires_after(delay);
  timer.async_wait([this, call](boost::system::error_code ec) {
    if (!ec && !stopped_) (this->*call)();
  });
}

ExporterMetrics Exporter::metrics() const {
  const Uploader::Counts counts = uploader_.counts();
  ExporterMetrics metrics{counts.exported, counts.rejected,      counts.dropped,     expired_, counts.retries,
                          counts.pending,  counts.pending_bytes, counts.lag_seconds, {}};
  metrics.problem = uploader_.problem();
  if (metrics.problem.empty() && metric_exporter_) metrics.problem = metric_exporter_->problem();
  if (metrics.problem.empty()) metrics.problem = file_.problem();
  return metrics;
}

/// As long as a stream waits for its parent.
void Exporter::tick() {
  is_ticking_ = false;
  release_held();
  if (std::any_of(streams_.begin(), streams_.end(), [](const auto& each) { return each.second.held_since; }))
    tick_later();
}

void Exporter::tick_later() {
  if (!std::exchange(is_ticking_, true)) call_after(tick_timer_, tick_interval, &Exporter::tick);
}

// --- Subscriptions ---

/// Streams that were renamed while no frames were received.
void Exporter::find_renamed() {
  const tail::Archive* archive = server_.context().archive;
  if (!archive) return;
  struct Renamed {
    std::string from, to, session;
  };
  std::vector<Renamed> renamed;
  const auto look = [&](const std::string& name) {
    const tail::Stream* stream = archive->find_present(name);
    if (stream && stream->name() != name) renamed.push_back({name, stream->name(), stream->session()});
  };
  for (const auto& [name, stream] : streams_) look(name);
  for (const auto& [name, position] : positions_.all()) look(name);
  for (const Renamed& each : renamed) {
    if (streams_.find(each.from) != streams_.end()) {
      on_renamed(each.session, each.from, each.to);
    } else if (streams_.find(each.to) == streams_.end() && !positions_.find(each.to)) {
      positions_.set(each.to, Position(*positions_.find(each.from)));
      file_.changed();
    }
  }
}

/// Live streams from their position, or from the beginning; cold ones that changed within `retain` and were
/// not exported completely.
void Exporter::subscribe_all() {
  if (local_client_) local_client_->leave();
  resubscribe_pending_ = false;
  for (auto& [name, stream] : streams_) drop_held(stream);
  local_client_ = server_.attach(
      *this, config_.full ? serve::Audience::full : serve::Audience::meta,
      {.delay = delivery_delay, .turn_frames_max = slice_frames_max, .turn_bytes_max = slice_bytes_max});
  serve::message::Subscribe subscription;
  subscription.id = "otlp" + std::to_string(++subscriptions_);
  caught_up_.reset();
  subscription.catch_up = true;
  subscription.from_beginning = true;
  auto& after = subscription.after.emplace();
  const std::size_t entries_max = server_.context().limits.after_entries;
  const std::int64_t oldest_ms = wall_now_ms() - config_.retain.count();
  find_renamed();
  for_each_([&](const tail::Stream& each) {
    if (after.size() >= entries_max) return;  // the others are sent from their beginning
    const bool is_live = each.transcript() != nullptr;
    auto known = streams_.find(each.name());
    if (known == streams_.end()) {
      const Position* position = positions_.find(each.name());
      // One that was written later may have been rewritten to the same length.
      const std::uint64_t bytes = each.published_bytes();
      const bool is_complete = position && (bytes == position->exported.offset || bytes == unknown_bytes) &&
                               each.modified_ms() <= position->newest_ms + file_time_slack_ms;
      const bool is_old = !position && each.modified_ms() < oldest_ms;
      if (!is_live && (is_complete || is_old)) return;
      known = streams_.emplace(each.name(), position ? Stream(*position) : Stream()).first;
    }
    const Cursor& last = known->second.last;
    after.push_back(each.name() + ':' + (last == begin_cursor ? "" : to_string(last)));
  });
  local_client_->subscribe(std::move(subscription));
}

/// Continues each stream where it is, for one that must be read from its beginning.
void Exporter::resubscribe() {
  if (stopped_ || std::exchange(resubscribe_pending_, true)) return;
  call_after(resubscribe_timer_, resubscribe_delay, &Exporter::subscribe_all);
}

/// A stream that is sent from its first line, if it is not known.
Exporter::StreamMap::value_type& Exporter::stream_of(std::string_view name) {
  const auto known = streams_.find(name);
  if (known != streams_.end()) return known->second.is_removed = false, *known;
  Stream stream;
  if (const Position* position = positions_.find(name)) {
    stream = Stream(*position);
    stream.read_again();
  }
  return *streams_.emplace(std::string(name), std::move(stream)).first;
}

/// If the transcript returns, what was exported is not exported again. The stream is forgotten when the
/// collector has accepted its last events.
void Exporter::on_removed(std::string_view name) {
  const auto known = streams_.find(name);
  if (known == streams_.end()) return;
  Stream& stream = known->second;
  drop_held(stream);
  touched_.erase(known->first);
  const Position position = stream.position();
  if (position.exported == begin_cursor) {
    streams_.erase(known);
    return;
  }
  stream.read_again();
  stream.is_touched = false;
  stream.is_removed = true;
  uploader_.add_position(known->first, position);
}

/// What was exported is remembered under the new name at once: it may be asked for after a restart.
void Exporter::on_renamed(std::string_view session, std::string_view from, std::string_view to) {
  const auto known = streams_.find(from);
  if (known == streams_.end()) return;
  if (streams_.find(to) != streams_.end()) return on_removed(from);  // its events came before this frame
  touched_.erase(known->first);
  auto moved = streams_.extract(known);
  moved.key() = to;
  Stream& stream = streams_.insert(std::move(moved)).position->second;
  stream.is_touched = false;
  uploader_.add_position(std::string(to), stream.position());
  if (const auto main = main_streams_.find(session); main != main_streams_.end() && main->second == from)
    main->second = to;
}

// --- Frames ---

bool Exporter::has_room() const { return uploader_.has_room() && held_bytes_ < held_bytes_max; }

void Exporter::on_frame(std::string_view payload) {
  const auto frame = parser_.parse(payload);
  if (!frame) return;
  // The next subscription repeats the others.
  if (resubscribe_pending_ && frame->type != "reset" && frame->type != "stream.removed") return;
  if (frame->is_event()) {
    on_event(*frame, payload);
  } else if (frame->type == "session") {
    if (const auto session = parser_.tree(payload)) on_session(*frame, *session);
  } else if (frame->type == "status") {
    if (const auto status = parser_.tree(payload)) on_status(*frame, *status);
  } else if (frame->type == "reset") {
    on_reset(*frame);
  } else if (frame->type == "stream.renamed") {
    on_renamed(frame->session, frame->text("from"), frame->text("to"));
  } else if (frame->type == "stream.removed") {
    on_removed(frame->stream);
  } else if (frame->type == "bookmark") {
    if (const auto bookmark = parser_.tree(payload)) on_bookmark(*frame, *bookmark);
  } else if (frame->type == "lagged") {
    resubscribe();
  } else if (frame->type == "error") {
    log_warn("otlp: {}", frame->text("message"));
  }
  if (std::exchange(subagent_added_, false)) release_held();
}

/// Null: unknown. The turns of a subagent's own stream belong to the span of its start, in its parent's.
const SpanContext* Exporter::parent_of(const Stream& stream, const WireFrame& frame) const {
  const auto by_id = subagents_.find(key_of(frame.session, frame.agent));
  if (by_id != subagents_.end()) return &by_id->second;
  if (const tail::Archive* archive = server_.context().archive)
    if (const tail::Stream* file = archive->find(std::string(frame.stream));
        file && !file->meta().call.empty())
      if (const auto by_call = subagents_.find(key_of(frame.session, file->meta().call));
          by_call != subagents_.end())
        return &by_call->second;
  return stream.stored_parent ? &*stream.stored_parent : nullptr;
}

void Exporter::on_event(const WireFrame& frame, std::string_view payload) {
  StreamMap::value_type& named = stream_of(frame.stream);
  Stream& stream = named.second;
  const bool needs_parent = frame.type == "turn.started" && !frame.agent.empty() && !parent_of(stream, frame);
  if (!stream.held.empty() || needs_parent) {
    if (!is_after(*frame.cursor, stream.last)) return;
    if (!stream.held_since) stream.held_since = Clock::now();
    held_bytes_ += payload.size();
    stream.held.emplace_back(payload);
    return tick_later();
  }
  handle(named, frame, payload);
}

void Exporter::handle(StreamMap::value_type& named, const WireFrame& frame, std::string_view payload) {
  auto& [name, stream] = named;
  if (resubscribe_pending_ || !is_after(*frame.cursor, stream.last)) return;
  if (is_rewritten(stream.exported, stream.last, *frame.cursor)) {
    stream.export_again();
    return resubscribe();
  }
  const bool is_new = is_after(*frame.cursor, stream.exported);
  const serve::Session* session = server_.context().sessions.find(frame.session);
  SessionNames names;
  if (session) names = {session->program, session->project};
  std::string scratch;
  const TextFilter* const filter = server_.context().filter;
  if (frame.type == "turn.finished" && filter) names.project = filter->clean(names.project, scratch);
  const bool is_subagent_turn = frame.type == "turn.started" && !frame.agent.empty();
  const SpanContext* parent = is_subagent_turn ? parent_of(stream, frame) : nullptr;
  const bool is_logged = is_new && config_.logs.is_on();
  const std::optional<SpanContext> before = is_logged ? stream.spans.context_of(frame) : std::nullopt;
  Sink sink(*this, frame, names.program, stream, is_new);
  stream.spans.on_event(frame, names, parent, sink);
  stream.last = *frame.cursor;
  stream.newest_ms = std::max(stream.newest_ms, frame.time_ms);
  if (frame.agent.empty() && frame.type == "turn.started") {
    main_streams_[std::string(frame.session)] = name;
    if (const SpanContext* turn = stream.spans.open_turn())
      waits_.on_turn_started(frame.session, *turn, frame.time_ms);
  } else if (frame.agent.empty() && frame.type == "turn.finished" && !frame.flag("inferred")) {
    waits_.on_turn_finished(frame.session, frame.time_ms);  // the time of an inferred end is not that end's
  }
  if (!is_new) return;
  if (is_logged) {
    const std::optional<SpanContext> after = stream.spans.context_of(frame);
    add_log(frame, stream.newest_ms, payload, after ? after : before);
  }
  if (!std::exchange(stream.is_touched, true)) touched_.insert(name);
  uploader_.flush_soon();
}

/// `counted_ms`: spans that ended until then are in the metrics already.
void Exporter::add_span(const Span& span, std::string_view host, std::string_view program,
                        std::int64_t counted_ms) {
  if (span.end_ms <= 0 || span.end_ms < wall_now_ms() - config_.retain.count()) {
    ++expired_;
    return;
  }
  if (metric_exporter_ && span.end_ms > counted_ms) metric_exporter_->on_span(span, program, host);
  if (config_.traces.is_on()) uploader_.add_span(host, encode_span(span));
}

/// `newest_ms`: the time of an event without one. `in`: the span that was open before or after the event.
void Exporter::add_log(const WireFrame& frame, std::int64_t newest_ms, std::string_view payload,
                       const std::optional<SpanContext>& in) {
  const std::int64_t now_ms = wall_now_ms();
  LogRecord record;
  record.time_ms = frame.time_ms != 0 ? frame.time_ms : newest_ms;
  if (record.time_ms <= 0 || record.time_ms < now_ms - config_.retain.count()) return;
  const std::string_view outcome = frame.text("outcome");
  record.is_error = outcome == "failed" || outcome == "error" || frame.type == "api.failed";
  record.name = "earshot." + std::string(frame.type);
  record.body = payload;
  record.in = in;
  record.attributes.label("event.name", record.name);
  record.attributes.label("gen_ai.conversation.id", frame.session);
  record.attributes.label("earshot.stream", frame.stream);
  record.attributes.label("earshot.cursor", to_string(*frame.cursor));
  uploader_.add_log(frame.host, encode_log(record, now_ms));
}

void Exporter::add_subagent(std::string_view session, std::string_view key, const SpanContext& span) {
  if (key.empty()) return;
  std::string name = key_of(session, key);
  const auto [known, is_added] = subagents_.insert_or_assign(name, span);
  subagent_added_ = true;
  if (!is_added) return;
  subagent_order_.push_back(std::move(name));
  if (subagent_order_.size() <= subagents_max) return;
  subagents_.erase(subagent_order_.front());
  subagent_order_.pop_front();
}

/// Its events are of another history, or are sent again.
void Exporter::drop_held(Stream& stream) {
  for (const std::string& each : stream.held) held_bytes_ -= std::min(held_bytes_, each.size());
  stream.held.clear();
  stream.held_since.reset();
}

/// Continues the streams whose parent is known by now, and those that waited too long.
void Exporter::release_held() {
  bool is_released = false;
  FrameParser parser;
  for (StreamMap::value_type& each : streams_) {
    Stream& stream = each.second;
    if (stream.held.empty()) continue;
    const bool is_overdue = caught_up_ && Clock::now() - std::max(*stream.held_since, *caught_up_) > held_max;
    const bool is_late = is_overdue || held_bytes_ >= held_bytes_max;
    while (!stream.held.empty()) {
      const auto frame = parser.parse(stream.held.front());
      const bool needs_parent =
          frame->type == "turn.started" && !frame->agent.empty() && !parent_of(stream, *frame);
      if (needs_parent && !is_late) break;
      handle(each, *frame, stream.held.front());
      held_bytes_ -= std::min(held_bytes_, stream.held.front().size());
      stream.held.pop_front();
      is_released = true;
    }
    if (stream.held.empty()) stream.held_since.reset();
  }
  if (is_released && local_client_) local_client_->resume();
}

/// Names subagents that no event names yet.
void Exporter::on_session(const WireFrame& frame, const simdjson::dom::element& session) {
  simdjson::dom::array agents;
  if (const auto list = dom::member(session, "agents"); list && !list->get_array().get(agents))
    for (const simdjson::dom::element each : agents) {
      const auto known = subagents_.find(key_of(frame.session, dom::text_of(each, "call")));
      if (known != subagents_.end())
        add_subagent(frame.session, dom::text_of(each, "agent"), SpanContext(known->second));
    }
  if (const auto status = dom::member(session, "status")) on_status(frame, *status);
}

/// Waits that a transcript proves are spans of its events: see StreamSpans.
void Exporter::on_status(const WireFrame& frame, const simdjson::dom::element& status) {
  const std::string_view state = dom::text_of(status, "state"), reason = dom::text_of(status, "reason");
  const std::string_view request = dom::text_of(status, "request");
  const auto since = parse_time(dom::text_of(status, "since"));
  if (reason == status::host_offline_reason) return;  // the wait may go on
  const StatusWait* const open = waits_.find(frame.session);
  const bool is_wait = state == "waiting" && reason != "question" && reason != "plan" && since;
  if (open) {
    if (is_wait && open->since_ms == *since && open->request == request) return;
    // Another wait may have begun long before this one was answered.
    waits_.end(frame.session, since && !is_wait && *since >= open->since_ms ? *since : wall_now_ms());
    add_ended_waits();
  }
  if (!is_wait) return;
  StatusWait wait{std::string(frame.host),
                  std::string(frame.session),
                  std::string(request),
                  std::string(reason),
                  std::string(dom::text_of(status, "source")),
                  *since,
                  {}};
  if (const auto main = main_streams_.find(frame.session); main != main_streams_.end())
    if (const auto stream = streams_.find(main->second); stream != streams_.end())
      if (const SpanContext* turn = stream->second.spans.open_turn()) wait.turn = *turn;
  waits_.begin(std::move(wait));
}

/// Not before the events are read that name their turns.
void Exporter::add_ended_waits() {
  if (!caught_up_) return;
  for (const StatusWaits::Ended& each : waits_.take_ended()) {
    const serve::Session* session = server_.context().sessions.find(each.wait.session);
    add_span(wait_span(each.wait, each.end_ms), each.wait.host, session ? session->program : "", 0);
  }
}

void Exporter::on_reset(const WireFrame& frame) {
  const std::string_view reason = frame.text("reason");
  if (reason == "unreadable")
    return call_after(unreadable_timer_, unreadable_retry_delay, &Exporter::resubscribe);
  if (reason == "unknown") return on_removed(frame.stream);
  Stream& stream = stream_of(frame.stream).second;
  drop_held(stream);
  stream.export_again();
  if (!frame.text("id").empty()) resubscribe();  // the answer to `after` has newer events only
}

/// Everything up to these cursors was sent.
void Exporter::on_bookmark(const WireFrame& frame, const simdjson::dom::element& bookmark) {
  if (!caught_up_ && frame.flag("complete")) caught_up_ = Clock::now();
  add_ended_waits();
  simdjson::dom::array cursors;
  if (const auto list = dom::member(bookmark, "cursors"); !list || list->get_array().get(cursors)) return;
  for (const simdjson::dom::element each : cursors) {
    const auto end = serve::message::parse_stream_cursor(dom::as_text(each));
    const auto known = end ? streams_.find(end->stream) : streams_.end();
    if (known == streams_.end()) continue;
    Stream& stream = known->second;
    // The transcript ends before the event that was exported last.
    if (!is_after(stream.exported, stream.last) || end->cursor.offset >= stream.exported.offset) continue;
    stream.export_again();
    resubscribe();
  }
}

// --- Sending ---

StreamPositions Exporter::take_positions() {
  StreamPositions positions;
  for (const std::string& name : std::exchange(touched_, {}))
    if (const auto found = streams_.find(name); found != streams_.end()) {
      found->second.is_touched = false;
      positions.emplace_back(name, found->second.position());
    }
  return positions;
}

void Exporter::on_done(StreamPositions positions) {
  for (auto& [name, position] : positions) {
    const auto stream = streams_.find(name);
    if (stream != streams_.end() && stream->second.is_removed && stream->second.exported == position.exported)
      streams_.erase(stream);
    const Position* known = positions_.find(name);
    if (known && *known == position) continue;
    positions_.set(name, std::move(position));
    file_.changed();
  }
}

void Exporter::on_room() {
  if (local_client_) local_client_->resume();
}

}  // namespace earshot::otlp
