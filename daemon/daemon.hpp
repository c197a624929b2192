// Connects the modules of the daemon: watchers, tail, status, server and team.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/roots.hpp"
#include "config/options.hpp"
#include "otlp/exporter.hpp"
#include "redact/redactor.hpp"
#include "search/search.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/debounced_file.hpp"
#include "serve/http/metrics.hpp"
#include "serve/server.hpp"
#include "serve/slices.hpp"
#include "serve/websocket/acceptor.hpp"
#include "status/status_tracker.hpp"
#include "tail/tail.hpp"
#include "team/host_registry.hpp"
#include "team/ingestor.hpp"
#include "team/nats_client.hpp"
#include "team/publisher.hpp"
#include "watch/watchers.hpp"

namespace earshot {

/// What the process needs before it serves.
struct StartupResources {
  serve::Secrets secrets;
  serve::StateLock lock;
  serve::UnixListener socket;
  std::unique_ptr<boost::asio::ssl::context> tls;  // null: plain TCP, on loopback only
};

/// The team features: [relay] publishes to a message broker, [hub] receives what other daemons publish. All
/// calls are made on the event loop's thread. Inactive without [relay] and [hub].
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

class Daemon final : public status::StatusObserver {
 public:
  /// Throws boost::system::system_error if it cannot listen on the address.
  Daemon(boost::asio::io_context& io, const config::Options& options, std::vector<Root> roots,
         StartupResources resources, const std::string& version);
  ~Daemon() override;

  /// Reads the recent transcripts and starts to serve, then calls `on_ready` with the WebSocket's URL.
  void start(std::function<void(const std::string& url)> on_ready);
  /// Sends all pending frames and closes all connections, then stops the event loop.
  void stop();
  /// Checks the files that inotify has reported so far, unless that was done within `age`. Call it between
  /// two handlers of the loop.
  void poll_changes(Clock::duration age) { watchers_.poll(age); }

  void on_status(const std::string& session, const status::Status& status) override;
  void on_todos(const std::string& session) override;

 private:
  struct ColdRead;

  void read_session(const std::string& session);
  void read_cold(std::function<bool(std::string_view)> is_requested, std::function<void()> on_done);
  void read_next(const std::shared_ptr<ColdRead>& read);
  void ready();
  void log_problems() const;
  void write_address() const;
  void remove_address() const;
  std::optional<serve::SessionProcess> process_of(const std::string& session) const;
  void fill(serve::MetricsPage& page) const;
  void fill(serve::Health& health) const;
  std::vector<serve::UnknownRecords> unknown_records() const;
  serve::TeamMetrics export_metrics() const;

  boost::asio::io_context& io_;
  std::vector<Root> roots_;
  const std::string state_, watch_mode_;
  serve::StateLock lock_;
  const ModelTable models_;
  redact::Redactor redactor_;
  const bool redact_;
  std::string url_;
  watch::Mounts mounts_;  // before what reads the roots
  boost::asio::thread_pool disk_{1}, folds_;
  serve::Slices cold_lists_;
  serve::Server server_;
  watch::Watchers watchers_;
  std::unique_ptr<status::StatusTracker> status_tracker_;
  std::unique_ptr<search::Search> search_;  // null: off
  tail::Tail tail_;
  serve::DebouncedFile seen_file_, browsers_file_;
  Team team_;
  std::unique_ptr<otlp::Exporter> exporter_;  // null without [otlp]
  bool is_ready_ = false;
  std::function<void(const std::string&)> on_ready_;
};

}  // namespace earshot
