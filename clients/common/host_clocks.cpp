#include "common/host_clocks.hpp"

#include <algorithm>

#include "base/quantities.hpp"

namespace earshot::common {

std::int64_t clock_offset_ms(const Fields& session) {
  constexpr std::int64_t most = duration_max.count();
  return std::clamp<std::int64_t>(session.integer("clock_offset_ms").value_or(0), -most, most);
}

void HostClocks::observe(const Fields& frame) {
  if (frame.text("type") != "session") return;
  const std::string_view host = frame.text("host");
  if (const std::int64_t offset = clock_offset_ms(frame))
    offsets_[host] = offset;
  else
    offsets_.erase(host);
}

std::int64_t HostClocks::offset_ms(std::string_view host) const {
  const std::int64_t* const known = offsets_.find(host);
  return known ? *known : 0;
}

}  // namespace earshot::common
