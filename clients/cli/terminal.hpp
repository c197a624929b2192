// Where output goes: the terminal's size and abilities, and a buffered writer.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "cli/style.hpp"
#include "common/diagnostics.hpp"

namespace earshot::cli {

using namespace common;

enum class ColourMode { always, never, automatic };

bool is_terminal(int descriptor);

/// Columns of the terminal on stdout; 0 when it is none.
std::size_t terminal_columns();

/// From the locale, TERM, NO_COLOR and what stdout is.
DisplayOptions stdout_display(ColourMode wish);

/// stdout, buffered. A reader that went away (EPIPE) is no error: everything after is swallowed and
/// `closed()` says so.
class Output {
 public:
  static constexpr std::size_t buffer_bytes = 256 << 10;  // flushed when it holds this much

  explicit Output(int descriptor = 1) : descriptor_(descriptor) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }

  /// To be written into directly, then spill().
  std::string& buffer() { return buffer_; }
  void spill() {
    if (buffer_.size() >= buffer_bytes) flush();
  }
  void write(std::string_view text) {
    buffer_ += text;
    spill();
  }
  void flush();
  bool closed() const { return closed_; }
  /// Not a closed pipe but a failure, such as a full disk; empty: none.
  const std::string& error() const { return error_; }

 private:
  int descriptor_;
  std::string buffer_;
  bool closed_ = false;
  std::string error_;
};

}  // namespace earshot::cli
