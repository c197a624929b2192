// The outcome of a call by the text of its output, and texts that Codex adds to the user's messages.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "agents/content.hpp"
#include "core/nested_json.hpp"

namespace earshot::codex {

/// The output of a call as written: text, JSON in a text, or content blocks.
struct Output {
  std::optional<std::string> text;  // absent: empty
  std::vector<Media> media;
  std::string_view outcome;  // ok, error, denied, interrupted
  std::string background;    // the session or cell that the call leaves running; empty: none
  bool is_process = false;   // of `background`: its end is reported
};
Output read_output(const Value& output, NestedJson& nested);

/// True for a part of a user message that the program added.
bool is_injected(std::string_view text);

/// The user's own part of a prompt that an editor extended.
std::string_view own_request(std::string_view prompt);

/// Text between `<name>` and `</name>`, trimmed; empty if there is none.
std::string_view tagged(std::string_view text, std::string_view name);

/// A JSON string.
std::string json_string(std::string_view text);

}  // namespace earshot::codex
