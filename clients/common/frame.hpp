// Frames of the daemon, decoded. Unknown fields are ignored and missing ones are empty: the protocol only
// grows.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <optional>
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
  std::optional<simdjson::dom::element> get(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// Absent and negative ones are 0.
  std::uint64_t count(std::string_view key) const;
  bool flag(std::string_view key) const;
  Fields object(std::string_view key) const;
  /// The objects of an array.
  std::vector<Fields> objects(std::string_view key) const;
  /// The strings of an array.
  std::vector<std::string_view> texts(std::string_view key) const;
  std::size_t array_size(std::string_view key) const;
  const simdjson::dom::object& raw() const { return object_; }
  /// The size in bytes of the complete text of which this frame holds the beginning; 0 if the text is
  /// complete. `path` is the field's name, with names and indices inside of it joined by `/`: `output`,
  /// `input/command`.
  std::uint64_t truncated_bytes(std::string_view path) const { return object("truncated").count(path); }

 private:
  simdjson::dom::object object_;
  bool present_ = false;
};

class FrameParser {
 public:
  /// Nothing if `json` is not a JSON object. The fields are valid until the next call.
  std::optional<Fields> parse(std::string_view json);

 private:
  simdjson::dom::parser parser_;
  std::string repaired_;
};

}  // namespace earshot::common
