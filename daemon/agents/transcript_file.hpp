// Transcripts as files, also those of which only a copy compressed with zstd is left: Codex compresses a
// rollout some days after its last record, and a resume unpacks it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/system.hpp"

namespace earshot {

/// Follows the name of a transcript in that of its compressed copy.
constexpr std::string_view compressed_suffix = ".zst";
/// The size of a transcript of which only a compressed copy is left: it is known when it was read.
constexpr std::uint64_t unknown_bytes = UINT64_MAX;

/// The name of the transcript, for that of its compressed copy.
std::string_view uncompressed_name(std::string_view name);

/// The attributes of the compressed copy of the transcript at the path, with a size of unknown_bytes.
FileStat stat_compressed(const std::string& path);

/// The attributes of the file at the path; where it is missing, or has less than `known` bytes since its copy
/// is being unpacked, those of the copy.
FileStat stat_transcript(const std::string& path, std::uint64_t known = 0);

/// Why a TranscriptFile cannot be opened or read, for users.
std::string describe_read_error(int error);

/// Reads the transcript at a path, or its compressed copy where stat_transcript() states that of the copy. A
/// path that ends with compressed_suffix is that of a copy.
class TranscriptFile {
 public:
  // Of a compressed one; EFBIG: it needs more.
  static constexpr int window_log_max = 23;  // 8 MiB of memory: all levels but the highest three
  static constexpr std::uint64_t unpacked_bytes_max = 4ULL << 30;
  static constexpr std::size_t kept_bytes_max = 64 << 10;  // before the last byte that was read
  static constexpr std::size_t empty_bytes_max = 1 << 20;  // compressed to nothing, in a row; EBADMSG: more

  TranscriptFile();
  ~TranscriptFile();
  TranscriptFile(const TranscriptFile&) = delete;
  TranscriptFile& operator=(const TranscriptFile&) = delete;

  /// Returns 0 or the error; EINVAL: not a regular file. `known`: as for stat_transcript().
  int open(const std::string& path, std::uint64_t known = 0);
  void close();
  bool is_open() const { return static_cast<bool>(fd_); }
  bool is_compressed() const { return unpacker_ != nullptr; }
  /// At this moment. The size of a compressed one is unknown_bytes until its end was read.
  FileStat stat() const;
  /// As read_at(). A compressed one is for one thread at a time, and unpacked again from its beginning for
  /// bytes that precede those that it keeps. EBADMSG: it is damaged, or still being written.
  long read_at(char* buffer, std::size_t size, std::uint64_t offset);
  /// Reads until `size` bytes or the end.
  long read_fully(char* buffer, std::size_t size, std::uint64_t offset);

 private:
  class Unpacker;

  Fd fd_;
  std::unique_ptr<Unpacker> unpacker_;  // null: not compressed
};

}  // namespace earshot
