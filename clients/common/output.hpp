// The programs' output on stdout.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::common {

bool is_terminal(int fd);

/// A buffered writer. A closed pipe (EPIPE) is not an error: later output is dropped and `closed()` is true.
class Output {
 public:
  static constexpr std::size_t buffer_bytes = 256 << 10;  // flushed at this size

  explicit Output(int fd = 1) : fd_(fd), is_terminal_(common::is_terminal(fd)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }

  /// For appending directly; call flush_if_full() afterwards.
  std::string& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= buffer_bytes) flush();
  }
  void write(std::string_view text) {
    buffer_ += text;
    flush_if_full();
  }
  /// All output of --json goes through this: on a terminal it contains no raw control character.
  void write_json(std::string_view json);
  /// The same, and a line end. Line breaks within `json` become spaces.
  void write_json_line(std::string_view json);
  /// An array with a line for each item, and a line end.
  void write_json_array(const std::vector<std::string>& items);
  void flush();

  bool is_terminal() const { return is_terminal_; }
  bool closed() const { return closed_; }
  /// Such as a full disk; empty: none.
  const std::string& error() const { return error_; }

 private:
  int fd_;
  bool is_terminal_;
  std::string buffer_;
  bool closed_ = false;
  std::string error_;
};

/// Flushes the output; returns 1 (failure), with a message, if it could not be written, else 0.
int finish(Output& out);

/// Writes `text` to stdout; returns as finish() does.
int write_stdout(std::string_view text);

}  // namespace earshot::common
