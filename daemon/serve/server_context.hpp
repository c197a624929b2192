// State shared by all connections, owned by the loop's thread.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/event_json.hpp"
#include "serve/auth/access.hpp"
#include "serve/auth/one_time_codes.hpp"
#include "serve/http/counters.hpp"
#include "serve/http/request.hpp"
#include "serve/stream/live_log.hpp"
#include "serve/stream/session_store.hpp"
#include "serve/stream/subscription.hpp"
#include "tail/history.hpp"

namespace earshot::serve {

struct Metrics;
struct Health;

/// The limits of connections. limits.hpp has their names in the configuration.
struct Limits {
  using ms = std::chrono::milliseconds;
  std::size_t connections_max = 1100;       // more are answered 503
  std::size_t refusals_max = 64;            // connections waiting for their 503; more are closed at once
  std::size_t request_bytes_max = 8 << 10;  // header of an HTTP request; longer: 431
  std::size_t inbound_bytes_max_anonymous = 4 << 10;  // message before authentication; longer: close 1009
  std::size_t inbound_bytes_max = 1 << 20;            // message after authentication; longer: close 1009
  std::size_t subscriptions_max = 32;                 // per connection; more: error `limit`
  std::size_t own_bytes_max = 1 << 20;                // unsent answers; its next message waits for them
  std::size_t write_bytes_max = 256 << 10;            // one write, the longest wait of a control frame
  int send_buffer_bytes = 128 << 10;  // SO_SNDBUF: autotuning holds megabytes for an idle client
  ms handshake{5000};                 // to receive a request; then closed
  ms hello{5000};                     // from the upgrade to a valid token; then close 4501
  ms ping{20000};                     // without a byte from the client: ping
  ms silence{40000};                  // without a byte from the client: dropped
  ms stall{30000};                    // without progress of a write: close 4408
  ms goodbye{1000};                   // for the client to answer a close frame; then dropped
  ms stop{1500};                      // to send pending frames when stopping; then dropped
  ms state{250};                      // between two frames of one session for `deliver: state`
  ms tick{1000};                      // interval of the checks of these times

  std::size_t body_bytes_max = 4 << 10;                       // body of a request; longer: 413
  std::size_t target_bytes_max = 4 << 10;                     // path and query; longer: 414
  std::size_t requests_max = 1000;                            // per connection; the last response closes it
  ms keep_alive{15000};                                       // between requests; then closed
  ms answer{30000};                                           // for a client to read a response; then dropped
  std::size_t messages_per_second = 100;                      // and requests per connection, after the burst;
  std::size_t messages_burst = 400;                           // more: close 4429, or 429
  std::size_t patterns_max = Filter::patterns_max;            // per filter key; more: error `bad_filter`
  std::size_t pattern_bytes_max = Filter::pattern_bytes_max;  // longer: error `bad_filter`
  std::size_t after_entries = 20'000;                         // per `subscribe`; more: error `limit`
  std::size_t missed_streams = 65'536;                        // that a client catches up on; more: `lagged`
  std::size_t catch_up_bytes = 16 << 20;     // of unsent events from files; above it the oldest are
                                             // dropped and read again
  std::size_t catch_up_folds = 2;            // read at a time; the others wait
  std::size_t catch_up_parked = 32;          // waiting for their readers; above it the oldest starts again
  std::size_t catch_up_a_reader = 2;         // streams at a time per client
  ms catch_up_patience{500};                 // for the slower readers of a fold; then they get their own
  std::size_t reads = 4;                     // records in memory; the others wait
  std::size_t reads_waiting = 64;            // per connection; more: error `busy`
  std::size_t record_part_bytes = 64 << 10;  // record text per frame
  ms heartbeat{30'000};                      // without a frame to the client: `heartbeat`
  ms bookmark{10'000};                       // between bookmarks of a connection
};

/// Close codes: after 4000–4499 a client may reconnect, after 4500–4999 it must not.
constexpr std::uint16_t close_going_away = 1001, close_stalled = 4408, close_too_often = 4429,
                        close_not_authenticated = 4501;

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

class CatchUps;
class Records;
/// Callbacks set by the daemon; null ones are skipped.
struct DaemonCallbacks {
  std::function<void(Metrics&)> fill_metrics;
  std::function<void(Health&)> fill_health;
  /// Stores a new owner token. Returns an error for users; empty: stored.
  std::function<std::string(const std::string& token)> store_token;
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

  OneTimeCodes codes;
  Counters counters;
  std::string page_url;  // URL of `/`
  DaemonCallbacks callbacks;
  std::function<void(Metrics&)> fill_metrics;
  std::function<void(Health&)> fill_health;
  std::function<void()> token_changed;  // closes connections that used the old token

  ServerContext(std::string host_name, std::size_t log_bytes_max)
      : host(host_name), logs(log_bytes_max), sessions(std::move(host_name)) {}

  /// The host of a session.
  std::string_view host_of(std::string_view session) const { return sessions.host_of(session); }
  EncodeOptions encoding(Audience audience) const;
  /// Whether `allowed` includes this session. If `allowed` lists projects, a session whose project is unknown
  /// is excluded: the name of its directory is not used.
  bool may_see(const Filter& allowed, const Session& session) const;
  /// By name only: false if no project could make may_see() true.
  bool may_see_by_name(const Filter& allowed, std::string_view session) const;
  /// Of session frames, which are redacted for every audience.
  EncodeOptions session_encoding(Audience audience) const {
    return {.view = view_of(audience), .filter = filter};
  }
  /// A record as sent to this audience; sets `is_json`.
  std::string record_text(Audience audience, const std::string& line, bool& is_json) const;
  ReadRemoteRecord read_remote_record;  // null: records are read from the files
};

/// A transcript changed recently, or its process is running.
bool is_live(const Session& session, std::chrono::milliseconds recent);

}  // namespace earshot::serve
