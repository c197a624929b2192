#include "notifier/bounded_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <deque>
#include <fstream>

#include "base/system.hpp"
#include "base/file.hpp"

namespace earshot::notifier {

void BoundedLog::append(std::string_view line) {
  const auto open_file = [this] {
    return Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  };
  Fd file = open_file();
  const std::string text = std::string(line.substr(0, bytes_max / 8)) + '\n';
  const FileStat stat = file ? stat_file(file.get()) : FileStat();
  if (file && stat.ok() && static_cast<std::size_t>(stat.size) + text.size() > bytes_max) {
    std::rename(path_.c_str(), (path_ + ".1").c_str());
    file = open_file();
  }
  if (file) write_all(file.get(), text);
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
