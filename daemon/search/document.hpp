// Events → the documents of the index: redacted text with the cursor of its event. Pure.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_filter.hpp"
#include "core/event.hpp"

namespace earshot::search {

enum class Kind : std::uint8_t { prompt, answer, tool, title };
constexpr std::array<std::string_view, 4> kind_names = {"prompt", "answer", "tool", "title"};

struct Document {
  Cursor cursor;
  std::int64_t time_ms = 0;  // that of an earlier event where the event has none; 0: unknown
  Kind kind = Kind::prompt;
  std::string text;  // redacted, without control characters except line ends
};

constexpr std::size_t document_bytes_max = 8 << 10;    // the rest of a longer text is not indexed
constexpr std::size_t input_text_bytes_max = 2 << 10;  // of each string in a tool's input

/// Receives all events of a transcript from its beginning.
class DocumentMaker final : public EventSink {
 public:
  /// `filter` outlives this object.
  explicit DocumentMaker(const TextFilter& filter) : filter_(filter) {}

  /// Makes no documents of events at or before this offset: they are indexed already.
  void skip_to(std::uint64_t offset) { skip_to_ = offset; }
  void on_event(const Event& event) override;

  std::vector<Document> take() {
    bytes_ = 0;
    return std::exchange(documents_, {});
  }
  std::size_t bytes() const { return bytes_; }  // of the documents that were not taken

  std::int64_t first_ms() const { return first_ms_; }
  std::int64_t last_ms() const { return last_ms_; }
  std::uint64_t prompts() const { return prompts_; }
  std::uint64_t tools() const { return tools_; }
  /// The beginning of the last prompt, redacted: the title of a session without one, as in the page's
  /// overview.
  const std::string& last_prompt() const { return last_prompt_; }

 private:
  void operator()(const event::SessionStarted& body);
  void operator()(const event::SessionUpdated& body);
  void operator()(const event::TurnStarted& body);
  void operator()(const event::MessageAdded& body);
  void operator()(const event::ToolInvoked& body);
  void operator()(const event::AgentStarted& body);
  template <class Body>
  void operator()(const Body&) {}
  void add(Kind kind, std::string_view text);
  void add_clean(Kind kind, std::string text);
  bool is_skipped() const { return event_->cursor.offset <= skip_to_; }

  const TextFilter& filter_;
  const Event* event_ = nullptr;  // the current one
  std::uint64_t skip_to_ = 0;
  std::vector<Document> documents_;
  std::size_t bytes_ = 0;
  std::int64_t first_ms_ = 0, last_ms_ = 0;
  std::uint64_t prompts_ = 0, tools_ = 0;
  std::string last_prompt_, scratch_;
};

/// The redacted beginning of a text, without control characters except line ends.
std::string clean_text(std::string_view text, std::size_t bytes_max, const TextFilter& filter);

}  // namespace earshot::search
