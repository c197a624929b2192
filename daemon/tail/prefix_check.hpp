// Does a file still begin with what was read of it? Read whole, on the second thread, in slices.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/cursor.hpp"
#include "tail/files.hpp"
#include "tail/io_thread.hpp"

namespace earshot::tail {

struct PrefixCheck {
  std::string path;
  std::uint64_t hash_key = 0;
  Cursor end;                    // of the whole lines
  std::uint64_t tail_bytes = 0;  // of the unterminated line after them
  std::uint64_t tail_hash = 0;
};

struct PrefixCheckResult {
  int error = 0;  // of errno; nothing is known then
  bool fits = false;
  Facts facts;  // from before the reading
};

/// Calls `done` on this thread.
void check(IoThread& disk, PrefixCheck claim, std::function<void(const PrefixCheckResult&)> done);

}  // namespace earshot::tail
