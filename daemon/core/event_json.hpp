// Events as the wire and the command line show them. Pure text: no socket, no file.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text_filter.hpp"
#include "core/event.hpp"

namespace earshot {

/// How much a reader is shown.
enum class View {
  full,
  meta,  // no text, no inputs, no outputs, no paths' contents: names, times, numbers
};

/// Which stream an event belongs to; the same for all events of a stream.
struct StreamAddress {
  std::string_view host, stream, session;
};

struct EncodeOptions {
  View view = View::full;
  std::size_t text_bytes_max =
      4096;  // longer text is cut on a character boundary: {"text","bytes","truncated"}
  std::size_t input_bytes_max = 65536;  // a tool's input beyond this is cut as one text
  const TextFilter* filter = nullptr;   // all that a person or a tool wrote goes through it, in both views
};

/// Appends one JSON object, without a newline.
void append_event(std::string& out, const Event& event, const StreamAddress& address,
                  const EncodeOptions& options = {});

/// The members that an address is written as, for who tells many events of one stream.
std::string encode_address(const StreamAddress& address);
void append_event(std::string& out, const Event& event, std::string_view encoded_address,
                  const EncodeOptions& options);

/// Appends `"…"`, escaped; bytes that are not UTF-8 become U+FFFD.
void append_string(std::string& out, std::string_view text);

/// The same, clean. Null: as it is.
void append_redacted(std::string& out, std::string_view text, const TextFilter* filter);

/// Appends text as the wire shows it: a string, or, when longer than `bytes_max`,
/// {"text":…,"bytes":N,"truncated":true}. Clean, if there is a filter; `bytes` is the original's length.
void append_text(std::string& out, std::string_view text, std::size_t bytes_max,
                 const TextFilter* filter = nullptr);

/// {"text":…,"bytes":N,"truncated":true} of what was cut already.
void append_cut(std::string& out, std::string_view shown, std::size_t bytes);

/// Appends one JSON value again, validated, at most 64 deep (else its text, cut), long strings cut as
/// append_text does; `null` when it is no JSON.
void append_json(std::string& out, std::string_view json, std::size_t text_bytes_max,
                 const TextFilter* filter = nullptr);

void append_usage(std::string& out, const Usage& usage);
void append_todos(std::string& out, std::span<const Todo> todos, std::size_t text_bytes_max,
                  const TextFilter* filter = nullptr, View view = View::full);

}  // namespace earshot
