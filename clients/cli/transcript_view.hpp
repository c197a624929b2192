// A session for reading afterwards: turns as headings, with the messages and tool calls of each below.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/event_formatter.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

/// All events of one session in display order: those of a subagent follow the call that started it.
class Timeline {
 public:
  static constexpr std::size_t bytes_max = 1 << 30;  // of events; later ones are omitted

  /// Events of a stream must be added in order; streams may be interleaved. Returns false at the size limit.
  bool add(const Fields& event, std::string_view json);
  std::size_t size() const { return items_.size(); }

  /// A visited event. `is_end`: it ends a call, an agent or a turn that was visited before.
  struct Step {
    const Fields& event;
    std::string_view json;
    std::size_t depth;  // 0: the session's main thread; 1: a subagent; …
    bool is_end;
  };
  /// The event that ends a tool.invoked, agent.started, turn.started or compaction.started, if there is one.
  /// Valid until the next call.
  std::optional<Fields> end_of(const Fields& begin);

  using Visitor = std::function<bool(const Step&)>;  // false: stop
  /// Called before the events of a subagent for which there is no agent.started.
  using AgentVisitor = std::function<void(std::string_view agent, std::size_t depth)>;
  /// Visits the events in order; with `turn` only those of this turn of the main thread and its subagents.
  void walk(std::uint64_t turn, const Visitor& visit, const AgentVisitor& on_agent);

 private:
  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();
  static constexpr std::size_t depth_max = 16;  // deeper ones are shown at this depth
  struct Item {
    std::size_t offset, size;
    std::uint64_t turn;
    std::int64_t ms;  // the latest time at or before it in its thread
    bool is_end;
  };
  // The events of one agent in one stream; the main thread has no agent.
  struct Thread {
    std::string stream, agent;
    std::vector<std::size_t> items;  // in items_
    bool shown = false;
  };
  struct Walk {
    const Visitor& visit;
    const AgentVisitor& on_agent;
    std::uint64_t turn;
    std::int64_t begin_ms = no_time;  // of the first visited event
    bool more = true;
  };

  std::string_view json_of(const Item& item) const {
    return std::string_view(text_).substr(item.offset, item.size);
  }
  Thread& thread_of(const Fields& event);
  void record_end(const Fields& event, std::size_t index);
  void walk_thread(Thread& thread, std::size_t depth, Walk& walk);
  void walk_call(std::string_view call, std::size_t depth, Walk& walk);
  void walk_unlinked(const Thread& main, const Item& until, Walk& walk);
  bool is_linked(const Thread& thread) const { return call_of_agent_.contains(thread.agent); }

  std::string text_;
  std::vector<Item> items_;
  std::vector<Thread> threads_;                             // ordered by their first events
  std::unordered_map<std::string, std::size_t> thread_at_;  // "stream\nagent"
  std::unordered_map<std::string, std::string> call_of_agent_;
  std::unordered_map<std::string, std::size_t> ends_;  // pair_key → index of the end
  std::unordered_map<std::string, bool> begins_;
  FrameParser end_parser_;
};

class TranscriptView {
 public:
  /// `verbose` also shows thinking, tool outputs, prompts of subagents, token counts and checkpoints.
  TranscriptView(DisplayOptions display, bool verbose) : state_{display, verbose} {}

  /// Title, project, model, size and status from the session frame.
  void write_header(const Fields& session, std::string& out);
  void write(const Timeline::Step& step, Timeline& timeline, std::string& out);
  /// The heading of a subagent for which there is no agent.started.
  void write_unlinked_agent(std::string_view agent, std::size_t depth, std::string& out);
  /// The status of a session that is working or waiting; nothing for others.
  void write_footer(const Fields& session, std::string& out);

 private:
  struct Row {
    const Fields& event;
    Timeline& timeline;
    std::string margin;
    std::size_t depth;
    bool is_end;
    std::string& out;
  };
  void turn_started(const Row& row);
  void prompt(const Row& row);
  void message_added(const Row& row);
  void tool_invoked(const Row& row);
  void tool_finished(const Row& row);
  void agent_started(const Row& row);
  void agent_finished(const Row& row);
  void todo_updated(const Row& row);
  void one_line(const Row& row, const Fields& end = {});
  void text(const Row& row, std::string_view key, Glyph mark, Style mark_style, Style style,
            std::size_t lines_max);
  void output(const Row& row, const Fields& finished);
  void print(const Row& row, const Line& line) { print(line, row.out); }
  void print(const Line& line, std::string& out) const { out += line.str(state_.display) + "\n"; }
  /// A line that begins with the row's margin and a symbol.
  Line begin(const Row& row, Glyph mark, Style style) const;
  std::string margin(std::size_t depth) const;

  FormatterState state_;
  std::string day_;
  // call → the turn in which its agent was shown
  std::unordered_map<std::string, std::uint64_t> agent_turns_;
};

}  // namespace earshot::cli
