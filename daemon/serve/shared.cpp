#include "serve/shared.hpp"

#include <algorithm>

#include "core/record_json.hpp"
#include "watch/clock.hpp"

namespace earshot::serve {

bool is_live(const Session& session, std::chrono::milliseconds recent) {
  if (session.process_lives()) return true;
  return !session.members.empty() && watch::wall_now_ms() - session.modified_ms() <= recent.count();
}

Position Shared::first() const {
  Position first = head();
  for (const Channel& each : channels) first = std::min(first, each.log.first());
  return first;
}

std::size_t Shared::event_connections() const {
  std::size_t sum = 0;
  for (const Channel& each : channels) sum += each.readers;
  return sum;
}

EncodeOptions Shared::encoding(Shown shown) const {
  EncodeOptions options;
  options.view = view_of(shown);
  if (shown != Shown::raw) options.filter = filter;
  return options;
}

std::string Shared::record_text(Shown shown, const std::string& line, bool& is_json) const {
  return redact_record(line, shown == Shown::raw ? nullptr : filter, is_json);
}

}  // namespace earshot::serve
