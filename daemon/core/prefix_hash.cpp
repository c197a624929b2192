#include "core/prefix_hash.hpp"

#define XXH_STATIC_LINKING_ONLY  // the state's size
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // as wide as this processor can: twice as fast as SSE2 on long lines
#else
#include <xxhash.h>
#endif

#include <cstring>

namespace earshot {

void PrefixHash::add_line(std::span<const char> bytes) {
  value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_);
}

struct LineHash::State {
  XXH3_state_t xxh;
};

LineHash::LineHash() = default;
LineHash::~LineHash() = default;
LineHash::LineHash(LineHash&&) noexcept = default;
LineHash& LineHash::operator=(LineHash&&) noexcept = default;

void LineHash::begin(std::uint64_t mark) {
  if (!state_) state_ = std::make_unique<State>();
  XXH3_64bits_reset_withSeed(&state_->xxh, mark);
}

void LineHash::add(std::span<const char> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::uint64_t LineHash::end() const { return XXH3_64bits_digest(&state_->xxh); }

void PrefixHasher::add(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    const bool whole = lf != nullptr;
    const auto piece = whole ? bytes.first(static_cast<std::size_t>(lf - bytes.data()) + 1) : bytes;
    bytes = bytes.subspan(piece.size());
    if (whole && !open_) {
      PrefixHash prefix_hash(mark_);
      prefix_hash.add_line(piece);
      mark_ = prefix_hash.value();
      continue;
    }
    if (!open_) hash_.begin(mark_);
    hash_.add(piece);
    open_ = !whole;
    if (whole) mark_ = hash_.end();
  }
}

}  // namespace earshot
