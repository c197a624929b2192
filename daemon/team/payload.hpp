// The subjects, ids and payloads of messages in JetStream (protocol/TEAM.md). Pure.
//
//   earshot.v1.<host>.<project>.<session>            events, resets and removal of a session's main stream
//   earshot.v1.<host>.<project>.<session>.<stream>   the same of any other stream
//   earshot.status.v1.<host>.<session>               the status of a session; the last message is current
//   earshot.status.v1.<host>                         the host's heartbeat
//   earshot.read.v1.<host>                           requests for complete records
//
// Each token is escape_token() of the name: injective; letters, digits, `-`, `_` and `=`; at most 160 bytes.
// A stream has one subject: the subject's last message is the stream's published position.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "core/cursor.hpp"
#include "serve/stream/session_store.hpp"
#include "status/status.hpp"

namespace earshot::team {

constexpr std::size_t payload_bytes_max = 500
                                          << 10;  // longer events are shortened; with headers below 512 KiB
constexpr std::size_t message_bytes_max = 512 << 10;
constexpr std::size_t status_bytes_max = 4 << 10;  // a hub ignores longer statuses
constexpr std::size_t host_bytes_max = 64;
/// Instead of the projects of a session that do not fit into its status: hides it from restricted users.
constexpr std::string_view unknown_project = "(unknown)";

/// Header of an event: the cursor of the previous event, so that a hub detects gaps.
constexpr char after_header[] = "Earshot-After";
/// Header of an event: Heartbeat::owner of the publisher.
constexpr char owner_header[] = "Earshot-Owner";

/// True for a valid host name: 1 to host_bytes_max letters, digits, `.`, `-` and `_`.
bool is_host(std::string_view name);

/// The project is the root and directory of the transcript: unlike the working directory they are constant.
std::string event_subject(std::string_view host, std::string_view session, std::string_view stream);
/// The subject of a stream named `<project>/<session>`; empty for other streams.
std::string main_subject(std::string_view host, std::string_view stream);
/// True if `host` may publish `stream` under `subject`.
bool is_subject_of(std::string_view subject, std::string_view host, std::string_view stream);
std::string all_events();
std::string events_of(std::string_view host);
std::string status_subject(std::string_view host, std::string_view session);
std::string heartbeat_subject(std::string_view host);
std::string all_statuses();
std::string read_subject(std::string_view host);

/// The escaped host and stream of an event subject with four tokens; nullopt for others.
struct SubjectTokens {
  std::string_view host, stream;
};
std::optional<SubjectTokens> tokens_of(std::string_view event_subject);

/// `<host>/<stream>/<cursor>`, after a reset with `#<history>`: a history may start with the same cursors as
/// the previous one, and the broker would drop its events as duplicates.
std::string message_id(std::string_view host, std::string_view stream, std::string_view cursor,
                       std::string_view history);
/// CloudEvents' `source`, a URI: `earshot://<host>/<stream>`, of a status `earshot://<host>`. The path is the
/// percent-encoded name of the stream, or its token if the URI would have more than 1,024 bytes.
std::string event_source(std::string_view host, std::string_view stream);
struct IdParts {
  std::string_view stream, cursor, history;
};
/// Returns nullopt for the id of another host.
std::optional<IdParts> parts_of_id(std::string_view host, std::string_view id);

// --- Payloads ---

/// The fields of a frame that this module uses.
struct Frame {
  std::string type, host, stream, session, time, id, reason;
  std::string from, to;                  // of a renamed stream
  std::optional<Cursor> cursor;          // of an event
  std::vector<std::string> cursors;      // of a session frame: `<stream>:<cursor>`
  std::optional<status::Status> status;  // of a status or session frame
  serve::ReportedNumbers numbers;        // of a status
  std::string code, message;             // of an error
  std::string owner, instance;           // of a heartbeat
  bool is_event() const { return cursor && !stream.empty(); }
};
/// Returns nullopt unless `text` is a JSON object with a `type`.
std::optional<Frame> read_frame(std::string_view text);

/// True if this `record` frame is the last part of its record.
bool is_last_part(std::string_view payload);

/// True for the members that identify an event and its stream.
bool is_common_member(std::string_view key);

/// Truncates the longest members until the event has at most `bytes_max` bytes; the common members are never
/// truncated. Returns an empty string unless `payload` is a JSON object.
std::string shorten_event(std::string_view payload, std::size_t bytes_max);

/// {"type":"reset",…}: the file no longer matches the published events. `last` is the last published cursor.
std::string reset_payload(const Frame& frame, std::string_view last);
std::string removed_payload(const Frame& frame, std::string_view session);
/// {"type":"stream.renamed",…}, in the subject of the stream `to`.
std::string renamed_payload(std::string_view host, std::string_view session, std::string_view from,
                            std::string_view to);
/// With the projects, and the numbers, if they fit into status_bytes_max: a hub cannot compute them from
/// events.
std::string status_payload(std::string_view host, std::string_view session, const status::Status& status,
                           const serve::ReportedNumbers& numbers = {});

constexpr int heartbeat_ms = 5000;        // between two heartbeats
constexpr int heartbeats_missed_max = 3;  // then a host is offline

/// Identifies the daemon that publishes under a host name.
struct Heartbeat {
  std::string host;
  std::string owner;          // identifies the state directory; the same after a restart
  std::string instance;       // differs at each start
  bool is_contested = false;  // another daemon took the name: it keeps it while it sends heartbeats
  std::string time = {};      // of the host's clock, RFC 3339; empty: not published
};
std::string heartbeat_payload(const Heartbeat& heartbeat);
/// A member of a JSON object: text, a number, a flag or an array of texts.
struct JsonMember {
  template <class Value>
  JsonMember(std::string_view name, const Value& value) : key(name) {
    JsonWriter(json).value(value);
  }
  JsonMember(std::string_view name, const std::vector<std::string>& texts) : key(name) {
    JsonWriter writer(json);
    writer.array(texts, [&](const std::string& text) { writer.value(text); });
  }
  std::string_view key;
  std::string json;
};
/// {"name":value,…}; empty texts are omitted.
std::string json_object(std::initializer_list<JsonMember> members);

/// Identifies a state directory without revealing its hash key.
std::string owner_id(std::uint64_t hash_key);

}  // namespace earshot::team
