// Shared by all fuzz targets: property checks and choices from input bytes.
#pragma once
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace earshot::fuzz {

/// Prints the broken property and aborts, which libFuzzer reports as a crash.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "BROKEN: %s\n", property);
  std::abort();
}

/// Consumes the input from the front: choices, then text. When exhausted: zeros and empty texts.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool done() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return static_cast<std::uint8_t>(first);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : byte() % n; }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Up to the separator, which is dropped; the rest if there is none.
  std::string_view until(char separator) {
    const std::string_view taken = take(rest_.find(separator));
    if (!rest_.empty()) rest_.remove_prefix(1);
    return taken;
  }
  std::string_view rest() { return take(rest_.size()); }

 private:
  std::string_view rest_;
};

/// Cheap pseudo-random numbers.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  std::uint64_t state_;
};

/// True for one JSON value. Numbers that the DOM refuses (beyond a double or 64 bits) are valid JSON.
inline bool is_json(const std::string& text) {
  static simdjson::dom::parser parser;
  const auto error = parser.parse(simdjson::padded_string(text)).error();
  return error == simdjson::SUCCESS || error == simdjson::NUMBER_ERROR;
}

}  // namespace earshot::fuzz
