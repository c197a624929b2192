#include "notifier/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

namespace earshot::notifier {
namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return path + ": " + std::strerror(errno);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return path + ": is no directory";
  return {};
}

std::string write_whole(const std::string& path, std::string_view text) {
  const std::string beside = path + ".new";
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return beside + ": " + std::strerror(errno);
  const bool written = write_all(descriptor, text) && ::fsync(descriptor) == 0;
  const int failed = written ? 0 : errno;
  ::close(descriptor);
  if (!written || ::rename(beside.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(written ? errno : failed);
    ::unlink(beside.c_str());
    return path + ": " + why;
  }
  return {};
}

std::optional<std::string> read_whole(const std::string& path, std::size_t bytes_max) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  struct stat status {};
  bool good = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
              static_cast<std::size_t>(status.st_size) <= bytes_max;
  char piece[16 << 10];
  while (good && text.size() <= bytes_max) {
    const ssize_t got = ::read(descriptor, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    good = got >= 0;
    if (got <= 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  if (!good || text.size() > bytes_max) return std::nullopt;
  return text;
}

Lock::Lock(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    descriptor_ = descriptor;
  } else {
    ::close(descriptor);
  }
}

Lock::~Lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void BoundedLog::append(std::string_view line) {
  const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return;
  std::string text(line.substr(0, bytes_max / 8));
  text += '\n';
  struct stat status {};
  const bool is_full =
      ::fstat(descriptor, &status) == 0 && static_cast<std::size_t>(status.st_size) + text.size() > bytes_max;
  if (is_full) {
    ::close(descriptor);
    ::rename(path_.c_str(), (path_ + ".1").c_str());
    return append(line);
  }
  if (!write_all(descriptor, text)) errno = 0;  // errors of the log are ignored
  ::close(descriptor);
}

std::vector<std::string> BoundedLog::last(std::size_t count) const {
  std::deque<std::string> lines;
  for (const std::string& path : {path_ + ".1", path_}) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      lines.push_back(std::move(line));
      if (lines.size() > count) lines.pop_front();
    }
  }
  return {lines.begin(), lines.end()};
}

}  // namespace earshot::notifier
