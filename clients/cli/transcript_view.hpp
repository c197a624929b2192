// A session as a person reads it afterwards: turns as headings, below each what was said and done.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/style.hpp"
#include "cli/timeline.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

namespace formatting {
struct FormatterState;
}

class TranscriptView {
 public:
  /// `verbose` shows also thinking, what tools gave, prompts of subagents, token counts and checkpoints.
  TranscriptView(DisplayOptions display, bool verbose);
  ~TranscriptView();
  TranscriptView(const TranscriptView&) = delete;
  TranscriptView& operator=(const TranscriptView&) = delete;

  /// What the session frame says: title, place, model, size, how it stands.
  void head(const Fields& session, std::string& out);
  void tell(const Timeline::Step& step, Timeline& timeline, std::string& out);
  /// A subagent that nothing tells of but its own events.
  void stranger(std::string_view agent, std::size_t depth, std::string& out);
  /// What is going on at the end; nothing when the session rests.
  void foot(const Fields& session, std::string& out);

 private:
  struct Row;
  void turn_started(const Row& row);
  void prompt(const Row& row);
  void message_added(const Row& row);
  void tool_invoked(const Row& row);
  void tool_finished(const Row& row);
  void agent_started(const Row& row);
  void agent_finished(const Row& row);
  void todo_updated(const Row& row);
  void rest(const Row& row);
  void text(const Row& row, std::string_view key, Glyph mark, Style mark_style, Style style,
            std::size_t lines_max);
  void output(const Row& row, const Fields& finished);
  void line(const Row& row, const Line& made);
  std::string margin(std::size_t depth) const;

  std::unique_ptr<formatting::FormatterState> state_;
  std::string day_;
  std::unordered_map<std::string, std::uint64_t> agent_turn_;  // call → the turn in which its agent was told
};

}  // namespace earshot::cli
