// What of a transcript was there at a time.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "agents/transcript_file.hpp"
#include "core/transcript.hpp"

namespace earshot::tail {

/// Reads a transcript up to its first event of a later time.
class KnownPart final : private EventSink {
 public:
  static constexpr std::size_t slice_bytes = 8 << 20;  // between slices the disk thread can do other work

  /// `until_ms`: since 1970.
  KnownPart(std::string path, TranscriptOptions options, std::int64_t until_ms)
      : path_(std::move(path)), until_ms_(until_ms), transcript_(std::move(options)) {}

  /// On the disk thread. True: bytes() is found, or error() is set.
  bool read_slice();
  int error() const { return error_; }       // of errno
  bool is_over() const { return is_over_; }  // there is something later
  /// Up to the end of the line with the last event that is not later.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void on_event(const Event& event) override {
    if (event.time_ms > until_ms_) is_over_ = true;
    if (!is_over_) bytes_ = event.cursor.offset;
  }

  const std::string path_;
  const std::int64_t until_ms_;
  Transcript transcript_;
  TranscriptFile file_;
  std::uint64_t read_ = 0, bytes_ = 0;
  bool is_over_ = false;
  int error_ = 0;
};

}  // namespace earshot::tail
