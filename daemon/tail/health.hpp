// The present problems of files, for users. A problem is removed when it is solved.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::tail {

struct FileProblem {
  std::string path;
  std::string reason;  // "Permission denied"
  std::string advice;  // what the user can do; may be empty
};

class FileProblems {
 public:
  static constexpr std::size_t entries_max = 256;  // more are dropped: they have a common cause

  /// Logs the problem if it is new.
  void set(const std::string& path, std::string reason, std::string advice);
  void set(const std::string& path, int error);  // of errno
  void set_irregular(const std::string& path);   // not a regular file
  void clear(std::string_view path);
  void clear_below(const std::string& directory);
  std::vector<FileProblem> list() const;

 private:
  std::map<std::string, FileProblem, std::less<>> entries_;  // by path
};

}  // namespace earshot::tail
