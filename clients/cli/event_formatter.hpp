// Formats events and other frames as single lines:
//   14:03:09 api      ⚙ Bash  npm test
//   14:03:41 api      ✓ Bash  31.9s
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

namespace formatting {
struct FormatterState;
}

class EventFormatter {
 public:
  /// `verbose` also shows thinking, token counts, messages of subagents and file checkpoints.
  EventFormatter(DisplayOptions display, bool verbose);
  ~EventFormatter();
  EventFormatter(const EventFormatter&) = delete;
  EventFormatter& operator=(const EventFormatter&) = delete;

  /// The width of the terminal, which may have been resized.
  void set_columns(std::size_t columns);

  /// Learns names and the width of the label column from a frame that is shown later.
  void observe(const Fields& frame);

  /// Appends the frame's lines, each with a line end; nothing if the frame is not shown or its type is
  /// unknown.
  void format(const Fields& frame, std::string& out);

 private:
  std::unique_ptr<formatting::FormatterState> state_;
};

}  // namespace earshot::cli
