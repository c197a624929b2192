// All events of one session, put in order: a subagent's below the call that started it.
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

#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

class Timeline {
 public:
  static constexpr std::size_t bytes_max = 1 << 30;  // of events; what comes beyond is left out

  /// Events of one stream come in its order, streams in any. False: there is no room for it.
  bool add(const Fields& event, std::string_view json);
  std::size_t size() const { return items_.size(); }

  /// An event on its way out. What ends a call, an agent or a turn that was told before is `is_end`: its
  /// beginning has shown it already.
  struct Step {
    const Fields& event;
    std::string_view json;
    std::size_t depth;  // 0: the session's own; 1: of a subagent; …
    bool is_end;
  };
  /// The end that belongs to a tool.invoked, an agent.started, a turn.started or a compaction.started; absent
  /// when there is none yet. It lives until the next call.
  std::optional<Fields> end_of(const Fields& begin);

  using Visitor = std::function<bool(const Step&)>;  // false: enough
  /// `agent_begins` is told before the events of a subagent that no agent.started tells of.
  using Stranger = std::function<void(std::string_view agent, std::size_t depth)>;
  /// From the first event to the last; with `turn` only those of this one of the session's own turns, and of
  /// the subagents in it.
  void walk(std::uint64_t turn, const Visitor& visit, const Stranger& agent_begins);

 private:
  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();
  static constexpr std::size_t depth_max = 16;  // deeper ones are told at this depth
  struct Item {
    std::size_t offset, size;
    std::uint64_t turn;
    std::int64_t ms;  // of the last time at or before it in its thread
    bool is_end;
  };
  // What one agent did in one stream; the session's own has no agent.
  struct Thread {
    std::string stream, agent;
    std::vector<std::size_t> items;  // in items_
    bool told = false;
  };
  struct Walk {
    const Visitor& visit;
    const Stranger& agent_begins;
    std::uint64_t turn;
    std::int64_t begin_ms = no_time;  // of the first event that is told
    bool more = true;
  };

  std::string_view json_of(const Item& item) const {
    return std::string_view(text_).substr(item.offset, item.size);
  }
  Thread& thread_of(const Fields& event);
  void note_end(const Fields& event, std::size_t index);
  void walk_thread(Thread& thread, std::size_t depth, Walk& walk);
  void walk_call(std::string_view call, std::size_t depth, Walk& walk);
  void walk_strangers(const Thread& main, const Item& until, Walk& walk);
  bool is_linked(const Thread& thread) const { return call_of_agent_.contains(thread.agent); }

  std::string text_;
  std::vector<Item> items_;
  std::vector<Thread> threads_;                             // in the order of their first events
  std::unordered_map<std::string, std::size_t> thread_at_;  // "stream\nagent"
  std::unordered_map<std::string, std::string> call_of_agent_;
  std::unordered_map<std::string, std::size_t> ends_;  // what begins → the item that ends it
  std::unordered_map<std::string, bool> begun_;
  FrameParser end_parser_;
};

}  // namespace earshot::cli
