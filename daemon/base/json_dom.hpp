// Short forms for reading simdjson's tree. Of repeated keys the last one counts. A value of another type
// counts as absent: empty, false or nullopt.
#pragma once
#include <simdjson.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace earshot::dom {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

inline std::string_view as_text(const element& value) {
  std::string_view found;
  if (value.is_string()) found = value.get_string().value_unsafe();
  return found;
}
inline std::optional<std::string_view> as_optional_text(const element& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get_string().value_unsafe();
}
inline bool as_bool(const element& value) { return value.is_bool() && value.get_bool().value_unsafe(); }

/// A number, rounded to an integer. Absent if it does not fit.
inline std::optional<std::int64_t> as_int(const element& value) {
  if (value.is_int64()) return value.get_int64().value_unsafe();
  double real = 0;
  if (value.is_double())
    real = value.get_double().value_unsafe();
  else
    return std::nullopt;
  if (!(std::fabs(real) < 9e18)) return std::nullopt;
  return std::llround(real);
}
/// The same for numbers that are not negative.
inline std::optional<std::uint64_t> as_count(const element& value) {
  const auto number = as_int(value);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}
inline std::optional<double> as_double(const element& value) {
  double number = 0;
  if (!value.is_number() || value.get_double().get(number)) return std::nullopt;
  return number;
}

inline std::optional<element> member(const element& value, std::string_view key) {
  std::optional<element> found;
  object fields;
  if (value.get_object().get(fields)) return found;
  for (const auto field : fields)
    if (field.key == key) found = field.value;
  return found;
}
inline std::string_view text_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_text(*found) : std::string_view{};
}
inline bool bool_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found && as_bool(*found);
}
inline std::optional<std::int64_t> int_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_int(*found) : std::nullopt;
}
inline std::optional<std::uint64_t> count_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_count(*found) : std::nullopt;
}

}  // namespace earshot::dom
