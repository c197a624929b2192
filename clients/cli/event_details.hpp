// What the lines of events, and of the turns of `earshot show`, consist of.
#pragma once
#include <cstdint>
#include <string_view>

#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

/// Details of a line, separated by dots; the first by two spaces from what precedes them: `  41.2s · 7
/// tools`.
class Details {
 public:
  Details(Line& line, Charset charset, bool first = true) : line_(line), charset_(charset), first_(first) {}
  Details& add(std::string_view text, Style style = Style::dim);  // an empty text is skipped
  /// The `duration_ms`, `tools` and tokens of an event, as far as it has them.
  Details& duration(const Fields& event);
  /// The part of a turn's duration that it waited for the user, if any is recorded.
  Details& waited(const Fields& turn);
  /// How full a session's context is, its cost, and how long it waited, worked and was idle.
  Details& numbers(const Fields& session, std::int64_t now_ms);
  Details& tools_and_tokens(const Fields& event, std::uint64_t tokens);

 private:
  Line& line_;
  Charset charset_;
  bool first_;
};

/// Input, output and cache writes. Cache reads count the same text again in each request.
std::uint64_t new_tokens(const Fields& usage);

Style style_of_outcome(std::string_view outcome);
Glyph glyph_of_outcome(std::string_view outcome);
/// Tools whose effects have their own events, other than those that start agents.
bool has_own_events(std::string_view tool);
/// Whether a message.added is what a user, an agent or the model said, rather than how it got there.
bool is_conversation(const Fields& message);
Glyph glyph_of_message(const Fields& message);
/// The label of a frame's program; empty for Claude Code, and if it is unknown.
std::string_view other_program(const Fields& frame);
/// The summary of a notification that was delivered as a prompt; other text unchanged.
std::string_view notification_summary(std::string_view text);

}  // namespace earshot::cli
