// One frame as input for rules: its type, its origin, and the variables of templates and conditions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text_filter.hpp"

namespace earshot::notifier {

struct EventContext {
  std::string type;  // of the event, or `status`
  std::string host, session, stream, agent;
  std::string id;            // equal for repeats and copies of the same event
  std::int64_t time_ms = 0;  // 0: unknown
  std::optional<double> duration_ms, cost_usd;
  bool fatal = false;
  std::map<std::string, std::string, std::less<>> values;
  std::string frame;  // the JSON as received

  /// The value of a variable; empty: unknown, or not part of this view.
  std::string value(std::string_view name, View view) const;
};

/// A variable of templates.
struct Variable {
  std::string_view name;
  bool text;  // session text: only in the full view
  std::string_view description;
};
std::span<const Variable> variables();
const Variable* find_variable(std::string_view name);

/// The frame, without session text in the meta view; `{}` if it is not a JSON object.
std::string frame_for(std::string_view frame, View view);

}  // namespace earshot::notifier
