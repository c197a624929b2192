// Writes JSON text. The encoder of events (core/event_json) has its own writer on top of the same escape
// functions.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

/// Every JSON reader keeps integers up to this exactly (RFC 8259, section 6).
constexpr std::int64_t json_integer_max = std::int64_t{1} << 53;

/// Appends `"…"`, escaped; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// The shortest decimal form. Numbers that JSON does not have (NaN, infinities) are `null`.
template <class Number>
requires(std::integral<Number> || std::floating_point<Number>) void append_json_number(std::string& out,
                                                                                       Number number) {
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) {
      out += "null";
      return;
    }
  }
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  out.append(text, static_cast<std::size_t>(end - text));
}

/// Appends one JSON value to a string and puts the commas. The calls must make up valid JSON: in an object
/// each value follows a key. Does not own the string; others may append a value to it after next().
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out), begin_(out.size()) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name) {
    append_json_string(next(), name);
    out_ += ':';
    return *this;
  }

  JsonWriter& value(std::string_view text) {
    append_json_string(next(), text);
    return *this;
  }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  template <class Number>
  requires((std::integral<Number> ||
            std::floating_point<Number>)&&!std::same_as<Number, bool>) JsonWriter& value(Number number) {
    append_json_number(next(), number);
    return *this;
  }
  JsonWriter& null() { return raw("null"); }
  /// `json` is one valid value.
  JsonWriter& raw(std::string_view json) {
    next() += json;
    return *this;
  }
  /// The string, ready for one value that the caller appends.
  std::string& next() {
    if (out_.size() > begin_ && out_.back() != '{' && out_.back() != '[' && out_.back() != ':') out_ += ',';
    return out_;
  }

  /// A key and its value.
  JsonWriter& member(std::string_view name, const auto& content) { return key(name).value(content); }
  /// Nothing if `content` is absent.
  template <class Value>
  JsonWriter& member(std::string_view name, const std::optional<Value>& content) {
    return content ? member(name, *content) : *this;
  }
  /// Nothing if `text` is empty.
  JsonWriter& member_if_any(std::string_view name, std::string_view text) {
    return text.empty() ? *this : member(name, text);
  }
  JsonWriter& raw_member(std::string_view name, std::string_view json) { return key(name).raw(json); }
  /// A key and an array with a value of each item.
  template <class Items>
  JsonWriter& array_member(std::string_view name, const Items& items) {
    return key(name).array(items, [this](const auto& item) { value(item); });
  }

  /// An array; `write` writes one value for each item.
  template <class Items, class Write>
  JsonWriter& array(const Items& items, Write write) {
    begin_array();
    for (const auto& item : items) write(item);
    return end_array();
  }

 private:
  JsonWriter& open(char bracket) {
    next() += bracket;
    return *this;
  }
  JsonWriter& close(char bracket) {
    out_ += bracket;
    return *this;
  }

  std::string& out_;
  const std::size_t begin_;
};

}  // namespace earshot
