#include "otlp/exporter.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/session_numbers.hpp"

namespace earshot::otlp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds flush_delay{1000};  // after the first event of a batch, for further ones
constexpr milliseconds last_response_wait_max{500}, last_metrics_wait_max{2000};  // at the stop
constexpr milliseconds retry_delay_min{500},
    retry_delay_max{30'000};  // doubles; Retry-After may ask for more
constexpr milliseconds retry_after_max{600'000};
constexpr milliseconds tick_interval{1000};
constexpr milliseconds unreadable_retry_delay{30'000};

constexpr long payload_too_large = 413;

/// A token that is not valid (any more): the headers may have been corrected.
bool is_unauthorized(long status) { return status == 401 || status == 403; }

/// 0: no answer. OTLP specification 1.3, "Retryable Response Codes"; and what a wrong token or a proxy
/// answers, which says nothing about the data: that stays until the setup is corrected.
bool is_retryable(long status) {
  return status == 0 || status == 429 || status == 502 || status == 503 || status == 504 ||
         is_unauthorized(status) || status == 404;
}

/// Of a collector's text, for users. Control characters, and bytes that are not ASCII, become `.`: an answer
/// in protobuf contains them.
std::string first_line(std::string_view text) {
  constexpr std::size_t bytes_max = 160;
  std::string line(text.substr(0, std::min(text.find('\n'), bytes_max)));
  for (char& c : line)
    if (c < ' ' || c > '~') c = '.';
  return line;
}

std::string key_of(std::string_view session, std::string_view key) {
  return std::string(session) + '\n' + std::string(key);
}

}  // namespace

/// Takes the spans of one event.
class Exporter::Sink final : public SpanSink {
 public:
  Sink(Exporter& exporter, const WireFrame& frame, std::string_view program, bool is_new)
      : exporter_(exporter), frame_(frame), program_(program), is_new_(is_new) {}
  void on_span(const Span& span) override {
    if (is_new_) exporter_.add_span(span, frame_.host, program_);
  }
  void on_subagent(std::string_view key, const SpanContext& span) override {
    exporter_.add_subagent(frame_.session, key, span);
  }

 private:
  Exporter& exporter_;
  const WireFrame& frame_;
  const std::string_view program_;
  const bool is_new_;  // otherwise its spans were exported before the start
};

Exporter::Exporter(boost::asio::io_context& io, boost::asio::any_io_executor disk, serve::Server& server,
                   ForEach for_each, Config config, const std::string& state)
    : io_(io),
      server_(server),
      for_each_(std::move(for_each)),
      disk_(disk),
      config_(std::move(config)),
      headers_(config_.headers),
      file_(io, std::move(disk), state + "/otlp.json", config_.retain),
      collector_(wall_now_ms()),
      flush_timer_(io),
      retry_timer_(io),
      tick_timer_(io),
      metrics_timer_(io),
      unreadable_timer_(io),
      sender_(io),
      metrics_sender_(config_.metrics_url.empty() ? nullptr : std::make_unique<Sender>(io)) {
  file_.read();
}

Exporter::~Exporter() { stop(); }

void Exporter::start() {
  spdlog::info("otlp: exporting the {} view", config_.full ? "full" : "meta");
  subscribe_all();
  tick();
  if (metrics_sender_) call_after(metrics_timer_, config_.metric_interval, &Exporter::send_metrics);
}

/// What is not exported yet is read from the transcripts after the next start. The metrics since the last
/// interval would be lost: they are sent now.
void Exporter::stop() {
  if (!stopped_ && local_client_ && metrics_sender_ && of_metrics_.problem.empty()) send_metrics_now();
  if (std::exchange(stopped_, true)) return;
  if (local_client_) std::exchange(local_client_, nullptr)->leave();
  for (Timer* timer : {&flush_timer_, &retry_timer_, &tick_timer_, &metrics_timer_, &unreadable_timer_})
    timer->cancel();
}

void Exporter::call_after(Timer& timer, milliseconds delay, void (Exporter::*call)()) {
  timer.expires_after(delay);
  timer.async_wait([this, call](boost::system::error_code ec) {
    if (!ec && !stopped_) (this->*call)();
  });
}

ExporterMetrics Exporter::metrics() const {
  ExporterMetrics metrics = metrics_;
  metrics.pending = pending_.items + (in_flight_ ? in_flight_->items : 0);
  metrics.pending_bytes = pending_.bytes + (in_flight_ ? in_flight_->bytes : 0);
  const Batch* oldest = in_flight_ ? &*in_flight_ : pending_.items > 0 ? &pending_ : nullptr;
  metrics.problem = of_spans_.problem.empty() ? of_metrics_.problem : of_spans_.problem;
  if (oldest) metrics.lag_seconds = std::chrono::duration<double>(Clock::now() - oldest->begun).count();
  return metrics;
}

// --- Subscriptions ---

/// Live streams from their position, or from the beginning; cold ones that changed within `retain` and were
/// not exported completely.
void Exporter::subscribe_all() {
  if (local_client_) local_client_->leave();
  local_client_ = server_.attach(*this, config_.full ? serve::Audience::full : serve::Audience::meta);
  serve::message::Subscribe subscription;
  subscription.id = "otlp" + std::to_string(++subscriptions_);
  caught_up_.reset();
  subscription.catch_up = true;
  subscription.from_beginning = true;
  auto& after = subscription.after.emplace();
  const std::size_t entries_max = server_.context().limits.after_entries;
  const std::int64_t oldest_ms = wall_now_ms() - config_.retain.count();
  for_each_([&](const tail::Stream& each) {
    if (after.size() >= entries_max) return;  // the others are sent from their beginning
    const bool is_live = each.transcript() != nullptr;
    auto known = streams_.find(each.name());
    if (known == streams_.end()) {
      const Position* position = file_.positions().find(each.name());
      const bool is_complete = position && position->exported.offset == each.published_bytes();
      const bool is_old = !position && each.modified_ms() < oldest_ms;
      if (!is_live && (is_complete || is_old)) return;
      Stream stream;
      if (position)
        stream = {StreamSpans(position->anchor, position->anchor_ms), position->anchor, position->exported,
                  position->newest_ms, position->parent};
      known = streams_.emplace(each.name(), std::move(stream)).first;
    }
    const Cursor& last = known->second.last;
    after.push_back(each.name() + ':' + (last == begin_cursor ? "" : to_string(last)));
  });
  local_client_->subscribe(std::move(subscription));
}

/// Continues each stream where it is, for one that must be read from its beginning.
void Exporter::resubscribe() {
  if (stopped_ || std::exchange(resubscribe_pending_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<serve::InProcessClient>(local_client_)] {
    if (alive.expired() || stopped_ || !std::exchange(resubscribe_pending_, false)) return;
    for (auto& [name, stream] : streams_) stream.held.clear(), stream.held_since.reset();  // sent again
    held_bytes_ = 0;
    subscribe_all();
  });
}

Exporter::Stream& Exporter::stream_of(std::string_view name) {
  const auto known = streams_.find(name);
  if (known != streams_.end()) return known->second;
  Stream stream;
  if (const Position* position = file_.positions().find(name)) {  // it is sent from its beginning
    stream.exported = position->exported;
    stream.newest_ms = position->newest_ms;
  }
  return streams_.emplace(std::string(name), std::move(stream)).first->second;
}

// --- Frames ---

bool Exporter::has_room() const {
  return !resubscribe_pending_ && pending_.bytes < batch_bytes_max && pending_.items < batch_items_max &&
         held_bytes_ < held_bytes_max;
}

void Exporter::on_frame(std::string_view payload) {
  if (resubscribe_pending_) return;  // the next subscription repeats it
  const auto frame = parser_.parse(payload);
  if (!frame) return;
  if (frame->is_event()) {
    on_event(*frame, payload);
  } else if (frame->type == "session") {
    on_session(*frame);
  } else if (frame->type == "status") {
    on_status(*frame, frame->json);
  } else if (frame->type == "reset") {
    on_reset(*frame);
  } else if (frame->type == "stream.removed") {
    on_removed(*frame);
  } else if (frame->type == "bookmark") {
    if (!caught_up_ && frame->flag("complete")) caught_up_ = Clock::now();
    add_ended_waits();
  } else if (frame->type == "lagged") {
    resubscribe();
  } else if (frame->type == "error") {
    spdlog::warn("otlp: {}", frame->text("message"));
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
  Stream& stream = stream_of(frame.stream);
  const bool needs_parent = frame.type == "turn.started" && !frame.agent.empty() && !parent_of(stream, frame);
  if (!stream.held.empty() || needs_parent) {
    if (!is_after(*frame.cursor, stream.last)) return;
    if (!stream.held_since) stream.held_since = Clock::now();
    held_bytes_ += payload.size();
    stream.held.emplace_back(payload);
    return;
  }
  handle(std::string(frame.stream), stream, frame, payload);
}

void Exporter::handle(const std::string& name, Stream& stream, const WireFrame& frame,
                      std::string_view payload) {
  if (!is_after(*frame.cursor, stream.last)) return;
  const bool is_new = is_after(*frame.cursor, stream.exported);
  const serve::Session* session = server_.context().sessions.find(frame.session);
  const SessionNames names{session ? std::string_view(session->program) : std::string_view(),
                           session ? std::string_view(session->project) : std::string_view()};
  const bool is_subagent_turn = frame.type == "turn.started" && !frame.agent.empty();
  const SpanContext* parent = is_subagent_turn ? parent_of(stream, frame) : nullptr;
  const std::optional<SpanContext> before = stream.spans.context_of(frame);
  Sink sink(*this, frame, names.program, is_new);
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
  if (!config_.logs_url.empty()) {
    const std::optional<SpanContext> after = stream.spans.context_of(frame);
    add_log(frame, stream.newest_ms, payload, after ? after : before);
  }
  touched_.insert(name);
  flush_soon();
}

void Exporter::add_span(const Span& span, std::string_view host, std::string_view program) {
  if (span.end_ms <= 0 || span.end_ms < wall_now_ms() - config_.retain.count()) {
    ++metrics_.expired;
    return;
  }
  if (metrics_sender_) collector_.on_span(span, program);
  if (config_.traces_url.empty()) return;
  std::string encoded = encode_span(span, config_.encoding);
  if (pending_.items++ == 0) pending_.begun = Clock::now();
  pending_.bytes += encoded.size();
  pending_.spans[std::string(host)].push_back(std::move(encoded));
  flush_soon();
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
  std::string encoded = encode_log(record, now_ms, config_.encoding);
  if (pending_.items++ == 0) pending_.begun = Clock::now();
  pending_.bytes += encoded.size();
  pending_.logs[std::string(frame.host)].push_back(std::move(encoded));
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

/// Continues the streams whose parent is known by now, and those that waited too long.
void Exporter::release_held() {
  bool is_released = false;
  FrameParser parser;
  for (auto& [name, stream] : streams_) {
    if (stream.held.empty()) continue;
    const bool is_overdue = caught_up_ && Clock::now() - std::max(*stream.held_since, *caught_up_) > held_max;
    const bool is_late = is_overdue || held_bytes_ >= held_bytes_max;
    while (!stream.held.empty()) {
      const auto frame = parser.parse(stream.held.front());
      const bool needs_parent =
          frame->type == "turn.started" && !frame->agent.empty() && !parent_of(stream, *frame);
      if (needs_parent && !is_late) break;
      handle(name, stream, *frame, stream.held.front());
      held_bytes_ -= std::min(held_bytes_, stream.held.front().size());
      stream.held.pop_front();
      is_released = true;
    }
    if (stream.held.empty()) stream.held_since.reset();
  }
  if (is_released && local_client_) local_client_->wake();
}

/// Names subagents that no event names yet.
void Exporter::on_session(const WireFrame& frame) {
  simdjson::dom::array agents;
  if (const auto list = dom::member(frame.json, "agents"); list && !list->get_array().get(agents))
    for (const simdjson::dom::element each : agents) {
      const auto known = subagents_.find(key_of(frame.session, dom::text_of(each, "call")));
      if (known != subagents_.end())
        add_subagent(frame.session, dom::text_of(each, "agent"), SpanContext(known->second));
    }
  if (const auto status = dom::member(frame.json, "status")) on_status(frame, *status);
}

/// Waits that a transcript proves are spans of its events: see StreamSpans.
void Exporter::on_status(const WireFrame& frame, const simdjson::dom::element& status) {
  const std::string_view state = dom::text_of(status, "state"), reason = dom::text_of(status, "reason");
  const auto since = parse_time(dom::text_of(status, "since"));
  if (reason == status::host_offline_reason) return;  // the wait may go on
  const StatusWait* const open = waits_.find(frame.session);
  const bool is_wait = state == "waiting" && reason != "question" && reason != "plan" && since;
  if (open) {
    if (is_wait && open->since_ms == *since) return;
    waits_.end(frame.session, since && *since >= open->since_ms ? *since : wall_now_ms());
    add_ended_waits();
  }
  if (!is_wait) return;
  StatusWait wait{std::string(frame.host),
                  std::string(frame.session),
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
    add_span(wait_span(each.wait, each.end_ms), each.wait.host, session ? session->program : "");
  }
}

void Exporter::on_reset(const WireFrame& frame) {
  const std::string_view reason = frame.text("reason");
  if (reason == "unknown") return on_removed(frame);
  if (reason == "unreadable")
    return call_after(unreadable_timer_, unreadable_retry_delay, &Exporter::resubscribe);
  on_removed(frame);
  // The answer to `after` has newer events only: read from the first line.
  if (!frame.text("id").empty()) resubscribe();
}

void Exporter::on_removed(const WireFrame& frame) {
  file_.remove(frame.stream);
  if (in_flight_)  // its position is of the former transcript
    std::erase_if(in_flight_->positions, [&](const auto& each) { return each.first == frame.stream; });
  if (const auto known = touched_.find(frame.stream); known != touched_.end()) touched_.erase(known);
  const auto known = streams_.find(frame.stream);
  if (known == streams_.end()) return;
  for (const std::string& held : known->second.held) held_bytes_ -= std::min(held_bytes_, held.size());
  streams_.erase(known);
}

// --- Sending ---

/// Flushes after a delay, or at once if no more events fit.
void Exporter::flush_soon() {
  if (in_flight_) return;  // then finish_batch() does
  if (!has_room()) {
    boost::asio::post(io_, [this, alive = std::weak_ptr<serve::InProcessClient>(local_client_)] {
      if (!alive.expired()) flush();
    });
    return;
  }
  if (std::exchange(flush_scheduled_, true)) return;
  call_after(flush_timer_, flush_delay, &Exporter::flush);
}

void Exporter::flush() {
  flush_scheduled_ = false;
  if (stopped_ || in_flight_) return;
  for (const std::string& name : std::exchange(touched_, {})) {
    const auto found = streams_.find(name);
    if (found == streams_.end()) continue;
    const Stream& stream = found->second;
    Position position{stream.last, stream.spans.anchor(), stream.newest_ms, std::nullopt,
                      stream.spans.anchor_ms()};
    if (const SpanContext* parent = stream.spans.parent()) position.parent = *parent;
    pending_.positions.emplace_back(name, std::move(position));
  }
  Batch batch = std::exchange(pending_, {});
  if (batch.items == 0) return commit(std::move(batch.positions));
  if (!batch.spans.empty()) signals_.push_back({SignalKind::traces, std::exchange(batch.spans, {})});
  if (!batch.logs.empty()) signals_.push_back({SignalKind::logs, std::exchange(batch.logs, {})});
  in_flight_ = std::move(batch);
  send_next();
  if (local_client_) local_client_->wake();
}

Request Exporter::request(const std::string& url, std::string body) const {
  Request request{url, headers_, std::move(body), config_.tls_ca, config_.timeout.count()};
  request.headers.push_back("Content-Type: " + std::string(content_type(config_.encoding)));
  return request;
}

Request Exporter::request(const Signal& signal) const {
  if (signal.kind == SignalKind::traces)
    return request(config_.traces_url, traces_request(signal.items, config_.resource, config_.encoding));
  return request(config_.logs_url, logs_request(signal.items, config_.resource, config_.encoding));
}

/// For the next attempt: the file may have a new token by then.
void Exporter::read_headers_again() {
  if (config_.headers_file.empty()) return;
  boost::asio::post(disk_,
                    [this, alive = std::weak_ptr<char>(alive_), file = config_.headers_file, &io = io_] {
                      Config read;
                      read.headers_file = file;
                      const bool is_read = read_headers_file(read).empty();
                      boost::asio::post(io, [this, alive, is_read, headers = std::move(read.headers)] {
                        if (is_read && !alive.expired()) headers_ = headers;
                      });
                    });
}

void Exporter::send_next() {
  if (stopped_ || sender_.is_busy()) return;
  sender_.send(request(signals_.front()), [this](Response response) { on_response(std::move(response)); });
}

void Exporter::on_response(Response response) {
  if (stopped_) return accept_last(response);
  Signal& signal = signals_.front();
  const std::size_t items = count_of(signal.items);
  const std::string_view name = signal.kind == SignalKind::traces ? "traces" : "logs";
  const std::string answer = "HTTP " + std::to_string(response.status);
  const bool is_done = response.status >= 200 && response.status <= 299;
  if (is_retryable(response.status)) {
    ++metrics_.retries;
    retry_delay_ = std::clamp(retry_delay_ * 2, retry_delay_min, retry_delay_max);
    const milliseconds asked = std::min(milliseconds(response.retry_after_ms), retry_after_max);
    if (is_unauthorized(response.status)) read_headers_again();
    set_problem(of_spans_,
                "the collector does not accept " + std::string(name) + ": " +
                    (response.status == 0 ? response.error : answer),
                true);
    return call_after(retry_timer_, std::max(retry_delay_, asked), &Exporter::send_next);
  }
  retry_delay_ = milliseconds(0);
  if (response.status == payload_too_large && items > 1) {
    Signal second{signal.kind, take_half(signal.items)};
    signals_.insert(signals_.begin() + 1, std::move(second));
    return send_next();
  }
  if (is_done) {
    const PartialSuccess partial = parse_answer(response.body, config_.encoding);
    const std::uint64_t rejected = std::min<std::uint64_t>(partial.rejected, items);
    metrics_.exported += items - rejected;
    metrics_.rejected += rejected;
    set_problem(
        of_spans_,
        rejected == 0 ? "" : "the collector rejects a part of the data: " + first_line(partial.message),
        false);
  } else {
    metrics_.dropped += items;
    set_problem(of_spans_, "the collector refuses the data: " + answer + ": " + first_line(response.body),
                false);
  }
  signals_.pop_front();
  if (!signals_.empty()) return send_next();
  finish_batch();
}

/// A response after the stop: what it accepts is not sent again after the next start.
void Exporter::accept_last(const Response& response) {
  const bool is_final = !is_retryable(response.status) && response.status != payload_too_large;
  if (in_flight_ && signals_.size() == 1 && is_final) commit(std::exchange(in_flight_->positions, {}));
}

void Exporter::flush_positions() {
  if (const auto response = sender_.finish(last_response_wait_max)) accept_last(*response);
  if (metrics_sender_) metrics_sender_->finish(last_metrics_wait_max);
  file_.flush();
}

void Exporter::finish_batch() {
  Batch batch = std::move(*in_flight_);
  in_flight_.reset();
  commit(std::move(batch.positions));
  if (!has_room()) return flush();
  if (pending_.items > 0 || !touched_.empty()) flush_soon();
  if (local_client_) local_client_->wake();
}

void Exporter::commit(std::vector<std::pair<std::string, Position>> positions) {
  for (auto& [stream, position] : positions)
    if (streams_.contains(stream)) file_.set(stream, std::move(position));  // not removed meanwhile
}

/// Logs once per change of state: accepted, retried, refused.
void Exporter::set_problem(Acceptance& of, const std::string& problem, bool is_retried) {
  const bool is_change =
      of.problem.empty() != problem.empty() || (!problem.empty() && of.is_retried != is_retried);
  of = {problem, is_retried};
  if (!is_change) return;
  if (problem.empty())
    spdlog::info("otlp: the collector accepts the data again");
  else
    spdlog::warn("otlp: {}{}", problem, is_retried ? "; retrying" : "; it is not sent again");
}

void Exporter::tick() {
  release_held();
  call_after(tick_timer_, tick_interval, &Exporter::tick);
}

// --- Metrics ---

SessionNumbers Exporter::session_numbers() {
  SessionNumbers numbers;
  const serve::ServerContext& context = server_.context();
  numbers.usd_by_program = server_.cost_by_program();
  context.sessions.for_each([&](const serve::Session& session) {
    if (!serve::is_live(session, context.recent)) return;
    if (session.status && !session.status->state.empty()) ++numbers.by_state[session.status->state];
    for (const LimitState* limit : serve::limits_of(session)) {
      for (const LimitWindow& window : limit->windows) {
        const auto resets = parse_time(window.resets_at);
        if (!window.used_percent || (resets && *resets <= wall_now_ms())) continue;
        const auto same = std::find_if(numbers.limits.begin(), numbers.limits.end(), [&](const auto& each) {
          return each.program == session.program && each.limit == limit->limit && each.window == window.name;
        });
        if (same != numbers.limits.end())
          same->used_ratio = std::max(same->used_ratio, *window.used_percent / 100);
        else if (numbers.limits.size() < MetricCollector::limits_max)
          numbers.limits.push_back({session.program, limit->limit, window.name, *window.used_percent / 100});
      }
    }
  });
  return numbers;
}

/// A failed request is not repeated: the next one has the same totals.
void Exporter::send_metrics() {
  call_after(metrics_timer_, config_.metric_interval, &Exporter::send_metrics);
  send_metrics_now();
}

void Exporter::send_metrics_now() {
  if (metrics_sender_->is_busy()) return;
  Resource resource = config_.resource;
  resource.host = server_.context().host;
  const std::vector<Metric> metrics = collector_.collect(session_numbers(), wall_now_ms());
  metrics_sender_->send(
      request(config_.metrics_url, metrics_request(metrics, resource, config_.encoding)),
      [this](const Response& response) {
        const bool is_done = response.status >= 200 && response.status <= 299;
        if (is_unauthorized(response.status)) read_headers_again();
        const std::string reason =
            response.status == 0 ? response.error : "HTTP " + std::to_string(response.status);
        set_problem(of_metrics_, is_done ? "" : "the collector does not accept metrics: " + reason, true);
      });
}

}  // namespace earshot::otlp
