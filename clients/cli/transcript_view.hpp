// A session for reading afterwards: turns as headings, with the messages and tool calls of each below.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/event_formatter.hpp"
#include "cli/timeline.hpp"

namespace earshot::cli {

class TranscriptView {
 public:
  /// `verbose` also shows thinking, tool outputs, prompts of subagents, token counts and checkpoints.
  TranscriptView(DisplayOptions display, bool verbose) : state_{display, verbose} {}

  /// Title, project, model, size and status from the session frame.
  void write_header(const Fields& session, std::string& out);
  void write(const Timeline::Step& step, Timeline& timeline, std::string& out);
  /// The heading of a subagent for which there is no agent.started.
  void write_unlinked_agent(std::string_view agent, std::size_t depth, std::string& out);
  /// The status of a session that is working or waiting; nothing for others.
  void write_footer(const Fields& session, std::string& out);

 private:
  struct Row {
    const Fields& event;
    Timeline& timeline;
    std::string margin;
    std::size_t depth;
    bool is_end;
    std::string& out;
  };
  void turn_started(const Row& row);
  void prompt(const Row& row);
  void message_added(const Row& row);
  void tool_invoked(const Row& row);
  void tool_finished(const Row& row);
  void agent_started(const Row& row);
  void agent_finished(const Row& row);
  void todo_updated(const Row& row);
  void one_line(const Row& row, const Fields& end = {});
  void text(const Row& row, std::string_view key, Glyph mark, Style mark_style, Style style,
            std::size_t lines_max);
  void output(const Row& row, const Fields& finished);
  void print(const Row& row, const Line& line) { print(line, row.out); }
  void print(const Line& line, std::string& out) const { out += line.str(state_.display) + "\n"; }
  /// A line that begins with the row's margin and a symbol.
  Line begin(const Row& row, Glyph mark, Style style) const;
  std::string margin(std::size_t depth) const;

  FormatterState state_;
  std::string day_;
  // call → the turn in which its agent was shown
  std::unordered_map<std::string, std::uint64_t> agent_turns_;
};

}  // namespace earshot::cli
