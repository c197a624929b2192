// What is wrong with files right now, for people. An entry goes when its trouble does.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::tail {

struct FileProblem {
  std::string path;
  std::string reason;  // "permission denied"
  std::string advice;  // what a person can do about it; may be empty
};

class FileProblems {
 public:
  static constexpr std::size_t entries_max = 256;  // more are not listed: the cause is then elsewhere

  void set(const std::string& path, std::string reason, std::string advice);
  void set(const std::string& path, int error);  // of errno
  void clear(std::string_view path);
  void clear_below(const std::string& directory);
  std::vector<FileProblem> list() const;

 private:
  std::map<std::string, FileProblem, std::less<>> entries_;
};

}  // namespace earshot::tail
