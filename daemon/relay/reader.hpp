// Whole records, asked of the hosts that have them.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "relay/link.hpp"
#include "serve/shared.hpp"

namespace earshot::relay {

class Reader {
 public:
  static constexpr std::size_t waiting_max = 64;  // more are answered `busy`
  static constexpr std::size_t record_bytes_max = 32 << 20;

  virtual ~Reader() = default;
  /// `line` is an event as the host published it. `done` is called on the loop, unless this object is gone.
  virtual void read(const std::string& line, std::function<void(serve::Forwarded)> done) = 0;
};

/// Null where the daemon is built without a broker's library.
std::unique_ptr<Reader> make_reader(boost::asio::io_context& io, Link link);

}  // namespace earshot::relay
