// Requests complete records from the hosts that have them.
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
  static constexpr std::size_t waiting_max = 64;  // further requests fail with `busy`
  static constexpr std::size_t record_bytes_max = 32 << 20;

  virtual ~RecordClient() = default;
  /// `event_json` is an event as published by the host. `done` is called on the event loop, unless this
  /// object was destroyed.
  virtual void read(const std::string& event_json, std::function<void(serve::RemoteRecord)> done) = 0;
};

/// Returns null in a build without the broker's library.
std::unique_ptr<RecordClient> make_record_client(boost::asio::io_context& io, BrokerConfig config);

}  // namespace earshot::team
