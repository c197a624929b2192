// Receives stream events and statuses, maintains the live log and the sessions, and serves clients.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "serve/http/connection.hpp"
#include "serve/http/session_metrics.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/subscriber_session.hpp"
#include "serve/websocket/acceptor.hpp"
#include "status/status.hpp"
#include "tail/stream.hpp"

namespace earshot::serve {

struct ServerOptions {
  std::string host;     // of this machine, on the wire
  std::string version;  // of the daemon
  std::string token;
  std::string metrics_token;  // reads /metrics and nothing else; empty: none
  std::chrono::milliseconds recent{std::chrono::hours(24)};
  std::size_t log_bytes_max = LiveLog::bytes_max_default;
  Limits limits;
};

/// All calls and callbacks on the thread that runs `io`.
class Server final : public tail::StreamObserver {
 public:
  Server(boost::asio::io_context& io, ServerOptions options);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Once per pump for each session whose transcripts changed; may call status_changed() at once.
  std::function<void(const std::string& session, const status::TranscriptSummary&)> on_transcript_summary;
  std::function<void(const std::string& session)> on_session_compacting;
  std::function<void(const std::string& session)> on_session_removed;  // its last transcript was deleted

  /// Binds and listens; connections are accepted from serve() on. Port 0 chooses one. With `tls`, connections
  /// are encrypted and Host may also be one of `names`. A non-negative `descriptor` already listens at
  /// `endpoint`; the server owns it. Throws boost::system::system_error.
  void listen(const boost::asio::ip::tcp::endpoint& endpoint,
              std::unique_ptr<boost::asio::ssl::context> tls = nullptr, std::vector<std::string> names = {},
              int descriptor = -1);
  void listen(UnixListener unix_listener);
  void serve();
  boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }
  const std::string& socket_path() const { return unix_.path(); }  // empty: no socket
  /// The address of the WebSocket, for clients.
  std::string url() const;

  /// Stops accepting, sends pending frames and closes with 1001. `done` is called when all connections are
  /// closed, at the latest after `limits.stop`.
  void stop(std::function<void()> done);

  void status_changed(const std::string& session, const status::Status& status);
  /// A program's status line. The session need not be known yet.
  void on_status_line(const StatusLine& line);
  /// At a hub: what a session's host states about it, and about the host's clock.
  void on_host_numbers(const std::string& session, serve::ReportedNumbers numbers);
  void on_host_clock(const std::string& host, std::int64_t offset_ms);
  /// The user has seen the last turn of the session. False: it is unknown.
  bool mark_seen(const std::string& session);
  /// Before serve(); afterwards `callbacks.seen_changed` is called at each change.
  void set_seen(SeenMarks marks) { context_.sessions.seen() = std::move(marks); }
  const SeenMarks& seen() const { return context_.sessions.seen(); }
  /// Before serve(), and after set_users(): browsers of identities that no longer exist are removed.
  void set_browsers(Browsers browsers);
  const Browsers& browsers() const { return context_.access.browsers; }
  /// A browser signed in: browsers() is to be stored at some time.
  void set_browser_used(std::function<void()> used) { context_.access.browser_used = std::move(used); }
  /// The public address of the page; empty: clients are told none. Before serve().
  void set_welcome_url(std::string url) { context_.welcome_url = std::move(url); }
  void todos_changed(const std::string& session, std::optional<FileTodos> todos);

  void on_added(const tail::Stream& stream) override;
  void on_event(const tail::Stream& stream, const Event& event) override;
  void on_changed(const tail::Stream& stream) override;
  void on_reset(const tail::Stream& stream, std::string_view reason) override;
  void on_renamed(const tail::Stream& stream, std::string_view from) override;
  void on_removed(const tail::Stream& stream) override;
  void on_released(const tail::Stream& stream) override;
  void on_compacting(std::string_view session) override;
  void on_flush() override;
  void on_batch_end() override;

  /// Reads transcripts that were not read yet, for clients that request all sessions.
  void set_cold_session_reader(ReadColdSessions read_cold,
                               std::function<bool(const std::string& session)> has_cold);
  /// The redactor, which outlives all connections. Without `on` the owner on the Unix socket receives
  /// unredacted text.
  void set_redaction(const TextFilter& filter, bool on) {
    context_.filter = &filter;
    context_.access.redact = on;
    context_.sessions.set_filter(filter);
  }
  /// Prices and context windows; outlives this object.
  void set_models(const ModelTable& models) { context_.sessions.set_models(models); }
  /// The transcripts, to resume streams from; outlives all connections.
  void set_archive(tail::Archive& archive) { context_.archive = &archive; }
  bool has_transcript(std::string_view session);
  const ServerContext& context() const { return context_; }
  /// The tokens since the start, as /metrics has them.
  const auto& tokens() const { return metrics_.tokens(); }
  /// The cost since the start in USD, by program, likewise.
  std::map<std::pair<std::string, std::string>, double> cost_by_program() {
    return metrics_.cost_by_program();
  }
  /// Callbacks set by the daemon.
  void set_callbacks(DaemonCallbacks callbacks) { context_.callbacks = std::move(callbacks); }
  /// Further users of a hub. Before serve().
  void set_users(std::vector<User> users) { context_.access.users = std::move(users); }
  /// Reads records from other hosts (on a hub).
  void set_remote_record_reader(ReadRemoteRecord forward) {
    context_.read_remote_record = std::move(forward);
  }
  void set_search(RunSearch search) { context_.search = std::move(search); }
  void set_remote_view(View view) { context_.access.remote_view = view; }
  /// Serves a client that was not accepted by a listener.
  void admit(std::unique_ptr<Transport> transport, TransportKind transport_kind,
             Admission admission = Admission::yes);
  /// Adds a client inside the daemon.
  std::shared_ptr<InProcessClient> attach(InProcessListener& listener, Audience audience,
                                          const DeliveryPace& pace = {});
  /// For a hub: sessions are named `<session>@<host>`.
  void set_multi_host(std::function<bool(std::string_view host)> is_online) {
    context_.sessions.set_multi_host(std::move(is_online));
  }
  /// Sets the status of the sessions of these hosts that their host does not report itself.
  void hosts_changed(const status::HostStatuses& hosts);
  std::size_t connections() const { return connections_.size(); }

 private:
  struct HandshakeRate : TokenBucket {
    HandshakeRate() : TokenBucket(handshakes_per_second, handshakes_burst) {}
  };

  void add(std::shared_ptr<Connection> connection);
  std::function<void(Connection&)> forget_when_closed(bool refused);
  void accept(int family, int descriptor, TransportKind transport_kind);
  void admit(Transport::Socket socket, TransportKind transport_kind);
  bool drop_unauthenticated(std::size_t most);
  void fill(MetricsPage& page, const SessionFigures& sessions);
  std::string version() const;
  Labelled limits() const;  // by name
  void fill(Health& health, const SessionFigures& sessions);
  void tick();
  template <class Run>
  void run_after(Timer& timer, std::chrono::milliseconds delay, Run run);
  void tick_later();
  void purge();
  bool uses_cold_sessions() const;
  void release_soon();
  void release();
  void touch(Session& session, bool transcript_changed);
  static bool appears(Session& session);
  void append_session(Session& session);
  void append_stream_frame(const Session& session, const Tags& tags, const tail::Stream& stream,
                           std::string_view reason);
  void settle();
  void send_states(Session& session);
  void send_throttled();
  void for_each_subscriber(const std::function<void(Subscriber&)>& call);
  void wake_soon();
  void wake();
  void finish_stop();

  boost::asio::io_context& io_;
  std::shared_ptr<ServerContext>
      shared_context_;  // connections keep it: their handlers may outlive the server
  ServerContext& context_;
  SessionMetrics metrics_;
  CatchUps catch_ups_;
  Records records_;
  SessionScans scans_;
  Timer ticker_, states_, stop_deadline_, releases_;
  std::vector<std::shared_ptr<Connection>> connections_;  // in order of arrival
  std::size_t refusals_ = 0;                              // of connections_: those waiting for their 503
  BoundedMap<HandshakeRate, handshake_peers_max> handshakes_;
  std::size_t retired_ = 0;  // sessions that lost their last stream since the last purge
  struct {
    std::string stream, session, written;
  } address_;               // of the last event: consecutive events are usually of one stream
  std::string meta_event_;  // scratch
  std::vector<std::uint32_t> pending_, throttled_;
  bool is_flushed_ = false;  // nothing was received since on_flush()
  bool wake_posted_ = false, ticking_ = false;
  std::vector<std::function<bool(std::string_view session)>> releasable_;  // read for one response
  std::function<void()> stopped_;
  status::HostStatuses changed_hosts_;  // whose sessions are visited next
  bool is_visiting_hosts_ = false;
  std::size_t log_bytes_max_ = 0;
  const Clock::time_point started_ = Clock::now();
  boost::asio::ip::tcp::endpoint endpoint_;
  std::unique_ptr<boost::asio::ssl::context> tls_;  // outlives the connections below
  UnixListener unix_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace earshot::serve
