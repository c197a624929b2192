// A temporary directory, removed with everything in it.
#pragma once
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

class Scratch {
 public:
  Scratch() {
    std::string name = "/tmp/earshot-status-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

  /// Truncates and writes in place, as the agent program does.
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream file(at(name), std::ios::binary | std::ios::trunc);
    file << text;
  }
  /// Writes a temporary file and renames it.
  void replace(const std::string& name, const std::string& text) const {
    write(name + ".tmp.1", text);
    std::filesystem::rename(at(name + ".tmp.1"), at(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(at(name)); }
  void age(const std::string& name, int seconds) const {
    namespace fs = std::filesystem;
    fs::last_write_time(at(name), fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }

 private:
  std::string path_;
};
