// How deliveries of the notifier went, in its state file: for `earshot-notify why` and `earshot doctor`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "common/frame.hpp"

namespace earshot::common {

/// The deliveries to one sink.
struct SinkHealth {
  static constexpr int failures_tolerated = 2;  // in a row; above it the sink counts as failing

  std::int64_t sent_ms = 0;  // the last success; 0: none
  std::string answer;        // of the receiver, then
  std::int64_t failed_ms = 0;
  std::string why;           // the last failure
  int failures = 0;          // in a row
  std::int64_t next_ms = 0;  // the next attempt; 0: none is due
  bool is_reported = false;  // the user was told that it fails
  bool is_failing() const { return failures > failures_tolerated; }
  friend bool operator==(const SinkHealth&, const SinkHealth&) = default;
};

struct NotifierHealth {
  static constexpr std::size_t file_bytes_max = 64 << 20;  // of the state file; a larger one is ignored

  std::map<std::string, SinkHealth, std::less<>> sinks;
  std::string rules_problem;  // why the rules of the last reload are not used
  friend bool operator==(const NotifierHealth&, const NotifierHealth&) = default;
};

/// Adds the members `sinks` and `rules_problem` to the object that is being written.
void write_health(JsonWriter& writer, const NotifierHealth& health);
NotifierHealth parse_notifier_health(const Fields& state);

/// Of the state file in `directory`, the notifier's. False: there is no valid one.
bool read_notifier_health(const std::string& directory, NotifierHealth& health);

}  // namespace earshot::common
