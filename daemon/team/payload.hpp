// What is read of a frame, and of what was published of it. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "status/status.hpp"

namespace earshot::team {

/// A frame as the wire has it, as far as it is looked at. Views of `text`'s parse: they own nothing of it.
struct Frame {
  std::string type, host, stream, session, time, id, reason;
  std::optional<Cursor> cursor;          // of an event
  std::vector<std::string> cursors;      // of a session frame: `<stream>:<cursor>`
  std::optional<status::Status> status;  // of a status, and of a session frame
  std::string code, message;             // of an error
  std::string owner, instance;           // of a host's beat
  bool is_event() const { return cursor && !stream.empty(); }
};
/// Nothing when it is no JSON object with a `type`.
std::optional<Frame> read_frame(std::string_view text);

/// Of a `record` frame: no part comes after it.
bool is_last_part(std::string_view payload);

/// A member that every event has, or nearly every: whose it is, and which.
bool is_head(std::string_view key);

/// An event that is at most `bytes_max` long, unless its heads alone are longer: its longest members are cut
/// as long texts are. Empty: it is no JSON object.
std::string fit(std::string_view payload, std::size_t bytes_max);

/// {"type":"reset",…}: what was published of this stream is not what its file says now. `last`: how far it
/// was published.
std::string reset_payload(const Frame& frame, std::string_view last);
std::string removed_payload(const Frame& frame, std::string_view session);
std::string status_payload(std::string_view host, std::string_view session, const status::Status& status);

}  // namespace earshot::team
