// What the event loop receives of live streams between two turns of the index. The index adds it to what it
// has of them, so that it need not read their files, nor keep a fold of its own of each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_filter.hpp"
#include "core/event.hpp"
#include "core/stream_usage.hpp"
#include "core/transcript.hpp"
#include "tail/stream.hpp"

namespace earshot::search {

/// What the index stores of a transcript's state, not redacted.
struct StreamFacts {
  std::string session, agent;  // by the records; empty: they name none
  std::string program, project, model, title;
  std::int64_t last_activity_ms = 0;
  Usage usage;
  std::vector<ModelUsage> models;
  std::optional<double> cost_usd;
  std::int64_t cost_total_ms = 0, turn_started_ms = 0;
  std::uint32_t turn = 0;
};
StreamFacts facts_of(const Transcript& transcript);

/// A copy of what a DocumentMaker uses of an event.
struct KeptEvent {
  enum class What : std::uint8_t { session, turn, answer, tool, agent } what = What::session;
  bool has_text = true;
  Cursor cursor;
  std::int64_t time_ms = 0;     // as in Event
  std::int64_t earlier_ms = 0;  // the latest time of the events before it; 0: unknown
  std::string text, more;       // `more`: a working directory, or a tool's input

  Event event() const;  // views of this object
  std::size_t bytes() const { return sizeof *this + text.capacity() + more.capacity(); }
};

/// What a stream has grown by, and its state then.
struct Growth {
  Cursor from, to;                         // ends of complete lines, as Transcript::end()
  bool is_complete = true;                 // else it was more than is kept: the file has it
  std::vector<KeptEvent> events;           // those in between that make documents
  std::size_t bytes = 0;                   // of `events`
  std::int64_t first_ms = 0, last_ms = 0;  // of all events in between; 0: none has a time
  StreamFacts facts;

  void add(const Event& event, const TextFilter& filter);
  void forget_events();
  /// `earlier` ends where this one begins; else the file is read.
  void prepend(Growth&& earlier);
};

/// The growth of all live streams, collected on the loop's thread.
class GrowthLog {
 public:
  // Kept of one stream, and of all; of a stream that has more the events are dropped, and its file is read.
  static constexpr std::size_t stream_bytes_max = 512 << 10, bytes_max = 4 << 20;

  /// `filter` outlives this object; the texts are redacted later, by the index.
  explicit GrowthLog(const TextFilter& filter) : filter_(filter) {}

  /// The stream's transcript is fed next.
  void begin_feed(const tail::Stream& stream);
  void add(const tail::Stream& stream, const Event& event);
  /// The stream has grown, or changed otherwise. It has a transcript.
  void mark(const tail::Stream& stream) { entry_of(stream); }
  void drop(std::string_view name);
  /// The stream's transcript ends, and may begin anew elsewhere: what it has grown by is read from its file.
  void forget(std::string_view name);
  /// What a stream has grown by since it was taken, possibly nothing. Null: it has no transcript.
  std::unique_ptr<Growth> take(const tail::Stream& stream);

  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  /// Of the streams that were marked and not taken since.
  const std::string& first() const { return streams_.begin()->first; }

 private:
  Growth& entry_of(const tail::Stream& stream);

  const TextFilter& filter_;
  std::map<std::string, Growth, std::less<>> streams_;  // by name
  std::size_t bytes_ = 0;                               // of their events
  // The stream that was fed last: where it ended before, and its entry if it has one.
  const tail::Stream* fed_ = nullptr;
  Cursor fed_from_;
  Growth* fed_entry_ = nullptr;
};

}  // namespace earshot::search
