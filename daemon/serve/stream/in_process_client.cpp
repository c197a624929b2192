#include "serve/stream/in_process_client.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace earshot::serve {
namespace {

/// The next of the frames that lie side by side, and how many bytes it has with its header (RFC 6455, 5.2).
std::string_view next_payload(std::string_view frames, std::size_t& bytes) {
  const auto byte = [&](std::size_t at) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(frames[at]));
  };
  std::uint64_t length = byte(1) & 0x7f;
  std::size_t header = 2;
  const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
  if (more > 0) {
    length = 0;
    for (std::size_t i = 0; i < more; ++i) length = length << 8 | byte(header + i);
    header += more;
  }
  bytes = header + static_cast<std::size_t>(length);
  return frames.substr(header, static_cast<std::size_t>(length));
}

}  // namespace

InProcessClient::InProcessClient(boost::asio::io_context& io, ServerContext& context,
                                 InProcessListener& listener, Audience audience)
    : io_(io), listener_(&listener), subscriber_(context) {
  subscriber_.show(audience);
  subscriber_.on_more = [this] { wake_soon(); };
}

void InProcessClient::subscribe(message::Subscribe asked) {
  if (!listener_) return;
  subscribes_.push_back(std::move(asked));
  wake_soon();
}

void InProcessClient::read(message::Read asked) {
  if (!listener_) return;
  reads_.push_back(std::move(asked));
  wake_soon();
}

void InProcessClient::leave() {
  if (!std::exchange(listener_, nullptr)) return;
  if (!delivering_) subscriber_.close();
  boost::asio::post(io_, [self = shared_from_this()] {
    self->subscriber_.close();
    if (self->gone) std::exchange(self->gone, {})(*self);
  });
}

void InProcessClient::ask() {
  for (message::Subscribe& each : std::exchange(subscribes_, {})) subscriber_.subscribe(std::move(each));
  for (const message::Read& each : std::exchange(reads_, {})) subscriber_.read(each);
}

void InProcessClient::wake() {
  if (delivering_) return;
  for (int turn = 0; listener_ && turn < batches_a_turn; ++turn) {
    ask();
    if (!listener_->has_room()) return;
    Batch batch;
    subscriber_.gather(batch);
    if (batch.empty()) return;
    delivering_ = true;
    const std::size_t taken = deliver(batch);
    delivering_ = false;
    if (!listener_) return;
    subscriber_.sent(batch, taken);
  }
  if (listener_) wake_soon();
}

std::size_t InProcessClient::deliver(const Batch& batch) {
  std::size_t taken = 0;
  for (const iovec& piece : batch.iovecs()) {
    std::string_view frames(static_cast<const char*>(piece.iov_base), piece.iov_len);
    while (!frames.empty()) {
      if (!listener_ || !listener_->has_room()) return taken;
      std::size_t bytes = 0;
      listener_->on_frame(next_payload(frames, bytes));
      frames.remove_prefix(bytes);
      taken += bytes;
    }
  }
  return taken;
}

void InProcessClient::wake_soon() {
  if (std::exchange(wake_posted_, true)) return;
  boost::asio::post(io_, [self = shared_from_this()] {
    self->wake_posted_ = false;
    self->wake();
  });
}

}  // namespace earshot::serve
