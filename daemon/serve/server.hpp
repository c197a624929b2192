// Hears the streams and the statuses, keeps the live log and the sessions, accepts clients and rings them.
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
#include "serve/server_context.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/in_process_client.hpp"
#include "serve/stream/records.hpp"
#include "serve/websocket/acceptor.hpp"
#include "serve/websocket/connection.hpp"
#include "serve/websocket/unix_listener.hpp"
#include "status/status.hpp"
#include "tail/listener.hpp"

namespace earshot::serve {

struct ServerOptions {
  std::string host;     // this machine's name on the wire
  std::string version;  // of the program
  std::string token;
  std::chrono::milliseconds recent{std::chrono::hours(24)};
  std::size_t log_bytes_max = LiveLog::bytes_max_default;
  Limits limits;
};

/// All calls and callbacks on the thread that runs `io`.
class Server final : public tail::Listener {
 public:
  Server(boost::asio::io_context& io, ServerOptions options);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What the transcripts say of a session goes here, once a pump and session; it may call back at once.
  std::function<void(const std::string& session, const status::TranscriptSummary&)> on_transcript_summary;
  std::function<void(const std::string& session)> on_session_compacting;
  std::function<void(const std::string& session)> on_session_removed;  // no transcript of it is left

  /// Binds and listens; clients wait until serve(). Port 0 picks one. Throws boost::system::system_error.
  /// With a `tls` context all of it is encrypted, and a Host may also be one of `names`. A `descriptor` that
  /// is not negative listens at `endpoint` already, and is taken over.
  void listen(const boost::asio::ip::tcp::endpoint& endpoint,
              std::unique_ptr<boost::asio::ssl::context> tls = nullptr, std::vector<std::string> names = {},
              int descriptor = -1);
  void listen(UnixListener unix_listener);
  void serve();
  boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }
  const std::string& socket_path() const { return unix_.path(); }  // empty: there is none
  /// The address of the WebSocket, for clients.
  std::string url() const;

  /// Stops accepting, sends each client what it is owed and 1001; `done` when the last one is gone, or their
  /// time is up.
  void stop(std::function<void()> done);

  void status_changed(const std::string& session, const status::Status& status);
  void todos_changed(const std::string& session, std::optional<FileTodos> todos);

  void on_appeared(const tail::Stream& stream) override;
  void on_event(const tail::Stream& stream, const Event& event) override;
  void on_changed(const tail::Stream& stream) override;
  void on_reset(const tail::Stream& stream, std::string_view reason) override;
  void on_removed(const tail::Stream& stream) override;
  void on_compacting(std::string_view session) override;
  void on_pumped() override;

  /// How sessions that are only known are read when a client asks for all (Shared::read_cold).
  void set_cold_session_reader(ReadColdSessions read_cold) { context_.read_cold = std::move(read_cold); }
  /// What takes secrets out of all that is shown; `off`: the owner over the Unix socket is shown them. It
  /// outlives all connections.
  void set_redaction(const TextFilter& filter, bool on) {
    context_.filter = &filter;
    context_.redact = on;
    context_.sessions.set_filter(filter);
  }
  /// Where what was told can be read again; outlives all connections.
  void set_archive(tail::Archive& archive) { context_.archive = &archive; }
  bool has_transcript(std::string_view session);
  const ServerContext& context() const { return context_; }
  /// What only the house around it knows.
  void set_callbacks(DaemonCallbacks callbacks) { context_.callbacks = std::move(callbacks); }
  /// Who may listen beside the owner, and to what. Before anybody comes.
  void set_users(std::vector<User> users) { context_.users = std::move(users); }
  /// Where records are, when they are not here.
  void set_remote_record_reader(ReadRemoteRecord forward) {
    context_.read_remote_record = std::move(forward);
  }
  void set_remote_view(View view) { context_.remote_view = view; }
  /// A client that came by some other way than the listeners.
  void admit(std::unique_ptr<Transport> transport, TransportKind transport_kind,
             Admission admission = Admission::yes);
  /// Somebody in this house listens, too.
  std::shared_ptr<InProcessClient> attach(InProcessListener& listener, Audience audience);
  /// What is told is what many hosts told: sessions are called `<session>@<host>`.
  void set_multi_host(std::function<bool(std::string_view host)> is_heard) {
    context_.sessions.set_multi_host(std::move(is_heard));
  }
  /// What each session of these hosts becomes of which its host says nothing itself.
  void hosts_changed(const status::OfHosts& hosts);
  std::size_t connections() const { return connections_.size(); }

 private:
  void begin_clients();
  void add(std::shared_ptr<Connection> connection);
  std::function<void(Connection&)> when_gone(bool refused);
  void admit(Transport::Socket socket, TransportKind transport_kind);
  void fill(Metrics& metrics);
  void fill(Health& health);
  void tick();
  void purge();
  void touch(Session& session, bool transcript_changed);
  void append_session(const Session& session);
  void append_about(const Session& session, const Tags& tags, const tail::Stream& stream,
                    std::string_view reason);
  void settle();
  void tell_states(Session& session);
  void tell_late();
  void wake_soon();
  void wake();
  void finish_stop();

  boost::asio::io_context& io_;
  ServerContext context_;
  CatchUps catch_ups_;
  Records records_;
  watch::Timer ticker_, states_, stop_deadline_;
  std::vector<std::shared_ptr<Connection>> connections_;  // in the order in which they came
  std::size_t refusals_ = 0;  // of connections_: those that only wait for their 503
  std::size_t retired_ = 0;   // sessions that lost their last stream since the last purge
  struct {
    std::string stream, session, written;
  } address_;  // of the last event: those of one stream come in runs
  std::vector<std::uint32_t> pending_, late_;
  bool wake_posted_ = false, ticking_ = false;
  std::function<void()> stopped_;
  std::size_t log_bytes_max_ = 0;
  const watch::Clock::time_point started_ = watch::Clock::now();
  boost::asio::ip::tcp::endpoint endpoint_;
  std::unique_ptr<boost::asio::ssl::context> tls_;  // outlives the connections below
  UnixListener unix_;
  std::vector<std::unique_ptr<Acceptor>> entrances_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // a connection may be gone after the hub
};

}  // namespace earshot::serve
