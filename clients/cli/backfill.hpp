// Events of several streams that were missed, put in order of time. Each stream's own order stays: its times
// may run backwards, its events never.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

class Backfill {
 public:
  static constexpr std::size_t bytes_max = 128 << 20;  // beyond, full() says: drain, and order begins anew

  /// Keeps an event. With `cut_ms` it is left out when it is older; one without a time is as old as the one
  /// before it in its stream.
  void add(const Fields& event, std::string_view json, std::optional<std::int64_t> cut_ms);
  bool full() const { return bytes_ > bytes_max; }

  /// Hands out all that was kept, the oldest first, and is empty.
  void drain(const std::function<void(std::string_view json)>& take);

 private:
  static constexpr std::int64_t untimed = std::numeric_limits<std::int64_t>::min();
  struct Stream {
    std::optional<std::int64_t> first_ms, last_ms;  // of its events so far, those left out too
  };
  struct Kept {
    std::int64_t ms;  // never less than its predecessor's in the stream; untimed: none had a time yet
    std::optional<std::int64_t> cut_ms;
    const Stream* stream;
    std::size_t offset, size;  // in text_
  };
  std::unordered_map<std::string, Stream> streams_;
  std::vector<Kept> kept_;
  std::string text_;
  std::size_t bytes_ = 0;
};

}  // namespace earshot::cli
