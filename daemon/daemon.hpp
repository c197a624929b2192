// The rooms wired together: roots are watched, transcripts tailed, statuses decided, clients served.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "redact/redactor.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/server.hpp"
#include "startup.hpp"
#include "status/status_tracker.hpp"
#include "tail/roots.hpp"
#include "tail/tail.hpp"
#include "team.hpp"
#include "watch/watchers.hpp"

namespace earshot {

class Daemon final : public status::Listener {
 public:
  /// Throws boost::system::system_error when the address cannot be had.
  Daemon(boost::asio::io_context& io, const config::Options& options, std::vector<tail::Root> roots,
         StartupResources doors, const std::string& version);
  ~Daemon() override;

  /// Reads what is recent, then serves; `on_ready` is called with the address of the WebSocket.
  void start(std::function<void(const std::string& url)> on_ready);
  /// Sends all clients what they are owed and says goodbye; then the loop has nothing left to do.
  void stop();

  void on_status(const std::string& session, const status::Status& status) override;
  void on_todos(const std::string& session) override;

 private:
  struct Reading;

  void want(const std::string& session);
  void read_cold(const std::function<bool(std::string_view)>& wanted, std::function<void()> then);
  void read_next(const std::shared_ptr<Reading>& reading);
  void ready();
  void log_troubles() const;
  void write_address() const;
  void forget_address() const;
  void fill(serve::Metrics& figures) const;
  void fill(serve::Health& health) const;

  boost::asio::io_context& io_;
  std::vector<tail::Root> roots_;
  const std::string state_, watch_mode_;
  serve::StateLock lock_;
  redact::Redactor redactor_;
  const bool redact_;
  std::string url_;
  boost::asio::thread_pool disk_{1};
  serve::Server server_;
  watch::Watchers watchers_;
  std::unique_ptr<status::StatusTracker> board_;
  tail::Tail tail_;
  Team team_;
  bool reading_done_ = false;
  std::function<void(const std::string&)> on_ready_;
};

}  // namespace earshot
