// Until when the user has seen each session, and its text in a file. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace earshot::serve {

/// Times in milliseconds since 1970, those of the transcripts: a turn that finished later is unseen.
class SeenMarks {
 public:
  static constexpr std::size_t sessions_max = 4096;       // above it the earliest mark becomes the beginning
  static constexpr std::size_t session_bytes_max = 512;   // sessions with longer names have no mark
  static constexpr std::size_t text_bytes_max = 4 << 20;  // of text()

  /// Everything before `begin_ms` counts as seen.
  explicit SeenMarks(std::int64_t begin_ms = std::int64_t{1} << 53) : begin_ms_(begin_ms) {}
  /// What text() returned; absent for any other text.
  static std::optional<SeenMarks> parse(std::string_view text);
  /// A JSON object: `{"seen":1,"begin":…,"sessions":{"<session>":…}}`.
  std::string text() const;

  std::int64_t seen_until(std::string_view session) const;
  /// False: that was seen already, or the name is too long.
  bool mark(std::string_view session, std::int64_t until_ms);
  std::size_t size() const { return marks_.size(); }

 private:
  std::int64_t begin_ms_;
  std::map<std::string, std::int64_t, std::less<>> marks_;
  std::set<std::pair<std::int64_t, std::string>> by_time_;
};

}  // namespace earshot::serve
