// A pager for what is longer than the terminal.
#pragma once
#include <sys/types.h>

#include <string>

namespace earshot::cli {

/// $PAGER, run by the shell, or `less -FRX`; while it lives, what is written to descriptor() goes to it, and
/// ^C is the pager's.
class Pager {
 public:
  /// Starts nothing when it is not `wanted`, when stdout is no terminal, when PAGER is empty or `cat`, or
  /// when there is no such program: then descriptor() is stdout.
  explicit Pager(bool wanted);
  /// Waits until the reader has left.
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = 1;
  pid_t child_ = 0;  // 0: none
  void (*interrupt_)(int) = nullptr;
};

}  // namespace earshot::cli
