// Whole records, asked of the hosts that have them.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "serve/server_context.hpp"
#include "team/broker_config.hpp"

namespace earshot::team {

class RecordClient {
 public:
  static constexpr std::size_t waiting_max = 64;  // more are answered `busy`
  static constexpr std::size_t record_bytes_max = 32 << 20;

  virtual ~RecordClient() = default;
  /// `line` is an event as the host published it. `done` is called on the loop, unless this object is gone.
  virtual void read(const std::string& line, std::function<void(serve::RemoteRecord)> done) = 0;
};

/// Null where the daemon is built without a broker's library.
std::unique_ptr<RecordClient> make_reader(boost::asio::io_context& io, BrokerConfig link);

}  // namespace earshot::team
