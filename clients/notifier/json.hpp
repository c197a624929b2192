// A JSON object in the making.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"

namespace earshot::notifier {

/// Writes into `out`, from its creation to close().
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Object& add(std::string_view key, std::string_view text) {
    append_string(begin(key), text);
    return *this;
  }
  Object& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
  Object& add(std::string_view key, const std::string& text) { return add(key, std::string_view(text)); }
  Object& add(std::string_view key, std::same_as<bool> auto flag) {
    begin(key) += flag ? "true" : "false";
    return *this;
  }
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Object& add(std::string_view key, Number number) {
    begin(key) += std::to_string(number);
    return *this;
  }
  Object& add(std::string_view key, const std::vector<std::string>& texts) {
    std::string& out = begin(key);
    out += '[';
    for (const std::string& each : texts) {
      if (out.back() != '[') out += ',';
      append_string(out, each);
    }
    out += ']';
    return *this;
  }
  /// Only what is known.
  Object& maybe(std::string_view key, std::string_view text) { return text.empty() ? *this : add(key, text); }
  /// What follows is written by the caller: one JSON value.
  std::string& begin(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    append_string(out_, key);
    out_ += ':';
    return out_;
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

/// `[` items, each written by `write`, `]`.
template <class Items, class Write>
void append_array(std::string& out, const Items& items, Write write) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    write(out, item);
  }
  out += ']';
}

}  // namespace earshot::notifier
