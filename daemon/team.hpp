// What a daemon of a team does beside listening and telling: it publishes ([relay]), or it is fed by those
// who do ([hub]).
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "config/options.hpp"
#include "serve/http/health.hpp"
#include "serve/http/metrics.hpp"
#include "serve/server.hpp"
#include "tail/roots.hpp"
#include "team/host_registry.hpp"
#include "team/ingestor.hpp"
#include "team/publisher.hpp"
#include "team/record_client.hpp"

namespace earshot {

/// All calls on the loop's thread. Without [relay] and [hub] it does nothing.
class Team {
 public:
  /// `hub`, and what `for_each` goes through (every known transcript), outlive it. Throws std::runtime_error,
  /// for people.
  Team(boost::asio::io_context& io, serve::Server& server, const config::Options& options, std::uint64_t hash_key,
       std::vector<tail::Root> roots, team::Publisher::ForEach for_each);
  void start();
  void stop();

  void fill(serve::Metrics& figures) const;
  void fill(serve::Health& health) const;

 private:
  void be_hub(const config::HubOptions& words, const std::string& state, std::uint64_t hash_key);
  void be_relay(const config::RelayOptions& words, const config::Options& options, std::uint64_t hash_key,
                std::vector<tail::Root> roots, team::Publisher::ForEach for_each);
  serve::TeamMetrics figures() const;

  boost::asio::io_context& io_;
  serve::Server& server_;
  std::size_t hosts_max_ = 0;
  std::unique_ptr<team::Publisher> relay_;      // null: nothing is published
  std::unique_ptr<team::HostRegistry> hosts_;   // null: this is no hub
  std::unique_ptr<team::Ingestor> intake_;      // likewise
  std::unique_ptr<team::RecordClient> reader_;  // likewise
};

}  // namespace earshot
