// A notice for the user, the result of its delivery, and their JSON forms.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "common/frame.hpp"
#include "notifier/rules.hpp"

namespace earshot::notifier {

/// Identifies the event or status that a notice is about, to recognise when it is answered.
struct AckKey {
  std::string id;  // EventContext::id
  std::string session;
  bool is_status = false;  // answered by another status; otherwise by the next turn
  friend bool operator==(const AckKey&, const AckKey&) = default;
};

struct Notice {
  static constexpr std::size_t title_columns_max = 200;     // longer titles are cut
  static constexpr std::size_t body_columns_max = 300;      // longer lines are cut
  static constexpr std::size_t body_lines_max = 12;         // further lines are dropped
  static constexpr std::size_t event_bytes_max = 16 << 10;  // a larger event is not attached

  std::string id;  // hash of the rule and the event: equal for repeats
  std::string rule;
  std::vector<std::string> sinks;
  std::string slot;  // a newer notice replaces an older one with the same slot: the session, or a group
  std::string title, body;
  Urgency urgency = Urgency::normal;
  std::int64_t time_ms = 0;  // of the event; 0: unknown
  std::string type, host, session, project;
  std::string event;     // the frame in the rule's view; empty: a group, or too large
  std::string link;      // of the session's page; empty: unknown
  bool is_here = false;  // the session runs on the daemon's own host
  std::vector<AckKey> ack_keys;
  /// Whether it tells that a sink fails.
  bool is_report() const { return type == report_type; }
  static constexpr std::string_view report_type = "sink.failed";
  friend bool operator==(const Notice&, const Notice&) = default;
};

/// A notice queued for one sink.
struct QueuedNotice {
  Notice notice;
  std::string sink;
  std::int64_t queued_ms = 0;
  int attempts = 0;        // failed ones
  bool is_resend = false;  // a crash interrupted the delivery: it is repeated once
  bool is_update = false;  // a refined version of a notice that was sent: shown only if that still is
  std::string key() const { return notice.id + "-" + sink; }
};

/// The result of a delivery attempt.
struct Delivery {
  bool done = false;
  bool permanent = false;           // a retry would fail too
  std::int64_t retry_after_ms = 0;  // requested by the receiver; 0: not given
  std::string why;                  // for users; contains no secrets
  std::string answer;               // of the receiver, if done; likewise
};
using DeliveryCallback = std::function<void(const std::string& key, const Delivery& delivery)>;

/// A 128-bit hash of the text, 32 hex digits.
std::string digest(std::string_view text);

/// One line without control characters; `text` is untrusted.
std::string clean_line(std::string_view text, std::size_t columns);
std::string clean_lines(std::string_view text);

/// The complete notice, for the state file.
void write_notice(JsonWriter& writer, const Notice& notice);
std::optional<Notice> parse_notice(const common::Fields& fields);

/// The notice for json sinks and commands: one object without line end.
std::string notice_json(const Notice& notice);

}  // namespace earshot::notifier
