// One message of the daemon, read. Unknown fields are ignored and missing ones are empty: the protocol only
// grows.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace earshot::common {

/// The fields of a JSON object; views live until the parser's next frame. A field of another kind than asked
/// for is absent.
class Fields {
 public:
  Fields() = default;
  explicit Fields(simdjson::dom::object object) : object_(object), present_(true) {}

  explicit operator bool() const { return present_; }
  std::optional<simdjson::dom::element> get(std::string_view key) const;
  /// A string, or the text of one that was cut: {"text":…,"bytes":N,"truncated":true}.
  std::string_view text(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// Absent and negative ones are 0.
  std::uint64_t count(std::string_view key) const;
  bool flag(std::string_view key) const;
  Fields object(std::string_view key) const;
  /// The objects of an array.
  std::vector<Fields> objects(std::string_view key) const;
  std::size_t array_size(std::string_view key) const;
  const simdjson::dom::object& raw() const { return object_; }

 private:
  simdjson::dom::object object_;
  bool present_ = false;
};

/// A string, or the text of one that was cut; empty for anything else.
std::string_view text_of(const simdjson::dom::element& element);

class FrameParser {
 public:
  /// Nothing when it is no JSON object.
  std::optional<Fields> parse(std::string_view json);

 private:
  simdjson::dom::parser parser_;
  std::string repaired_;
};

}  // namespace earshot::common
