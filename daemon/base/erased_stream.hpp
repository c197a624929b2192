// What Beast passes to the stream below it, without its types: that stream's templates are then instantiated
// once, not for every operation of Beast.
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace earshot {

using StreamDone = std::function<void(boost::system::error_code, std::size_t)>;

/// A buffer sequence, or its beginning: reading or writing some of it is all that is asked.
template <class Buffer>
class BufferList {
 public:
  template <class Buffers>
  explicit BufferList(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end && count_ < buffers_.size(); ++at)
      if (const Buffer buffer(*at); buffer.size() > 0) buffers_[count_++] = buffer;
  }
  const Buffer* begin() const { return buffers_.data(); }
  const Buffer* end() const { return buffers_.data() + count_; }

 private:
  std::array<Buffer, 16> buffers_;
  std::size_t count_ = 0;
};

/// A handler that can only be moved, and is called once.
template <class Handler>
StreamDone erase_handler(Handler&& handler) {
  return [shared = std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler))](
             boost::system::error_code failed, std::size_t bytes) mutable {
    auto once = std::move(*shared);
    shared.reset();  // its memory may be what the next operation needs
    std::move(once)(failed, bytes);
  };
}

}  // namespace earshot
