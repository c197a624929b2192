// Finished items (`item_completed`) of tools, and the events (`…_end`) that report the same.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/line_value.hpp"

namespace earshot::codex {

/// The facts of an item about a call. `tool` and `input`, which is JSON, are for a call that no other record
/// made; an item without a tool makes none.
struct ToolItem {
  std::string tool, input;
  std::string output;        // empty: none
  std::vector<Media> media;  // views into the record
  std::string_view outcome;  // ok, error, denied, interrupted
  std::optional<std::int64_t> duration_ms;
};

/// `type`: of the item, the event or the response item.
ToolItem read_tool_item(std::string_view type, const Value& item);

/// The command line of an item; of `bash -lc <script>` the script.
std::string command_of(const Value& item);

/// The texts of a list of strings or blocks, joined by LF; empty ones are skipped.
std::string joined_texts(const Value& list);

/// The images of content blocks.
std::vector<Media> images_of(const Value& content);
Media image_of(std::string_view url);

/// A string, or the first key of an object; else empty.
std::string_view word_of(const Value& value);

/// The first text that is not empty.
std::string_view first_of(std::initializer_list<std::string_view> texts);

}  // namespace earshot::codex
