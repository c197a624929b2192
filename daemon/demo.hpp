// Plays a small Claude Code session in a loop into a temporary root, so that a new user sees events within a
// minute.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace earshot::demo {

class Demo {
 public:
  static constexpr std::size_t old_sessions_max = 5;  // older ones are removed

  /// Creates the root, 0700, below $TMPDIR or /tmp; the destructor removes it with its contents.
  /// Throws std::system_error on failure. `speed` 2 is twice as fast; 0 or less is as fast as possible.
  explicit Demo(boost::asio::io_context& io, double speed = 1.0);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  const std::string& root() const;
  void start();
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// ---- The script (demo_script.cpp): a table of steps, and the transcript line of each kind of step

enum class Chain { main, agent };  // the session itself, and its subagent

enum class Act {
  prompt,  // text
  brief,   // the first line of the subagent's file: text
  think,
  say,     // text
  call,    // name: the tool; text: its input, JSON
  result,  // of the oldest open call; name: source of the permission; text: output; more: toolUseResult, JSON
           // or empty
  finish,  // the last text of a turn, or of the subagent
  turn_duration,  // text, in ms
  title,          // text
  cost,           // total of the session: text, in dollars
  retry,          // an API error; name: the attempt, text: delay until the next one, in ms
  compacting,     // the internal call of a compaction, in a file of its own
  boundary,       // the context was compacted
  summary,        // text
  meta,           // the subagent's meta file; name: its type, text: its description
  registry,       // the registry file; name: status, text: waitingFor; no name: without a status
  leave,          // removes the registry file
  task,           // a task file; name: number, text: content, JSON
};

/// Texts are escaped JSON string contents; `${…}` placeholders are filled in when the step is played.
struct Step {
  int after_ms;
  Chain chain;
  Act act;
  std::string_view name, text, more;
};

std::span<const Step> script();

/// The template of a transcript line, without LF; empty for acts that write another file.
std::string_view line_of(Act act);

/// The members that end every line: `${tail}`.
std::string_view line_tail();

/// Templates of the other files.
std::string_view meta_file();
std::string_view registry_file();

}  // namespace earshot::demo
