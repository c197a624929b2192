#include "team/event_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include "agents/stream_name.hpp"
#include "base/clock.hpp"
#include "base/json_writer.hpp"
#include "log/log.hpp"
#include "team/payload.hpp"

namespace earshot::team {
namespace {

namespace fs = std::filesystem;

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

auto order_of(const Cursor& cursor) { return std::tie(cursor.offset, cursor.index); }

bool is_newer(const StoredPosition& position, const ReceivedMessage& message) {
  return order_of(*message.cursor) > order_of(position.last);
}

/// The number of entries up to and including `cursor`; nullopt: it is not among them. Entries are sorted.
std::optional<std::size_t> count_up_to(const std::vector<StoredEvent>& entries, const Cursor& cursor) {
  if (cursor == begin_cursor) return 0;
  const auto found = std::lower_bound(entries.begin(), entries.end(), cursor,
                                      [](const StoredEvent& entry, const Cursor& wanted) {
                                        return order_of(entry.cursor) < order_of(wanted);
                                      });
  if (found == entries.end() || found->cursor != cursor) return {};
  return static_cast<std::size_t>(found - entries.begin()) + 1;
}

std::string host_of(const std::string& name) { return name.substr(0, name.find('/')); }

StoredPosition position_of(const ReceivedMessage& message) {
  StoredPosition position;
  position.store = message.store, position.sequence = message.sequence, position.time_ns = message.time_ns;
  return position;
}

}  // namespace

bool is_redelivered(const StoredPosition& position, const ReceivedMessage& message) {
  return position.store == message.store && message.sequence <= position.sequence &&
         message.time_ns <= position.time_ns;
}

IngestDecision decide(const StoredPosition& position, const ReceivedMessage& message,
                      const std::function<const std::vector<StoredEvent>*()>& entries) {
  if (position.exists && is_redelivered(position, message)) return {IngestAction::drop};
  if (message.type == "stream.removed") return {position.exists ? IngestAction::remove : IngestAction::drop};
  const bool has_events = position.exists && position.last != begin_cursor;
  if (!message.cursor) return {has_events ? IngestAction::restart : IngestAction::drop};
  if (!has_events || message.after == position.last) return {IngestAction::append};
  const bool newer = is_newer(position, message);
  if (!message.after && newer && !message.is_first) return {IngestAction::append};

  const std::vector<StoredEvent>* const known = entries();
  if (!known) return {newer ? IngestAction::append : IngestAction::drop};
  const std::vector<StoredEvent>& all = *known;
  if (message.after) {
    // Either it is the entry after its predecessor, or another history starts there.
    if (const auto before = count_up_to(all, *message.after)) {
      if (*before < all.size() && all[*before].cursor == *message.cursor) return {IngestAction::drop};
      return {IngestAction::restart, *before};
    }
  }
  // Its predecessor was not received or is not specified.
  if (newer && !message.is_first) return {IngestAction::append};
  return {count_up_to(all, *message.cursor) ? IngestAction::drop : IngestAction::restart};
}

// --- One file ---

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
  // Sync before the rename: a power failure must not lose the acknowledged events that are kept.
  written = written && write_all(file.get(), pending_) && (kept_bytes_ == 0 || ::fsync(file.get()) == 0);
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

/// Synchronized before: a message that is delivered again after a power failure is looked for there.
std::string StreamFile::rename(std::string path) {
  if (file_ && ::fsync(file_.get()) != 0) return error_text(path_);
  if (::rename(path_.c_str(), path.c_str()) != 0 && errno != ENOENT) return error_text(path_);
  path_ = std::move(path);
  return {};
}

// --- All files ---

EventStore::EventStore(std::string directory, EventStoreLimits limits)
    : directory_(std::move(directory)), limits_(limits) {
  std::error_code failed;
  fs::create_directories(directory_ + "/projects", failed);
  if (failed) throw std::runtime_error(directory_ + ": " + failed.message());
  fs::permissions(directory_, fs::perms::owner_all, failed);
  load();
}

void EventStore::load() {
  std::error_code failed;
  const fs::path top = directory_ + "/projects";
  for (const auto& host : fs::directory_iterator(top, failed)) {
    if (!host.is_directory(failed)) continue;
    for (const auto& entry : fs::directory_iterator(host.path(), failed)) {
      const std::string file = entry.path().filename().string();
      if (file.ends_with(StreamFile::temporary_suffix)) {
        fs::remove(entry.path(), failed);
        continue;
      }
      if (!file.ends_with(StreamFile::suffix) || !entry.is_regular_file(failed)) continue;
      const std::string name =
          host.path().filename().string() + "/" + file.substr(0, file.size() - StreamFile::suffix.size());
      StreamFile& stored = add_file(name)->second;
      if (stored.load()) was_truncated_ = true;
      update_bytes(name, 0, stored.bytes());
    }
  }
}

StoredPosition EventStore::last_received(const std::string& store) const {
  StoredPosition newest;
  for (const auto& [name, file] : files_)
    if (file.position.store == store && file.position.sequence > newest.sequence) newest = file.position;
  return newest;
}

EventStore::Files::iterator EventStore::add_file(const std::string& name) {
  const auto found = files_.try_emplace(name, path_of(name)).first;
  ++hosts_[host_of(name)].files;
  metrics_.hosts = hosts_.size();
  metrics_.files = files_.size();
  return found;
}

void EventStore::update_bytes(const std::string& name, std::uint64_t before, std::uint64_t now) {
  hosts_[host_of(name)].bytes += now - before;
  metrics_.bytes += now - before;
}

bool EventStore::has_room(const std::string& name) const {
  const auto host = hosts_.find(host_of(name));
  return host == hosts_.end() ? hosts_.size() < limits_.hosts_max
                              : host->second.files < limits_.host_files_max;
}

bool EventStore::may_repair(const std::string& name, const StreamFile& file) {
  const std::string host = host_of(name);
  if (repairs_.size() > limits_.hosts_max && !repairs_.contains(host)) repairs_.clear();
  serve::TokenBucket& repairs =
      repairs_.try_emplace(host, limits_.repairs_per_second, limits_.repairs_burst).first->second;
  bool is_allowed = true;
  for (auto mib = std::min<std::uint64_t>(file.bytes() >> 20, limits_.repairs_burst - 1) + 1;
       is_allowed && mib > 0; --mib)
    is_allowed = repairs.take(Clock::now());
  metrics_.repairs_refused += !is_allowed;
  return is_allowed;
}

/// A host may rename its own streams only: `name` is in its directory.
IngestAction EventStore::rename(const std::string& name, const ReceivedMessage& message) {
  const auto known = files_.find(escape_token(message.host) + "/" + escape_token(message.from));
  if (known == files_.end() || is_redelivered(known->second.position, message)) {
    ++metrics_.dropped;
    return IngestAction::drop;
  }
  if (files_.contains(name)) {  // it was stored before
    remember_removed(known->first, message);
    delete_file(known);
    return IngestAction::remove;
  }
  remember_removed(known->first, message);
  std::string error = write_file(known);
  if (error.empty()) error = known->second.rename(path_of(name));
  if (!error.empty()) log_warn("hub: {} keeps the name of a stream that was renamed", error);
  auto moved = files_.extract(known);
  moved.key() = name;
  StreamFile& file = files_.insert(std::move(moved)).position->second;
  if (file.has_pending()) dirty_.push_back(name);
  file.position.store = message.store;
  file.position.sequence = message.sequence;
  file.position.time_ns = message.time_ns;
  return IngestAction::rename;
}

IngestAction EventStore::add(const ReceivedMessage& message) {
  const std::string name = escape_token(message.host) + "/" + escape_token(message.stream);
  if (message.type == "stream.renamed") return rename(name, message);
  auto found = files_.find(name);
  if (found == files_.end()) {
    const auto removed = removed_.find(name);
    const bool is_late = removed != removed_.end() && is_redelivered(removed->second, message);
    if (is_late || !message.cursor) {
      ++metrics_.dropped;
      return IngestAction::drop;
    }
    if (!has_room(name)) {
      ++(hosts_.contains(host_of(name)) ? metrics_.files_refused : metrics_.hosts_refused);
      return IngestAction::drop;
    }
    found = add_file(name);
  }
  StreamFile& file = found->second;
  const std::size_t entries_before = file.entries_bytes();
  const auto entries = [&]() -> const std::vector<StoredEvent>* {
    return file.has_entries() || may_repair(name, file) ? &file.entries() : nullptr;
  };
  IngestDecision decision = decide(file.position, message, entries);
  const bool must_copy =
      decision.action == IngestAction::restart && decision.kept_events > 0 && !file.is_replacing();
  if (must_copy && !may_repair(name, file))
    decision = {is_newer(file.position, message) ? IngestAction::append : IngestAction::drop};
  if (decision.action == IngestAction::remove) {
    ++metrics_.removed;
    remember_removed(name, message);
    delete_file(found);
    return decision.action;
  }
  const bool is_due = file.has_pending();
  if (decision.action == IngestAction::drop) {
    ++metrics_.dropped;
  } else if (decision.action == IngestAction::restart) {
    ++metrics_.restarted;
    file.restart(message, decision.kept_events);
  } else {
    file.append(message);
  }
  if (decision.action != IngestAction::drop && message.cursor) ++metrics_.appended;
  if (!is_due && file.has_pending()) dirty_.push_back(name);
  if (!is_redelivered(file.position, message)) {
    file.position.store = message.store;
    file.position.sequence = message.sequence;
    file.position.time_ns = message.time_ns;
  }
  entries_bytes_ += file.entries_bytes() - entries_before;
  limit_index_bytes(file);
  return decision.action;
}

void EventStore::remember_removed(const std::string& name, const ReceivedMessage& message) {
  if (removed_.insert_or_assign(name, position_of(message)).second) removed_order_.push_back(name);
  if (removed_order_.size() <= limits_.removed_max) return;
  removed_.erase(removed_order_.front());
  removed_order_.pop_front();
}

/// Drops the indexes of all other files above the limit; they are reloaded on demand.
void EventStore::limit_index_bytes(const StreamFile& used) {
  if (entries_bytes_ <= limits_.entries_bytes_max) return;
  for (auto& [name, file] : files_)
    if (&file != &used) file.forget_entries();
  entries_bytes_ = used.entries_bytes();
}

std::string EventStore::write_file(Files::iterator found) {
  StreamFile& file = found->second;
  if (!file.has_pending()) return {};
  const std::uint64_t before = file.bytes();
  open_files_ -= file.is_open();
  std::string error = file.write();
  open_files_ += file.is_open();
  update_bytes(found->first, before, file.bytes());
  if (error.empty()) file.modified_ms = wall_now_ms();
  return error;
}

std::string EventStore::write() {
  while (!dirty_.empty()) {
    const auto found = files_.find(dirty_.back());
    if (found != files_.end())
      if (std::string error = write_file(found); !error.empty()) return error;
    dirty_.pop_back();
  }
  if (open_files_ <= limits_.open_files_max) return {};
  // Close all: reopening the active ones is cheaper than tracking the order of use.
  for (auto& [name, file] : files_) file.close();
  open_files_ = 0;
  return {};
}

std::string EventStore::sync() const {
#ifdef __linux__
  const Fd directory(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!directory || ::syncfs(directory.get()) != 0) return directory_ + ": " + std::strerror(errno);
  return {};
#else
  ::sync();
  return {};
#endif
}

void EventStore::delete_file(Files::iterator found) {
  open_files_ -= found->second.is_open();
  entries_bytes_ -= found->second.entries_bytes();
  found->second.remove();
  const auto host = hosts_.find(host_of(found->first));
  update_bytes(found->first, found->second.bytes(), 0);
  if (host != hosts_.end() && --host->second.files == 0) hosts_.erase(host);
  files_.erase(found);
  metrics_.hosts = hosts_.size();
  metrics_.files = files_.size();
}

void EventStore::apply_retention(std::int64_t now_ms) {
  using IdleFiles = std::vector<std::pair<std::int64_t, std::string>>;
  std::map<std::string, IdleFiles> hosts;  // the oldest file last
  for (const auto& [name, file] : files_)
    if (!file.has_pending()) hosts[host_of(name)].emplace_back(file.modified_ms, name);
  const auto delete_oldest = [&](IdleFiles& idle) {
    const auto found = files_.find(idle.back().second);
    idle.pop_back();
    ++metrics_.retired;
    delete_file(found);
  };
  for (auto& [host, idle] : hosts) {
    std::sort(idle.begin(), idle.end(), std::greater<>());
    while (!idle.empty() && now_ms - idle.back().first > limits_.age_ms) delete_oldest(idle);
  }
  // Above the cap, the largest host's oldest files are deleted, so that it cannot displace other hosts.
  while (metrics_.bytes > limits_.bytes_max) {
    IdleFiles* largest = nullptr;
    std::uint64_t bytes = 0;
    for (auto& [host, idle] : hosts) {
      const auto of_host = hosts_.find(host);
      if (idle.empty() || of_host == hosts_.end() || of_host->second.bytes < bytes) continue;
      bytes = of_host->second.bytes;
      largest = &idle;
    }
    if (!largest) return;
    delete_oldest(*largest);
  }
}

}  // namespace earshot::team
