// Feeds a transcript in pieces and checks the invariants of its events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "core/transcript.hpp"
#include "fuzz.hpp"

namespace earshot::fuzz {

/// An input of eight bytes that choose the split and the line limit, then a file.
struct FileInput {
  FileInput(const std::uint8_t* data, std::size_t size, const RecordFormat& format) {
    Input input(data, size);
    seed = input.word();
    bytes = input.rest();
    options.format = &format;
    options.hash_key = 0x5eed;
    options.line_bytes_max = 1024 + seed % 4096;
  }
  std::uint64_t seed = 0;
  std::string_view bytes;
  TranscriptOptions options;
};

struct Run {
  struct Emitted {
    std::string type, call, json;
    std::uint32_t turn = 0;
    Cursor cursor;
    friend bool operator==(const Emitted&, const Emitted&) = default;
  };
  std::vector<Emitted> events;
  std::vector<event::LineSkipped> skipped;  // their reasons are constants
  std::string state;                        // the end, the counters and the state as text
  Cursor end;
  RecordCounts counts;
  std::uint64_t pending = 0;
};

/// Feeds pieces of at most `piece_max` bytes (0: one piece), each in a buffer that ends with its padding, so
/// that the sanitizer detects a read beyond.
Run run(const TranscriptOptions& options, std::string_view bytes, std::size_t piece_max, std::uint64_t seed);

/// Aborts if two splits of the same bytes have different results.
void require_same(const Run& whole, const Run& split);

/// Aborts if cursors, prefix hashes, turns, calls, counters or encodings break an invariant.
void require_sound(const Run& run, const TranscriptOptions& options, std::string_view bytes);

}  // namespace earshot::fuzz
