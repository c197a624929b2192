// One frame as rules see it: what it is, of whom, and the words that templates and conditions may name.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/event_json.hpp"

namespace earshot::notifier {

struct EventContext {
  std::string type;  // of the event, or `status`
  std::string host, session, stream, agent;
  std::string id;  // the same for the same happening, however often and by whatever way it is heard of
  std::int64_t time_ms = 0;  // 0: it does not say
  std::optional<double> duration_ms, cost_usd;
  bool fatal = false;
  std::map<std::string, std::string, std::less<>> words;
  std::string frame;  // as it came

  /// What `name` stands for where so much is shown; empty: not known, or not shown.
  std::string word(std::string_view name, View view) const;
};

/// A name that templates may use.
struct Variable {
  std::string_view name;
  bool text;  // only in the full view
  std::string_view says;
};
std::span<const Variable> variables();
const Variable* find_variable(std::string_view name);

/// A frame without what the meta view leaves out; `{}` when it is no JSON object. Safe to send on.
std::string frame_for(std::string_view frame, View view);

}  // namespace earshot::notifier
