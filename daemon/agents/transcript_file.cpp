#include "agents/transcript_file.hpp"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

namespace earshot {

std::string_view uncompressed_name(std::string_view name) {
  if (name.ends_with(compressed_suffix)) name.remove_suffix(compressed_suffix.size());
  return name;
}

FileStat stat_compressed(const std::string& path) {
  FileStat stat = stat_file(path + std::string(compressed_suffix));
  if (stat.ok()) stat.size = unknown_bytes;
  return stat;
}

FileStat stat_transcript(const std::string& path, std::uint64_t known) {
  const FileStat stat = stat_file(path);
  if (!stat.is_missing() && (stat.error || stat.size >= known)) return stat;
  const FileStat copy = stat_compressed(path);
  return copy.is_missing() || (copy.error && stat.ok()) ? stat : copy;
}

std::string describe_read_error(int error) {
  switch (error) {
    case EBADMSG:
      return "the compressed file is damaged or incomplete";
    case EFBIG:
      return "the compressed file needs too much memory";
    default:
      return std::strerror(error);
  }
}

class TranscriptFile::Unpacker {
 public:
  Unpacker() : stream_(ZSTD_createDCtx()) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, window_log_max);
  }

  std::optional<std::uint64_t> size() const { return size_; }

  long read(int fd, char* buffer, std::size_t size, std::uint64_t offset) {
    if (offset < kept_begin_) restart();
    for (std::uint64_t before = read_; offset >= kept_end();) {
      if (size_ && offset >= *size_) return 0;
      const std::uint64_t end = kept_end();
      if (const int error = unpack(fd)) return -error;
      if (kept_end() > end) before = read_;
      if (read_ - before > empty_bytes_max) return -EBADMSG;
    }
    const auto begin = static_cast<std::size_t>(offset - kept_begin_);
    const std::size_t bytes = std::min(size, kept_.size() - begin);
    std::memcpy(buffer, kept_.data() + begin, bytes);
    return static_cast<long>(bytes);
  }

 private:
  std::uint64_t kept_end() const { return kept_begin_ + kept_.size(); }

  void restart() {
    ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only);
    kept_.clear();
    kept_begin_ = read_ = 0;
    input_ = {packed_.data(), 0, 0};
    is_frame_open_ = true;
    is_output_full_ = false;
  }

  /// Some more bytes, or the end. Returns 0 or the error.
  int unpack(int fd) {
    if (input_.pos == input_.size && !is_output_full_) {
      const long got = earshot::read_at(fd, packed_.data(), packed_.size(), read_);
      if (got < 0) return static_cast<int>(-got);
      if (got == 0 && is_frame_open_) return EBADMSG;
      if (got == 0) size_ = kept_end();
      if (got == 0) return 0;
      read_ += static_cast<std::uint64_t>(got);
      input_ = {packed_.data(), static_cast<std::size_t>(got), 0};
    }
    if (kept_.size() > kept_bytes_max) {
      kept_begin_ += kept_.size() - kept_bytes_max;
      kept_.erase(0, kept_.size() - kept_bytes_max);
    }
    const std::size_t before = kept_.size(), room = ZSTD_DStreamOutSize();
    kept_.resize(before + room);
    ZSTD_outBuffer output{kept_.data() + before, room, 0};
    const std::size_t result = ZSTD_decompressStream(stream_.get(), &output, &input_);
    kept_.resize(before + output.pos);
    if (ZSTD_isError(result) != 0) return error_of(result);
    is_frame_open_ = result != 0;
    is_output_full_ = output.pos == room && result != 0;
    return kept_end() > unpacked_bytes_max ? EFBIG : 0;
  }

  static int error_of(std::size_t result) {
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_frameParameter_windowTooLarge:
        return EFBIG;
      case ZSTD_error_memory_allocation:
        return ENOMEM;
      default:
        return EBADMSG;
    }
  }

  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  const std::unique_ptr<ZSTD_DCtx, Free> stream_;
  std::array<char, 64 << 10> packed_;
  ZSTD_inBuffer input_{packed_.data(), 0, 0};
  std::uint64_t read_ = 0;     // compressed bytes
  bool is_frame_open_ = true;  // an empty file is no compressed one
  bool is_output_full_ = false;
  std::string kept_;
  std::uint64_t kept_begin_ = 0;
  std::optional<std::uint64_t> size_;  // absent: its end was not reached
};

TranscriptFile::TranscriptFile() = default;
TranscriptFile::~TranscriptFile() = default;

int TranscriptFile::open(const std::string& path, std::uint64_t known) {
  close();
  bool is_compressed = path.ends_with(compressed_suffix);
  fd_ = open_for_reading(path);
  int error = fd_ ? 0 : errno;
  FileStat stat = fd_ ? stat_file(fd_.get()) : FileStat{};
  if (!is_compressed && (error == ENOENT || (!error && stat.ok() && stat.size < known))) {
    if (Fd copy = open_for_reading(path + std::string(compressed_suffix))) {
      fd_ = std::move(copy);
      stat = stat_file(fd_.get());
      is_compressed = true;
      error = 0;
    }
  }
  if (error) return error;
  error = stat.error ? stat.error : stat.is_regular() ? 0 : EINVAL;
  if (error) close();
  if (!error && is_compressed) unpacker_ = std::make_unique<Unpacker>();
  return error;
}

void TranscriptFile::close() {
  fd_.reset();
  unpacker_.reset();
}

FileStat TranscriptFile::stat() const {
  FileStat stat = stat_file(fd_.get());
  if (unpacker_ && stat.ok()) stat.size = unpacker_->size().value_or(unknown_bytes);
  return stat;
}

long TranscriptFile::read_at(char* buffer, std::size_t size, std::uint64_t offset) {
  return unpacker_ ? unpacker_->read(fd_.get(), buffer, size, offset)
                   : earshot::read_at(fd_.get(), buffer, size, offset);
}

long TranscriptFile::read_fully(char* buffer, std::size_t size, std::uint64_t offset) {
  std::size_t filled = 0;
  while (filled < size) {
    const long got = read_at(buffer + filled, size - filled, offset + filled);
    if (got < 0) return got;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return static_cast<long>(filled);
}

}  // namespace earshot
