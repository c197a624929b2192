// Runs commands with their output redirected: stdout and stderr of one call are kept in memory.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace earshot::common::test {

/// Replaces a descriptor by another during its lifetime.
class Redirected {
 public:
  Redirected(int place, int descriptor) : place_(place), before_(::fcntl(place, F_DUPFD_CLOEXEC, 10)) {
    REQUIRE(before_ >= 0);
    REQUIRE(::dup2(descriptor, place) == place);
  }
  ~Redirected() {
    ::dup2(before_, place_);
    ::close(before_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int place_, before_;
};

struct Printed {
  int exit_code = -1;
  std::string out, err;
};

inline std::string content_of(int descriptor) {
  std::string text;
  char bytes[4096];
  ::lseek(descriptor, 0, SEEK_SET);
  for (ssize_t size = 0; (size = ::read(descriptor, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(size));
  ::close(descriptor);
  return text;
}

template <class Command>
Printed printed_by(Command&& command) {
  const int out = ::memfd_create("out", MFD_CLOEXEC), err = ::memfd_create("err", MFD_CLOEXEC);
  REQUIRE(out >= 0);
  REQUIRE(err >= 0);
  Printed printed;
  {
    const Redirected redirected_out(STDOUT_FILENO, out), redirected_err(STDERR_FILENO, err);
    printed.exit_code = command();
  }
  printed.out = content_of(out);
  printed.err = content_of(err);
  return printed;
}

/// The exit code of a command whose output is a pipe that the reader has closed.
template <class Command>
int exit_code_with_closed_output(Command&& command) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const Redirected out(STDOUT_FILENO, ends[1]);
  ::close(ends[1]);
  return command();
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() { REQUIRE(mkdtemp(path_) != nullptr); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path(const std::string& below = {}) const {
    return below.empty() ? path_ : std::string(path_) + "/" + below;
  }
  /// Writes a file and the directories above it; its path.
  std::string put(const std::string& below, const std::string& text) const {
    const std::filesystem::path file = path(below);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    std::filesystem::permissions(file,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return file.string();
  }

 private:
  char path_[32] = "/tmp/earshot-cli-XXXXXX";
};

}  // namespace earshot::common::test
