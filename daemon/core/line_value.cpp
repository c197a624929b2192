#include "core/line_value.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace earshot {

#if EARSHOT_LINE_WALK

namespace {

// The last character of a scalar is followed by white space up to the next structural character.
std::string_view without_space_behind(std::string_view text) {
  while (is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

// Zero for a number too small for a double, as the DOM reads it; it refuses those that are too large.
double double_of(std::string_view written) {
#ifdef __cpp_lib_to_chars
  double number = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number);
  return error == std::errc::result_out_of_range ? std::copysign(0.0, written.front() == '-' ? -1 : 1)
                                                 : number;
#else
  return std::strtod(std::string(written).c_str(), nullptr);
#endif
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
  // As the DOM: an integer has no negative zero.
  if (written == "-0") return 0.0;
  return double_of(written);
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

std::optional<dom::element> Value::to_dom(simdjson::dom::parser& parser) const {
  dom::element element;
  const std::string_view written = raw();
  // The bytes behind the line are readable.
  if (!line_ || parser.parse(written.data(), written.size(), false).get(element)) return std::nullopt;
  return element;
}

#else

std::optional<std::int64_t> Value::as_int() const { return element_ ? dom::as_int(*element_) : std::nullopt; }
std::optional<double> Value::as_double() const { return element_ ? dom::as_double(*element_) : std::nullopt; }
Value Value::member(std::string_view key) const {
  const auto found = element_ ? dom::member(*element_, key) : std::nullopt;
  return found ? Value(*found) : Value();
}
std::string_view Value::raw() const { return {}; }
std::optional<dom::element> Value::to_dom(simdjson::dom::parser&) const { return element_; }

#endif

}  // namespace earshot
