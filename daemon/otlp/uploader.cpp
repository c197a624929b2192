#include "otlp/uploader.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace earshot::otlp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds flush_delay{1000};    // after the first event of a batch, for further ones
constexpr milliseconds spans_wait_max{500};  // at the stop
constexpr long payload_too_large = 413;

/// Of a collector's text, for users. Control characters, and bytes that are not ASCII, become `.`: an answer
/// in protobuf contains them.
std::string first_line(std::string_view text) {
  constexpr std::size_t bytes_max = 160;
  std::string line(text.substr(0, std::min(text.find('\n'), bytes_max)));
  for (char& c : line)
    if (c < ' ' || c > '~') c = '.';
  return line;
}

}  // namespace

Uploader::Uploader(boost::asio::io_context& io, const Config& config, Requests& requests,
                   UploaderListener& listener, std::uint64_t seed)
    : io_(io),
      config_(config),
      requests_(requests),
      listener_(listener),
      backoff_(seed),
      flush_timer_(io),
      retry_timer_(io),
      sender_(io) {}

void Uploader::call_after(Timer& timer, milliseconds delay, void (Uploader::*call)()) {
  timer.expires_after(delay);
  timer.async_wait([this, call](boost::system::error_code ec) {
    if (!ec && !stopped_) (this->*call)();
  });
}

Uploader::Counts Uploader::counts() const {
  Counts counts = counts_;
  counts.pending = pending_.items + (in_flight_ ? in_flight_->items : 0);
  counts.pending_bytes = pending_.bytes + (in_flight_ ? in_flight_->bytes : 0);
  const Batch* oldest = in_flight_ ? &*in_flight_ : pending_.items > 0 ? &pending_ : nullptr;
  if (oldest) counts.lag_seconds = std::chrono::duration<double>(Clock::now() - oldest->begun).count();
  return counts;
}

void Uploader::add(EncodedByHost& to, std::string_view host, std::string encoded) {
  if (pending_.items++ == 0) pending_.begun = Clock::now();
  pending_.bytes += encoded.size();
  auto known = to.find(host);
  if (known == to.end()) known = to.try_emplace(std::string(host)).first;
  known->second.push_back(std::move(encoded));
  flush_soon();
}

void Uploader::add_span(std::string_view host, std::string encoded) {
  add(pending_.spans, host, std::move(encoded));
}

void Uploader::add_log(std::string_view host, std::string encoded) {
  add(pending_.logs, host, std::move(encoded));
}

void Uploader::add_position(std::string stream, Position position) {
  pending_.positions.emplace_back(std::move(stream), std::move(position));
  flush_soon();
}

void Uploader::flush_soon() {
  if (in_flight_ || stopped_) return;  // finish_batch() flushes
  if (!has_room()) {
    boost::asio::post(io_, [this, alive = std::weak_ptr<char>(alive_)] {
      if (!alive.expired()) flush();
    });
    return;
  }
  if (std::exchange(flush_scheduled_, true)) return;
  call_after(flush_timer_, flush_delay, &Uploader::flush);
}

void Uploader::flush() {
  flush_scheduled_ = false;
  if (stopped_ || in_flight_) return;
  for (auto& each : listener_.take_positions()) pending_.positions.push_back(std::move(each));
  Batch batch = std::exchange(pending_, {});
  if (batch.items == 0) return listener_.on_done(std::move(batch.positions));
  if (!batch.spans.empty()) signals_.push_back({&config_.traces, std::exchange(batch.spans, {})});
  if (!batch.logs.empty()) signals_.push_back({&config_.logs, std::exchange(batch.logs, {})});
  in_flight_ = std::move(batch);
  send_next();
  listener_.on_room();
}

void Uploader::send_next() {
  if (stopped_ || sender_.is_busy()) return;
  const Signal& signal = signals_.front();
  sender_.send(requests_.make(*signal.config, encode_request(signal.items, config_.resource)),
               [this](const Response& response) { on_response(response); });
}

void Uploader::on_response(const Response& response) {
  if (stopped_) return accept_last(response);
  Signal& signal = signals_.front();
  const std::size_t items = count_of(signal.items);
  if (is_retryable(response)) {
    ++counts_.retries;
    if (is_unauthorized(response.status)) requests_.read_headers_again();
    const std::string name = signal.config == &config_.traces ? "traces" : "logs";
    acceptance_.refused("the collector does not accept " + name + ": " + reason_of(response), true);
    return call_after(retry_timer_, backoff_.next(milliseconds(response.retry_after_ms)),
                      &Uploader::send_next);
  }
  backoff_.reset();
  if (response.status == payload_too_large && items > 1) {
    Signal second{signal.config, take_half(signal.items)};
    signals_.insert(signals_.begin() + 1, std::move(second));
    return send_next();
  }
  if (response.status >= 200 && response.status <= 299) {
    const PartialSuccess partial = parse_answer(response.body);
    const std::uint64_t rejected = std::min<std::uint64_t>(partial.rejected, items);
    counts_.exported += items - rejected;
    counts_.rejected += rejected;
    if (rejected == 0)
      acceptance_.accepted();
    else
      acceptance_.refused("the collector rejects a part of the data: " + first_line(partial.message), false);
  } else {
    counts_.dropped += items;
    acceptance_.refused(
        "the collector refuses the data: " + reason_of(response) + ": " + first_line(response.body), false);
  }
  signals_.pop_front();
  if (!signals_.empty()) return send_next();
  finish_batch();
}

void Uploader::finish_batch() {
  Batch batch = std::move(*in_flight_);
  in_flight_.reset();
  listener_.on_done(std::move(batch.positions));
  if (!has_room()) return flush();
  flush_soon();
  listener_.on_room();
}

void Uploader::stop() {
  stopped_ = true;
  flush_timer_.cancel();
  retry_timer_.cancel();
}

/// A response after the stop: what it accepts is not sent again after the next start.
void Uploader::accept_last(const Response& response) {
  const bool is_final = !is_retryable(response) && response.status != payload_too_large;
  if (in_flight_ && signals_.size() == 1 && is_final)
    listener_.on_done(std::exchange(in_flight_->positions, {}));
}

void Uploader::finish() {
  if (const auto response = sender_.finish(spans_wait_max)) accept_last(*response);
}

}  // namespace earshot::otlp
