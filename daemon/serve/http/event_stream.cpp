// The live stream over HTTP: one line a frame, as long as the client reads. Another user of what a WebSocket
// subscription is.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <utility>

#include "serve/http/event_lines.hpp"
#include "serve/websocket/client.hpp"

namespace earshot::serve {
namespace {

/// Nothing is sent while nothing happens: the kernel asks whether the client is still there.
void keep_asking(Transport::Socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  constexpr int idle_s = 20, between_s = 5, unanswered = 4;
  const int fd = socket.native_handle();  // a Unix socket has none of these: the kernel knows
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &unanswered, sizeof unanswered);
}

}  // namespace

void Client::stream(const HttpResponse& answer) {
  message::Message said = message::parse(answer.subscription);
  if (const auto* bad = std::get_if<message::Invalid>(&said))
    return reply(text_response(400, bad->code + ": " + bad->text));
  auto* asked = std::get_if<message::Subscribe>(&said);
  if (!asked) return reply(text_response(400, "this is no subscription"));
  if (const auto bad = unfit(*asked)) return reply(text_response(400, bad->code + ": " + bad->text));
  write_head(answer, std::move(*asked));
}

void Client::write_head(const HttpResponse& answer, message::Subscribe asked) {
  ++context_.counters.answers[answer.status];
  ++requests_;
  http_1_0_ = transport_->http_1_0();
  Delivery delivery;
  delivery.server = context_.server;
  delivery.now = std::chrono::system_clock::now();
  delivery.http_1_0 = http_1_0_;
  enter(Phase::events);
  subscriber_.show(audience());
  progress_ = entered_;
  keep_asking(transport_->socket());
  writing_ = true;
  write_lines(encode(answer, delivery));
  transport_->until_gone([self = shared_from_this()](error_code) {
    if (self->phase_ == Phase::closing) return self->linger();  // it was we who ended that
    self->drop();
  });
  subscribe(std::move(asked));
}

/// Whole frames, as many as one write may have; the next ones when they are gone.
void Client::send_lines() {
  Batch batch;
  subscriber_.gather(batch);
  if (batch.empty()) {
    if (stopping_) end_stream();
    return;
  }
  std::string lines;
  lines.reserve(batch.bytes() + 2 * batch.iovecs().size());
  for (const iovec& piece : batch.iovecs())
    append_lines(lines, {static_cast<const char*>(piece.iov_base), piece.iov_len});
  subscriber_.sent(batch, batch.bytes());
  if (http_1_0_) return write_lines(std::move(lines));
  std::string chunk;
  chunk.reserve(lines.size() + 16);
  append_chunk_head(chunk, lines.size());
  chunk.append(lines).append(chunk_end);
  write_lines(std::move(chunk));
}

void Client::write_lines(std::string bytes) {
  writing_ = true;
  transport_->write(std::move(bytes), [self = shared_from_this()](error_code ec) {
    self->writing_ = false;
    if (self->phase_ != Phase::events) return;
    if (ec) return self->drop();
    self->wake();
  });
}

void Client::end_stream() {
  enter(Phase::closing);
  transport_->write(http_1_0_ ? "" : std::string(last_chunk), [self = shared_from_this()](error_code ec) {
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    self->transport_->cancel();  // until_gone comes, and lingers
  });
}

void Client::tick_events(Clock::time_point now) {
  if (std::exchange(bytes_out_, transport_->bytes_out()) != transport_->bytes_out() || !writing_)
    progress_ = now;
  if (now - progress_ <= context_.limits.stall) return;
  context_.counters.end(Ending::stalled);
  drop();
}

}  // namespace earshot::serve
