// A notice on its way to one sink, and how it went.
#pragma once
#include <cstdint>
#include <string>

#include "notifier/notice.hpp"

namespace earshot::notifier {

struct QueuedNotice {
  Notice notice;
  std::string sink;
  std::int64_t written_ms = 0;
  int attempts = 0;    // that failed
  bool again = false;  // a crash left it unknown whether it was sent: this is the one repeat
  std::string key() const { return notice.id + "-" + sink; }
};

/// How an attempt ended.
struct Delivery {
  bool done = false;
  bool permanent = false;           // trying again would not help
  std::int64_t retry_after_ms = 0;  // the receiver asks for so much time; 0: it does not say
  std::string why;                  // for people; holds no secret
};

}  // namespace earshot::notifier
