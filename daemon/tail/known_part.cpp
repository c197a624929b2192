#include "tail/known_part.hpp"

#include <memory>
#include <span>

namespace earshot::tail {

bool KnownPart::read_slice() {
  constexpr std::size_t piece_bytes = 256 << 10;
  if (!file_.is_open()) error_ = file_.open(path_);
  if (error_) return true;
  const auto buffer = std::make_unique_for_overwrite<char[]>(piece_bytes + feed_padding);
  Workspace workspace;
  for (const std::uint64_t end = read_ + slice_bytes; read_ < end;) {
    const long got = file_.read_at(buffer.get(), piece_bytes, read_);
    if (got < 0) error_ = static_cast<int>(-got);
    if (got <= 0) return true;
    read_ += static_cast<std::uint64_t>(got);
    transcript_.feed({buffer.get(), static_cast<std::size_t>(got)}, workspace, *this);
    if (is_over_) return true;
  }
  return false;
}

}  // namespace earshot::tail
