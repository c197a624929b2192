// One thing to tell a person. Plain data, and how it is written down.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/frame.hpp"
#include "notifier/rules.hpp"

namespace earshot::notifier {

/// What a notice is about: enough to see that it was answered.
struct AckKey {
  std::string id;  // the subject's
  std::string session;
  bool of_status = false;  // answered by another status; else by the next turn
  friend bool operator==(const AckKey&, const AckKey&) = default;
};

struct Notice {
  static constexpr std::size_t title_columns_max = 200;     // cut
  static constexpr std::size_t body_columns_max = 300;      // each line is cut
  static constexpr std::size_t body_lines_max = 12;         // more are left out
  static constexpr std::size_t event_bytes_max = 16 << 10;  // a larger event is not sent along

  std::string id;  // of rule and matter: who has it has the notice
  std::string rule;
  std::vector<std::string> sinks;
  std::string slot;  // what a desktop shows in one place: the session, or a group
  std::string title, body;
  Urgency urgency = Urgency::normal;
  std::int64_t time_ms = 0;  // of what happened; 0: not known
  std::string type, host, session, project;
  std::string event;  // the frame, as far as it may be shown; empty: several, or too large
  std::vector<AckKey> matters;
  friend bool operator==(const Notice&, const Notice&) = default;
};

/// 32 hex digits that stand for the text.
std::string digest(std::string_view text);

/// A line, without what would command a terminal or a screen reader; `text` may have been written by anybody.
std::string clean_line(std::string_view text, std::size_t columns);
std::string clean_lines(std::string_view text);

/// All of it: what the spool and the state file keep.
void append_notice(std::string& out, const Notice& notice);
std::optional<Notice> parse_notice(const common::Fields& fields);

}  // namespace earshot::notifier
