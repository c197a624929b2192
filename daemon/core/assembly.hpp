// What every agent program's records have in common once they are read: turns, calls, subagents, todo lists
// and usage. Emits the events of a stream and keeps its state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "base/text_filter.hpp"
#include "core/event.hpp"
#include "core/record.hpp"
#include "core/stream_state.hpp"
#include "core/type_counts.hpp"

namespace earshot {

class Assembly {
 public:
  static constexpr std::size_t open_calls_max = 65536;  // beyond, the oldest is forgotten without an end
  static constexpr std::size_t agents_max = 256;        // running at once; beyond, the oldest is forgotten
  static constexpr std::size_t todo_lists_max = 256;    // one per agent; beyond, further ones are not kept

  struct Call {
    std::string call, tool, agent, started;
    std::int64_t started_ms = 0;
    std::vector<Todo> todos;  // the list that an ok result sets
    std::string description;  // of the subagent that the call starts
    bool background = false;  // the subagent continues after the call's result
    bool asks = false;        // it waits for the user's answer
  };

  /// `filter` may be null; it outlives this object and redacts the previews in state() before they are cut.
  Assembly(std::string own_agent, std::string_view program, std::uint64_t key, const TextFilter* filter,
           RecordCounts& counts);

  // ---- Lines and records

  /// Starts a line that ends at `end`; event indices restart at 1.
  void begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink);
  /// Starts a record of the line. A `time` that is not RFC 3339 is absent. Its events belong to the own
  /// chain.
  void begin_record(std::string_view time);
  /// The agent of the following events of this record; empty: the own chain.
  void set_agent(std::string_view agent) { agent_ = agent; }
  /// The agent of the whole stream; for transcripts whose records name it.
  void set_own_agent(std::string_view agent);
  void set_dialect(std::string_view dialect) { state_.dialect = dialect; }
  void skip_lines(const event::LineSkipped& lines) { emit(lines); }
  /// Counts a record; `unknown`: the program has no rule for its type.
  void count_type(std::string_view type, bool unknown) { types_.add(type, unknown); }
  /// False for an id that a record of this stream had before; the record is counted as a duplicate.
  bool is_new(std::string_view id);
  /// The name of a record without an id: `@` and its line's offset; `.1` for the second record of the line.
  std::string record_name() const;

  /// `body`: one of the alternatives of EventBody, which is built where the event is.
  template <class Body>
  void emit(Body&& body) {
    // Member by member: a copy of all members together waits for the one that was just written.
    last_event_ = {cursor_.offset, ++index_, cursor_.prefix_hash};
    ++counts_.events;
    if constexpr (std::is_same_v<std::remove_cvref_t<Body>, event::LimitsUpdated>)
      state_.set_limits(body, time_);
    static_assert(!std::is_same_v<std::remove_cvref_t<Body>, EventBody>);
    const Event event({cursor_.offset, index_, cursor_.prefix_hash}, time_, time_ms_, state_.turn, agent_,
                      std::forward<Body>(body));
    sink_->on_event(event);
  }

  // ---- Session

  bool started() const { return state_.started; }
  /// Emits session.started with `fields`; program, dialect and what update_session() set before are added.
  void start_session(event::SessionStarted fields);
  /// Emits session.updated with the fields that have another value than before; nothing before the start.
  void update_session(const event::SessionUpdated& fields);

  // ---- Turns

  /// Opens the next turn. `began`: when it was announced, if earlier than this record.
  void start_turn(OptionalText prompt, std::string_view origin, std::string_view began = {});
  /// `end_ms`: for a duration that is not recorded; 0: unknown.
  void finish_turn(std::string_view outcome, std::string_view stop_reason = {}, bool inferred = false,
                   std::optional<std::int64_t> duration_ms = std::nullopt, std::int64_t end_ms = 0);

  // ---- Content

  void add_message(std::string_view role, std::string_view kind, OptionalText text,
                   std::string_view message = {}, std::string_view model = {},
                   std::optional<Media> media = std::nullopt);

  /// Null for an id that was invoked before: there is no event. Else valid until the next call is made.
  Call* invoke(std::string_view call, std::string_view tool, std::string_view input_json,
               std::string_view message = {});
  /// An open call; null: it is finished or unknown.
  const Call* open_call(std::string_view call) const;
  Call* open_call(std::string_view call) { return const_cast<Call*>(std::as_const(*this).open_call(call)); }
  bool was_invoked(std::string_view call) const { return calls_.find(hash(call, HashKind::call)) != nullptr; }
  /// Emits tool.finished, with the duration since the call if the event has none; a call that is not open is
  /// counted as a late result. Returns the call.
  std::optional<Call> finish_call(std::string_view call, event::ToolFinished finished);
  /// Finishes the open calls, or those of one agent (empty: the own chain), in order of invocation.
  /// `finished` is called after the event of each and may emit others.
  void close_calls(std::string_view outcome, const std::function<void(const Call&)>& finished = {},
                   std::optional<std::string_view> agent = {});
  /// The call waits for the user's answer until it finishes. Ignored for calls of other agents.
  void wait_for_answer(Call& call);
  /// Another wait for the user, and its end; `since_ms`: its begin. `is_counted`: false if it is not known
  /// when it ended.
  void begin_wait() { state_.times.begin_wait(time_ms_); }
  void end_wait(std::int64_t since_ms, bool is_counted) {
    state_.times.end_wait(since_ms, is_counted ? time_ms_ : 0);
  }
  std::size_t open_calls() const { return open_calls_.size(); }
  std::size_t own_open_calls() const { return own_open_calls_; }

  void start_agent(const event::AgentStarted& started);
  void finish_agent(const event::AgentFinished& finished);
  /// No event if the list is as before.
  void set_todos(std::vector<Todo> todos, std::string_view source);

  // ---- State

  const StreamState& state() const;
  const StreamState& raw_state() const { return state_; }  // its previews are neither redacted nor cut
  StreamState& mutable_state() { return state_; }          // for usage, context and cost
  RecordCounts& counts() { return counts_; }
  std::uint64_t& counts_duplicates();  // records that were read before
  std::uint32_t index() const { return index_; }
  Cursor last_event() const { return last_event_; }
  std::int64_t time_ms() const { return time_ms_; }
  std::string_view time() const { return time_; }
  std::uint64_t line_offset() const { return line_offset_; }
  bool is_own_chain() const { return agent_ == own_agent_; }
  const std::string& own_agent() const { return own_agent_; }
  const std::string& recorded_session() const { return recorded_session_; }
  void set_recorded_session(std::string_view session) { recorded_session_ = session; }
  void fit_memory() { records_.fit(), calls_.fit(); }
  std::size_t memory_bytes() const;

 private:
  enum class HashKind : std::uint64_t { record, call };  // seeds
  enum Due : unsigned { prompt_preview = 1, text_preview = 2, input_preview = 4 };

  std::uint64_t hash(std::string_view text, HashKind kind) const;
  std::string_view preview_source(std::string_view text) const;
  void set_input(OpenTool& tool, std::string_view json) const;
  void list_tool(const Call& call, std::string_view input_json);
  void emit_finished(Call& call, event::ToolFinished finished);

  std::string own_agent_;
  const std::uint64_t key_;
  const TextFilter* const filter_;
  RecordCounts& counts_;
  TypeCounts types_;
  mutable StreamState state_;
  mutable unsigned pending_previews_ = 0;
  std::string recorded_session_;

  HashSet records_;
  HashMap<std::uint32_t> calls_;              // of every call id: its number in open_calls_; 0: finished
  std::map<std::uint32_t, Call> open_calls_;  // in order of invocation
  std::uint32_t call_count_ = 0;
  std::size_t own_open_calls_ = 0;
  std::map<std::string, std::vector<Todo>, std::less<>> todo_lists_;  // by agent

  std::uint32_t turn_tools_ = 0;
  Usage turn_usage_;  // totals at the start of the turn

  // The current line and record.
  EventSink* sink_ = nullptr;
  Cursor cursor_;
  Cursor last_event_ = begin_cursor;
  std::uint64_t line_offset_ = 0;
  std::uint32_t index_ = 0, records_in_line_ = 0;
  std::string_view time_, agent_;
  std::int64_t time_ms_ = 0;
};

/// Reads the records of one transcript of one program, and keeps what their meaning depends on. Total:
/// accepts any record in any order, never throws for content.
class RecordAssembler {
 public:
  virtual ~RecordAssembler() = default;
  /// `json` is an object; `raw`: as in Dialect::read().
  virtual void read(const Value& json, std::string_view raw, Assembly& to) = 0;
  virtual std::size_t memory_bytes() const { return 0; }
};

}  // namespace earshot
