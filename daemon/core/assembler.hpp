// Records → events. Total: accepts any record in any order, never throws for content, never follows parent
// chains.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "base/text.hpp"
#include "base/text_filter.hpp"
#include "core/event.hpp"
#include "core/record.hpp"
#include "core/stream_state.hpp"
#include "core/transcript.hpp"
#include "core/type_counts.hpp"

namespace earshot {

class Assembler {
 public:
  // Limits of what is kept of one transcript, far above what sessions have. RecordCounts::dropped counts what
  // is dropped at them. They depend on the records alone, so that a second read drops the same. Not limited
  // are the hashes of uuids, messages, calls and tasks: less than 200 bytes per record.
  // Open calls: beyond either limit the oldest is abandoned, but never the newest.
  static constexpr std::size_t open_calls_max = 4096, open_call_bytes_max = 4 << 20;
  // Running subagents: beyond, the oldest is dropped without an end.
  static constexpr std::size_t agents_max = 256;
  // Ends of background agents read before their launch: beyond, the oldest is dropped.
  static constexpr std::size_t early_reports_max = 256;
  // Results read before their call: beyond, the new one is emitted, but not kept for the subagent's end.
  static constexpr std::size_t early_results_max = 256;
  // Inline sidechains: beyond, new ones join the last one.
  static constexpr std::size_t chains_max = 4096;
  // Items and bytes of a todo list: its end is dropped.
  static constexpr std::size_t todos_max = 1024, todo_list_bytes_max = 1 << 20;
  // Todo lists of all sidechains: beyond, a list is emitted, but not kept for later updates.
  static constexpr std::size_t todo_lists_bytes_max = 8 << 20;
  // Summaries waiting for their leaf: beyond, new ones are dropped.
  static constexpr std::size_t titles_max = 64;
  // A title, description or other text that is kept; its end is dropped.
  static constexpr std::size_t text_bytes_max = 16 << 10;
  // Ids of calls, agents and sidechains: longer ids are cut, which is not counted.
  static constexpr std::size_t id_bytes_max = 1024;

  /// `filter` may be null; it outlives this object and redacts the previews in state() before they are cut.
  Assembler(std::string own_agent, std::string_view program, std::uint64_t key, const TextFilter* filter);

  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  /// Starts a line that ends at `end`; event indices restart at 1.
  void begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink);
  void skip_lines(const event::LineSkipped& lines);
  void record(const Record& record);
  /// Counts a record that was not read: no dialect is known yet, or it is not an object.
  void count_type(std::string_view type, bool unknown) { types_.add(type, unknown); }
  void set_dialect(std::string_view dialect) { state_.dialect = dialect; }

  std::uint32_t index() const { return index_; }  // events of the current line so far
  Cursor last_event() const { return last_event_; }
  const StreamState& state() const {
    if (pending_previews_) prepare_state();
    return state_;
  }
  const StreamState& raw_state() const { return state_; }  // its previews are neither redacted nor cut
  RecordCounts& counts() { return counts_; }
  const RecordCounts& counts() const { return counts_; }
  const std::string& recorded_session() const { return recorded_session_; }
  /// The agent of the whole stream, by its file or, for relayed events, by the events; empty: a main stream.
  const std::string& recorded_agent() const { return own_agent_.empty() ? recorded_agent_ : own_agent_; }
  void fit_memory() { uuids_.fit(), call_numbers_.fit(), usage_by_message_.fit(); }
  std::size_t memory_bytes() const;

 private:
  struct Call {
    std::string call, tool, started;
    std::int64_t started_ms = 0;
    std::uint32_t chain = own_chain;
    fact::Invocation::Purpose purpose = fact::Invocation::Purpose::plain;
    bool asks = false;
    std::vector<Todo> todos;
    std::size_t bytes() const;  // as counted for open_call_bytes_max
  };
  struct Chain {
    std::string agent;
    std::vector<Todo> todos;
    bool user_record_seen = false;
    bool warmup = false;  // internal; emits no events
  };
  struct Report {  // the end of a background agent, read before its launch
    std::string outcome;
    std::optional<std::int64_t> duration_ms;
    std::optional<std::uint64_t> tokens, tools;
  };
  struct EarlyResult {  // a subagent's result, read before its call
    Report report;
    std::string subagent;
    bool runs_in_background = false;
  };
  struct RelayedStateUpdate;
  struct Tokens {  // of one message; larger counts are in large_usage_
    std::uint32_t input = 0, output = 0, cache_read = 0, cache_write = 0;
  };
  enum class Last { nothing, text, call, result, other };
  enum class HashKind : std::uint64_t { uuid = 0, message, request, record, task, call };  // seeds
  static constexpr std::uint32_t own_chain = 0;

  // assembler.cpp
  bool is_new_record();
  std::uint32_t find_chain();
  bool is_warmup_record();
  void emit_session_changes();
  void update_last_block();
  void start_turn(OptionalText prompt, std::string_view origin);
  void finish_turn(std::string_view outcome, bool inferred, std::string_view stop_reason,
                   std::optional<std::int64_t> duration_ms, std::int64_t end_ms);
  void interrupt();
  /// `body`: one of the alternatives of EventBody, which is built where the event is.
  template <class Body>
  void emit(Body&& body) {
    // Member by member: a copy of all members together waits for the one that was just written.
    last_event_ = {cursor_.offset, ++index_, cursor_.prefix_hash};
    ++counts_.events;
    const Event event({cursor_.offset, index_, cursor_.prefix_hash},
                      record_ ? record_->time : std::string_view{}, record_ ? record_->time_ms : 0,
                      state_.turn,
                      record_ ? std::string_view(chains_[chain_].agent) : std::string_view(own_agent_),
                      std::forward<Body>(body));
    sink_->on_event(event);
  }
  bool is_own_chain() const { return chain_ == own_chain; }
  std::uint64_t hash(std::string_view text, HashKind kind = HashKind::uuid) const;
  std::string_view preview_source(std::string_view text) const;  // the bytes that a preview depends on
  static std::string_view short_id(std::string_view id) { return cut_utf8(id, id_bytes_max); }
  /// At most text_bytes_max bytes; counts what is cut.
  std::string_view short_text(std::string_view text);
  void update(std::string& field, std::string_view value, OptionalText& changed);
  void set_input(OpenTool& tool, const Json& input) const;
  void prepare_state() const;  // redacts and cuts the previews

  void apply(const fact::Prompt& prompt);
  void apply(const fact::MessageBlock& block);
  void apply(const fact::Command& command);
  void apply(const fact::Injected& injected);
  void apply(const fact::ScheduledFire&);
  void apply(const fact::Absorbed& absorbed);
  void apply(const fact::Invocation& invocation);
  void apply(const fact::Result& result);
  void apply(const fact::MessageUsage& used);
  void apply(const fact::Stop& stop);
  void apply(const fact::TurnEnd& end);
  void apply(const fact::Interrupted&);
  void apply(const fact::Compaction& compaction);
  void apply(const fact::Summary& summary);
  void apply(const fact::Notification& notification);
  void apply(const fact::TodoList& list);
  void apply(const fact::AgentLink& link);
  void apply(const fact::Cost& cost);
  void apply(const fact::Queue& queue) { emit(queue); }
  void apply(const fact::ApiError& error) { emit(error); }
  void apply(const fact::Files& files) { emit(files); }
  void apply(const fact::Title&) {}  // handled by emit_session_changes
  void apply(const fact::Mode&) {}
  void apply(const fact::PermissionMode&) {}

  void apply_relayed(const RelayedEvent& relayed);  // assembler_relayed.cpp

  // assembler_tools.cpp: calls, subagents, todos
  Call* open_call(std::string_view id);
  Call* find_call_by_position();
  void close_call(Call call, event::ToolFinished finished, const fact::Result* result);
  void close_calls(std::string_view outcome, bool every_chain);
  void abandon_oldest_calls();
  void add_agent(RunningAgent agent);
  void finish_agent(std::string_view call, event::AgentFinished finished);
  void finish_reported_agent(std::string_view call, const std::string& subagent);
  static event::AgentFinished agent_end(const Report& report);
  void apply_todos(const Call& call, const fact::Result& result);
  void set_todos(std::vector<Todo> todos, std::string_view source);

  const std::string own_agent_;
  const std::uint64_t key_;
  const TextFilter* const filter_;
  // Previews are prepared on demand: most are replaced before they are read.
  mutable StreamState state_;
  enum Due : unsigned { prompt_preview = 1, text_preview = 2, input_preview = 4 };
  mutable unsigned pending_previews_ = 0;
  RecordCounts counts_;
  TypeCounts types_{counts_};
  std::string recorded_session_;
  std::string recorded_agent_;  // of relayed events

  HashSet uuids_;
  Rare<HashMap<std::uint32_t>> sidechain_of_uuid_;  // of inline sidechains only
  std::vector<Chain> chains_;                       // [0] is the own chain
  std::uint32_t last_sidechain_ = own_chain;

  std::string titles_[4];  // by fact::Title::Kind, which is also the precedence
  Rare<std::vector<std::pair<std::uint64_t, std::string>>> pending_titles_;  // by the leaf's hash
  bool only_summaries_ = true;
  bool has_turn_positions_ = false;

  HashMap<std::uint32_t> call_numbers_;       // of every call id: its number in open_calls_; 0: finished
  std::map<std::uint32_t, Call> open_calls_;  // in order of invocation
  Rare<std::unordered_map<std::uint64_t, EarlyResult>> early_results_;  // by call id
  std::uint32_t call_count_ = 0;
  std::uint32_t own_open_calls_ = 0;
  std::size_t open_call_bytes_ = 0;
  std::size_t todo_lists_bytes_ = 0;  // of the sidechains

  Last last_ = Last::nothing;
  std::int64_t last_ms_ = 0;  // of the turn's last user or assistant record
  std::uint32_t turn_tools_ = 0;
  Usage turn_usage_;              // totals at the start of the turn
  std::string finished_message_;  // later blocks of it belong to the finished turn
  std::string message_;           // the own chain's last message
  bool hook_feedback_ = false;
  std::string command_uuid_, command_, scheduled_fire_uuid_;
  bool awaits_summary_ = false;  // a compaction finished and its summary has not been read

  HashMap<Tokens> usage_by_message_;
  Rare<HashMap<Usage>> large_usage_;
  Rare<HashMap<double>> cost_by_message_;
  Rare<HashSet> finished_tasks_;
  Rare<HashMap<std::uint32_t>> resume_counts_;
  Rare<BoundedMap<Report, early_reports_max>> early_reports_;  // by task

  // The current line and record.
  EventSink* sink_ = nullptr;
  Cursor cursor_;
  std::uint64_t line_offset_ = 0;
  std::uint32_t index_ = 0;
  Cursor last_event_ = begin_cursor;
  const Record* record_ = nullptr;
  std::uint32_t chain_ = own_chain;
  std::string record_name_;  // for a record without a uuid: `@` and the offset of its line
};

}  // namespace earshot
