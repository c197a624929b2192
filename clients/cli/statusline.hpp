// All sessions in one line, for a status bar: how many wait for the user, work, and finished unseen.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/gauges.hpp"
#include "cli/name_resolver.hpp"
#include "cli/session_summary.hpp"

namespace earshot::cli {

class StatusLine {
 public:
  static constexpr std::size_t sessions_max = 8192;  // beyond this the oldest are not counted
  static constexpr std::size_t lines_max = 12;       // of the tooltip; the number of the others is appended
  static constexpr std::size_t line_columns_max = 100;

  /// `limits`: the line ends with the account limit that is used most.
  explicit StatusLine(Charset charset, bool limits = false) : charset_(charset), show_limits_(limits) {}

  /// A new connection: removes all sessions.
  void begin();
  /// Learns from `session` and `stream.removed` frames; ignores others.
  void receive(const Fields& frame, std::int64_t now_ms);

  /// `⏸ 1 ● 2 ✓ 1`: sessions that wait, work, and finished unseen; empty if there are none. With
  /// limits: `⏸ 1 5h 62% 7d 18%`. Contains no text of a transcript, as status bars interpret some
  /// characters.
  std::string line(std::int64_t now_ms) const;
  /// One JSON object for status bars: `text` (the line), `class` and `alt` (`waiting`, `working`, `unseen`,
  /// `idle`), `tooltip` (a line per session and limit) and the number of sessions in each state.
  std::string json(std::int64_t now_ms) const;

  /// The same without a daemon: `class` is `away`, `tooltip` the reason.
  static std::string offline_line();
  static std::string offline_json(const std::string& reason);

 private:
  struct Entry {
    SessionRow row;
    std::string main_stream;  // empty: not known
  };
  bool several_hosts() const;
  /// The sessions in a state, or the `unseen` ones.
  std::vector<const SessionRow*> rows_of(std::string_view kind) const;

  Charset charset_;
  bool show_limits_;
  LimitSummary limits_{charset_};
  BoundedMap<Entry, sessions_max> sessions_;  // by host and session
};

}  // namespace earshot::cli
