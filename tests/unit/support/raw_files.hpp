// Changes files with single system calls, as an agent program does.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "unit/support/temporary_directory.hpp"

namespace earshot::test {

inline void put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    REQUIRE(written > 0);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

inline void write_file(const std::string& path, std::string_view bytes, int flags) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  REQUIRE(fd >= 0);
  put(fd, bytes);
  ::close(fd);
}

inline void append(const std::string& path, std::string_view bytes) { write_file(path, bytes, O_APPEND); }
inline void rewrite(const std::string& path, std::string_view bytes) { write_file(path, bytes, O_TRUNC); }

}  // namespace earshot::test
