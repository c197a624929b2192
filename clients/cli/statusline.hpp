// All sessions in one line, for a status bar: how many wait for the user, how many work.
#pragma once
#include <cstdint>
#include <string>

#include "cli/name_resolver.hpp"
#include "cli/session_summary.hpp"

namespace earshot::cli {

class StatusLine {
 public:
  static constexpr std::size_t sessions_max = 8192;  // beyond this the oldest are not counted
  static constexpr std::size_t lines_max = 12;       // of the tooltip; the number of the others is appended
  static constexpr std::size_t line_columns_max = 100;

  explicit StatusLine(Charset charset) : charset_(charset) {}

  /// A new connection: removes all sessions.
  void begin();
  /// Learns from `session` and `stream.removed` frames; ignores others.
  void receive(const Fields& frame, std::int64_t now_ms);

  /// `⏸ 1 ● 2`: waiting and working sessions; empty if there are none. Contains no text of a transcript,
  /// as status bars interpret some characters.
  std::string line() const;
  /// One JSON object for status bars: `text` (the line), `class` and `alt` (`waiting`, `working`, `idle`),
  /// `tooltip` (a line per session) and the number of sessions in each state.
  std::string json() const;

  /// The same without a daemon: `class` is `away`, `tooltip` the reason.
  static std::string offline_line();
  static std::string offline_json(const std::string& reason);

 private:
  struct Entry {
    SessionRow row;
    std::string main_stream;  // empty: not known
  };
  bool several_hosts() const;

  Charset charset_;
  BoundedMap<Entry, sessions_max> sessions_;  // by host and session
};

}  // namespace earshot::cli
