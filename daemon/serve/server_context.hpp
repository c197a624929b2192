// State shared by all connections, owned by the loop's thread, and the interface of a connection.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agents/agent.hpp"
#include "base/clock.hpp"
#include "base/json_rewrite.hpp"
#include "core/event_json.hpp"
#include "serve/auth/access.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/http/message.hpp"
#include "serve/http/metrics.hpp"
#include "serve/http/search.hpp"
#include "serve/limits.hpp"
#include "serve/stream/live_log.hpp"
#include "serve/stream/session_store.hpp"
#include "serve/stream/subscription.hpp"
#include "tail/history.hpp"

namespace earshot::serve {

/// Reads the cold transcripts of the sessions for which `wanted` is true, then calls `then`, possibly during
/// the call.
using ReadColdSessions =
    std::function<void(std::function<bool(std::string_view session)> wanted, std::function<void()> then)>;

/// A record that was requested from its host.
struct RemoteRecord {
  std::string text;
  bool is_json = true;
  std::string code, why;  // of an error; empty: success
  bool retry = false;
};
/// `line` is the relayed line; `done` is called at most once, later, on the loop.
using ReadRemoteRecord = std::function<void(const std::string& line, std::function<void(RemoteRecord)> done)>;

/// The process that runs a session.
struct SessionProcess {
  std::string program;
  std::int64_t pid = 0;
  std::string source;  // registry, process
};

class CatchUps;
class Records;
class SessionFigures;
class Subscriber;
/// Callbacks set by the daemon; null ones are skipped.
struct DaemonCallbacks {
  std::function<void(MetricsPage&)> fill_metrics;
  std::function<void(Health&)> fill_health;
  /// Stores a new owner token. Returns an error for users; empty: stored.
  std::function<std::string(const std::string& token)> store_token;
  /// A live process of this machine; absent: none is known.
  std::function<std::optional<SessionProcess>(const std::string& session)> process_of;
  std::function<void()> seen_changed;  // sessions.seen() is to be stored
  /// Stores access.browsers; `done` is called later, on the loop, with an error for users (empty: stored).
  std::function<void(std::function<void(std::string error)> done)> store_browsers;
};

struct ServerContext {
  std::string host;                                           // host name of this machine
  std::string server;                                         // earshot/0.1.0
  std::string instance;                                       // random, new at each start
  OwnAddress own_address;                                     // of the listener
  std::chrono::milliseconds recent = std::chrono::hours(24);  // a session is live if its files changed since
  Limits limits;
  LogSet logs;
  SessionStore sessions;
  AccessPolicy access;
  std::size_t state_connections = 0;             // with a `deliver: state` subscription
  std::size_t from_beginning_subscriptions = 0;  // with `new_streams: beginning`
  tail::Archive* archive = nullptr;              // outlives all connections; null: streams cannot be resumed
  CatchUps* catch_ups = nullptr;                 // likewise
  Records* records = nullptr;                    // likewise
  SessionScans* scans = nullptr;                 // likewise; null: sessions are visited at once
  const TextFilter* filter = nullptr;            // the redactor; outlives all connections

  ReadColdSessions read_cold_sessions;  // null: there are no cold transcripts
  /// The same for one response; later the transcripts are released, while nobody shares
  /// `cold_sessions_in_use`.
  ReadColdSessions read_cold_sessions_once;
  std::shared_ptr<void> cold_sessions_in_use = std::make_shared<char>();
  std::function<bool(const std::string& session)> has_cold_session;  // null: likewise

  OneTimeCodes codes;
  Counters counters;
  std::size_t response_bytes = 0;  // HTTP responses that clients have not read
  std::string page_url;            // URL of `/`
  std::string welcome_url;         // the same for clients; empty: unknown
  DaemonCallbacks callbacks;
  std::function<void(MetricsPage&, const SessionFigures&)> fill_metrics;
  std::function<void(Health&, const SessionFigures&)> fill_health;
  std::function<void(const StatusLine&)> on_status_line;      // null: there is no server
  std::function<bool(const std::string& session)> mark_seen;  // likewise; false: the session is unknown
  std::function<void()> token_changed;                        // closes connections that used the old token
  std::function<void(const std::string& browser)> browser_removed;  // closes the connections of this browser

  ServerContext(std::string host_name, std::size_t log_bytes_max)
      : host(host_name), logs(log_bytes_max), sessions(std::move(host_name)) {}

  /// The host of a session.
  std::string_view host_of(std::string_view session) const { return sessions.host_of(session); }
  EncodeOptions encoding(Audience audience) const {
    return {.view = view_of(audience), .filter = audience == Audience::raw ? nullptr : filter};
  }
  /// Of session frames, which are redacted for every audience.
  EncodeOptions session_encoding(Audience audience) const {
    return {.view = view_of(audience), .filter = filter};
  }
  /// A record as sent to this audience; sets `is_json`.
  std::string record_text(Audience audience, const std::string& line, bool& is_json) const {
    return redact_record(line, audience == Audience::raw ? nullptr : filter, is_json);
  }
  ReadRemoteRecord read_remote_record;  // null: records are read from the files
  RunSearch search;                     // null: search is off
};

/// A transcript changed recently, or its process is running.
inline bool is_live(const Session& session, std::chrono::milliseconds recent) {
  if (session.process_lives()) return true;
  return !session.members.empty() && wall_now_ms() - session.modified_ms() <= recent.count();
}

/// One client as the server sees it.
class Connection {
 public:
  enum class Kind { http, websocket, events };

  virtual ~Connection() = default;
  /// Frames may be ready. Cheap if none are, or if the client is not ready for them.
  virtual void wake() = 0;
  /// Null: the client has no subscriptions.
  virtual Subscriber* subscriber() { return nullptr; }
  /// Checks the time limits.
  virtual void tick(Clock::time_point now) = 0;
  /// Sends what is ready now, then closes with 1001.
  virtual void stop() = 0;
  /// Closes with 4501 if the client authenticated with the owner's former token.
  virtual void token_changed() = 0;
  /// Closes with 4501 if the client is this browser.
  virtual void browser_removed(std::string_view) {}
  /// Closes at once.
  virtual void drop() = 0;

  /// Since when an unauthenticated client has been in its present state; empty: it is authenticated, or
  /// refused.
  virtual std::optional<Clock::time_point> unauthenticated_since() const { return {}; }
  virtual Kind kind() const = 0;
  virtual TransportKind transport_kind() const = 0;
};

}  // namespace earshot::serve
