// Records which entries of a directory are opened by any process.
#pragma once
#include <sys/inotify.h>
#include <unistd.h>

#include <set>
#include <string>

class OpenRecorder {
 public:
  explicit OpenRecorder(const std::string& directory) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    ::inotify_add_watch(fd_, directory.c_str(), IN_OPEN | IN_ACCESS);
  }
  ~OpenRecorder() { ::close(fd_); }
  OpenRecorder(const OpenRecorder&) = delete;
  OpenRecorder& operator=(const OpenRecorder&) = delete;

  std::multiset<std::string> names() {
    std::multiset<std::string> opened;
    alignas(inotify_event) char buffer[1 << 16];
    for (ssize_t got; (got = ::read(fd_, buffer, sizeof buffer)) > 0;) {
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if (event->mask & IN_OPEN) opened.insert(event->len ? event->name : "");
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return opened;
  }

 private:
  int fd_;
};
