// What all connections of a daemon share. One thread owns it.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/event_json.hpp"
#include "serve/auth/one_time_codes.hpp"
#include "serve/auth/users.hpp"
#include "serve/http/counters.hpp"
#include "serve/http/request.hpp"
#include "serve/stream/audience_log.hpp"
#include "serve/stream/filter.hpp"
#include "serve/stream/session_store.hpp"
#include "tail/archive.hpp"

namespace earshot::serve {

struct Metrics;  // figures.hpp
struct Health;   // health.hpp

/// Every bound of a connection. Tests shorten the times.
struct Limits {
  using ms = std::chrono::milliseconds;
  std::size_t connections_max = 1100;                 // more are answered 503
  std::size_t refusals_max = 64;                      // that wait for their 503; more are closed at once
  std::size_t request_bytes_max = 8 << 10;            // of an HTTP head; longer: 431
  std::size_t inbound_bytes_max_anonymous = 4 << 10;  // a message before authentication; longer: close 1009
  std::size_t inbound_bytes_max = 1 << 20;            // and after it
  std::size_t subscriptions_max = 32;                 // of a connection; more: error `limit`
  std::size_t own_bytes_max = 1 << 20;                // of answers not sent: its next message waits for them
  std::size_t write_bytes_max = 256 << 10;  // of one write, so that a control frame never waits for more
  int send_buffer_bytes = 128 << 10;  // SO_SNDBUF: autotuning would hold megabytes for a client that sleeps
  ms handshake{5000};                 // to the end of the HTTP head; then closed
  ms hello{5000};                     // from the upgrade to a right token; then close 4501
  ms ping{20000};                     // without a byte from the client: ping
  ms silence{40000};                  // without a byte from the client: dropped
  ms stall{30000};                    // something to send and no progress: close 4408
  ms goodbye{1000};                   // for the client to answer a close frame; then dropped
  ms stop{1500};                      // for all that is owed at the stop; then dropped
  ms state{250};                      // between two frames of one session for `deliver: state`
  ms tick{1000};                      // how often these times are looked at

  std::size_t body_bytes_max = 4 << 10;    // of an HTTP request; longer: 413
  std::size_t target_bytes_max = 4 << 10;  // the path and the query of one; longer: 414
  std::size_t requests_max = 1000;         // of a connection; the answer to the last one closes it
  ms keep_alive{15000};                    // without a request; then closed
  ms answer{30000};                        // for an HTTP answer to be read; then dropped
  std::size_t messages_per_second = 100;   // and HTTP requests, of a connection, once its burst is used up:
  std::size_t messages_burst = 400;        // … more: close 4429, or 429
  std::size_t patterns_max = Filter::patterns_max;            // in a filter's key; more: error `bad_filter`
  std::size_t pattern_bytes_max = Filter::pattern_bytes_max;  // longer: error `bad_filter`
  std::size_t after_entries = 20'000;                         // of one `subscribe`; more: error `limit`
  std::size_t missed_streams =
      65'536;  // that a client which fell behind is to get from the files; more: `lagged`
  std::size_t catch_up_bytes = 16 << 20;  // of events from files that somebody has not taken; beyond it the
                                          // oldest are let go and read again
  std::size_t catch_up_folds = 2;         // that read at a time; the rest waits in line
  std::size_t catch_up_parked = 32;       // that wait for their readers; beyond it the oldest begins again
  std::size_t catch_up_a_reader = 2;      // streams at a time for one client
  ms catch_up_patience{500};              // for the slower readers of a fold; then they get one of their own
  std::size_t reads = 4;                  // records in memory at a time; the others wait in line
  std::size_t reads_waiting = 64;         // of a connection; more: error `busy`
  std::size_t record_part_bytes = 64 << 10;  // of a record's text in one frame
  ms bookmark{10'000};                       // between bookmarks of a connection
};

/// Close codes of our own: 4000–4499 come again, 4500–4999 do not.
constexpr std::uint16_t close_going_away = 1001, close_stalled = 4408, close_too_often = 4429,
                        close_not_authenticated = 4501;

/// Reads the transcripts of sessions that are only known, of those whose name `wanted` says; then calls
/// `then`, perhaps at once.
using ReadColdSessions =
    std::function<void(std::function<bool(std::string_view session)> wanted, std::function<void()> then)>;

/// A record that was asked of whoever has it.
struct RemoteRecord {
  std::string text;
  bool is_json = true;
  std::string code, why;  // of an error; empty: there is none
  bool retry = false;
};
/// `line` is what stands here of it; `done` is called once, later, on the loop, or not at all.
using ReadRemoteRecord = std::function<void(const std::string& line, std::function<void(RemoteRecord)> done)>;

class CatchUps;
class Records;
/// What only the house around the hub knows. Empty functions are not asked.
struct DaemonCallbacks {
  std::function<void(Metrics&)> fill_metrics;
  std::function<void(Health&)> fill_health;
  /// Keeps a new token where the owner's clients find it. Empty: done. Otherwise what went wrong.
  std::function<std::string(const std::string& token)> store_token;
};

struct ServerContext {
  std::string host;                                           // this machine's name on the wire
  std::string server;                                         // earshot/0.1.0
  std::string instance;                                       // another one after each start
  std::string token;                                          // never logged
  OwnAddress own_address;                                     // where we listen
  std::chrono::milliseconds recent = std::chrono::hours(24);  // a session is live while its files are younger
  Limits limits;
  std::array<AudienceLog, audience_count> logs;
  SessionStore sessions;
  std::size_t state_connections = 0;   // that have a state subscription
  tail::Archive* archive = nullptr;    // outlives all connections; null: nothing can be read again
  CatchUps* catch_ups = nullptr;       // likewise
  Records* records = nullptr;          // likewise
  const TextFilter* filter = nullptr;  // takes secrets out; outlives all connections
  bool redact = true;                  // false: the owner over the Unix socket is shown secrets, too

  ReadColdSessions read_cold;  // empty: all that is known has been read

  OneTimeCodes codes;
  Counters counters;
  View remote_view = View::meta;  // of connections over TLS
  std::string page_url;           // where a browser finds `/`, with the slash
  DaemonCallbacks callbacks;
  std::function<void(Metrics&)> fill_metrics;  // what the hub and the house have to say
  std::function<void(Health&)> fill_health;
  std::function<void()> token_changed;  // connections that came with the old one are to be closed

  ServerContext(std::string host_name, std::size_t log_bytes_max)
      : host(host_name),
        logs{AudienceLog(log_bytes_max), AudienceLog(log_bytes_max), AudienceLog(log_bytes_max)},
        sessions(std::move(host_name)) {}

  /// Whose session it is.
  std::string_view host_of(std::string_view session) const { return sessions.host_of(session); }
  AudienceLog& audience_log(Audience audience) { return logs[static_cast<std::size_t>(audience)]; }
  const AudienceLog& audience_log(Audience audience) const {
    return logs[static_cast<std::size_t>(audience)];
  }
  /// Of the next frame, in every channel.
  Position head() const { return logs.front().log.head(); }
  /// Before it no frame is held anywhere.
  Position first() const;
  std::size_t event_connections() const;
  EncodeOptions encoding(Audience audience) const;
  /// Whether who is `allowed` so much may know of this session. Not before its project is known, where only
  /// some are allowed: its directory's name does not stand for it here.
  bool may_see(const Filter& allowed, const Session& session) const;
  /// By its name alone: false where no project could make it true.
  bool may_see_by_name(const Filter& allowed, std::string_view session) const;
  /// Of session frames: what they show was kept clean, whoever looks.
  EncodeOptions session_encoding(Audience audience) const {
    return {.view = view_of(audience), .filter = filter};
  }
  /// A record as it is shown; `is_json` tells whether it is one.
  std::string record_text(Audience audience, const std::string& line, bool& is_json) const;
  /// One frame for all: `encode(Shown, std::string&)` is called for each channel that somebody reads.
  template <class Encode>
  void append(const Tags& tags, Encode&& encode) {
    for (const Audience audience : all_audiences) {
      AudienceLog& to = audience_log(audience);
      if (to.readers == 0) {
        to.log.skip();
        continue;
      }
      scratch.clear();
      encode(audience, scratch);
      to.log.append(scratch, tags);
    }
  }
  std::string scratch;
  ReadRemoteRecord read_remote_record;  // empty: the records are here
  std::vector<User> users;              // beside the owner
};

/// Its transcript is recent, or its process lives.
bool is_live(const Session& session, std::chrono::milliseconds recent);

}  // namespace earshot::serve
