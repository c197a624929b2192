// Events as one-liners that a person likes to read:
//   14:03:09 api      ⚙ Bash  npm test
//   14:03:41 api      ✓ Bash  31.9 s
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

namespace formatting {
struct FormatterState;
}

class EventFormatter {
 public:
  /// `verbose` shows also what is quiet by default: thinking, usage, what subagents say, file checkpoints.
  EventFormatter(DisplayOptions display, bool verbose);
  ~EventFormatter();
  EventFormatter(const EventFormatter&) = delete;
  EventFormatter& operator=(const EventFormatter&) = delete;

  /// The terminal may have been resized.
  void set_columns(std::size_t columns);

  /// Learns names only, and how wide their column must be: for frames whose lines come later.
  void learn(const Fields& frame);

  /// Appends the frame's lines, each with its line end; nothing when the frame is quiet or of an unknown
  /// type.
  void tell(const Fields& frame, std::string& out);

 private:
  std::unique_ptr<formatting::FormatterState> state_;
};

}  // namespace earshot::cli
