// The server's listeners and connections, and its metrics.
#include <spdlog/spdlog.h>

#include <boost/asio.hpp>
#include <map>
#include <utility>

#include "serve/auth/audit.hpp"
#include "serve/http/health.hpp"
#include "serve/http/metrics.hpp"
#include "serve/limits.hpp"
#include "serve/server.hpp"

namespace earshot::serve {

namespace asio = boost::asio;
using boost::system::error_code;

void Server::begin_clients() {
  context_.fill_metrics = [this](Metrics& metrics) { fill(metrics); };
  context_.fill_health = [this](Health& health) { fill(health); };
  context_.token_changed = [this] {
    for (const auto& connection : connections_) connection->token_changed();
  };
}

void Server::listen(const asio::ip::tcp::endpoint& endpoint, std::unique_ptr<asio::ssl::context> tls,
                    std::vector<std::string> names, int descriptor) {
  asio::ip::tcp::acceptor acceptor(io_);
  if (descriptor >= 0) {
    acceptor.assign(endpoint.protocol(), descriptor);
  } else {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
  }
  endpoint_ = acceptor.local_endpoint();
  tls_ = std::move(tls);
  context_.own_address = {endpoint_.address().to_string(), endpoint_.port(), std::move(names)};
  std::string page = url();
  page.replace(0, page.find(':'), tls_ ? "https" : "http");
  context_.page_url = page.substr(0, page.rfind("v1/ws"));
  const int family = endpoint.protocol().family();
  acceptors_.push_back(std::make_unique<Acceptor>(
      io_, family, acceptor.release(), tls_ ? TransportKind::tls : TransportKind::tcp,
      [this](Transport::Socket socket, TransportKind transport_kind) {
        admit(std::move(socket), transport_kind);
      }));
}

void Server::listen(UnixListener unix_listener) {
  if (unix_listener.path().empty()) return;  // there is no socket: clients come by TCP
  unix_ = std::move(unix_listener);
  acceptors_.push_back(
      std::make_unique<Acceptor>(io_, AF_UNIX, unix_.release(), TransportKind::unix_socket,
                                 [this](Transport::Socket socket, TransportKind transport_kind) {
                                   admit(std::move(socket), transport_kind);
                                 }));
}

void Server::serve() {
  for (auto& acceptor : acceptors_) acceptor->begin();
}

std::string Server::url() const {
  const auto address = endpoint_.address();
  std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  if (tls_ && !context_.own_address.names.empty()) host = context_.own_address.names.front();
  return (tls_ ? "wss://" : "ws://") + host + ":" + std::to_string(endpoint_.port()) + "/v1/ws";
}

void Server::admit(Transport::Socket socket, TransportKind transport_kind) {
  const bool busy = connections_.size() - refusals_ >= context_.limits.connections_max;
  const bool foreign = transport_kind == TransportKind::unix_socket && !is_own_peer(socket.native_handle());
  const bool refused = busy || foreign;
  if (refused && refusals_ >= context_.limits.refusals_max) {
    Audit audit;
    if (!context_.access.users.empty()) audit.begin(socket, transport_kind);
    audit.log("anonymous", "a connection beyond the limit", "receives nothing");
    return context_.counters.refuse(Refusal::connections);
  }
  const Admission admission = foreign ? Admission::foreign : busy ? Admission::busy : Admission::yes;
  admit(transport_kind == TransportKind::tls ? make_tls_transport(std::move(socket), context_.limits, *tls_)
                                             : make_plain_transport(std::move(socket), context_.limits),
        transport_kind, admission);
}

void Server::admit(std::unique_ptr<Transport> transport, TransportKind transport_kind, Admission admission) {
  const bool refused = admission != Admission::yes;
  if (refused) ++refusals_;
  add(connect(std::move(transport), transport_kind, context_, admission, forget_when_closed(refused)));
}

std::shared_ptr<InProcessClient> Server::attach(InProcessListener& listener, Audience audience) {
  auto client = std::make_shared<InProcessClient>(io_, context_, listener, audience);
  client->on_closed = forget_when_closed(false);
  add(client);
  return client;
}

std::function<void(Connection&)> Server::forget_when_closed(bool refused) {
  return [this, refused, alive = std::weak_ptr<bool>(alive_)](Connection& gone) {
    if (alive.expired()) return;
    if (refused) --refusals_;
    std::erase_if(connections_, [&](const auto& each) { return each.get() == &gone; });
    if (connections_.empty() && stopped_) finish_stop();
  };
}

void Server::add(std::shared_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  if (std::exchange(ticking_, true)) return;
  ticker_.expires_after(context_.limits.tick);
  ticker_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

/// While there are connections.
void Server::tick() {
  const auto now = Clock::now();
  for (const auto& connection : connections_) connection->tick(now);
  if (retired_ > 0) purge();
  ticking_ = !connections_.empty();
  if (!ticking_) return;
  ticker_.expires_after(context_.limits.tick);
  ticker_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

void Server::purge() {
  const Position oldest = context_.logs.readers() > 0 ? context_.logs.first() : context_.logs.head() + 1;
  retired_ = context_.sessions.purge(oldest);
}

void Server::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  for (auto& acceptor : acceptors_) acceptor->close();
  unix_.remove();
  settle();
  for (const auto& connection : connections_) connection->stop();
  if (connections_.empty()) return finish_stop();
  stop_deadline_.expires_after(context_.limits.stop);
  stop_deadline_.async_wait([this](error_code ec) {
    if (ec) return;
    for (const auto& connection : connections_) connection->drop();
  });
}

void Server::finish_stop() {
  ticker_.cancel();
  states_.cancel();
  stop_deadline_.cancel();
  std::exchange(stopped_, {})();
}

// --- Metrics and health ---

void Server::fill(Metrics& metrics) {
  constexpr std::string_view kinds[] = {"http", "websocket", "events"};
  constexpr std::string_view vias[] = {"tcp", "unix", "tls"};
  std::uint64_t numbers[3][3] = {};
  for (const auto& connection : connections_)
    ++numbers[static_cast<std::size_t>(connection->kind())]
             [static_cast<std::size_t>(connection->transport_kind())];
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (std::size_t via = 0; via < 3; ++via)
      metrics.connections.push_back({std::string(kinds[kind]), std::string(vias[via]), numbers[kind][via]});
  }
  std::map<std::string, std::uint64_t> states;
  context_.sessions.for_each([&](const Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    ++states[session.status && !session.status->state.empty() ? session.status->state : "unknown"];
  });
  metrics.sessions.assign(states.begin(), states.end());
  metrics.version = context_.server.substr(context_.server.find('/') + 1);
  metrics.instance = context_.instance;
  metrics.process = process_metrics();
  metrics.counters = context_.counters;
  metrics.event_subscribers = context_.logs.readers();
  metrics.state_subscribers = context_.state_connections;
  metrics.log_bytes = context_.logs.bytes();
  metrics.log_bytes_max = log_bytes_max_;
  metrics.log_frames = context_.logs.head();
  metrics.catch_up_folds = catch_ups_.folds();
  metrics.catch_ups = catch_ups_.folds_begun;
  metrics.catch_up_chunk_bytes = catch_ups_.bytes();
  metrics.catch_up_chunk_bytes_max = context_.limits.catch_up_bytes;
  metrics.limits = limit_values(context_.limits);
  metrics.limits.emplace_back("log_bytes", log_bytes_max_);
  if (context_.callbacks.fill_metrics) context_.callbacks.fill_metrics(metrics);
}

void Server::fill(Health& health) {
  health.version = context_.server.substr(context_.server.find('/') + 1);
  health.instance = context_.instance;
  health.host = context_.host;
  health.pid = ::getpid();
  health.uptime_s = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
  health.address = url();
  health.socket = socket_path();
  health.connections = connections_.size();
  health.sessions = context_.sessions.size();
  health.limits = limit_values(context_.limits);
  health.limits.emplace_back("log_bytes", log_bytes_max_);
  if (context_.callbacks.fill_health) context_.callbacks.fill_health(health);
}

}  // namespace earshot::serve
