// Facts → events: what the records of a transcript mean after those before them. Never follows parent chains.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agents/claude_code/record.hpp"
#include "base/containers.hpp"
#include "core/record_reader.hpp"

namespace earshot::claude_code {

/// An era of the format.
struct RecordDialect : Dialect {
  void (*read)(const Value& json, Record& out);
};

/// One record after the other, each as its dialect reads it.
class ReadRecords final : public RecordsAhead {
 public:
  void read(std::size_t number, const Value& json, const Dialect& dialect) override {
    if (number >= records_.size()) records_.resize(number + 1);
    records_[number].clear();
    static_cast<const RecordDialect&>(dialect).read(json, records_[number]);
  }
  const Record& operator[](std::size_t number) const { return records_[number]; }

 private:
  std::deque<Record> records_;  // records stay in place: their facts have views into them
};

class Records final : public RecordReader {
 public:
  // Beyond the limits of the Assembler:
  // Ends of background agents read before their launch: beyond, the oldest is dropped.
  static constexpr std::size_t early_reports_max = 256;
  // Results read before their call: beyond, the new one is emitted, but not kept for the subagent's end.
  static constexpr std::size_t early_results_max = 256;
  // Inline sidechains: beyond, new ones join the last one.
  static constexpr std::size_t chains_max = 4096;
  // Summaries waiting for their leaf: beyond, new ones are dropped.
  static constexpr std::size_t titles_max = 64;

  explicit Records(bool reads_internal) : reads_internal_(reads_internal) {}

  void assemble(RecordsAhead& records, std::size_t number, Assembler& to) override {
    read(static_cast<ReadRecords&>(records)[number], to);
  }
  void read(const Record& record, Assembler& to);
  std::size_t memory_bytes() const override;

 private:
  using Purpose = fact::Invocation::Purpose;
  struct Chain {
    std::string agent;
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
  enum class Last { nothing, text, call, result, other };
  static constexpr std::uint32_t own_chain = 0;

  bool is_new_record(Assembler& to);
  std::uint32_t find_chain(Assembler& to);
  bool is_warmup_record(Assembler& to);
  void update_session(Assembler& to);
  void update_titles(Assembler& to);
  void update_last_block(const Assembler& to);
  void start_turn(OptionalText prompt, std::string_view origin, Assembler& to);
  void finish_turn(std::string_view outcome, std::string_view stop_reason,
                   std::optional<std::int64_t> duration_ms, Assembler& to);
  void interrupt(Assembler& to);
  void close_calls(std::string_view outcome, bool every_chain, Assembler& to);
  // For a duration: of the record or, without a time, of the last one with it.
  std::int64_t end_ms() const { return record_->time_ms ? record_->time_ms : last_ms_; }

  bool is_first_end(std::string_view task, std::string_view status, Assembler& to) const;

  void apply(const fact::Prompt& prompt, Assembler& to);
  void apply(const fact::MessageBlock& block, Assembler& to);
  void apply(const fact::Command& command, Assembler& to);
  void apply(const fact::Injected& injected, Assembler& to);
  void apply(const fact::ScheduledFire& fire, Assembler& to);
  void apply(const fact::Absorbed& absorbed, Assembler& to);
  void apply(const fact::Invocation& invocation, Assembler& to);
  void apply(const fact::Result& result, Assembler& to);
  void apply(const fact::MessageUsage& used, Assembler& to);
  void apply(const fact::Stop& stop, Assembler& to);
  void apply(const fact::TurnEnd& end, Assembler& to);
  void apply(const fact::Pending& pending, Assembler& to);
  void apply(const fact::AgentsKilled&, Assembler& to);
  void apply(const fact::Continued& continued, Assembler& to);
  void apply(const fact::Interrupted&, Assembler& to) { interrupt(to); }
  void apply(const fact::Compaction& compaction, Assembler& to);
  void apply(const fact::Summary& summary, Assembler& to);
  void apply(const fact::Notification& notification, Assembler& to);
  void apply(const fact::TodoList& list, Assembler& to) { to.set_todos(list.todos, list.source); }
  void apply(const fact::AgentLink& link, Assembler& to);
  void apply(const fact::Cost& cost, Assembler& to);
  void apply(const fact::Queue& queue, Assembler& to);
  void apply(const fact::ApiError& error, Assembler& to) { to.emit(error); }
  void apply(const fact::Files& files, Assembler& to) { to.emit(files); }
  void apply(const fact::Title&, Assembler&) {}  // handled by update_titles
  void apply(const fact::Mode&, Assembler&) {}   // handled by update_session
  void apply(const fact::PermissionMode&, Assembler&) {}

  // records_tools.cpp: calls, subagents, todos
  const Assembler::Call* find_call(const fact::Result& result, const Assembler& to) const;
  void end_call(const Assembler::Call& call, std::string_view outcome, const fact::Result* result,
                Assembler& to);
  void set_schedule(const fact::Result& result, StreamState& state) const;
  void resume_agent(const fact::Result& result, Assembler& to);
  void finish_agent(std::string_view call, event::AgentFinished finished, Assembler& to);
  void finish_reported_agent(std::string_view call, std::string_view subagent, Assembler& to);
  static event::AgentFinished agent_end(const Report& report);
  static void apply_todos(const Assembler::Call& call, const fact::Result& result, Assembler& to);

  std::uint64_t request_id(Assembler& to);

  const bool reads_internal_;
  Rare<HashMap<std::uint32_t>> sidechain_of_uuid_;  // of inline sidechains only
  std::vector<Chain> chains_{1};                    // [0] is the own chain
  std::uint32_t last_sidechain_ = own_chain;

  std::string titles_[4];  // by fact::Title::Kind, which is also the precedence
  Rare<std::vector<std::pair<std::uint64_t, std::string>>> pending_titles_;  // by the leaf's hash
  bool only_summaries_ = true;
  bool has_turn_positions_ = false;

  Last last_ = Last::nothing;
  std::int64_t last_ms_ = 0;      // of the turn's last user or assistant record
  std::string finished_message_;  // later blocks of it belong to the finished turn
  std::string message_;           // the own chain's last message
  bool hook_feedback_ = false;
  std::string prompt_;                     // the id of the last turn's prompt
  Rare<HashMap<std::int64_t>> short_ids_;  // of messages, by hash: the time of the first record
  std::string command_uuid_, command_, scheduled_fire_uuid_;
  bool awaits_summary_ = false;  // a compaction finished and its summary has not been read

  Rare<std::unordered_map<std::uint64_t, EarlyResult>> early_results_;  // by the call's hash
  Rare<BoundedMap<Report, early_reports_max>> early_reports_;           // by task
  Rare<HashMap<std::uint32_t>> resume_counts_;                          // by the task's hash

  // The current record.
  const Record* record_ = nullptr;
  std::uint32_t chain_ = own_chain;
  std::string record_name_;  // for a record without a uuid: `@` and the offset of its line
};

}  // namespace earshot::claude_code
