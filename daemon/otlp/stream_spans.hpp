// The events of one stream → spans. Pure: the same events give the same spans, however they are batched, and
// from any anchor() on.
//
//   turn.started … turn.finished     invoke_agent: the root of a trace, or below the subagent's span
//   tool.invoked … tool.finished     execute_tool; earshot.wait below it if the tool asks the user
//   agent.started … agent.finished   invoke_agent of a subagent, below its call's execute_tool
//   usage.updated of a message       chat; closed by the next message's, or the end of the turn
//   compaction.*, api.failed         events of the turn's span
//
// A span belongs to the event that closes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "otlp/span.hpp"
#include "otlp/wire_event.hpp"

namespace earshot::otlp {

/// Of the stream's session, as far as known.
struct SessionNames {
  std::string_view program, project;
};

/// Receives what a stream yields.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void on_span(const Span& span) = 0;
  /// A subagent of this session was started: `key` is its call, and its id where that is known.
  virtual void on_subagent(std::string_view key, const SpanContext& span) = 0;
};

class StreamSpans {
 public:
  // Per stream. Of calls and agents beyond a limit the oldest is dropped: it has no span.
  static constexpr std::size_t calls_max = 4096, agents_max = 256, chats_max = 64;
  static constexpr std::size_t input_bytes_max = 1 << 20;  // of open calls; further ones have no arguments
  static constexpr std::size_t messages_max = 4096;        // of a turn; later ones may be two spans
  static constexpr std::size_t span_events_max = 128;      // of a turn; further ones are counted as dropped

  /// Events after `from` follow. `from_ms`: the last known time up to there; 0: none.
  explicit StreamSpans(Cursor from = begin_cursor, std::int64_t from_ms = 0)
      : last_{from, from_ms}, last_ms_(from_ms) {}

  /// `parent`: where a subagent's turn belongs, used for turn.started only; null: it is a root.
  void on_event(const WireFrame& event, const SessionNames& names, const SpanContext* parent, SpanSink& sink);
  /// From here on the events must be read again to continue as if nothing had happened.
  Cursor anchor() const { return anchor_mark().cursor; }
  /// The last known time up to the anchor; 0: none.
  std::int64_t anchor_ms() const { return anchor_mark().last_ms; }
  /// The parent that the turn at the anchor was given; null: none.
  const SpanContext* parent() const { return turn_ && turn_->parent ? &*turn_->parent : nullptr; }
  /// The span that an event belongs to: of its open call, else of the turn. Null: none is open.
  std::optional<SpanContext> context_of(const WireFrame& event) const;
  /// Of the open turn; null: none is open.
  const SpanContext* open_turn() const { return turn_ && turn_->open ? &turn_->self : nullptr; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Mark {
    Cursor cursor;
    std::int64_t last_ms = 0;  // the last known time up to there; 0: none
  };
  struct Turn {
    SpanContext self;
    std::optional<SpanContext> parent;
    Mark anchor;
    std::string agent, origin, prompt, model;
    std::uint64_t number = 0;
    std::int64_t start_ms = 0;
    bool open = true;
    std::vector<SpanEvent> events;
    std::uint32_t dropped_events = 0;
    std::set<std::string, std::less<>> messages;  // that have a chat span
  };
  struct Call {
    SpanContext self;
    SpanId parent = 0;
    Mark anchor;
    Cursor begin;
    std::string tool, input, agent;
    std::int64_t start_ms = 0;
    std::uint64_t order = 0;
  };
  struct Agent {
    SpanContext self;
    SpanId parent = 0;
    Mark anchor;
    std::string id, type, description;
    bool background = false;
    std::int64_t start_ms = 0;
    std::uint64_t order = 0;
  };
  struct Chat {
    SpanContext self;
    SpanId parent = 0;
    std::string message, model;
    std::int64_t start_ms = 0, end_ms = 0;
    std::int64_t input = 0, output = 0, cache_read = 0, cache_write = 0;
    std::optional<std::int64_t> reasoning;
  };
  struct Now {  // the event that is being handled
    const WireFrame& event;
    const SessionNames& names;
    std::int64_t time_ms;
    SpanSink& sink;
  };

  void on_turn_started(const Now& now, const SpanContext* parent);
  void on_turn_finished(const Now& now);
  void on_tool_invoked(const Now& now);
  void on_tool_finished(const Now& now);
  void on_agent_started(const Now& now);
  void on_agent_finished(const Now& now);
  void on_usage(const Now& now);
  void add_turn_event(const Now& now, SpanEvent event);
  void on_compaction(const Now& now);
  void on_api_failed(const Now& now);
  void close_chat(const Now& now, std::string_view agent);
  void close_chats(const Now& now);
  void emit_wait(const Now& now, const Call& call);
  SpanContext parent_of(const Now& now) const;
  std::int64_t& step_of(std::string_view agent);
  Mark turn_anchor() const { return turn_ ? turn_->anchor : last_; }
  Mark anchor_mark() const;

  Mark last_;  // of the last event
  std::int64_t last_ms_ = 0;
  std::optional<Turn> turn_;  // until the next one begins: results may follow its end
  std::map<std::string, Call, std::less<>> calls_;
  std::map<std::string, Agent, std::less<>> agents_;        // by call
  std::map<std::string, Chat, std::less<>> chats_;          // by agent
  std::map<std::string, std::int64_t, std::less<>> steps_;  // by agent: when the model got its last input
  std::size_t input_bytes_ = 0;                             // of the open calls
  std::uint64_t orders_ = 0, dropped_ = 0;
};

/// The `gen_ai.provider.name` of a model, by its name; empty: unknown.
std::string_view provider_of(std::string_view model);

/// A wait that only the session's status shows. `host`, `session` and `since` identify it.
struct StatusWait {
  std::string host, session, request, reason, source;  // `request`: empty: unknown
  std::int64_t since_ms = 0;
  std::optional<SpanContext> turn;  // that was open when it began
};
Span wait_span(const StatusWait& wait, std::int64_t end_ms);

}  // namespace earshot::otlp
