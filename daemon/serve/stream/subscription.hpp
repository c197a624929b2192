// Client messages: filters, subscriptions and their parser. Pure: text in, values out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/cursor.hpp"
#include "core/event.hpp"
#include "serve/auth/sign_in.hpp"

namespace earshot::serve {

// --- Event types as small numbers, so that a filter compares each name once ---

constexpr std::size_t event_types = std::variant_size_v<EventBody>;

/// Frames that a filter's `type` does not apply to.
constexpr std::uint16_t type_always = event_types;       // status, session
constexpr std::uint16_t type_reset = event_types + 1;    // the stream has a new history from here on
constexpr std::uint16_t type_removed = event_types + 2;  // the stream was deleted
constexpr std::uint16_t type_renamed = event_types + 3;  // later frames of the stream have another name
constexpr std::size_t frame_types = event_types + 4;

/// Which streams exist: also sent to clients that fell behind.
inline bool is_about_names(std::uint16_t type) { return type == type_removed || type == type_renamed; }

inline std::uint16_t type_of(const EventBody& body) { return static_cast<std::uint16_t>(body.index()); }

/// Names on the wire, indexed by type_of().
const std::array<std::string_view, event_types>& event_type_names();

// --- Filters ---

/// What a filter compares a session with.
struct SessionKeys {
  std::string_view host, session, project;
  std::string_view program;  // empty: unknown; matches an empty list only
};

/// Patterns in a list are ORed, keys are ANDed; an empty list matches everything (base/text.hpp).
struct Filter {
  static constexpr std::size_t patterns_max = 64;        // per key; more: error `bad_filter`
  static constexpr std::size_t pattern_bytes_max = 256;  // longer: error `bad_filter`
  /// Of all patterns with both `*` and `?`, which are compared at each character; more: error `bad_filter`.
  static constexpr std::size_t searched_bytes_max = 1024;
  static constexpr std::size_t text_bytes_max = 4096;  // of longer texts only the beginning is compared

  std::vector<std::string> project, session, host, type, program;

  bool empty() const { return matches_all_sessions() && type.empty(); }
  bool matches_all_sessions() const {
    return project.empty() && session.empty() && host.empty() && program.empty();
  }
  bool matches_session(const SessionKeys& keys) const;
  /// Ignores `project` and `program`, which are unknown until a transcript was read.
  bool matches_name(std::string_view host_name, std::string_view session_name) const;
  bool matches_type(std::string_view type_name) const;
  /// False if a list is longer than `patterns` or a pattern longer than `pattern_bytes`.
  bool is_within(std::size_t patterns, std::size_t pattern_bytes) const;
};

/// One key of a filter, by its name on the wire.
struct FilterKey {
  std::string_view name;
  std::vector<std::string> Filter::*list;
};
constexpr FilterKey filter_keys[] = {{"project", &Filter::project},
                                     {"session", &Filter::session},
                                     {"program", &Filter::program},
                                     {"host", &Filter::host},
                                     {"type", &Filter::type}};

// --- Messages ---

namespace message {

constexpr std::size_t id_bytes_max = 256;  // longer: error `bad_message`

struct Hello {
  std::string token, client;
  std::optional<SignIn> sign_in;  // of a browser, instead of the token
  bool meta = false;              // requests the meta view
};
struct Subscribe {
  static constexpr std::size_t page_max = 1000;  // sessions; more: error `bad_message`
  std::string id;
  Filter filter;
  bool state = false;  // `deliver`: `state`
  bool snapshot = true;
  std::size_t page = 0;                           // sessions in a page of the snapshot; 0: all at once
  bool all = false;                               // include sessions that are not live
  bool catch_up = false;                          // `on_lag`: send missed events from the files
  bool from_beginning = false;                    // `new_streams`: `beginning`
  std::optional<std::vector<std::string>> after;  // `<stream>:<cursor>`, unparsed
  std::optional<std::int64_t> since_ms;           // events at or after this time, since 1970
};
struct Unsubscribe {
  std::string id;
};
/// Requests the next page of a subscription's snapshot.
struct NextPage {
  std::string id, next;
};
struct Read {
  std::string id, stream;
  Cursor cursor;
};
/// Answered by an `error` frame.
struct Invalid {
  std::string id;  // empty: absent or unreadable
  std::string code, text;
};
using Message = std::variant<Hello, Subscribe, Unsubscribe, NextPage, Read, Invalid>;

/// Never throws: any text is a message or Invalid.
Message parse(std::string_view text);

/// A cursor with its stream, `<stream>:<cursor>`, as `after` and session frames have it.
struct StreamCursor {
  std::string stream;
  Cursor cursor;
};
/// Empty when malformed. An empty cursor is the beginning of the stream.
std::optional<StreamCursor> parse_stream_cursor(std::string_view text);

}  // namespace message
}  // namespace earshot::serve
