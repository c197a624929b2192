// A transcript that is fed in pieces, what it told, and what must hold of that whatever the bytes were.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "core/transcript.hpp"

namespace earshot::fuzz {

struct Told {
  struct One {
    std::string type, call, json;
    std::uint32_t turn = 0;
    Cursor cursor;
    friend bool operator==(const One&, const One&) = default;
  };
  std::vector<One> events;
  std::vector<event::LineSkipped> skipped;  // their texts are constants of the core
  std::string shown;                        // the end, the counts and the state, as text
  Cursor end;
  RecordCounts counts;
  std::uint64_t pending = 0;
};

/// Fed in pieces of at most `piece_max` bytes (0: in one), each with exactly its padding behind it, so that
/// the sanitizer sees a read beyond.
Told told(const TranscriptOptions& options, std::string_view bytes, std::size_t piece_max,
          std::uint64_t seed);

/// Aborts when two cuts of the same bytes told different things.
void require_same(const Told& whole, const Told& split);

/// Aborts unless cursors, marks, turns, calls, counts and encodings are as they must be for any file.
void require_sound(const Told& told, const TranscriptOptions& options, std::string_view bytes);

}  // namespace earshot::fuzz
