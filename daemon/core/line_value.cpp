#include "core/line_value.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace earshot {

namespace {

// The last character of a scalar is followed by white space up to the next structural character.
std::string_view without_space_behind(std::string_view text) {
  while (is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

// Infinite if it is too large for a double, zero if it is too small.
double double_of(std::string_view written) {
#ifdef __cpp_lib_to_chars
  double number = 0;
  if (std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc())
    return number;
#endif
  return std::strtod(std::string(written).c_str(), nullptr);
}

template <class Integer>
bool fits(std::string_view written) {
  Integer integer = 0;
  return std::from_chars(written.data(), written.data() + written.size(), integer).ec == std::errc();
}

}  // namespace

std::optional<std::int64_t> Value::as_int() const {
  if (!is_number()) return std::nullopt;
  const std::string_view written = raw();
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), integer);
  if (end == written.data() + written.size()) {
    if (error == std::errc()) return integer;
    return std::nullopt;
  }
  const double real = double_of(written);
  if (!(std::fabs(real) < 9e18)) return std::nullopt;
  return std::llround(real);
}

std::optional<double> Value::as_double() const {
  if (!is_number()) return std::nullopt;
  const std::string_view written = raw();
  const bool is_integer = written.find_first_of(".eE") == written.npos;
  // As the DOM: no integer beyond 64 bits, and none that is a negative zero.
  if (is_integer && !fits<std::int64_t>(written) && !fits<std::uint64_t>(written)) return std::nullopt;
  const double real = is_integer && written == "-0" ? 0.0 : double_of(written);
  return std::isfinite(real) ? std::optional(real) : std::nullopt;
}

Value Value::member(std::string_view key) const {
  Value found;
  each_written([&](std::string_view written, const Value& value) {
    // An escape is longer than what it means, and a key with a backslash is never written without one.
    if (written.size() < key.size()) return;
    if (written.size() == key.size() ? is_same_name(written, key) && !has_escape(written)
                                     : has_escape(written) && line_->decode(written) == key)
      found = value;
  });
  return found;
}

std::string_view Value::raw() const {
  if (!line_) return {};
  const std::uint32_t begin = line_->at(number_);
  const char* const from = line_->text() + begin;
  switch (*from) {
    case '{':
    case '[':
      return {from, line_->at(line_->close_of(number_)) + 1 - begin};
    case '"':
      return {from, quote() + 1 - begin};
    default:
      return without_space_behind({from, line_->at(number_ + 1) - begin});
  }
}

}  // namespace earshot
