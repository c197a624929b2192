#pragma once
#include <utility>

namespace earshot {

/// Closes a descriptor of open_for_reading() or of the system. Defined in base/file_system.cpp.
void close_fd(int fd);

/// Owns a file descriptor and closes it. A negative value means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives up ownership.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old >= 0) close_fd(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace earshot
