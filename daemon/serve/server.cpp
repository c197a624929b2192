#include "serve/server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio.hpp>
#include <utility>

#include "base/hex.hpp"
#include "core/event_json.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t instance_bytes = 8;
constexpr std::size_t retired_max =
    1024;  // sessions without streams; above it they are purged after each pump

void append_field(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += out.empty() ? "{\"" : ",\"";
  out += name;
  out += "\":";
  append_json_string(out, value);
}

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
      context_(std::move(options.host), options.log_bytes_max),
      catch_ups_(io, context_),
      records_(context_),
      ticker_(io),
      states_(io),
      stop_deadline_(io) {
  context_.server = "earshot/" + options.version;
  context_.instance = random_hex(instance_bytes);
  context_.access.token = std::move(options.token);
  context_.recent = options.recent;
  context_.limits = options.limits;
  context_.catch_ups = &catch_ups_;
  context_.records = &records_;
  log_bytes_max_ = options.log_bytes_max;
  begin_clients();
}

Server::~Server() {
  for (const auto& connection : connections_) connection->drop();
}

// --- Streams ---

void Server::touch(Session& session, bool transcript_changed) {
  session.changed_now(context_.logs.head());
  session.summary_due |= transcript_changed;
  if (std::exchange(session.pending, true)) return;
  pending_.push_back(session.id);
}

/// Appends its `session` frame to the log.
void Server::append_session(const Session& session) {
  if (session.name.empty()) return;
  context_.logs.append({session.id, type_always}, [&](Audience audience, std::string& out) {
    out = session_payload(session, context_.host_of(session.name), context_.session_encoding(audience));
  });
  if (context_.from_beginning_subscriptions == 0) return;
  for (const auto& connection : connections_) connection->session_shown(session);
}

/// {"type", "host", "session", "stream", "reason"}
void Server::append_stream_frame(const Session& session, const Tags& tags, const tail::Stream& stream,
                                 std::string_view reason) {
  context_.logs.append(tags, [&](Audience, std::string& out) {
    append_field(out, "type", tags.type == type_reset ? "reset" : "stream.removed");
    append_field(out, "host", context_.host_of(session.name));
    append_field(out, "session", session.name);
    append_field(out, "stream", stream.name());
    append_field(out, "reason", reason);
    out += '}';
  });
}

void Server::on_added(const tail::Stream& stream) {
  Session& session = context_.sessions.session_of(stream);
  touch(session, true);
  if (Member* member = member_of(session, stream)) member->meta_known = meta_known(stream);
  const bool has_history = stream.transcript() && stream.transcript()->end().offset > 0;
  if (!has_history) {
    for (const auto& connection : connections_)
      connection->stream_appeared(context_.sessions.stream_id(stream));
  } else if (is_live(session, context_.recent)) {
    append_session(session);
  }
}

void Server::on_event(const tail::Stream& stream, const Event& event) {
  Session& session = context_.sessions.session_of(stream);
  touch(session, true);
  if (session.project.empty() || session.program.empty()) context_.sessions.refresh(session);
  const Tags tags{session.id, type_of(event.body), context_.sessions.stream_id(stream), event.cursor};
  if (address_.stream != stream.name() || address_.session != stream.session())
    address_ = {stream.name(), stream.session(),
                encode_address({context_.host_of(stream.session()), stream.name(), stream.session()})};
  context_.logs.append(tags, [&](Audience audience, std::string& out) {
    append_event(out, event, address_.written, context_.encoding(audience));
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
  Session* session = context_.sessions.remove_stream(stream, context_.logs.head());
  if (!session) return;
  touch(*session, true);
  append_stream_frame(*session, {session->id, type_removed, id}, stream, {});
  if (session->members.empty()) ++retired_;
}

void Server::on_compacting(std::string_view session) {
  if (on_session_compacting) on_session_compacting(std::string(session));
}

void Server::on_batch_end() {
  wake();  // send events before the statuses that follow from them
  const Position head = context_.logs.head();
  settle();
  if (context_.logs.head() != head || context_.state_connections > 0) wake();
}

// --- Statuses ---

void Server::status_changed(const std::string& name, const status::Status& status) {
  Session& session = context_.sessions.find_or_create(name);
  session.status = status;
  const std::uint32_t generation = session.generation;
  context_.sessions.refresh(session);
  touch(session, false);
  if (session.members.empty() && session.generation != generation) append_session(session);
  context_.logs.append({session.id, type_always}, [&](Audience audience, std::string& out) {
    append_field(out, "type", "status");
    append_field(out, "host", context_.host_of(name));
    append_field(out, "session", name);
    append_field(out, "program", session.program);
    if (!session.project.empty()) append_redacted(out += R"(,"project":)", session.project, context_.filter);
    append_field(out, "state", status.state);
    append_field(out, "reason", status.reason);
    if (audience != Audience::meta && !status.detail.empty())
      append_redacted(out += R"(,"detail":)", status.detail, context_.filter);
    append_field(out, "source", status.source.empty() ? "transcript" : status.source);
    append_field(out, "since", status.since);
    out += '}';
  });
  if (session.members.empty() && !session.process_lives()) {
    session.retired = context_.logs.head();
    ++retired_;
  }
  wake_soon();
}

void Server::hosts_changed(const status::HostStatuses& hosts) {
  std::vector<std::pair<std::string, const status::Status*>> due;  // status_changed() may retire a session
  context_.sessions.for_each([&](Session& session) {
    const auto host = hosts.find(context_.host_of(session.name));
    if (host == hosts.end()) return;
    const status::Status& status = host->second;
    const bool shown_away = session.status && session.status->reason == status::host_offline_reason;
    const bool ended = session.status && session.status->state == "ended";
    const bool is_away = status.reason == status::host_offline_reason;
    if (is_away ? !ended && session.status != status : shown_away) due.emplace_back(session.name, &status);
  });
  for (const auto& [name, status] : due) status_changed(name, *status);
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
    }
    session->pending = false;
    send_states(*session);
  }
  pending_.clear();
  if (retired_ > retired_max) purge();
}

/// At most once per `limits.state` and session; the latest state is sent.
void Server::send_states(Session& session) {
  if (context_.state_connections == 0 || session.name.empty() || session.is_throttled) return;
  const auto now = Clock::now();
  if (session.states_sent_at && now - *session.states_sent_at < context_.limits.state) {
    session.is_throttled = true;
    throttled_.push_back(session.id);
    if (throttled_.size() > 1) return;
    states_.expires_after(context_.limits.state);
    states_.async_wait([this](error_code ec) {
      if (!ec) send_throttled();
    });
    return;
  }
  session.states_sent_at = now;
  for (const auto& connection : connections_) connection->session_changed(session);
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

void Server::wake_soon() {
  if (std::exchange(wake_posted_, true)) return;
  asio::post(io_, [this] {
    wake_posted_ = false;
    on_batch_end();
  });
}

void Server::wake() {
  for (const auto& connection : connections_) connection->wake();
}

}  // namespace earshot::serve
