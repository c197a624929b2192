// The clocks of the hosts of a hub, which keeps times as their hosts wrote them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/containers.hpp"
#include "common/frame.hpp"

namespace earshot::common {

/// What a session's times need so that they are of this machine's clock; a hub states by how much a host's
/// differs.
std::int64_t clock_offset_ms(const Fields& session);

/// The same by host, learned from session frames.
class HostClocks {
 public:
  static constexpr std::size_t hosts_max = 4096;  // beyond this the oldest counts as right

  void observe(const Fields& frame);
  std::int64_t offset_ms(std::string_view host) const;

 private:
  BoundedMap<std::int64_t, hosts_max> offsets_;  // those that are not 0
};

}  // namespace earshot::common
