// Frames of an in-process client, as far as the exporter uses them. Pure.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::otlp {

class FrameParser;

/// Views are valid until the parser reads the next frame.
struct WireFrame {
  std::string_view type, host, stream, session, agent;
  std::optional<Cursor> cursor;  // of an event
  std::int64_t time_ms = 0;      // 0: none
  std::uint64_t turn = 0;
  FrameParser* parser = nullptr;  // has the members

  bool is_event() const { return cursor && !stream.empty(); }
  std::string_view text(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;
  bool flag(std::string_view name) const;
  /// A member as JSON text; empty: absent.
  std::string_view json_text(std::string_view name) const;
  /// The same as a tree, until the next one; nothing: absent.
  std::optional<simdjson::dom::element> tree(std::string_view name) const;
};

/// Reads frames as the server encodes them: valid JSON without blanks. The members of an event that not all
/// events have are read when the first of them is asked for.
class FrameParser {
 public:
  /// Nothing unless `text` is an object with a `type`. It stays valid as long as the frame is used.
  std::optional<WireFrame> parse(std::string_view text);
  /// Any JSON, until the next call; nothing if it is not valid.
  std::optional<simdjson::dom::element> tree(std::string_view json);

 private:
  friend struct WireFrame;
  static constexpr std::size_t kept_bytes_max = 1 << 20;  // a tree that grew beyond is freed

  struct Member {
    std::string_view name, written;
  };
  /// The next member of object_ at at_; false: it was the last one.
  bool read_member(Member& member);
  /// As it is written. Of repeated names the last one counts; empty: absent.
  std::string_view find(std::string_view name);
  /// The content of a string; empty for other values.
  std::string_view decoded(std::string_view written);

  std::string_view object_;        // the last frame
  std::size_t at_ = 0;             // where its next member begins
  std::vector<Member> members_;    // before at_, without the common ones of an event
  std::deque<std::string> texts_;  // of the members with escapes
  simdjson::dom::parser tree_;
};

/// True if `a` names a later position of the same transcript.
inline bool is_after(const Cursor& a, const Cursor& b) {
  return a.offset > b.offset || (a.offset == b.offset && a.index > b.index);
}

}  // namespace earshot::otlp
