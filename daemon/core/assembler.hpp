// What was said → events. Total: accepts any record, in any order; never throws for content, never walks a
// parent chain.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash_map.hpp"
#include "base/text_filter.hpp"
#include "core/event.hpp"
#include "core/record.hpp"
#include "core/stream_state.hpp"
#include "core/transcript.hpp"

namespace earshot {

class Assembler {
 public:
  static constexpr std::size_t agents_max =
      256;  // running at once; beyond, the oldest is forgotten: its end is not told
  static constexpr std::size_t early_max =
      256;  // reports read before their launch; beyond, any one is forgotten
  static constexpr std::size_t chains_max =
      65536;  // inline sidechains; beyond, new ones are told as the last one
  static constexpr std::size_t titles_max =
      64;  // summaries that wait for their leaf; beyond, new ones are dropped
  static constexpr std::size_t type_names_max =
      512;  // distinct types that are counted apart; beyond, as "(other)"

  /// The filter, if there is one, outlives this object: what the state shows cut is clean before it is cut.
  Assembler(std::string own_agent, std::string_view program, std::uint64_t key, const TextFilter* filter);

  /// Events from here on belong to the line that ends at `end` (its index is ignored: counting begins anew).
  void begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink);
  void skipped(const event::LineSkipped& lines);
  void record(const Record& record);
  /// A record that no dialect could read yet, or that is no object.
  void count_type(std::string_view type, bool unknown);
  void set_dialect(std::string_view dialect) { state_.dialect = dialect; }

  std::uint32_t index() const { return index_; }  // events of the current line so far
  Cursor last_event() const { return last_event_; }
  const StreamState& state() const {
    if (state_due_) settle();
    return state_;
  }
  RecordCounts& counts() { return counts_; }
  const RecordCounts& counts() const { return counts_; }
  const std::string& recorded_session() const { return session_; }
  std::size_t memory_bytes() const;

 private:
  struct Call {
    std::string call, tool, started;
    std::int64_t started_ms = 0;
    std::uint32_t chain = own_chain;
    fact::Invocation::Purpose purpose = fact::Invocation::Purpose::plain;
    std::vector<Todo> todos;
  };
  struct Chain {
    std::string agent;
    std::vector<Todo> todos;
    bool user_record_seen = false;  // a user record of it was read
    bool warmup = false;            // internal: dropped
  };
  struct Report {  // a background agent's end that was read before its launch
    std::string outcome;
    std::optional<std::int64_t> duration_ms;
    std::optional<std::uint64_t> tokens, tools;
  };
  struct EarlyResult {  // what a subagent's result said before its call was read
    Report report;
    std::string subagent;
    bool runs_in_background = false;  // in the background
  };
  struct RelayedStateUpdate;
  struct Tokens {  // of one message; larger figures stand in large_
    std::uint32_t input = 0, output = 0, cache_read = 0, cache_write = 0;
  };
  enum class Last { nothing, text, call, result, other };
  static constexpr std::uint32_t own_chain = 0;

  // assembler.cpp: the record as a whole, the session, turns
  bool take_uuid();
  std::uint32_t chain_of();
  bool drops_warmup();
  void emit_session_changes();
  void remember_last();
  void start_turn(event::OptionalText prompt, std::string_view origin);
  void finish_turn(std::string_view outcome, bool inferred, std::string_view stop_reason,
                   std::optional<std::int64_t> duration_ms, std::int64_t end_ms);
  void interrupt();
  void emit(EventBody body);
  bool own() const { return chain_ == own_chain; }
  std::uint64_t hash(std::string_view text, std::uint64_t seed = 0) const;
  std::string_view beginning(std::string_view text) const;  // as much as a preview is made of
  void settle() const;                                      // what is written down raw is made what is shown

  // assembler_facts.cpp: one function a fact
  void apply(const fact::Prompt& prompt);
  void apply(const fact::MessageBlock& said);
  void apply(const fact::Command& command);
  void apply(const fact::Injected& injected);
  void apply(const fact::ScheduledFire&);
  void apply(const fact::Absorbed& absorbed);
  void apply(const fact::Invocation& invocation);
  void apply(const fact::Result& result);
  void apply(const fact::MessageUsage& seen);
  void apply(const fact::Stop& stop);
  void apply(const fact::TurnEnd& end);
  void apply(const fact::Interrupted&);
  void apply(const fact::Compaction& compaction);
  void apply(const fact::Summary& summary);
  void apply(const fact::Queue& queue);
  void apply(const fact::Notification& notification);
  void apply(const fact::TodoList& list);
  void apply(const fact::AgentLink& link);
  void apply(const fact::ApiError& error);
  void apply(const fact::Files& files);
  void apply(const fact::Cost& cost);
  void apply(const fact::Title&) {}  // told by emit_session_changes
  void apply(const fact::Mode&) {}
  void apply(const fact::PermissionMode&) {}

  void apply_relayed(const RelayedEvent& relayed);  // assembler_told.cpp

  // assembler_calls.cpp: calls, subagents, todos
  Call* open_call(std::string_view id);
  Call* find_call_by_position();
  void close_call(Call call, event::ToolFinished finished, const fact::Result* result);
  void close_all(std::string_view outcome, bool every_chain);
  void finish_agent(std::string_view call, event::AgentFinished finished);
  void finish_reported_agent(std::string_view call, const std::string& subagent);
  static event::AgentFinished end_of(const Report& report);
  void apply_todos(const Call& call, const fact::Result& result);
  void set_todos(std::vector<Todo> todos, std::string_view source);

  const std::string own_agent_;
  const std::uint64_t key_;
  const TextFilter* const filter_;
  // Previews are made when somebody looks: most are replaced before.
  mutable StreamState state_;
  enum Due : unsigned { prompt_due = 1, text_due = 2, input_due = 4 };
  mutable unsigned state_due_ = 0;
  RecordCounts counts_;
  std::string session_;

  HashSet uuids_;
  HashMap<std::uint32_t> chain_of_uuid_;  // of inline sidechains only
  std::vector<Chain> chains_;             // [0] is the own chain
  std::uint32_t side_seen_last_ = own_chain;

  std::string titles_[4];  // by fact::Title::Kind, which is also the precedence
  std::vector<std::pair<std::uint64_t, std::string>> waiting_titles_;  // by the leaf's hash
  bool summaries_lead_ = true;
  bool has_turn_positions_ = false;

  HashMap<std::uint32_t> calls_;        // every id ever seen: its number in open_, or 0 when it is finished
  std::map<std::uint32_t, Call> open_;  // in order of invocation
  std::unordered_map<std::uint64_t, EarlyResult> early_results_;  // of calls that were not told yet
  std::uint32_t calls_seen_ = 0;
  std::uint32_t own_open_ = 0;

  Last last_ = Last::nothing;
  std::int64_t last_ms_ = 0;  // of the turn's last user or assistant record
  std::uint32_t turn_tools_ = 0;
  Usage turn_usage_;              // the totals when the turn began
  std::string finished_message_;  // later blocks of it belong to the finished turn
  std::string message_;           // the own chain's last message
  bool hook_feedback_ = false;
  std::string command_uuid_, command_, fire_uuid_;
  bool boundary_ = false;  // a compaction was told and its summary is still to come

  HashMap<Tokens> usage_;
  std::unordered_map<std::uint64_t, Usage> large_;
  std::unordered_map<std::uint64_t, double> costs_;
  HashSet finished_tasks_;
  std::unordered_map<std::uint64_t, std::uint32_t> resumed_;
  std::unordered_map<std::string, Report> early_;

  // The line and the record at hand.
  EventSink* sink_ = nullptr;
  Cursor cursor_;
  std::uint64_t line_offset_ = 0;
  std::uint32_t index_ = 0;
  Cursor last_event_ = begin_cursor;
  const Record* record_ = nullptr;
  std::uint32_t chain_ = own_chain;
  std::string name_;  // of a record without a uuid: `@` and its line's offset
};

}  // namespace earshot
