// Decides what to do with a message, so that a hub's file has each event once and in order despite
// redelivery, republication and loss. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::team {

/// A message as delivered by the broker.
struct ReceivedMessage {
  std::string store;           // identifies the broker's stream; changes if it is recreated
  std::uint64_t sequence = 0;  // in the store
  std::int64_t time_ns = 0;    // when it was stored, of the broker's clock
  std::string host, stream, session, type, payload;
  std::optional<Cursor> cursor;  // events only
  std::optional<Cursor> after;   // of the previous event, begin_cursor for the first; nullopt: unknown
  bool is_first = false;         // the first message that was published for the stream
};

/// The state of a stored file.
struct StoredPosition {
  bool exists = false;
  std::string store;           // of the last message
  std::uint64_t sequence = 0;  // of the last message
  std::int64_t time_ns = 0;    // of the last message
  Cursor last = begin_cursor;  // of the last event; begin_cursor: none since the last reset
};

/// An event in a stored file.
struct StoredEvent {
  Cursor cursor;
  std::uint64_t end = 0;  // byte offset of the end of its line
};

enum class IngestAction {
  append,
  drop,     // the file has the event
  restart,  // another history: the file restarts, with this event if it is one
  remove,   // the transcript was deleted; the file is, too
};
struct IngestDecision {
  IngestAction action = IngestAction::append;
  std::size_t kept_events = 0;  // of a restart: the number of events at the start of the file that remain
};

/// True if the broker redelivers a message that `position` includes. A store that lost messages in a power
/// failure reuses their sequences with later times; those are new messages.
bool is_redelivered(const StoredPosition& position, const ReceivedMessage& message);

/// `entries` returns the file's events in order; it is called only if the message does not follow the last
/// one.
IngestDecision decide(const StoredPosition& position, const ReceivedMessage& message,
                      const std::function<const std::vector<StoredEvent>&()>& entries);

}  // namespace earshot::team
