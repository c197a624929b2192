// Events → the documents of the index: redacted text with the cursor of its event. Pure.
#pragma once
#include <algorithm>
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

/// Whether the message makes a document.
inline bool is_answer(const event::MessageAdded& message) {
  return message.text && message.role == "assistant" && (message.kind == "text" || message.kind == "plan");
}

/// Receives all events of a transcript from its beginning, or from where the totals were taken.
class DocumentMaker final : public EventSink {
 public:
  /// `filter` outlives this object.
  explicit DocumentMaker(const TextFilter& filter) : filter_(filter) {}

  struct Totals {
    std::int64_t first_ms = 0, last_ms = 0;
    std::uint64_t prompts = 0, tools = 0;
    std::string last_prompt;
  };
  void resume(Totals totals) { totals_ = std::move(totals); }
  /// An event that makes no document had this time; 0: none.
  void add_time(std::int64_t ms) {
    if (ms <= 0) return;
    if (totals_.first_ms == 0) totals_.first_ms = ms;
    totals_.last_ms = std::max(totals_.last_ms, ms);
  }
  /// Makes no documents of events at or before this offset: they are indexed already.
  void skip_to(std::uint64_t offset) { skip_to_ = offset; }
  void on_event(const Event& event) override;

  std::vector<Document> take() {
    bytes_ = 0;
    return std::exchange(documents_, {});
  }
  std::size_t bytes() const { return bytes_; }  // of the documents that were not taken

  /// `last_prompt` is the beginning of the last prompt, redacted: the title of a session without one, as in
  /// the page's overview.
  const Totals& totals() const { return totals_; }

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
  Totals totals_;
  std::string scratch_;
};

/// The redacted beginning of a text, without control characters except line ends.
std::string clean_text(std::string_view text, std::size_t bytes_max, const TextFilter& filter);

}  // namespace earshot::search
