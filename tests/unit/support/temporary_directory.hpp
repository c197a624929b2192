#pragma once
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace earshot::test {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A directory of its own below /tmp, removed with its content. Names are relative to it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char pattern[] = "/tmp/earshot-test-XXXXXX";
    if (!::mkdtemp(pattern)) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Overwrites the file in place, as an agent program does. Creates its parent directories.
  void write(std::string_view name, std::string_view text) const { put(name, text, std::ios::trunc); }
  void append(std::string_view name, std::string_view text) const { put(name, text, std::ios::app); }
  /// Writes a temporary file and renames it over the file.
  void replace(std::string_view name, std::string_view text) const {
    const std::string temporary = std::string(name) + ".tmp.1";
    write(temporary, text);
    std::filesystem::rename(*this / temporary, *this / name);
  }
  std::string read(std::string_view name) const { return read_text(*this / name); }
  /// With everything below.
  void remove(std::string_view name) const { std::filesystem::remove_all(*this / name); }
  /// Makes the file look as if it was modified that long ago.
  void age(std::string_view name, std::chrono::seconds age) const {
    namespace fs = std::filesystem;
    fs::last_write_time(*this / name, fs::file_time_type::clock::now() - age);
  }

 private:
  void put(std::string_view name, std::string_view text, std::ios::openmode mode) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary | mode) << text;
  }

  std::string path_;
};

}  // namespace earshot::test
