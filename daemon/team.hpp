// The team features of a daemon: [relay] publishes to a message broker, [hub] receives what other daemons
// publish.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agents/roots.hpp"
#include "config/options.hpp"
#include "serve/http/metrics.hpp"
#include "serve/server.hpp"
#include "team/host_registry.hpp"
#include "team/ingestor.hpp"
#include "team/nats_client.hpp"
#include "team/publisher.hpp"

namespace earshot {

/// All calls are made on the event loop's thread. Inactive without [relay] and [hub].
class Team {
 public:
  /// `server`, and the streams that `for_each` visits (all known transcripts), must outlive this object.
  /// Throws std::runtime_error with a message for users.
  Team(boost::asio::io_context& io, serve::Server& server, const config::Options& options,
       std::uint64_t hash_key, std::vector<Root> roots, team::Publisher::ForEach for_each);
  ~Team();
  void start();
  void stop();

  void fill(serve::MetricsPage& page) const;
  void fill(serve::Health& health) const;

 private:
  void create_hub(const config::HubOptions& hub, const std::string& state, std::uint64_t hash_key);
  void create_publisher(const config::RelayOptions& relay, const config::Options& options,
                        std::uint64_t hash_key, std::vector<Root> roots, team::Publisher::ForEach for_each);
  serve::TeamMetrics metrics() const;

  boost::asio::io_context& io_;
  serve::Server& server_;
  std::size_t hosts_max_ = 0;
  std::unique_ptr<team::Publisher> publisher_;         // null without [relay]
  std::unique_ptr<team::HostRegistry> hosts_;          // null without [hub]
  std::unique_ptr<team::Ingestor> ingestor_;           // null without [hub]
  std::unique_ptr<team::RecordClient> record_client_;  // null without [hub]
};

}  // namespace earshot
