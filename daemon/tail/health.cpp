#include "tail/health.hpp"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agents/stream_name.hpp"

namespace earshot::tail {
namespace {

struct Advice {
  int error;
  const char* text;
};
constexpr Advice advices[] = {
    {EACCES, "let this user read it (chmod u+r); earshot tries again"},
    {EPERM, "let this user read it; earshot tries again"},
    {EIO, "check the disk; reading continues at the same position once it works"},
    {ESTALE, "check the network mount; reading continues at the same position once it works"},
    {EMFILE, "raise the limit of open files (ulimit -n)"},
    {ENFILE, "raise the system's limit of open files (sysctl fs.file-max)"},
};

}  // namespace

void FileProblems::set(const std::string& path, std::string reason, std::string advice) {
  const auto at = entries_.find(path);
  if (at != entries_.end() && at->second.reason == reason) return;
  if (at == entries_.end() && entries_.size() >= entries_max) return;
  spdlog::warn("{}: {}{}{}", percent_encode(path), reason, advice.empty() ? "" : "; ", advice);
  entries_[path] = {path, std::move(reason), std::move(advice)};
}

void FileProblems::set(const std::string& path, int error) {
  const char* advice = "";
  for (const Advice& each : advices)
    if (each.error == error) advice = each.text;
  set(path, std::strerror(error), advice);
}

void FileProblems::set_irregular(const std::string& path) {
  set(path, "not a regular file", "transcripts must be regular files; this one is ignored");
}

void FileProblems::clear(std::string_view path) {
  if (entries_.empty()) return;
  if (const auto at = entries_.find(path); at != entries_.end()) entries_.erase(at);
}

void FileProblems::clear_below(const std::string& directory) {
  clear(directory);
  const std::string below = directory + '/';
  for (auto at = entries_.lower_bound(below); at != entries_.end() && at->first.starts_with(below);)
    at = entries_.erase(at);
}

std::vector<FileProblem> FileProblems::list() const {
  std::vector<FileProblem> all;
  for (const auto& [path, each] : entries_) all.push_back(each);
  return all;
}

}  // namespace earshot::tail
