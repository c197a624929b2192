// What a client says, read and judged; no connection in it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/cursor.hpp"
#include "serve/stream/filter.hpp"

namespace earshot::serve::message {

constexpr std::size_t id_bytes_max = 256;  // a longer id is a bad message

struct Hello {
  std::string token, client;
  bool meta = false;  // asks for the meta view
};
struct Subscribe {
  std::string id;
  Filter filter;
  bool state = false;  // deliver: state
  bool snapshot = true;
  bool all = false;                               // sessions that are not live, too
  bool catch_up = false;                          // on_lag: what it fell behind of comes from the files
  std::optional<std::vector<std::string>> after;  // `<stream>:<cursor>`, as they stand there
};
struct Unsubscribe {
  std::string id;
};
struct Read {
  std::string id, stream;
  Cursor cursor;
};
struct Invalid {   // answered with an `error` frame
  std::string id;  // empty: it had none that could be read
  std::string code, text;
};
using Message = std::variant<Hello, Subscribe, Unsubscribe, Read, Invalid>;

/// A cursor with its stream, as `after` and session frames have it.
struct StreamCursor {
  std::string stream;
  Cursor cursor;
};
/// Nothing when it cannot be read. An empty cursor is the beginning.
std::optional<StreamCursor> parse_stream_cursor(std::string_view text);

/// Total: whatever the text is, the answer is a message or what is wrong with it.
Message parse(std::string_view text);

/// An `error` frame's payload.
std::string error(std::string_view id, std::string_view code, std::string_view text, bool retry = false);

}  // namespace earshot::serve::message
