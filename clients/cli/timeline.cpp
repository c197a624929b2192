#include "cli/timeline.hpp"

#include <algorithm>

#include "common/format.hpp"

namespace earshot::cli {
namespace {

struct Pair {
  std::string_view begin, end;
  std::string_view key;  // the field that both have
};
constexpr Pair pairs[] = {
    {"tool.invoked", "tool.finished", "call"},
    {"agent.started", "agent.finished", "call"},
    {"turn.started", "turn.finished", "turn"},
    {"compaction.started", "compaction.finished", ""},
};

// Identifies a pair of begin and end events; empty for other events.
std::string pair_key(const Fields& event, bool is_begin) {
  const std::string_view type = event.text("type");
  const auto* pair = std::find_if(std::begin(pairs), std::end(pairs),
                                  [&](const Pair& p) { return type == (is_begin ? p.begin : p.end); });
  if (pair == std::end(pairs)) return {};
  std::string key(pair->begin);
  for (const std::string_view part : {event.text("stream"), event.text("agent")})
    key += '\n' + std::string(part);
  if (pair->key == "call" && event.text("call").empty()) return {};
  if (pair->key == "call") return key + '\n' + std::string(event.text("call"));
  return key + '\n' + std::to_string(event.count("turn"));
}

}  // namespace

Timeline::Thread& Timeline::thread_of(const Fields& event) {
  const std::string_view stream = event.text("stream"), agent = event.text("agent");
  const auto [place, is_new] =
      thread_at_.try_emplace(std::string(stream) + '\n' + std::string(agent), threads_.size());
  if (is_new) threads_.push_back({std::string(stream), std::string(agent), {}});
  return threads_[place->second];
}

// The last end counts: that of a background agent has more details than the first.
void Timeline::record_end(const Fields& event, std::size_t index) {
  if (const std::string begin = pair_key(event, true); !begin.empty()) begins_[begin] = true;
  const std::string key = pair_key(event, false);
  if (key.empty() || !begins_.contains(key)) return;
  ends_[key] = index;
  items_[index].is_end = true;
}

bool Timeline::add(const Fields& event, std::string_view json) {
  if (text_.size() + json.size() > bytes_max) return false;
  Thread& thread = thread_of(event);
  const std::size_t index = items_.size();
  const std::int64_t before = thread.items.empty() ? no_time : items_[thread.items.back()].ms;
  items_.push_back({text_.size(), json.size(), event.count("turn"),
                    parse_time(event.text("time")).value_or(before), false});
  text_ += json;
  thread.items.push_back(index);
  record_end(event, index);
  const std::string_view type = event.text("type"), subagent = event.text("subagent");
  if ((type == "agent.started" || type == "agent.finished") && !subagent.empty() &&
      !event.text("call").empty())
    call_of_agent_.try_emplace(std::string(subagent), event.text("call"));
  return true;
}

std::optional<Fields> Timeline::end_of(const Fields& begin) {
  const auto found = ends_.find(pair_key(begin, true));
  if (found == ends_.end()) return std::nullopt;
  return end_parser_.parse(json_of(items_[found->second]));
}

void Timeline::walk(std::uint64_t turn, const Visitor& visit, const AgentVisitor& on_agent) {
  Walk walk{visit, on_agent, turn};
  std::vector<Thread*> main_threads;
  for (Thread& thread : threads_) {
    thread.shown = false;
    if (thread.agent.empty()) main_threads.push_back(&thread);
  }
  // A session that was resumed into another file has several; the oldest comes first.
  std::stable_sort(main_threads.begin(), main_threads.end(), [&](const Thread* a, const Thread* b) {
    return items_[a->items.front()].ms < items_[b->items.front()].ms;
  });
  for (Thread* thread : main_threads) walk_thread(*thread, 0, walk);
  if (turn > 0) return;
  for (Thread& thread : threads_) {
    if (thread.shown || !walk.more) continue;
    on_agent(thread.agent, 1);
    walk_thread(thread, 1, walk);
  }
}

void Timeline::walk_thread(Thread& thread, std::size_t depth, Walk& walk) {
  thread.shown = true;
  FrameParser parser;  // one per thread: the event must stay valid while the subagents below it are visited
  const bool is_main = thread.agent.empty();
  for (const std::size_t index : thread.items) {
    const Item& item = items_[index];
    if (is_main && walk.turn > 0 && item.turn != walk.turn) continue;
    if (is_main && walk.begin_ms == no_time) walk.begin_ms = item.ms;
    if (is_main) walk_unlinked(thread, item, walk);
    if (!walk.more) return;
    const auto event = parser.parse(json_of(item));
    if (!event) continue;
    walk.more = walk.visit({*event, json_of(item), std::min(depth, depth_max), item.is_end});
    if (!walk.more) return;
    if (event->text("type") == "agent.started") walk_call(event->text("call"), depth + 1, walk);
  }
}

void Timeline::walk_call(std::string_view call, std::size_t depth, Walk& walk) {
  if (call.empty()) return;
  for (Thread& thread : threads_) {
    if (thread.shown || thread.agent.empty() || !walk.more) continue;
    const auto known = call_of_agent_.find(thread.agent);
    if (known != call_of_agent_.end() && known->second == call) walk_thread(thread, depth, walk);
  }
}

// A subagent without a known call is placed where it began: by the offset in the same file, else by time.
void Timeline::walk_unlinked(const Thread& main, const Item& until, Walk& walk) {
  for (Thread& thread : threads_) {
    if (thread.shown || thread.agent.empty() || !walk.more || is_linked(thread)) continue;
    const Item& first = items_[thread.items.front()];
    const bool before = thread.stream == main.stream ? first.offset < until.offset
                                                     : first.ms != no_time && first.ms < until.ms;
    if (!before) continue;
    const bool in_turn = thread.stream == main.stream ? first.turn == walk.turn : first.ms >= walk.begin_ms;
    if (walk.turn > 0 && !in_turn) continue;
    walk.on_agent(thread.agent, 1);
    walk_thread(thread, 1, walk);
  }
}

}  // namespace earshot::cli
