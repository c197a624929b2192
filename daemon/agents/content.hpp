// Message content as most programs write it: a string, or a list of blocks with a `type`.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/line_value.hpp"

namespace earshot {

struct Content {
  std::optional<std::string> text;  // text blocks joined by LF; absent: there is none
  std::vector<Media> media;         // views into the record
};

/// The texts and images of a message. Text blocks have a type that ends with `text`.
Content content_of(const Value& content);

/// What a call asks the user, as Requests::describe_prompt(): by its input's best known member. `reason`:
/// of Requests::prompt_reason().
std::string describe_call(std::string_view tool, std::string_view input_json, std::string_view reason);

/// The size of base64 data once it is decoded.
std::uint64_t decoded_bytes(std::string_view base64);

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// Removes `word`, in lower case, from the beginning of `text`, whatever the case there.
bool skip_word(std::string_view& text, std::string_view word);

}  // namespace earshot
