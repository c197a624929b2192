#include "demo/player.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/hex.hpp"
#include "base/quantities.hpp"

namespace earshot::demo {

namespace fs = std::filesystem;

namespace {

/// Writes (`flags`: O_APPEND or O_TRUNC) with one call, as the agent programs do. Creates the file, 0600, and
/// its directories.
void write_file(const std::string& path, std::string_view text, int flags) {
  fs::create_directories(fs::path(path).parent_path());
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600));
  if (!fd) throw std::system_error(errno, std::generic_category(), path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::system_error(errno, std::generic_category(), path);
}

std::string random_uuid() {
  std::string uuid = random_hex(16);
  uuid[12] = '4';  // the version: random
  uuid[16] = 'a';  // the variant
  for (const std::size_t at : {8, 13, 18, 23}) uuid.insert(at, 1, '-');
  return uuid;
}

std::string calendar_time(const std::string& format, std::tm* (*convert)(const std::time_t*, std::tm*)) {
  const std::time_t now = now_ms() / 1000;
  std::tm time{};
  char text[64] = {};
  convert(&now, &time);
  return {text, std::strftime(text, sizeof text, format.c_str(), &time)};
}

std::string new_value(std::string_view kind, const std::string& argument,
                      const status::ProcessTable& processes) {
  if (kind == "uuid") return random_uuid();
  if (kind == "id") return random_hex(8);
  if (kind == "time") return format_time(now_ms());
  if (kind == "ms") return std::to_string(now_ms());
  if (kind == "seconds")
    return std::to_string(now_ms() / 1000 + (argument.empty() ? 0 : std::stoi(argument)));
  if (kind == "local") return calendar_time(argument, ::localtime_r);
  if (kind == "utc") return calendar_time(argument, ::gmtime_r);
  if (kind == "process" && argument == "id") return std::to_string(::getpid());
  if (kind == "process" && argument == "start") return processes.start_of(::getpid());
  if (kind == "process" && argument == "domain") return processes.pid_domain();
  throw std::invalid_argument("unknown placeholder: " + std::string(kind) + " " + argument);
}

}  // namespace

Player::Player(std::string_view text, std::string root) : root_(std::move(root)) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    if (std::string word, name; line.starts_with("file ") && words >> word >> name >> std::ws) {
      std::getline(words, paths_[name]);
      continue;
    }
    Step step;
    const bool is_step = words >> step.after_ms >> step.act >> step.file && paths_.contains(step.file) &&
                         (step.act == "append" || step.act == "replace" || step.act == "remove");
    if (!is_step) throw std::invalid_argument("neither a file nor a step: " + line);
    std::getline(words >> std::ws, step.text);
    steps_.push_back(std::move(step));
  }
  if (steps_.empty()) throw std::invalid_argument("no steps");
}

int Player::begin() {
  next_ = 0;
  values_.clear();
  files_.clear();
  return steps_.front().after_ms;
}

std::optional<int> Player::play() {
  const Step& step = steps_[next_++];
  const std::string path = root_ + '/' + fill(paths_.at(step.file));
  files_.insert(path);
  if (step.act == "append") {
    write_file(path, fill(step.text) + '\n', O_APPEND);
  } else if (step.act == "replace") {
    write_file(path + ".tmp", fill(step.text), O_TRUNC);
    fs::rename(path + ".tmp", path);
  } else {
    fs::remove(path);
    files_.erase(path);
  }
  if (next_ < steps_.size()) return steps_[next_].after_ms;
  return std::nullopt;
}

/// Replaces each `${placeholder}` by its value.
std::string Player::fill(std::string_view text) {
  std::string filled;
  for (;;) {
    const auto begin = text.find("${");
    const auto end = begin == text.npos ? text.npos : text.find('}', begin);
    filled.append(text.substr(0, begin));
    if (end == text.npos) return filled;
    filled.append(value(text.substr(begin + 2, end - begin - 2)));
    text.remove_prefix(end + 1);
  }
}

std::string Player::value(std::string_view placeholder) {
  const auto space = placeholder.find(' ');
  if (space == placeholder.npos) return new_value(placeholder, {}, processes_);
  const auto [entry, is_new] = values_.try_emplace(std::string(placeholder));
  if (is_new)
    entry->second =
        new_value(placeholder.substr(0, space), std::string(placeholder.substr(space + 1)), processes_);
  return entry->second;
}

}  // namespace earshot::demo
