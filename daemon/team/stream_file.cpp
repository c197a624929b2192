#include "team/stream_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "core/event_json.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace {

// Where the last whole line is looked for: first in so much of the end, then in more.
constexpr std::size_t end_bytes_first = 64 << 10, end_bytes_last = 2 * message_bytes_max;
constexpr std::size_t piece_bytes = 1 << 20;

std::string error_text(const std::string& path) { return path + ": " + std::strerror(errno); }

/// A line's `received`; false where there is none.
bool read_received(std::string_view line, Kept& kept) {
  constexpr std::string_view begin = R"({"received":")";
  if (!line.starts_with(begin)) return false;
  line.remove_prefix(begin.size());
  line = line.substr(0, line.find('"'));
  const auto take_number = [&line](auto& into) {
    const auto colon = line.rfind(':');
    if (colon == line.npos) return false;
    const std::string_view digits = line.substr(colon + 1);
    line = line.substr(0, colon);
    return std::from_chars(digits.data(), digits.data() + digits.size(), into).ec == std::errc();
  };
  if (!take_number(kept.time_ns) || !take_number(kept.sequence)) return false;
  kept.store = line;
  return true;
}

/// As it stands in the file: one line, with its LF.
std::string line_of(const Received& received, std::string_view payload) {
  std::string line = R"({"received":)";
  append_string(line, received.store + ":" + std::to_string(received.sequence) + ":" +
                          std::to_string(received.time_ns));
  line += ',';
  const std::size_t at = line.size();
  line += payload.substr(1);
  // Between its members JSON may have line ends, in strings never.
  std::replace(line.begin() + static_cast<std::ptrdiff_t>(at), line.end(), '\n', ' ');
  line += '\n';
  return line;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Makes the host's directory when it is the first of its files.
int open_to_write(const std::string& path, int how) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how;
  const int descriptor = ::open(path.c_str(), flags, 0600);
  if (descriptor >= 0 || errno != ENOENT) return descriptor;
  ::mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
  return ::open(path.c_str(), flags, 0600);
}

std::string read_from(int descriptor, std::uint64_t at, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t n = ::pread(descriptor, text.data() + have, bytes - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  text.resize(have);
  return text;
}

/// A file that is read, and closed at the end.
class Reading {
 public:
  Reading(const std::string& path, int how)
      : descriptor(::open(path.c_str(), how | O_CLOEXEC | O_NOFOLLOW)) {}
  ~Reading() {
    if (descriptor >= 0) ::close(descriptor);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  const int descriptor;
};

bool copy(int from, int to, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::string piece =
        read_from(from, at, static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, bytes - at)));
    if (piece.empty()) {
      errno = EIO;  // it is shorter than it was
      return false;
    }
    if (!write_all(to, piece)) return false;
    at += piece.size();
  }
  return true;
}

}  // namespace

bool StreamFile::load() {
  const Reading file(path_, O_RDWR);
  struct stat facts {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &facts) != 0)
    throw std::runtime_error(error_text(path_));
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  std::string text;
  auto end = text.npos, before = text.npos;
  for (std::size_t wanted = end_bytes_first;; wanted = end_bytes_last) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(size, wanted));
    text = read_from(file.descriptor, size - bytes, bytes);
    end = text.rfind('\n');
    before = end == text.npos || end == 0 ? text.npos : text.rfind('\n', end - 1);
    const bool has_line = end != text.npos && (before != text.npos || bytes == size);
    if (has_line || bytes == size || wanted == end_bytes_last) break;
  }
  bytes_ = end == text.npos ? size - text.size() : size - text.size() + end + 1;
  const bool is_cut = bytes_ != size;
  if (is_cut && ::ftruncate(file.descriptor, static_cast<off_t>(bytes_)) != 0)
    throw std::runtime_error(error_text(path_));
  used_ms = static_cast<std::int64_t>(facts.st_mtime) * 1000;
  kept = {};
  kept.there = bytes_ > 0;
  if (end == text.npos) return is_cut;
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  const std::string_view line = std::string_view(text).substr(begin, end - begin);
  const auto frame = read_frame(line);
  if (read_received(line, kept) && frame && frame->cursor) kept.last = *frame->cursor;
  return is_cut;
}

const std::vector<Entry>& StreamFile::entries() {
  if (entries_read_) return entries_;
  entries_read_ = true;
  const std::uint64_t on_disk = fresh_ ? copied_ : bytes_;
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
  const Reading file(path_, O_RDONLY);
  while (file.descriptor >= 0 && read < on_disk) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, on_disk - read));
    const std::string more = read_from(file.descriptor, read, bytes);
    if (more.empty()) break;
    read += more.size();
    text += more;
    read_lines();
  }
  text = waiting_;
  done = on_disk;
  read_lines();
  return entries_;
}

void StreamFile::forget_entries() {
  entries_read_ = false;
  std::vector<Entry>().swap(entries_);
}

void StreamFile::append(const Received& event) {
  waiting_ += line_of(event, event.payload);
  kept.there = true;
  kept.last = *event.cursor;
  if (entries_read_) entries_.push_back({*event.cursor, end()});
}

void StreamFile::restart(const Received& received, std::size_t keep) {
  const std::uint64_t upto = keep == 0 ? 0 : entries().at(keep - 1).end;
  if (entries_read_) entries_.resize(keep);
  const std::uint64_t on_disk = fresh_ ? copied_ : bytes_;
  if (upto <= on_disk) {
    fresh_ = true;
    copied_ = upto;
    waiting_.clear();
  } else {
    waiting_.resize(static_cast<std::size_t>(upto - on_disk));
  }
  Frame about;
  about.host = received.host, about.stream = received.stream, about.session = received.session;
  waiting_ += line_of(received, reset_payload(about, {}));
  kept.there = true;
  kept.last = begin_cursor;
  if (received.cursor) append(received);
}

std::string StreamFile::write_fresh() {
  const std::string fresh = path_ + std::string(fresh_suffix);
  const int descriptor = open_to_write(fresh, O_TRUNC);
  if (descriptor < 0) return error_text(fresh);
  bool written = true;
  if (copied_ > 0) {
    const Reading old(path_, O_RDONLY);
    written = old.descriptor >= 0 && copy(old.descriptor, descriptor, copied_);
  }
  // Before it takes the other one's place: a power cut between the two must not leave nothing.
  written = written && write_all(descriptor, waiting_) && ::fsync(descriptor) == 0;
  const std::string why = written ? std::string() : error_text(fresh);
  ::close(descriptor);
  if (!written) return why;
  if (::rename(fresh.c_str(), path_.c_str()) != 0) return error_text(path_);
  close();
  bytes_ = copied_ + waiting_.size();
  fresh_ = false;
  copied_ = 0;
  std::string().swap(waiting_);
  return {};
}

std::string StreamFile::write() {
  if (fresh_) return write_fresh();
  if (waiting_.empty()) return {};
  if (descriptor_ < 0) descriptor_ = open_to_write(path_, O_APPEND);
  if (descriptor_ < 0) return error_text(path_);
  if (!write_all(descriptor_, waiting_)) {
    const std::string why = error_text(path_);
    // What went in part goes again as a whole.
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) return why + ", and cannot be cut";
    return why;
  }
  bytes_ += waiting_.size();
  std::string().swap(waiting_);
  return {};
}

void StreamFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void StreamFile::remove() {
  close();
  ::unlink(path_.c_str());
}

}  // namespace earshot::team
