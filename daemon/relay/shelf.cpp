#include "relay/shelf.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "core/event_json.hpp"
#include "relay/names.hpp"
#include "relay/payload.hpp"
#include "tail/told_names.hpp"
#include "watch/clock.hpp"

namespace earshot::relay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".jsonl", fresh_suffix = ".fresh";
constexpr std::size_t last_line_bytes_max = 2 * message_bytes_max;  // where the last whole line is looked for

bool is_behind(const Cursor& a, const Cursor& b) {
  return a.offset > b.offset || (a.offset == b.offset && a.index > b.index);
}

std::string error_text(const std::string& path) { return path + ": " + std::strerror(errno); }

/// A line's `received`; nothing where there is none.
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

}  // namespace

Fate fate_of(const Kept& kept, const Received& received, const std::function<bool(const Cursor&)>& holds) {
  // Delivered once more. A store that lost its end in a power cut gives the same numbers again, but later.
  if (kept.there && kept.store == received.store && received.sequence <= kept.sequence &&
      received.time_ns <= kept.time_ns)
    return Fate::drop;
  if (received.type == "stream.removed") return kept.there ? Fate::remove : Fate::drop;
  if (!received.cursor) return kept.there && kept.last != begin_cursor ? Fate::restart : Fate::drop;
  if (!kept.there || kept.last == begin_cursor) return Fate::append;
  const bool newer = is_behind(*received.cursor, kept.last);
  if (newer && !received.begins) return Fate::append;
  return holds(*received.cursor) ? Fate::drop : Fate::restart;
}

Shelf::Shelf(std::string directory, ShelfLimits limits) : directory_(std::move(directory)), limits_(limits) {
  std::error_code failed;
  fs::create_directories(directory_ + "/projects", failed);
  if (failed) throw std::runtime_error(directory_ + ": " + failed.message());
  fs::permissions(directory_, fs::perms::owner_all, failed);
  load();
}

Shelf::~Shelf() {
  for (auto& [name, file] : files_)
    if (file.descriptor >= 0) ::close(file.descriptor);
}

void Shelf::load() {
  std::error_code failed;
  const fs::path top = directory_ + "/projects";
  for (const auto& host : fs::directory_iterator(top, failed)) {
    if (!host.is_directory(failed)) continue;
    for (const auto& entry : fs::directory_iterator(host.path(), failed)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(fresh_suffix)) {
        fs::remove(entry.path(), failed);
        continue;
      }
      if (!name.ends_with(suffix) || !entry.is_regular_file(failed)) continue;
      const std::string word = host.path().filename().string();
      const std::string key = word + "/" + name.substr(0, name.size() - suffix.size());
      load_file(key, files_[key]);
      ++hosts_[word];
    }
  }
  figures_.hosts = hosts_.size();
  figures_.files = files_.size();
}

void Shelf::load_file(const std::string& name, File& file) {
  const std::string path = path_of(name);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat facts {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) {
    const std::string why = error_text(path);
    if (descriptor >= 0) ::close(descriptor);
    throw std::runtime_error(why);
  }
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(size, last_line_bytes_max));
  const std::string tail = read_from(descriptor, size - bytes, bytes);
  const auto end = tail.rfind('\n');
  file.bytes = end == tail.npos ? size - bytes : size - bytes + end + 1;
  if (file.bytes != size && ::ftruncate(descriptor, static_cast<off_t>(file.bytes)) != 0) {
    const std::string why = error_text(path);
    ::close(descriptor);
    throw std::runtime_error(why);
  }
  ::close(descriptor);
  file.used_ms = static_cast<std::int64_t>(facts.st_mtime) * 1000;
  file.kept.there = file.bytes > 0;
  figures_.bytes += file.bytes;
  if (end == tail.npos) return;
  const auto before = end == 0 ? tail.npos : tail.rfind('\n', end - 1);
  const std::string_view line = std::string_view(tail).substr(before == tail.npos ? 0 : before + 1,
                                                              end - (before == tail.npos ? 0 : before + 1));
  const auto frame = read_frame(line);
  if (!read_received(line, file.kept) || !frame) return;
  if (frame->cursor) file.kept.last = *frame->cursor;
}

bool Shelf::holds(const std::string& name, File& file, const Cursor& cursor) {
  if (!file.cursors) {
    file.cursors = std::make_unique<std::unordered_set<std::string>>();
    const int descriptor = file.fresh ? -1 : ::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    constexpr std::size_t piece = 1 << 20;
    std::string text;
    const auto read_lines = [&] {
      std::size_t at = 0;
      for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', at)) {
        const auto frame = read_frame(std::string_view(text).substr(at, end - at));
        if (frame && frame->cursor) file.cursors->insert(to_string(*frame->cursor));
        at = end + 1;
      }
      text.erase(0, at);
    };
    for (std::uint64_t at = 0; descriptor >= 0;) {
      const std::string more = read_from(descriptor, at, piece);
      if (more.empty()) break;
      at += more.size();
      text += more;
      read_lines();
    }
    if (descriptor >= 0) ::close(descriptor);
    text = file.waiting;
    read_lines();
  }
  return file.cursors->contains(to_string(cursor));
}

Fate Shelf::take(const Received& received) {
  const std::string word = tail::word(received.host);
  const std::string name = word + "/" + tail::word(received.stream);
  auto found = files_.find(name);
  if (found == files_.end()) {
    if (received.cursor && !hosts_.contains(word) && hosts_.size() >= limits_.hosts_max) {
      ++figures_.refused;
      return Fate::drop;
    }
    found = files_.emplace(name, File{}).first;
    ++hosts_[word];
    figures_.hosts = hosts_.size();
    figures_.files = files_.size();
  }
  File& file = found->second;
  const Fate fate =
      fate_of(file.kept, received, [&](const Cursor& cursor) { return holds(name, file, cursor); });
  if (fate == Fate::drop) {
    ++figures_.dropped;
    if (!file.kept.there) forget(found);
    return fate;
  }
  if (fate == Fate::remove) {
    ++figures_.removed;
    ::unlink(path_of(name).c_str());
    forget(found);
    return fate;
  }
  if (file.waiting.empty() && !file.fresh) due_.push_back(name);
  if (fate == Fate::restart) {
    ++figures_.restarted;
    file.fresh = true;
    file.cursors.reset();
    Frame about;
    about.host = received.host, about.stream = received.stream, about.session = received.session;
    file.waiting = line_of(received, reset_payload(about, {}));
    file.kept.last = begin_cursor;
  }
  if (received.cursor) {
    ++figures_.appended;
    file.waiting += line_of(received, received.payload);
    file.kept.last = *received.cursor;
    file.cursors.reset();  // the stream goes on: what was looked up will hardly be asked again
  }
  file.kept.there = true;
  file.kept.store = received.store;
  file.kept.sequence = received.sequence;
  file.kept.time_ns = received.time_ns;
  return fate;
}

std::string Shelf::write_file(const std::string& name, File& file) {
  const std::string path = path_of(name);
  if (file.fresh) {
    const std::string fresh = path + std::string(fresh_suffix);
    const int descriptor = open_to_write(fresh, O_TRUNC);
    if (descriptor < 0) return error_text(fresh);
    const bool written = write_all(descriptor, file.waiting);
    const std::string why = written ? std::string() : error_text(fresh);
    ::close(descriptor);
    if (!written) return why;
    if (::rename(fresh.c_str(), path.c_str()) != 0) return error_text(path);
    if (file.descriptor >= 0) {
      ::close(file.descriptor);
      --open_;
      file.descriptor = -1;
    }
    figures_.bytes += file.waiting.size() - file.bytes;
    file.bytes = file.waiting.size();
    file.fresh = false;
    file.waiting.clear();
    return {};
  }
  if (file.descriptor < 0) {
    file.descriptor = open_to_write(path, O_APPEND);
    if (file.descriptor < 0) return error_text(path);
    ++open_;
  }
  if (!write_all(file.descriptor, file.waiting)) {
    const std::string why = error_text(path);
    // What went in part goes again as a whole.
    if (::ftruncate(file.descriptor, static_cast<off_t>(file.bytes)) != 0) return why + ", and cannot be cut";
    return why;
  }
  file.bytes += file.waiting.size();
  figures_.bytes += file.waiting.size();
  std::string().swap(file.waiting);
  return {};
}

std::string Shelf::write() {
  const std::int64_t now_ms = watch::wall_now_ms();
  while (!due_.empty()) {
    const auto found = files_.find(due_.back());
    if (found != files_.end() && !found->second.waiting.empty()) {
      if (const std::string why = write_file(found->first, found->second); !why.empty()) return why;
      found->second.used_ms = now_ms;
    }
    due_.pop_back();
  }
  if (open_ > limits_.open_files_max) close_some();
  return {};
}

/// All of them: who still writes opens one again, which costs less than keeping an order.
void Shelf::close_some() {
  for (auto& [name, file] : files_) {
    if (file.descriptor < 0) continue;
    ::close(file.descriptor);
    file.descriptor = -1;
  }
  open_ = 0;
}

std::string Shelf::sync() const {
#ifdef __linux__
  const int descriptor = ::open(directory_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (descriptor < 0) return error_text(directory_);
  const int failed = ::syncfs(descriptor);
  const std::string why = failed ? error_text(directory_) : std::string();
  ::close(descriptor);
  return why;
#else
  ::sync();
  return {};
#endif
}

void Shelf::forget(Files::iterator found) {
  File& file = found->second;
  if (file.descriptor >= 0) {
    ::close(file.descriptor);
    --open_;
  }
  figures_.bytes -= file.bytes;
  const std::string word = found->first.substr(0, found->first.find('/'));
  const auto host = hosts_.find(word);
  if (host != hosts_.end() && --host->second == 0) hosts_.erase(host);
  files_.erase(found);
  figures_.hosts = hosts_.size();
  figures_.files = files_.size();
}

void Shelf::retire(std::int64_t now_ms) {
  std::vector<std::pair<std::int64_t, std::string>> rested;
  for (const auto& [name, file] : files_)
    if (file.waiting.empty()) rested.emplace_back(file.used_ms, name);
  std::sort(rested.begin(), rested.end());
  for (const auto& [used_ms, name] : rested) {
    if (figures_.bytes <= limits_.bytes_max && now_ms - used_ms <= limits_.age_ms) break;
    ::unlink(path_of(name).c_str());
    ++figures_.retired;
    forget(files_.find(name));
  }
}

}  // namespace earshot::relay
