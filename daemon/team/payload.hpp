// Reads and builds the JSON of published messages. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "status/status.hpp"

namespace earshot::team {

/// The fields of a frame that this module uses.
struct Frame {
  std::string type, host, stream, session, time, id, reason;
  std::optional<Cursor> cursor;          // of an event
  std::vector<std::string> cursors;      // of a session frame: `<stream>:<cursor>`
  std::optional<status::Status> status;  // of a status or session frame
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
std::string status_payload(std::string_view host, std::string_view session, const status::Status& status);

constexpr int heartbeat_ms = 5000;        // between two heartbeats
constexpr int heartbeats_missed_max = 3;  // then a host is offline

/// Identifies the daemon that publishes under a host name.
struct Heartbeat {
  std::string host;
  std::string owner;          // identifies the state directory; the same after a restart
  std::string instance;       // differs at each start
  bool is_contested = false;  // another daemon took the name: it keeps it while it sends heartbeats
};
std::string heartbeat_payload(const Heartbeat& heartbeat);
/// Identifies a state directory without revealing its hash key.
std::string owner_id(std::uint64_t hash_key);

}  // namespace earshot::team
