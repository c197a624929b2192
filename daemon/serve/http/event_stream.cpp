#include "serve/http/event_stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json_writer.hpp"
#include "base/sockets.hpp"
#include "serve/http/connection.hpp"

namespace earshot::serve {
namespace {

constexpr std::string_view text_keys[] = {"deliver", "on_lag", "since", "new_streams"};
constexpr std::string_view known_keys[] = {"project", "session",  "program",     "host",    "type",
                                           "after",   "since",    "new_streams", "deliver", "on_lag",
                                           "all",     "snapshot", "view"};

std::string subscribe_message(Query& query) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "subscribe").member("id", "events").key("filter").begin_object();
  for (const FilterKey& key : filter_keys)
    if (const auto patterns = query.all(key.name); !patterns.empty()) json.array_member(key.name, patterns);
  json.end_object();
  for (const std::string_view key : text_keys)
    if (query.has(key)) json.member(key, query.one(key));
  if (const auto after = query.all("after"); !after.empty()) json.array_member("after", after);
  json.member("snapshot", query.flag("snapshot", true)).member("all", query.flag("all", false)).end_object();
  return out;
}

// Detects a dead client while there is nothing to send.
constexpr int keep_alive_idle_s = 20, keep_alive_interval_s = 5, keep_alive_probes = 4;

}  // namespace

HttpResponse events_response(std::string_view text) {
  Query query = parse_query(text);
  query.only(known_keys);
  HttpResponse response;
  response.kind = HttpResponse::Kind::events;
  response.content_type = "application/x-ndjson";
  response.meta = query.is_meta_view();
  response.subscription = subscribe_message(query);
  return query.error.empty() ? response : text_response(400, query.error);
}

std::string chunk_of(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

void append_lines(std::string& out, std::span<const char> frames) {
  std::string_view rest(frames.data(), frames.size());
  while (!rest.empty()) out.append(take_payload(rest)) += '\n';
}

void EventStream::start(HttpConnection& connection, std::unique_ptr<SubscriberSession>& session,
                        const Caller& caller, const HttpResponse& response) {
  message::Message message = message::parse(response.subscription);
  auto* subscribe = std::get_if<message::Subscribe>(&message);
  if (const auto* bad = std::get_if<message::Invalid>(&message))
    return connection.respond(text_response(400, bad->code + ": " + bad->text));
  if (!subscribe) return connection.respond(text_response(400, "not a subscription"));
  auto stream = std::make_unique<EventStream>(connection, caller, response, std::move(*subscribe));
  if (const auto bad = stream->check_limits(stream->subscribe_))
    return connection.respond(text_response(400, bad->code + ": " + bad->text));
  session = std::move(stream);
  connection.run_session();
}

EventStream::EventStream(HttpConnection& connection, const Caller& caller, HttpResponse response,
                         message::Subscribe subscribe)
    : SubscriberSession(connection, caller),
      response_(std::move(response)),
      subscribe_(std::move(subscribe)) {}

void EventStream::start() {
  ++context_.counters.answers[response_.status];
  http_1_0_ = transport_.http_1_0();
  Delivery delivery;
  delivery.server = context_.server;
  delivery.now = std::chrono::system_clock::now();
  delivery.http_1_0 = http_1_0_;
  enable_keep_alive(transport_.socket().native_handle(), keep_alive_idle_s, keep_alive_interval_s,
                    keep_alive_probes);
  write(encode(response_, delivery));
  transport_.until_gone(discarded_bytes_max, [this, owner = connection_.shared_from_this()](error_code) {
    if (closing_ && !connection_.is_closed()) return connection_.linger();
    connection_.drop();
  });
  subscribe(std::move(subscribe_));
}

void EventStream::wake() {
  if (closing_) return;
  if (writing_) return subscriber_.shed();
  send();
}

/// As many complete frames as one write may have.
void EventStream::send() {
  Batch batch;
  subscriber_.gather(batch);
  if (batch.empty()) {
    if (connection_.is_stopping()) finish();
    return;
  }
  std::string lines;
  lines.reserve(batch.bytes() + 2 * batch.iovecs().size());
  for (const iovec& piece : batch.iovecs())
    append_lines(lines, {static_cast<const char*>(piece.iov_base), piece.iov_len});
  subscriber_.sent(batch, batch.bytes());
  frame_sent();
  if (http_1_0_) return write(std::move(lines));
  write(chunk_of(lines));
}

void EventStream::write(std::string bytes) {
  writing_ = true;
  transport_.write(std::move(bytes), [this, owner = connection_.shared_from_this()](error_code ec) {
    writing_ = false;
    if (closing_ || connection_.is_closed()) return;
    if (ec) return connection_.drop();
    wake();
  });
}

void EventStream::finish() {
  closing_ = true;
  closing_since_ = Clock::now();
  transport_.write(http_1_0_ ? "" : chunk_of(""),
                   [this, owner = connection_.shared_from_this()](error_code ec) {
                     if (connection_.is_closed()) return;
                     if (ec) return connection_.drop();
                     transport_.cancel();  // until_gone() returns, and lingers
                   });
}

void EventStream::token_changed() {
  if (!caller_.is_by_owner_token() || closing_) return;
  context_.counters.end(Ending::token_changed);
  connection_.drop();
}

void EventStream::browser_removed(std::string_view browser) {
  if (caller_.browser != browser) return;
  context_.counters.end(Ending::browser_removed);
  connection_.drop();
}

void EventStream::tick(Clock::time_point now) {
  if (closing_) {
    if (now - closing_since_ > context_.limits.goodbye) connection_.drop();
    return;
  }
  if (!check_progress(now, writing_)) return connection_.drop();
  if (!writing_) send_heartbeat(now);
  subscriber_.tick(now);
  wake();
}

}  // namespace earshot::serve
