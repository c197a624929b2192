// What is to be done with a message, so that a hub's file has each event once and in order, whatever was
// redelivered, published again or lost. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::team {

/// One message as the broker delivered it.
struct Received {
  std::string store;           // another one when the broker's store was made anew
  std::uint64_t sequence = 0;  // in the store
  std::int64_t time_ns = 0;    // when it was stored, by the broker's clock
  std::string host, stream, session, type, payload;
  std::optional<Cursor> cursor;  // of an event
  std::optional<Cursor> after;   // of the event before it, begin_cursor for the first; nothing: not said
  bool begins = false;           // its publisher found nothing of this stream in the store: its first event
};

/// How far a file has come.
struct Kept {
  bool there = false;
  std::string store;           // of what was taken last
  std::uint64_t sequence = 0;  // likewise
  std::int64_t time_ns = 0;    // likewise
  Cursor last = begin_cursor;  // of its last event; begin_cursor: its history begins anew
};

/// An event of a file.
struct Entry {
  Cursor cursor;
  std::uint64_t end = 0;  // of its line, in bytes from the file's beginning
};

enum class IngestAction {
  append,
  drop,     // the file has it
  restart,  // another history: the file begins anew, with this event if it is one
  remove,   // the transcript is gone, and so is the file
};
struct Verdict {
  IngestAction fate = IngestAction::append;
  std::size_t keep = 0;  // of a restart: so many events at the file's beginning are of this history, too
};

/// Delivered once more: the file's last one was this one, or a later one. A store that lost its end in a
/// power cut gives the same numbers again, but later.
bool is_repeated(const Kept& kept, const Received& received);

/// `entries` are those of the file, in order; asked for only where the two do not simply follow each other.
Verdict judge(const Kept& kept, const Received& received,
              const std::function<const std::vector<Entry>&()>& entries);

}  // namespace earshot::team
