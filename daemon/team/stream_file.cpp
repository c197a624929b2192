#include "team/stream_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace {

// How much of the end of a file is searched for its last complete line: first less, then more.
constexpr std::size_t end_bytes_first = 64 << 10, end_bytes_last = 2 * message_bytes_max;
constexpr std::size_t piece_bytes = 1 << 20;

std::string error_text(const std::string& path) { return path + ": " + std::strerror(errno); }

/// Reads a line's `received`. Returns false if it has none.
bool read_received(std::string_view line, StoredPosition& position) {
  constexpr std::string_view begin = R"({"received":")";
  if (!line.starts_with(begin)) return false;
  line.remove_prefix(begin.size());
  line = line.substr(0, line.find('"'));
  const auto parse_number = [&line](auto& into) {
    const auto colon = line.rfind(':');
    if (colon == line.npos) return false;
    const std::string_view digits = line.substr(colon + 1);
    line = line.substr(0, colon);
    return std::from_chars(digits.data(), digits.data() + digits.size(), into).ec == std::errc();
  };
  if (!parse_number(position.time_ns) || !parse_number(position.sequence)) return false;
  position.store = line;
  return true;
}

/// The line of a message in the file, with its LF.
std::string format_line(const ReceivedMessage& message, std::string_view payload) {
  std::string line = R"({"received":)";
  append_json_string(
      line, message.store + ":" + std::to_string(message.sequence) + ":" + std::to_string(message.time_ns));
  line += ',';
  const std::size_t at = line.size();
  line += payload.substr(1);
  // JSON may have line ends between its tokens, but not in strings.
  std::replace(line.begin() + static_cast<std::ptrdiff_t>(at), line.end(), '\n', ' ');
  line += '\n';
  return line;
}

/// Creates the host's directory if necessary.
Fd open_for_writing(const std::string& path, int how) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how;
  Fd file(::open(path.c_str(), flags, 0600));
  if (file || errno != ENOENT) return file;
  ::mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
  return Fd(::open(path.c_str(), flags, 0600));
}

/// Reads up to `bytes` bytes; fewer at the end of the file or after an error.
std::string read_range(const Fd& fd, std::uint64_t at, std::uint64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const long n = read_at(fd.get(), text.data() + size, text.size() - size, at + size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  return text;
}

bool copy(const Fd& from, const Fd& to, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::string piece = read_range(from, at, std::min<std::uint64_t>(piece_bytes, bytes - at));
    if (piece.empty()) {
      errno = EIO;  // the file is shorter than expected
      return false;
    }
    if (!write_all(to.get(), piece)) return false;
    at += piece.size();
  }
  return true;
}

}  // namespace

bool StreamFile::load() {
  const Fd file(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) throw std::runtime_error(error_text(path_));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::string text;
  auto end = text.npos, before = text.npos;
  for (std::size_t wanted = end_bytes_first;; wanted = end_bytes_last) {
    const auto bytes = std::min<std::uint64_t>(size, wanted);
    text = read_range(file, size - bytes, bytes);
    end = text.rfind('\n');
    before = end == text.npos || end == 0 ? text.npos : text.rfind('\n', end - 1);
    const bool has_line = end != text.npos && (before != text.npos || bytes == size);
    if (has_line || bytes == size || wanted == end_bytes_last) break;
  }
  bytes_ = end == text.npos ? size - text.size() : size - text.size() + end + 1;
  const bool is_cut = bytes_ != size;
  if (is_cut && ::ftruncate(file.get(), static_cast<off_t>(bytes_)) != 0)
    throw std::runtime_error(error_text(path_));
  modified_ms = static_cast<std::int64_t>(info.st_mtime) * 1000;
  position = {};
  position.exists = bytes_ > 0;
  if (end == text.npos) return is_cut;
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  const std::string_view line = std::string_view(text).substr(begin, end - begin);
  const auto frame = read_frame(line);
  if (read_received(line, position) && frame && frame->cursor) position.last = *frame->cursor;
  return is_cut;
}

const std::vector<StoredEvent>& StreamFile::entries() {
  if (entries_read_) return entries_;
  entries_read_ = true;
  const std::uint64_t on_disk = is_replacing_ ? kept_bytes_ : bytes_;
  std::string text;
  std::uint64_t read = 0, done = 0;
  const auto read_lines = [&] {
    std::size_t at = 0;
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', at)) {
      const auto frame = read_frame(std::string_view(text).substr(at, end - at));
      at = end + 1;
      if (frame && frame->cursor) entries_.push_back({*frame->cursor, done + at});
    }
    text.erase(0, at);
    done += at;
  };
  const Fd file = open_for_reading(path_);
  while (file && read < on_disk) {
    const std::string more = read_range(file, read, std::min<std::uint64_t>(piece_bytes, on_disk - read));
    if (more.empty()) break;
    read += more.size();
    text += more;
    read_lines();
  }
  text = pending_;
  done = on_disk;
  read_lines();
  return entries_;
}

void StreamFile::forget_entries() {
  entries_read_ = false;
  std::vector<StoredEvent>().swap(entries_);
}

void StreamFile::append(const ReceivedMessage& event) {
  pending_ += format_line(event, event.payload);
  position.exists = true;
  position.last = *event.cursor;
  if (entries_read_) entries_.push_back({*event.cursor, end()});
}

void StreamFile::restart(const ReceivedMessage& message, std::size_t kept_events) {
  const std::uint64_t end_offset = kept_events == 0 ? 0 : entries().at(kept_events - 1).end;
  if (entries_read_) entries_.resize(kept_events);
  const std::uint64_t on_disk = is_replacing_ ? kept_bytes_ : bytes_;
  if (end_offset <= on_disk) {
    is_replacing_ = true;
    kept_bytes_ = end_offset;
    pending_.clear();
  } else {
    pending_.resize(static_cast<std::size_t>(end_offset - on_disk));
  }
  Frame frame;
  frame.host = message.host, frame.stream = message.stream, frame.session = message.session;
  pending_ += format_line(message, reset_payload(frame, {}));
  position.exists = true;
  position.last = begin_cursor;
  if (message.cursor) append(message);
}

std::string StreamFile::write_replacement() {
  const std::string temporary = path_ + std::string(temporary_suffix);
  Fd file = open_for_writing(temporary, O_TRUNC);
  if (!file) return error_text(temporary);
  bool written = true;
  if (kept_bytes_ > 0) {
    const Fd old = open_for_reading(path_);
    written = old && copy(old, file, kept_bytes_);
  }
  // Sync before the rename: a power failure must not leave an empty file.
  written = written && write_all(file.get(), pending_) && ::fsync(file.get()) == 0;
  const std::string error = written ? std::string() : error_text(temporary);
  file.reset();
  if (!written) return error;
  if (::rename(temporary.c_str(), path_.c_str()) != 0) return error_text(path_);
  close();
  bytes_ = kept_bytes_ + pending_.size();
  is_replacing_ = false;
  kept_bytes_ = 0;
  std::string().swap(pending_);
  return {};
}

std::string StreamFile::write() {
  if (is_replacing_) return write_replacement();
  if (pending_.empty()) return {};
  if (!file_) file_ = open_for_writing(path_, O_APPEND);
  if (!file_) return error_text(path_);
  if (!write_all(file_.get(), pending_)) {
    const std::string error = error_text(path_);
    // Remove a partial write; the next call writes all lines again.
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0)
      return error + "; the partial write cannot be removed";
    return error;
  }
  bytes_ += pending_.size();
  std::string().swap(pending_);
  return {};
}

void StreamFile::remove() {
  close();
  ::unlink(path_.c_str());
}

}  // namespace earshot::team
