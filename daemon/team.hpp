// What a daemon of a team does beside listening and telling: it publishes ([relay]), or it is fed by those
// who do ([hub]).
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "options.hpp"
#include "relay/hosts.hpp"
#include "relay/intake.hpp"
#include "relay/reader.hpp"
#include "relay/relay.hpp"
#include "serve/figures.hpp"
#include "serve/health.hpp"
#include "serve/hub.hpp"
#include "tail/roots.hpp"

namespace earshot {

/// All calls on the loop's thread. Without [relay] and [hub] it does nothing.
class Team {
 public:
  /// `hub`, and what `for_each` goes through (every known transcript), outlive it. Throws std::runtime_error,
  /// for people.
  Team(boost::asio::io_context& io, serve::Hub& hub, const Options& options, std::uint64_t mark_key,
       std::vector<tail::Root> roots, relay::Relay::ForEach for_each);
  void start();
  void stop();

  void fill(serve::Figures& figures) const;
  void fill(serve::Health& health) const;

 private:
  void be_hub(const HubWords& words, const std::string& state, std::uint64_t mark_key);
  void be_relay(const RelayWords& words, const Options& options, std::uint64_t mark_key,
                std::vector<tail::Root> roots, relay::Relay::ForEach for_each);
  serve::TeamFigures figures() const;

  boost::asio::io_context& io_;
  serve::Hub& hub_;
  std::size_t hosts_max_ = 0;
  std::unique_ptr<relay::Relay> relay_;    // null: nothing is published
  std::unique_ptr<relay::Hosts> hosts_;    // null: this is no hub
  std::unique_ptr<relay::Intake> intake_;  // likewise
  std::unique_ptr<relay::Reader> reader_;  // likewise
};

}  // namespace earshot
