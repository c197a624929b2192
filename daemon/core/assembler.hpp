// What the records of every agent program have in common once they are read: turns, calls, subagents, todo
// lists and usage. Emits the events of a stream and keeps its state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "base/text.hpp"
#include "base/text_filter.hpp"
#include "core/event.hpp"
#include "core/record_counts.hpp"
#include "core/stream_state.hpp"
#include "core/type_counts.hpp"

namespace earshot {

/// A record with an id.
struct RecordPlace {
  std::uint64_t id = 0;        // its hash; with its time, if it is short
  std::uint64_t line_end = 0;  // offset
};

class Assembler {
 public:
  // Limits of what is kept of one transcript, far above what sessions have. RecordCounts::dropped counts what
  // is dropped at them. They depend on the records alone, so that a second read drops the same. Not limited
  // are hashes of ids: less than 200 bytes per record.
  // Open calls: beyond either limit the oldest is abandoned, but never the newest.
  static constexpr std::size_t open_calls_max = 4096, open_call_bytes_max = 4 << 20;
  // Running subagents: beyond, the oldest is dropped without an end.
  static constexpr std::size_t agents_max = 256;
  // Requests that are not answered, and tasks in the background: beyond, the oldest is dropped.
  static constexpr std::size_t requests_max = 256, tasks_max = 1024;
  // Items and bytes of a todo list: its end is dropped.
  static constexpr std::size_t todos_max = 1024, todo_list_bytes_max = 1 << 20;
  // Todo lists of all agents but the own chain: beyond, a list is emitted, but not kept for later updates.
  static constexpr std::size_t todo_lists_bytes_max = 8 << 20;
  // A title, description or other text that is kept; its end is dropped.
  static constexpr std::size_t text_bytes_max = 16 << 10;
  // Ids of calls, agents and requests: longer ids are cut, which is not counted.
  static constexpr std::size_t id_bytes_max = 1024;
  // A record's time as it is written: a longer one is left out.
  static constexpr std::size_t time_bytes_max = 64;
  // Entries of a table that a program's reader keeps by id: beyond, the oldest is dropped.
  static constexpr std::size_t names_max = 1024;

  struct Call {
    std::string call, tool;
    std::uint8_t purpose = 0;  // of the reader's own enumeration
    std::string_view asks;     // the kind of its request, a constant: question, plan; empty: none
    bool background = false;   // the subagent continues after the call's result
    std::vector<Todo> todos;   // the list that an ok result sets
    std::string description;   // of the subagent that the call starts
    // Set by invoke().
    std::string agent, started;
    std::int64_t started_ms = 0;

    std::size_t bytes() const;  // as counted for open_call_bytes_max
  };
  /// Called after the end of a call was emitted; may emit others.
  using CallClosed = std::function<void(const Call&)>;

  /// Kinds of ids that are remembered. The same id may be one of each.
  enum class IdOf : std::uint64_t { record, message, request, unnamed_message, task, call, turn, compaction };

  /// `filter` may be null; it outlives this object and redacts the previews in state() before they are cut.
  Assembler(std::string own_agent, std::string_view program, std::uint64_t key, const TextFilter* filter);
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  // ---- Lines and records

  /// Starts a line that ends at `end`; event indices restart at 1.
  void begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink);
  /// Starts a record of the line. Its events belong to the own chain. `time`: RFC 3339; empty: none.
  void begin_record(std::string_view time, std::int64_t time_ms);
  /// The same. A time that is not RFC 3339 is absent, any other is the stream's last activity.
  void begin_record(std::string_view time);
  /// The record is the stream's last activity, unless its time is older.
  void note_activity();
  /// The agent of the following events of this record; empty: the own chain of a session.
  void set_agent(std::string_view agent) {
    agent_ = agent;
    is_own_chain_ = agent_ == own_agent_;
  }
  /// The agent of the whole stream; for transcripts with records that name it.
  void set_own_agent(std::string_view agent);
  void set_dialect(std::string_view dialect) { state_.dialect = dialect; }
  void skip_lines(const event::LineSkipped& lines) {
    if (!state_.warmup) emit(lines);
  }
  /// Counts a record; `unknown`: the program has no rule for its type.
  void count_type(std::string_view type, bool unknown) { types_.add(type, unknown); }
  /// False for a record whose id an earlier one of this stream had; it is counted as a duplicate.
  bool is_new(std::string_view id, IdOf kind = IdOf::record) {
    const std::uint64_t key = hash(id, kind);
    const bool is_new = ids_.insert(key);
    if (kind == IdOf::record) note_record(id, key);
    counts_.duplicates += !is_new;
    return is_new;
  }
  /// Returns the same, and counts nothing.
  bool remember(std::string_view id, IdOf kind) { return ids_.insert(hash(id, kind)); }
  bool is_remembered(std::string_view id, IdOf kind = IdOf::record) const {
    return ids_.contains(hash(id, kind));
  }
  bool has_records() const { return has_records_; }
  bool has_record(const RecordPlace& record) const { return ids_.contains(record.id); }
  /// Adds each record with an id from now on; null: no more.
  void list_records(std::vector<RecordPlace>* records) { records_ = records; }
  /// The name of a record without an id: `@` and its line's offset; `.1` for the second record of the line.
  std::string record_name() const;

  /// `body`: one of the alternatives of EventBody, which is built where the event is.
  template <class Body>
  void emit(Body&& body) {
    // Member by member: a copy of all members together waits for the one that was just written.
    last_event_ = {cursor_.offset, ++index_, cursor_.prefix_hash};
    ++counts_.events;
    state_.has_events = true;
    if constexpr (std::is_same_v<std::remove_cvref_t<Body>, event::LimitsUpdated>)
      state_.set_limits(body, time_);
    if constexpr (std::is_same_v<std::remove_cvref_t<Body>, event::CompactionFinished>)
      if (is_own_chain_) state_.compact(body);
    static_assert(!std::is_same_v<std::remove_cvref_t<Body>, EventBody>);
    const Event event({cursor_.offset, index_, cursor_.prefix_hash}, time_, time_ms_, state_.turn, agent_,
                      std::forward<Body>(body));
    sink_->on_event(event);
  }
  /// Emits an event of another daemon as it is. The caller applies it to mutable_state().
  void emit_relayed(EventBody body, const RelayedEvent& relayed);

  // ---- Session

  bool started() const { return state_.started; }
  /// Emits session.started with `fields`; program, dialect and what update_session() set before are added.
  void start_session(event::SessionStarted fields);
  /// Emits session.updated with the fields that have another value than before; nothing before the start.
  /// An empty field is not known.
  void update_session(event::SessionUpdated fields);

  // ---- Turns

  /// Opens the next turn. `began`: when it was announced, if earlier than this record. `is_continued`: it
  /// goes on with what the last prompt of a person began, whatever its origin.
  void start_turn(OptionalText prompt, std::string_view origin, std::string_view began = {},
                  bool is_continued = false);
  /// `end_ms`: for a duration that is not recorded; 0: unknown.
  void finish_turn(std::string_view outcome, std::string_view stop_reason = {}, bool inferred = false,
                   std::optional<std::int64_t> duration_ms = std::nullopt, std::int64_t end_ms = 0);

  // ---- Content

  void add_message(std::string_view role, std::string_view kind, OptionalText text,
                   std::string_view message = {}, std::string_view model = {},
                   std::optional<Media> media = std::nullopt);

  // ---- Calls

  /// Opens a call. False for an id that was invoked before: there is no event. Afterwards the reader starts
  /// the call's subagent, if it has one, and calls abandon_oldest_calls().
  bool invoke(Call call, const Json& input, std::string_view message = {});
  /// Emits a call after its result.
  void invoke_finished(std::string_view call, std::string_view tool, const Json& input,
                       std::string_view message);
  /// Abandons the oldest calls beyond the limits.
  void abandon_oldest_calls(const CallClosed& closed = {});
  /// An open call, valid until the next call is made or finished; null: it is finished or unknown.
  const Call* open_call(std::string_view call) const;
  Call* open_call(std::string_view call) { return const_cast<Call*>(std::as_const(*this).open_call(call)); }
  /// The call of this agent that was made last and is open; null: none.
  const Call* last_open_call(std::string_view agent) const;
  /// True for calls that were made, and those that finish_unknown_call() finished.
  bool was_invoked(std::string_view call) const { return call_numbers_.contains(hash_of_call(call)); }
  /// Emits tool.finished, with the duration since the call if the event has none. Returns the call. Absent
  /// for one that is not open: it is counted as a late result.
  std::optional<Call> finish_call(std::string_view call, event::ToolFinished finished);
  /// Emits the end of a call that was not read yet. False for a call that was, and one without an id: it is
  /// counted as a late result.
  bool finish_unknown_call(std::string_view call, event::ToolFinished finished);
  /// Finishes the open calls, or those of one agent (empty: the own chain of a session), in order of
  /// invocation.
  void close_calls(std::string_view outcome, const CallClosed& closed = {},
                   std::optional<std::string_view> agent = {});
  /// The program reports that an open call began only now.
  void restart_call(std::string_view call);
  std::size_t open_calls() const { return open_calls_.size(); }
  std::size_t own_open_calls() const { return own_open_calls_; }

  // ---- Requests and background tasks

  /// Adds a request of the current agent that is no call: `id`, `kind`, `call` and `subject` are given. It
  /// replaces one with the same id.
  void ask(OpenRequest request);
  /// The same, after the end of a turn: the time until the next turn is a wait.
  void ask_after_turn(OpenRequest request);
  /// The own chain's turn failed, and the next one will, until the user signs in. Ends with the next turn.
  void ask_to_sign_in(std::string_view error);
  /// Ends the requests for which `matches` is true. `is_counted`: false if it is not known when they ended.
  template <class Matches>
  void answer(bool is_counted, const Matches& matches) {
    std::erase_if(state_.requests, [&](const OpenRequest& request) {
      if (!matches(request)) return false;
      if (request.is_timed) state_.times.end_wait(request.started_ms, is_counted ? time_ms_ : 0);
      return true;
    });
  }
  /// Adds a task that goes on after the result of `call`. One without an id is ignored.
  void start_task(std::string_view id, std::string_view call);
  /// The task, no longer in state(); absent: none.
  std::optional<BackgroundTask> end_task(std::string_view id);
  /// The same, of the task that this call left behind.
  std::optional<BackgroundTask> end_task_of(std::string_view call);

  // ---- Subagents and todo lists

  /// `is_background`: it is known by now that the agent continues after its call.
  void start_agent(const event::AgentStarted& started, bool is_background);
  void finish_agent(const event::AgentFinished& finished);
  /// Adds to the running agents in state(), without an event.
  void add_agent(RunningAgent agent);
  /// The running agent that this call started; null: none.
  RunningAgent* running_agent(std::string_view call);
  /// The same, no longer in state().
  std::optional<RunningAgent> take_agent(std::string_view call);
  /// The list of the current agent.
  const std::vector<Todo>& todos() const;
  /// How many items of a list are kept; counts a list that is cut.
  std::size_t count_kept(std::span<const Todo> todos);
  /// No event if the list is as before. A field that an item lacks is that of the item with its id before.
  void set_todos(std::vector<Todo> todos, std::string_view source);

  // ---- Usage

  struct RequestUsage {
    std::uint64_t id = 0;             // a hash, the same in every copy of the request; 0: it has no id
    std::string_view message, model;  // as in usage.updated
    std::string_view counted_model;   // whose sums grow
    Usage used;
    std::optional<double> usd;
    bool is_context = false;  // its input is the own chain's context
  };
  static constexpr std::size_t short_id_bytes = 16;  // shorter ids are unique in their session only
  /// For RequestUsage::id: that of the current record, which is unique only with its time if it is short.
  std::uint64_t request_id(std::string_view record) const;
  /// Adds what a request used to the totals, and emits usage.updated.
  void account(const RequestUsage& request);
  /// The same for a request whose records repeat its counts, and may raise them: no event for what was
  /// counted before.
  void account_once(const RequestUsage& request);
  /// Emits usage.updated with the totals in mutable_state().
  void emit_totals() { emit(event::UsageUpdated{{}, {}, std::nullopt, state_.usage, state_.cost_usd}); }

  // ---- State

  const StreamState& state() const {
    if (pending_previews_) prepare_state();
    return state_;
  }
  const StreamState& raw_state() const { return state_; }  // its previews are neither redacted nor cut
  StreamState& mutable_state() { return state_; }
  RecordCounts& counts() { return counts_; }
  const RecordCounts& counts() const { return counts_; }
  std::uint32_t index() const { return index_; }  // events of the current line so far
  Cursor last_event() const { return last_event_; }
  std::int64_t time_ms() const { return time_ms_; }
  std::string_view time() const { return time_; }
  std::uint64_t line_offset() const { return line_offset_; }
  bool is_own_chain() const { return is_own_chain_; }
  const std::string& own_agent() const { return own_agent_; }
  const std::string& recorded_session() const { return recorded_session_; }
  void set_recorded_session(std::string_view session) { recorded_session_ = short_id(session); }
  void fit_memory() { ids_.fit(), call_numbers_.fit(), state_.used.fit(); }
  std::size_t memory_bytes() const;

  static std::string_view short_id(std::string_view id) { return cut_utf8(id, id_bytes_max); }
  /// At most text_bytes_max bytes; counts what is cut.
  std::string_view short_text(std::string_view text) {
    counts_.dropped += text.size() > text_bytes_max;
    return cut_utf8(text, text_bytes_max);
  }
  /// The beginning that a preview in state() depends on.
  std::string_view preview_source(std::string_view text) const;
  /// Previews in mutable_state() were set to the beginnings of texts.
  void set_previews_raw() { pending_previews_ |= prompt_preview | text_preview; }
  void list_tool(OpenTool tool, const Json& input);
  std::uint64_t hash(std::string_view text, IdOf kind) const;
  std::uint64_t with_time(std::uint64_t id) const;
  void note_record(std::string_view id, std::uint64_t hash);

 private:
  enum Due : unsigned { prompt_preview = 1, text_preview = 2, input_preview = 4 };

  std::uint64_t hash_of_call(std::string_view call) const { return hash(short_id(call), IdOf::call); }
  void emit_finished(const Call& call, event::ToolFinished finished);
  void add_request(OpenRequest request);
  StreamUsage::Grown add_usage(const RequestUsage& request);
  std::optional<BackgroundTask> take_task(const std::function<bool(const BackgroundTask&)>& is_it);
  Call take_call(std::uint32_t& number);  // of call_numbers_
  void set_input(OpenTool& tool, const Json& input) const;
  void prepare_state() const;  // redacts and cuts the previews

  std::string own_agent_;
  const std::uint64_t key_;
  const TextFilter* const filter_;
  // Previews are prepared on demand: most are replaced before they are read.
  mutable StreamState state_;
  mutable unsigned pending_previews_ = 0;
  RecordCounts counts_;
  TypeCounts types_{counts_};
  std::string recorded_session_;

  HashSet ids_;
  std::vector<RecordPlace>* records_ = nullptr;
  bool has_records_ = false;                  // with ids
  HashMap<std::uint32_t> call_numbers_;       // of every call id: its number in open_calls_; 0: finished
  std::map<std::uint32_t, Call> open_calls_;  // in order of invocation
  std::uint32_t call_count_ = 0;
  std::size_t own_open_calls_ = 0, open_call_bytes_ = 0;
  Rare<std::map<std::string, std::vector<Todo>, std::less<>>> todo_lists_;  // of other agents
  std::size_t todo_lists_bytes_ = 0;

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
  bool is_own_chain_ = true;
};

}  // namespace earshot
