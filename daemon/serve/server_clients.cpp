// The hub's door: who comes in, for how long, and what there is to say about it.
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
using watch::Clock;

void Server::begin_clients() {
  shared_.figures = [this](Metrics& figures) { fill(figures); };
  shared_.health = [this](Health& health) { fill(health); };
  shared_.token_changed = [this] {
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
  shared_.own = {endpoint_.address().to_string(), endpoint_.port(), std::move(names)};
  std::string page = url();
  page.replace(0, page.find(':'), tls_ ? "https" : "http");
  shared_.page_url = page.substr(0, page.rfind("v1/ws"));
  const int family = endpoint.protocol().family();
  entrances_.push_back(std::make_unique<Acceptor>(
      io_, family, acceptor.release(), tls_ ? TransportKind::tls : TransportKind::tcp,
      [this](Transport::Socket socket, TransportKind via) { admit(std::move(socket), via); }));
}

void Server::listen(UnixListener unix_listener) {
  if (unix_listener.path().empty()) return;  // there is no socket: clients come by TCP
  unix_ = std::move(unix_listener);
  entrances_.push_back(std::make_unique<Acceptor>(
      io_, AF_UNIX, unix_.release(), TransportKind::unix_socket,
      [this](Transport::Socket socket, TransportKind via) { admit(std::move(socket), via); }));
}

void Server::serve() {
  for (auto& entrance : entrances_) entrance->begin();
}

std::string Server::url() const {
  const auto address = endpoint_.address();
  std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  if (tls_ && !shared_.own.names.empty()) host = shared_.own.names.front();
  return (tls_ ? "wss://" : "ws://") + host + ":" + std::to_string(endpoint_.port()) + "/v1/ws";
}

void Server::admit(Transport::Socket socket, TransportKind via) {
  const bool busy = connections_.size() - refusals_ >= shared_.limits.connections_max;
  const bool foreign = via == TransportKind::unix_socket && !is_own_peer(socket.native_handle());
  const bool refused = busy || foreign;
  if (refused && refusals_ >= shared_.limits.refusals_max) {
    Audit audit;
    if (!shared_.users.empty()) audit.begin(socket, via);
    audit.tell("nobody", "a connection beyond the limit", "is shown nothing");
    return shared_.counts.refuse(Refusal::connections);
  }
  const Admission welcome = foreign ? Admission::foreign : busy ? Admission::busy : Admission::yes;
  admit(via == TransportKind::tls ? tls_wire(std::move(socket), shared_.limits, *tls_)
                                  : plain_wire(std::move(socket), shared_.limits),
        via, welcome);
}

void Server::admit(std::unique_ptr<Transport> wire, TransportKind via, Admission welcome) {
  const bool refused = welcome != Admission::yes;
  if (refused) ++refusals_;
  add(connect(std::move(wire), via, shared_, welcome, when_gone(refused)));
}

std::shared_ptr<InProcessClient> Server::attend(InProcessListener& listener, Audience shown) {
  auto inside = std::make_shared<InProcessClient>(io_, shared_, listener, shown);
  inside->gone = when_gone(false);
  add(inside);
  return inside;
}

std::function<void(Connection&)> Server::when_gone(bool refused) {
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
  ticker_.expires_after(shared_.limits.tick);
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
  ticker_.expires_after(shared_.limits.tick);
  ticker_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

void Server::purge() {
  const Position oldest = shared_.event_connections() > 0 ? shared_.first() : shared_.head() + 1;
  retired_ = shared_.sessions.purge(oldest);
}

void Server::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  for (auto& entrance : entrances_) entrance->close();
  unix_.remove();
  settle();
  for (const auto& connection : connections_) connection->stop();
  if (connections_.empty()) return finish_stop();
  stop_deadline_.expires_after(shared_.limits.stop);
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

// --- What there is to say ---

void Server::fill(Metrics& figures) {
  constexpr std::string_view kinds[] = {"http", "websocket", "events"};
  constexpr std::string_view vias[] = {"tcp", "unix", "tls"};
  std::uint64_t numbers[3][3] = {};
  for (const auto& connection : connections_)
    ++numbers[static_cast<std::size_t>(connection->kind())][static_cast<std::size_t>(connection->via())];
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (std::size_t via = 0; via < 3; ++via)
      figures.connections.push_back({std::string(kinds[kind]), std::string(vias[via]), numbers[kind][via]});
  }
  std::map<std::string, std::uint64_t> states;
  shared_.sessions.for_each([&](const Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    ++states[session.status && !session.status->state.empty() ? session.status->state : "unknown"];
  });
  figures.sessions.assign(states.begin(), states.end());
  figures.version = shared_.server.substr(shared_.server.find('/') + 1);
  figures.instance = shared_.instance;
  figures.process = process_figures();
  figures.counts = shared_.counts;
  figures.event_subscribers = shared_.event_connections();
  figures.state_subscribers = shared_.state_connections;
  for (const AudienceLog& channel : shared_.channels) figures.log_bytes += channel.log.bytes();
  figures.log_bytes_max = log_bytes_max_;
  figures.log_frames = shared_.head();
  figures.catch_up_folds = catch_ups_.folds();
  figures.catch_ups = catch_ups_.folds_begun;
  figures.catch_up_chunk_bytes = catch_ups_.bytes();
  figures.catch_up_chunk_bytes_max = shared_.limits.catch_up_bytes;
  figures.limits = list_limits(shared_.limits);
  figures.limits.emplace_back("log_bytes", log_bytes_max_);
  if (shared_.outside.figures) shared_.outside.figures(figures);
}

void Server::fill(Health& health) {
  health.version = shared_.server.substr(shared_.server.find('/') + 1);
  health.instance = shared_.instance;
  health.host = shared_.host;
  health.pid = ::getpid();
  health.uptime_s = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
  health.address = url();
  health.socket = socket_path();
  health.connections = connections_.size();
  health.sessions = shared_.sessions.size();
  health.limits = list_limits(shared_.limits);
  health.limits.emplace_back("log_bytes", log_bytes_max_);
  if (shared_.outside.health) shared_.outside.health(health);
}

}  // namespace earshot::serve
