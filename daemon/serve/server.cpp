#include "serve/server.hpp"

#include <algorithm>
#include <boost/asio.hpp>
#include <map>
#include <utility>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "base/sockets.hpp"
#include "core/event_json.hpp"
#include "log/log.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t instance_bytes = 8;
constexpr std::size_t retired_max =
    1024;  // sessions without streams; above it they are purged after each pump

bool meta_known(const tail::Stream& stream) {
  return !stream.meta().agent_type.empty() || !stream.meta().call.empty();
}

Member* member_of(Session& session, const tail::Stream& stream) {
  for (Member& member : session.members) {
    if (member.stream == &stream) return &member;
  }
  return nullptr;
}

}  // namespace

Server::Server(asio::io_context& io, ServerOptions options)
    : io_(io),
      shared_context_(std::make_shared<ServerContext>(std::move(options.host), options.log_bytes_max)),
      context_(*shared_context_),
      catch_ups_(io, context_),
      metrics_(context_.sessions),
      records_(context_),
      scans_(io, context_.sessions),
      ticker_(io),
      states_(io),
      stop_deadline_(io),
      releases_(io) {
  context_.server = "earshot/" + options.version;
  context_.instance = random_hex(instance_bytes);
  context_.access.token = std::move(options.token);
  context_.access.metrics_token = std::move(options.metrics_token);
  context_.recent = options.recent;
  context_.limits = options.limits;
  context_.catch_ups = &catch_ups_;
  context_.records = &records_;
  context_.scans = &scans_;
  log_bytes_max_ = options.log_bytes_max;
  context_.fill_metrics = [this](auto& page, const auto& sessions) { fill(page, sessions); };
  context_.fill_health = [this](auto& health, const auto& sessions) { fill(health, sessions); };
  context_.on_status_line = [this](const StatusLine& line) { on_status_line(line); };
  context_.mark_seen = [this](const std::string& session) { return mark_seen(session); };
  context_.token_changed = [this] {
    for (const auto& connection : connections_) connection->token_changed();
  };
  context_.browser_removed = [this](const std::string& browser) {
    for (const auto& connection : connections_) connection->browser_removed(browser);
  };
}

Server::~Server() {
  for (const auto& connection : connections_) connection->drop();
  // Pending handlers, and with them connections, may be destroyed with the event loop.
  context_.catch_ups = nullptr;
  context_.records = nullptr;
  context_.scans = nullptr;
  context_.archive = nullptr;
}

void Server::set_browsers(Browsers browsers) {
  AccessPolicy& access = context_.access;
  access.browsers = std::move(browsers);
  access.browsers.remove_if(
      [&](const Browser& browser) { return browser.credential != access.credential_of(browser.user); });
}

// --- Streams ---

void Server::touch(Session& session, bool transcript_changed) {
  is_flushed_ = false;
  context_.sessions.note_change(session, context_.logs.head());
  session.summary_due |= transcript_changed;
  if (std::exchange(session.pending, true)) return;
  pending_.push_back(session.id);
}

/// True once when a session that clients did not see is shown.
bool Server::appears(Session& session) {
  return std::exchange(session.was_hidden, !session.is_shown()) && session.is_shown();
}

/// Appends its `session` frame to the log.
void Server::append_session(Session& session) {
  session.was_hidden = !session.is_shown();
  if (session.was_hidden) return;
  session.was_unseen = session.is_unseen();
  context_.logs.append({session.id, type_always}, [&](Audience audience, std::string& out) {
    out = context_.sessions.payload(session, context_.session_encoding(audience));
  });
  if (context_.from_beginning_subscriptions == 0) return;
  for_each_subscriber([&](Subscriber& subscriber) { subscriber.session_shown(session); });
}

/// {"type", "host", "session", "stream", "reason"}
void Server::append_stream_frame(const Session& session, const Tags& tags, const tail::Stream& stream,
                                 std::string_view reason) {
  context_.logs.append(tags, [&](Audience, std::string& out) {
    JsonWriter json(out);
    json.begin_object().member("type", tags.type == type_reset ? "reset" : "stream.removed");
    json.member_if_any("host", context_.host_of(session.name)).member_if_any("session", session.name);
    json.member("stream", stream.name()).member_if_any("reason", reason).end_object();
  });
}

void Server::on_added(const tail::Stream& stream) {
  metrics_.count_costs();
  const bool was_known = context_.sessions.contains(stream);
  Session& session = context_.sessions.session_of(stream);
  touch(session, true);
  session.was_live |= is_live(session, context_.recent);
  if (Member* member = member_of(session, stream)) {
    member->meta_known = meta_known(stream);
    if (was_known) context_.sessions.account_for(*member);
    SessionMetrics::on_added(*member);
  }
  metrics_.skip_costs();
  const bool has_history = stream.transcript() && stream.transcript()->end().offset > 0;
  if (!has_history) {
    const std::uint32_t id = context_.sessions.stream_id(stream);
    for_each_subscriber([id](Subscriber& subscriber) { subscriber.stream_appeared(id); });
    return;
  }
  if (is_live(session, context_.recent)) append_session(session);
  for_each_subscriber([&stream](Subscriber& subscriber) { subscriber.stream_readable(stream); });
}

void Server::on_event(const tail::Stream& stream, const Event& event) {
  Session& session = context_.sessions.session_of(stream);
  touch(session, true);
  session.was_live = true;
  if (session.project.empty() || session.program.empty()) context_.sessions.refresh(session);
  const bool has_usage = std::holds_alternative<event::UsageUpdated>(event.body);
  metrics_.on_event(session, has_usage ? member_of(session, stream) : nullptr, event.body);
  const Tags tags{session.id, type_of(event.body), context_.sessions.stream_id(stream), event.cursor};
  if (address_.stream != stream.name() || address_.session != stream.session())
    address_ = {stream.name(), stream.session(),
                encode_address({context_.host_of(stream.session()), stream.name(), stream.session()})};
  // The full view, the first one, is encoded with the meta view.
  const bool has_both =
      context_.logs.has_readers(Audience::full) && context_.logs.has_readers(Audience::meta);
  context_.logs.append(tags, [&](Audience audience, std::string& out) {
    if (has_both && audience == Audience::full) {
      meta_event_.clear();
      append_event_views(out, meta_event_, event, address_.written, context_.encoding(audience));
    } else if (has_both && audience == Audience::meta) {
      out.swap(meta_event_);
    } else {
      append_event(out, event, address_.written, context_.encoding(audience));
    }
  });
}

void Server::on_changed(const tail::Stream& stream) {
  Session& session = context_.sessions.session_of(stream);
  context_.sessions.refresh(session);
  touch(session, true);
  Member* member = member_of(session, stream);
  if (!member || member->meta_known || !meta_known(stream)) return;
  member->meta_known = true;  // the identity of the agent and its call: sent once
  append_session(session);
}

void Server::on_reset(const tail::Stream& stream, std::string_view reason) {
  Session& session = context_.sessions.session_of(stream);
  if (Member* const member = member_of(session, stream)) context_.sessions.account_for(*member);
  touch(session, true);
  append_stream_frame(session, {session.id, type_reset, context_.sessions.stream_id(stream)}, stream, reason);
}

void Server::on_removed(const tail::Stream& stream) {
  // A stream that was never read: a client may have read it from its file.
  if (!context_.sessions.contains(stream)) {
    if (context_.logs.readers() == 0) return;
    context_.sessions.session_of(stream);
  }
  const std::uint32_t id = context_.sessions.stream_id(stream);
  metrics_.count_costs();
  Session* session = context_.sessions.remove_stream(stream, context_.logs.head());
  if (!session) return;
  metrics_.skip_costs();
  touch(*session, true);
  append_stream_frame(*session, {session->id, type_removed, id}, stream, {});
  if (session->members.empty()) ++retired_;
}

void Server::on_renamed(const tail::Stream& stream, std::string_view from) {
  // A stream that was never read: a client may have read it from its file.
  const bool is_cold = !context_.sessions.contains(stream);
  if (is_cold && context_.logs.readers() == 0) return;
  Session& session = context_.sessions.session_of(stream);
  touch(session, true);
  const Tags tags{session.id, type_renamed, context_.sessions.stream_id(stream)};
  context_.logs.add_renamed(tags.stream, from);
  catch_ups_.stream_renamed(from, stream.name());
  for_each_subscriber([&](Subscriber& each) { each.stream_renamed(from, stream.name()); });
  context_.logs.append(tags, [&](Audience, std::string& out) {
    out = renamed_frame(context_.host_of(session.name), session.name, from, stream.name());
  });
  if (!is_cold) return;
  context_.sessions.remove_stream(stream, context_.logs.head());
  if (session.members.empty()) ++retired_;
}

void Server::on_released(const tail::Stream& stream) {
  metrics_.count_costs();
  Session* session = context_.sessions.remove_stream(stream, context_.logs.head());
  metrics_.skip_costs();
  if (!session || !session->members.empty()) return;
  ++retired_;
  if (on_session_removed && !session->name.empty()) on_session_removed(session->name);
}

void Server::on_compacting(std::string_view session) {
  if (on_session_compacting) on_session_compacting(std::string(session));
}

void Server::on_flush() {
  wake();
  is_flushed_ = true;
}

void Server::on_batch_end() {
  if (!std::exchange(is_flushed_, false)) wake();  // send events before the statuses that follow from them
  const Position head = context_.logs.head();
  settle();
  if (context_.logs.head() != head || context_.state_connections > 0) wake();
  context_.logs.settle();
}

// --- Statuses ---

void Server::status_changed(const std::string& name, const status::Status& status) {
  Session& session = context_.sessions.find_or_create(name);
  metrics_.on_status(session, status, Clock::now());
  session.set_status(status);
  session.was_live |= session.process_lives();
  const std::uint32_t generation = session.generation;
  context_.sessions.refresh(session);
  for (const std::string& each : status.projects) session.add_project(each);
  touch(session, false);
  const bool is_new_place = session.members.empty() && session.generation != generation;
  const bool exists = !session.members.empty() || session.process_lives();
  if (is_new_place || (exists && (appears(session) || session.is_unseen() != session.was_unseen)))
    append_session(session);
  const tail::Stream* const main = session.main();
  const bool is_titled = main && main->transcript() && !main->transcript()->state().title.empty();
  context_.logs.append({session.id, type_always}, [&](Audience audience, std::string& out) {
    JsonWriter json(out);
    json.begin_object().member("type", "status").member_if_any("host", context_.host_of(name));
    json.member_if_any("session", name).member_if_any("program", session.program);
    if (!session.project.empty())
      append_redacted(json.key("project").next(), session.project, context_.filter);
    json.member_if_any("state", status.state).member_if_any("reason", status.reason);
    if (audience != Audience::meta && !status.detail.empty())
      append_redacted(json.key("detail").next(), status.detail, context_.filter);
    if (audience != Audience::meta && !is_titled && !status.title.empty())
      append_redacted(json.key("title").next(), status.title, context_.filter);
    json.member("source", status.source.empty() ? "transcript" : status.source);
    json.member_if_any("since", status.since).member_if_any("request", status.request);
    json.member_if_any("agent", status.agent);
    if (status.done && status.tells_done) append_done(json.key("done"), *status.done);
    json.end_object();
  });
  if (session.members.empty() && !session.process_lives()) {
    session.retired = context_.logs.head();
    ++retired_;
  }
  wake_soon();
}

/// In slices. A host may change again meanwhile: then its sessions are visited again.
void Server::hosts_changed(const status::HostStatuses& changed) {
  for (const auto& [host, status] : changed) changed_hosts_[host] = status;
  if (changed_hosts_.empty() || std::exchange(is_visiting_hosts_, true)) return;
  const auto visit = [this, hosts = std::exchange(changed_hosts_, {})](const Session& session) {
    const std::string_view name = context_.host_of(session.name);
    const auto host = hosts.find(name);
    if (host == hosts.end() || !session.is_shown()) return;
    const status::Status& status = host->second;
    const bool shown_away = session.status && session.status->reason == status::host_offline_reason;
    const bool ended = session.status && session.status->state == "ended";
    const bool is_away = status.reason == status::host_offline_reason;
    if (is_away && context_.sessions.is_online(name)) return;
    if (is_away ? !ended && session.status != status : shown_away) status_changed(session.name, status);
  };
  scans_.begin(&changed_hosts_, SessionScans::Visit(visit), [this] {
    is_visiting_hosts_ = false;
    hosts_changed({});
  });
}

void Server::todos_changed(const std::string& name, std::optional<FileTodos> todos) {
  Session* session = context_.sessions.find(name);
  if (!session) return;
  session->todos = std::move(todos);
  touch(*session, false);
  append_session(*session);
  wake_soon();
}

bool Server::has_transcript(std::string_view session) {
  const Session* found = context_.sessions.find(session);
  return found && !found->members.empty();
}

// --- The end of a pump ---

/// Reports changed sessions to the status tracker (which may set a status at once) and to connections with
/// `deliver: state`.
void Server::settle() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {  // statuses may add sessions meanwhile
    Session* session = context_.sessions.find(pending_[i]);
    if (!session) continue;
    if (std::exchange(session->summary_due, false) && !session->name.empty()) {
      if (session->members.empty()) {
        if (on_session_removed) on_session_removed(session->name);
      } else if (on_transcript_summary) {
        on_transcript_summary(session->name, transcript_summary(*session));
      }
      const bool exists = !session->members.empty() || session->process_lives();
      if (exists && (appears(*session) || session->is_unseen() != session->was_unseen))
        append_session(*session);
    }
    session->pending = false;
    send_states(*session);
  }
  pending_.clear();
  if (retired_ > retired_max) purge();
}

/// At most once per `limits.state` and session; the latest state is sent.
void Server::send_states(Session& session) {
  if (context_.state_connections == 0 || !session.is_shown() || session.is_throttled) return;
  const auto now = Clock::now();
  if (session.states_sent_at && now - *session.states_sent_at < context_.limits.state) {
    session.is_throttled = true;
    throttled_.push_back(session.id);
    if (throttled_.size() > 1) return;
    run_after(states_, context_.limits.state, [this] { send_throttled(); });
    return;
  }
  session.states_sent_at = now;
  for_each_subscriber([&](Subscriber& subscriber) { subscriber.session_changed(session); });
}

void Server::send_throttled() {
  for (const std::uint32_t id : std::exchange(throttled_, {})) {
    Session* session = context_.sessions.find(id);
    if (!session) continue;
    session->is_throttled = false;
    send_states(*session);
  }
  wake();
}

void Server::for_each_subscriber(const std::function<void(Subscriber&)>& call) {
  for (const auto& connection : connections_)
    if (Subscriber* subscriber = connection->subscriber()) call(*subscriber);
}

void Server::wake_soon() {
  if (std::exchange(wake_posted_, true)) return;
  asio::post(io_, [this] {
    wake_posted_ = false;
    on_batch_end();
  });
}

void Server::wake() {
  // The newest first: the exporter and the publisher attach before clients connect, and do more with a frame
  // than to send it.
  for (auto each = connections_.rbegin(); each != connections_.rend(); ++each) (*each)->wake();
}

// --- Clients ---

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
  // An address of all interfaces is not one that a client can use.
  if (!endpoint_.address().is_unspecified() || !context_.own_address.names.empty())
    context_.welcome_url = context_.page_url;
  accept(endpoint.protocol().family(), acceptor.release(), tls_ ? TransportKind::tls : TransportKind::tcp);
}

void Server::listen(UnixListener unix_listener) {
  if (unix_listener.path().empty()) return;  // there is no socket: clients come by TCP
  unix_ = std::move(unix_listener);
  accept(AF_UNIX, unix_.release(), TransportKind::unix_socket);
}

void Server::accept(int family, int descriptor, TransportKind transport_kind) {
  acceptors_.push_back(std::make_unique<Acceptor>(
      io_, family, descriptor, transport_kind,
      [this](Transport::Socket socket, TransportKind kind) { admit(std::move(socket), kind); }));
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
  const bool is_local = transport_kind == TransportKind::unix_socket;
  const std::size_t reserved = is_local ? context_.limits.reserved_connections : 0;
  const bool full = connections_.size() - refusals_ >= context_.limits.connections_max + reserved;
  if (transport_kind == TransportKind::tls && !handshakes_[peer_network(socket)].take(Clock::now()))
    return context_.counters.refuse(Refusal::too_often);
  const bool has_room = drop_unauthenticated(full ? 0 : context_.limits.unauthenticated_max - 1);
  const bool busy = full && !has_room;
  const bool foreign = is_local && !is_own_peer(socket.native_handle());
  const bool refused = busy || foreign;
  if (refused && refusals_ >= context_.limits.refusals_max) {
    Audit audit;
    if (!context_.access.users.empty()) audit.begin(peer_address(socket, transport_kind));
    audit.log("anonymous", "a connection beyond the limit", "receives nothing");
    return context_.counters.refuse(Refusal::connections);
  }
  const Admission admission = foreign ? Admission::foreign : busy ? Admission::busy : Admission::yes;
  admit(transport_kind == TransportKind::tls ? make_tls_transport(std::move(socket), context_.limits, *tls_)
                                             : make_plain_transport(std::move(socket), context_.limits),
        transport_kind, admission);
}

/// If there are more than `most` unauthenticated connections, drops the one that has been in its state
/// longest.
bool Server::drop_unauthenticated(std::size_t most) {
  Connection* longest = nullptr;
  std::size_t count = 0;
  for (const auto& connection : connections_) {
    const auto since = connection->unauthenticated_since();
    count += since ? 1 : 0;
    if (since && (!longest || since < longest->unauthenticated_since())) longest = connection.get();
  }
  if (count <= most) return false;
  context_.counters.end(Ending::replaced);
  longest->drop();
  return true;
}

void Server::admit(std::unique_ptr<Transport> transport, TransportKind transport_kind, Admission admission) {
  const bool refused = admission != Admission::yes;
  if (refused) ++refusals_;
  add(connect(std::move(transport), transport_kind, context_, admission, forget_when_closed(refused)));
}

std::shared_ptr<InProcessClient> Server::attach(InProcessListener& listener, Audience audience,
                                                const DeliveryPace& pace) {
  auto client = std::make_shared<InProcessClient>(io_, context_, listener, audience, pace);
  client->on_closed = forget_when_closed(false);
  add(client);
  return client;
}

std::function<void(Connection&)> Server::forget_when_closed(bool refused) {
  return [this, refused, alive = std::weak_ptr<bool>(alive_), context = shared_context_](Connection& gone) {
    if (alive.expired()) return;
    if (refused) --refusals_;
    std::erase_if(connections_, [&](const auto& each) { return each.get() == &gone; });
    if (connections_.empty() && stopped_) finish_stop();
  };
}

void Server::add(std::shared_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  if (!std::exchange(ticking_, true)) tick_later();
}

/// Unless it is cancelled, or the server is gone: a timer that has expired already cannot be cancelled.
template <class Run>
void Server::run_after(Timer& timer, std::chrono::milliseconds delay, Run run) {
  timer.expires_after(delay);
  timer.async_wait([run = std::move(run), alive = std::weak_ptr<bool>(alive_)](error_code ec) {
    if (!ec && !alive.expired()) run();
  });
}

void Server::tick_later() {
  run_after(ticker_, context_.limits.tick, [this] { tick(); });
}

/// While there are connections.
void Server::tick() {
  const auto now = Clock::now();
  for (const auto& connection : connections_) connection->tick(now);
  if (retired_ > 0) purge();
  ticking_ = !connections_.empty();
  if (ticking_) tick_later();
}

// --- Cold sessions ---

void Server::set_cold_session_reader(ReadColdSessions read_cold,
                                     std::function<bool(const std::string& session)> has_cold) {
  context_.has_cold_session = std::move(has_cold);
  context_.read_cold_sessions = [this, read_cold](auto wanted, std::function<void()> then) {
    read_cold(std::move(wanted), [then = std::move(then), in_use = context_.cold_sessions_in_use]() mutable {
      then();
      in_use.reset();
    });
  };
  context_.read_cold_sessions_once = [this](auto wanted, std::function<void()> then) {
    if (releasable_.empty()) release_soon();
    releasable_.push_back(wanted);
    context_.read_cold_sessions(std::move(wanted), std::move(then));
  };
}

bool Server::uses_cold_sessions() const { return context_.cold_sessions_in_use.use_count() > 1; }

void Server::release_soon() {
  run_after(releases_, context_.limits.tick, [this] { uses_cold_sessions() ? release_soon() : release(); });
}

/// Forgets, in slices, the transcripts of sessions that were read for a response and are not live.
void Server::release() {
  const auto visit = [this](const Session& session) {
    const auto names_it = [&](const auto& wanted) { return wanted(session.name); };
    if (uses_cold_sessions() || is_live(session, context_.recent) ||
        std::none_of(releasable_.begin(), releasable_.end(), names_it))
      return;
    std::vector<std::string> streams;
    for (const Member& member : session.members) streams.push_back(member.stream->name());
    for (const std::string& stream : streams)
      if (context_.archive) context_.archive->release(stream);
  };
  scans_.begin(&releases_, SessionScans::Visit(visit), [this] {
    if (uses_cold_sessions()) return release_soon();  // again, for those that were left out
    releasable_.clear();
    if (retired_ > 0) purge();
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
  run_after(stop_deadline_, context_.limits.stop, [this] {
    for (const auto& connection : connections_) connection->drop();
  });
}

void Server::finish_stop() {
  ticker_.cancel();
  states_.cancel();
  stop_deadline_.cancel();
  releases_.cancel();
  std::exchange(stopped_, {})();
}

// --- Metrics and health ---

void Server::fill(MetricsPage& page, const SessionFigures& sessions) {
  page.family("earshot_build_info", "1; which daemon this is.")
      .sample(1, {{"version", version()}, {"instance_id", context_.instance}});
  page.add(process_metrics());
  constexpr std::string_view kinds[] = {"http", "websocket", "events"};
  constexpr std::string_view vias[] = {"tcp", "unix", "tls"};
  std::uint64_t numbers[3][3] = {};
  for (const auto& connection : connections_)
    ++numbers[static_cast<std::size_t>(connection->kind())]
             [static_cast<std::size_t>(connection->transport_kind())];
  page.family("earshot_connections", "Current connections, by kind and listener.");
  for (std::size_t kind = 0; kind < 3; ++kind)
    for (std::size_t via = 0; via < 3; ++via)
      page.sample(numbers[kind][via], {{"kind", kinds[kind]}, {"via", vias[via]}});
  page.family("earshot_subscribers", "Connections that have such a subscription.")
      .sample(context_.logs.readers(), {{"deliver", "events"}})
      .sample(context_.state_connections, {{"deliver", "state"}});
  page.add("earshot_log_bytes", "Memory of the live log.", context_.logs.bytes());
  page.add("earshot_log_max_bytes", "Limit of the live log; above it the oldest frames are evicted.",
           log_bytes_max_);
  page.add("earshot_log_frames_total", "Frames that went into the live log.", context_.logs.head());
  page.add("earshot_response_bytes", "Memory of HTTP responses that clients have not read.",
           context_.response_bytes);
  page.add("earshot_browsers", "Browsers that are signed in.", context_.access.browsers.all().size());
  page.add("earshot_codes_outstanding", "Valid one-time codes.", context_.codes.outstanding(Clock::now()));
  sessions.fill(page);
  metrics_.fill(page);
  page.add("earshot_catch_ups_total", "Streams that clients resumed.", catch_ups_.folds_begun);
  page.add("earshot_catch_up_folds", "Transcripts being read for resuming clients.", catch_ups_.folds());
  page.add("earshot_catch_up_chunk_bytes", "Memory of events read for them and not sent.",
           catch_ups_.bytes());
  page.add("earshot_catch_up_chunk_max_bytes", "Limit of that memory.", context_.limits.catch_up_bytes);
  page.add(context_.counters);
  page.family("earshot_limit", "Limits of this daemon, by their name in [limits].").each("name", limits());
  if (context_.callbacks.fill_metrics) context_.callbacks.fill_metrics(page);
}

std::string Server::version() const { return context_.server.substr(context_.server.find('/') + 1); }

Labelled Server::limits() const {
  Labelled limits = limit_values(context_.limits);
  limits.emplace_back("log_bytes", log_bytes_max_);
  return limits;
}

void Server::fill(Health& health, const SessionFigures& sessions) {
  health.version = version();
  health.instance = context_.instance;
  health.host = context_.host;
  health.pid = ::getpid();
  health.uptime_s = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
  health.address = url();
  health.socket = socket_path();
  health.connections = connections_.size();
  health.sessions = sessions.shown();
  health.limits = limits();
  if (context_.callbacks.fill_health) context_.callbacks.fill_health(health);
}

}  // namespace earshot::serve
