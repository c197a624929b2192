// JSON that a record has as text, such as the arguments of a call.
#pragma once
#include <string>
#include <string_view>

#include "core/line_parser.hpp"

namespace earshot {

class NestedJson {
 public:
  /// The value is that of an object; valid until the next call. Its views are, too.
  LineParser::Parsed parse(std::string_view text);
  /// Frees what only a text longer than a chunk needed. Ends the last value.
  void release_long();

 private:
  LineParser parser_;
  std::string text_;
};

}  // namespace earshot
