// A notice queued for one sink, and the result of a delivery attempt.
#pragma once
#include <cstdint>
#include <string>

#include "notifier/notice.hpp"

namespace earshot::notifier {

struct QueuedNotice {
  Notice notice;
  std::string sink;
  std::int64_t queued_ms = 0;
  int attempts = 0;        // failed ones
  bool is_resend = false;  // a crash interrupted the delivery: it is repeated once
  std::string key() const { return notice.id + "-" + sink; }
};

/// The result of a delivery attempt.
struct Delivery {
  bool done = false;
  bool permanent = false;           // a retry would fail too
  std::int64_t retry_after_ms = 0;  // requested by the receiver; 0: not given
  std::string why;                  // for users; contains no secrets
};

}  // namespace earshot::notifier
