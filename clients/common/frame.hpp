// Frames of the daemon, decoded. Unknown fields are ignored and missing ones are empty: the protocol only
// grows.
#pragma once
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::common {

/// The fields of a JSON object; views are valid until the parser's next frame. A field of another type than
/// requested counts as absent.
class Fields {
 public:
  Fields() = default;
  explicit Fields(simdjson::dom::object object) : object_(object), present_(true) {}

  explicit operator bool() const { return present_; }
  template <class Value>
  std::optional<Value> as(std::string_view key) const {
    Value value{};
    if (!present_ || object_.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  }
  std::optional<simdjson::dom::element> get(std::string_view key) const {
    return as<simdjson::dom::element>(key);
  }
  std::string_view text(std::string_view key) const { return as<std::string_view>(key).value_or(""); }
  std::optional<std::int64_t> integer(std::string_view key) const { return as<std::int64_t>(key); }
  /// Absent and negative ones are 0.
  std::uint64_t count(std::string_view key) const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(integer(key).value_or(0), 0));
  }
  bool flag(std::string_view key) const { return as<bool>(key).value_or(false); }
  Fields object(std::string_view key) const {
    const auto found = as<simdjson::dom::object>(key);
    return found ? Fields(*found) : Fields();
  }
  /// The objects of an array.
  std::vector<Fields> objects(std::string_view key) const {
    return items<simdjson::dom::object, Fields>(key);
  }
  /// The strings of an array.
  std::vector<std::string_view> texts(std::string_view key) const {
    return items<std::string_view, std::string_view>(key);
  }
  /// The names of this object's members.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    if (present_)
      for (const auto member : object_) out.emplace_back(member.key);
    return out;
  }
  std::size_t array_size(std::string_view key) const {
    const auto array = as<simdjson::dom::array>(key);
    return array ? array->size() : 0;
  }
  const simdjson::dom::object& raw() const { return object_; }
  /// The size in bytes of the complete text of which this frame holds the beginning; 0 if the text is
  /// complete. `path` is the field's name, with names and indices inside of it joined by `/`: `output`,
  /// `input/command`.
  std::uint64_t truncated_bytes(std::string_view path) const { return object("truncated").count(path); }

 private:
  template <class Item, class Shown>
  std::vector<Shown> items(std::string_view key) const {
    std::vector<Shown> out;
    const auto array = as<simdjson::dom::array>(key);
    if (!array) return out;
    for (const simdjson::dom::element element : *array) {
      Item item;
      if (element.get(item) == simdjson::SUCCESS) out.emplace_back(item);
    }
    return out;
  }

  simdjson::dom::object object_;
  bool present_ = false;
};

/// Whether a hub reports that the session's host is offline; `since` is when the host last reported.
bool is_host_offline(const Fields& status);

class FrameParser {
 public:
  /// Nothing if `json` is not a JSON object. The fields are valid until the next call.
  std::optional<Fields> parse(std::string_view json);

 private:
  simdjson::dom::parser parser_;
  std::string repaired_;
};

}  // namespace earshot::common
