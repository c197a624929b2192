// A JSON value of a line: a number in the line's index, a view of the line. Its strings are decoded when they
// are read. Of repeated keys the last one counts; a value of another type counts as absent, that is empty,
// false or nullopt, and so does a number that fits neither 64 bits nor a double.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/json_scan.hpp"
#include "base/text.hpp"
#include "core/line_index.hpp"

namespace earshot {

class Members;
class Items;
struct Member;

/// Valid until the next line is parsed. Copied like a pointer.
class Value {
 public:
  Value() = default;  // absent: of no type
  Value(const LineIndex& line, std::uint32_t number) : line_(&line), number_(number) {}
  explicit operator bool() const { return line_ != nullptr; }

  bool is_object() const { return first() == '{'; }
  bool is_array() const { return first() == '['; }
  bool is_string() const { return first() == '"'; }
  bool is_bool() const { return first() == 't' || first() == 'f'; }
  bool is_number() const { return first() == '-' || (first() >= '0' && first() <= '9'); }
  bool is_null() const { return first() == 'n'; }

  std::string_view as_text() const { return is_string() ? string() : std::string_view{}; }
  bool as_bool() const { return first() == 't'; }
  std::optional<std::string_view> as_optional_text() const {
    return is_string() ? std::optional(as_text()) : std::nullopt;
  }
  LazyText as_lazy_text() const;
  /// A number, rounded to an integer. Absent if it does not fit.
  std::optional<std::int64_t> as_int() const;
  /// Returns the same, but nothing for a negative number.
  std::optional<std::uint64_t> as_count() const {
    const auto number = as_int();
    return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
  }
  std::optional<double> as_double() const;

  /// Empty if this is no object.
  Members members() const;
  /// Empty if this is no array.
  Items items() const;

  Value member(std::string_view key) const;
  /// Calls `take(key, value)` for each member of an object, in order. If it returns false and the key has
  /// escapes, the call is repeated with the decoded key.
  template <class Take>
  void each_named(Take&& take) const;
  std::string_view text_of(std::string_view key) const { return member(key).as_text(); }
  bool bool_of(std::string_view key) const { return member(key).as_bool(); }
  std::optional<std::int64_t> int_of(std::string_view key) const { return member(key).as_int(); }
  std::optional<std::uint64_t> count_of(std::string_view key) const { return member(key).as_count(); }

  /// The value as it is written; empty if it is absent.
  std::string_view raw() const;

 private:
  friend class Members;
  friend class Items;
  /// Calls `take(key as it is written, value)` for each member of an object, in order.
  template <class Take>
  void each_written(Take&& take) const;
  char first() const { return line_ ? line_->character(number_) : '\0'; }
  std::uint32_t behind() const {                        // the number of the first entry behind the value
    const bool is_container = (first() | 0x20) == '{';  // `[` differs from `{` in that bit only
    return (is_container ? line_->close_of(number_) : number_) + 1;
  }
  // The offset of the closing quote: only white space is between it and the next structural character.
  std::uint32_t quote() const {
    std::uint32_t at = line_->at(number_ + 1) - 1;
    while (line_->text()[at] != '"') --at;
    return at;
  }
  std::string_view content() const {  // of a string, as it is written
    const std::uint32_t begin = line_->at(number_) + 1;
    return {line_->text() + begin, quote() - begin};
  }
  bool has_escape(std::string_view content) const {  // of a string or a key of the line
    const auto begin = static_cast<std::uint32_t>(content.data() - line_->text());
    return line_->may_have_backslash(begin, begin + static_cast<std::uint32_t>(content.size())) &&
           std::memchr(content.data(), '\\', content.size()) != nullptr;
  }
  std::string_view string() const {
    const std::string_view written = content();
    return has_escape(written) ? line_->decode(written) : written;
  }

  const LineIndex* line_ = nullptr;
  std::uint32_t number_ = 0;
};

/// A member of an object; its key is decoded.
struct Member {
  std::string_view key;
  Value value;
};

/// The members of an object, in order.
class Members {
 public:
  struct Iterator {
    const LineIndex* line;
    std::uint32_t number;  // of the key
    Member operator*() const { return {Value(*line, number).string(), Value(*line, number + 2)}; }
    Iterator& operator++() {
      number = Value(*line, number + 2).behind() + 1;
      return *this;
    }
    bool operator!=(const Iterator& end) const { return number < end.number; }
  };
  Iterator begin() const { return {line_, begin_}; }
  Iterator end() const { return {line_, end_}; }

 private:
  friend class Value;
  const LineIndex* line_ = nullptr;
  std::uint32_t begin_ = 0, end_ = 0;
};

/// The items of an array, in order.
class Items {
 public:
  struct Iterator {
    const LineIndex* line;
    std::uint32_t number;
    Value operator*() const { return {*line, number}; }
    Iterator& operator++() {
      number = Value(*line, number).behind() + 1;
      return *this;
    }
    bool operator!=(const Iterator& end) const { return number < end.number; }
  };
  Iterator begin() const { return {line_, begin_}; }
  Iterator end() const { return {line_, end_}; }
  bool empty() const { return begin_ >= end_; }

 private:
  friend class Value;
  const LineIndex* line_ = nullptr;
  std::uint32_t begin_ = 0, end_ = 0;
};

inline LazyText Value::as_lazy_text() const {
  if (!is_string()) return std::string_view{};
  const std::string_view written = content();
  if (!has_escape(written)) return written;
  return {written,
          [](const void* line, std::string_view given) {
            return static_cast<const LineIndex*>(line)->decode(given);
          },
          line_};
}
inline Members Value::members() const {
  Members found;
  if (!is_object()) return found;
  found.line_ = line_, found.begin_ = number_ + 1, found.end_ = line_->close_of(number_);
  return found;
}
// As members(), but the index stays in registers.
template <class Take>
void Value::each_written(Take&& take) const {
  if (!is_object()) return;
  const char* const text = line_->text();
  const std::uint32_t* const at = line_->offsets();
  const char* const characters = line_->characters();
  const std::uint32_t* const close = line_->closes();
  const std::uint32_t end = close[number_];
  for (std::uint32_t key = number_ + 1; key < end;) {
    const std::uint32_t begin = at[key] + 1, value = key + 2;
    std::uint32_t quote = at[key + 1] - 1;
    while (text[quote] != '"') --quote;
    take(std::string_view(text + begin, quote - begin), Value(*line_, value));
    const bool is_container = (characters[value] | 0x20) == '{';
    key = (is_container ? close[value] : value) + 2;
  }
}
template <class Take>
void Value::each_named(Take&& take) const {
  each_written([&](std::string_view written, const Value& value) {
    if (!take(written, value) && has_escape(written)) take(line_->decode(written), value);
  });
}
inline Items Value::items() const {
  Items found;
  if (!is_array()) return found;
  found.line_ = line_, found.begin_ = number_ + 1, found.end_ = line_->close_of(number_);
  return found;
}

}  // namespace earshot
