// All sessions in one line, for a status bar: who waits for you, who works.
#pragma once
#include <cstdint>
#include <string>

#include "cli/name_resolver.hpp"
#include "cli/session_table.hpp"

namespace earshot::cli {

class StatusLine {
 public:
  static constexpr std::size_t sessions_max = 8192;  // the longest known is no longer counted
  static constexpr std::size_t lines_max = 12;       // of the tooltip; it says how many more there are
  static constexpr std::size_t line_columns_max = 100;

  explicit StatusLine(Charset charset) : charset_(charset) {}

  /// Another connection: what was known may be gone.
  void begin();
  /// Learns from any frame; what is about no session is ignored.
  void take(const Fields& frame, std::int64_t now_ms);

  /// `⏸ 1 ● 2`: those that wait and those that work; empty where there are none. No line end, and never a
  /// word that a transcript said: a bar may give meaning to some characters.
  std::string line() const;
  /// One JSON object, as bars take it: `text` (the line), `class` and `alt` (`waiting`, `working`, `idle`),
  /// `tooltip` (a line each: who, and what is asked), and a count each.
  std::string json() const;

  /// The same while there is no daemon: `class` is `away`, and `why` the tooltip.
  static std::string away_line();
  static std::string away_json(const std::string& why);

 private:
  struct Known {
    SessionRow row;
    std::string main;  // its main stream; empty: not told
  };
  bool several_hosts() const;

  Charset charset_;
  Recent<Known, sessions_max> sessions_;  // by host and session
};

}  // namespace earshot::cli
