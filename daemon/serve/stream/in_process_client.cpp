#include "serve/stream/in_process_client.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace earshot::serve {
InProcessClient::InProcessClient(boost::asio::io_context& io, ServerContext& context,
                                 InProcessListener& listener, Audience audience)
    : io_(io), listener_(&listener), subscriber_(context) {
  subscriber_.set_audience(audience);
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
    if (self->on_closed) std::exchange(self->on_closed, {})(*self);
  });
}

void InProcessClient::send_requests() {
  for (message::Subscribe& each : std::exchange(subscribes_, {})) subscriber_.subscribe(std::move(each));
  for (const message::Read& each : std::exchange(reads_, {})) subscriber_.read(each);
}

void InProcessClient::wake() {
  if (delivering_) return;
  for (int turn = 0; listener_ && turn < batches_per_turn; ++turn) {
    send_requests();
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
      const std::size_t left = frames.size();
      listener_->on_frame(take_payload(frames));
      taken += left - frames.size();
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
