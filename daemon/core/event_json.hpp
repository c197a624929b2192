// Events as JSON, the form of the wire and of the command line. Pure text: no socket, no file.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "base/text_filter.hpp"
#include "core/event.hpp"

namespace earshot {

/// The stream of an event; the same for all events of a stream.
struct StreamAddress {
  std::string_view host, stream, session;
};

struct EncodeOptions {
  View view = View::full;
  std::size_t text_bytes_max =
      4096;  // a longer text is cut on a character boundary and listed in `truncated`
  std::size_t input_bytes_max = 65536;  // a longer tool input is sent as the beginning of its JSON, a string
  const TextFilter* filter = nullptr;  // redacts everything but ids, in both views; null: nothing is redacted
};

/// Appends one JSON object, without a newline.
void append_event(std::string& out, const Event& event, const StreamAddress& address,
                  const EncodeOptions& options = {});

/// The address as JSON members, to encode many events of one stream.
std::string encode_address(const StreamAddress& address);
void append_event(std::string& out, const Event& event, std::string_view encoded_address,
                  const EncodeOptions& options);
/// Appends the event in both views, with the other options in common. Takes little longer than the full view
/// alone: the common members are encoded once.
void append_event_views(std::string& full, std::string& meta, const Event& event,
                        std::string_view encoded_address, EncodeOptions options);

/// Appends a JSON string, redacted. Without a filter nothing is redacted.
void append_redacted(std::string& out, std::string_view text, const TextFilter* filter);

/// Appends the first `bytes_max` bytes of a text as a JSON string, redacted. If it is cut, adds `path` to
/// `truncated`, with the size of the original.
void append_text(std::string& out, std::string_view text, std::size_t bytes_max, const TextFilter* filter,
                 TruncatedPaths& truncated, std::string_view path);

/// Appends one JSON value, validated and redacted, its strings cut as append_text does, with paths relative
/// to the scopes of `truncated`. A value nested deeper than 64 levels becomes a string, the beginning of its
/// JSON. `null` if `json` is invalid. `is_utf8`: it is known to be valid UTF-8.
void append_json(std::string& out, std::string_view json, std::size_t text_bytes_max,
                 const TextFilter* filter, TruncatedPaths& truncated, bool is_utf8 = false);

void append_usage(std::string& out, const Usage& usage);
/// Appends the list; paths are `todos/0/content` and so on.
void append_todos(std::string& out, std::span<const Todo> todos, std::size_t text_bytes_max,
                  const TextFilter* filter, View view, TruncatedPaths& truncated);

void append_windows(std::string& out, std::span<const LimitWindow> windows, const TextFilter* filter);

}  // namespace earshot
