#include "notifier/public_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace earshot::notifier {
namespace {

struct Net4 {
  std::uint32_t net;
  int bits;
};
// Not globally reachable according to IANA's special-purpose registry.
constexpr Net4 nets[] = {
    {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
    {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15},
    {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 3},  // multicast, reserved, broadcast
};

bool is_private4(std::uint32_t address) {
  return std::any_of(std::begin(nets), std::end(nets),
                     [&](const Net4& each) { return (address ^ each.net) >> (32 - each.bits) == 0; });
}

bool is_private6(const unsigned char* bytes) {
  const auto inner = [&](int at) {
    return is_private4(std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
                       std::uint32_t{bytes[at + 2]} << 8 | bytes[at + 3]);
  };
  constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
  if (std::memcmp(bytes, mapped, 12) == 0 || std::memcmp(bytes, nat64, 12) == 0) return inner(12);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return inner(2);  // 6to4
  return (bytes[0] & 0xe0) != 0x20 ||                         // not global unicast
         (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0d && bytes[3] == 0xb8);
}

}  // namespace

bool is_private(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return is_private4(ntohl(in.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return true;
  sockaddr_in6 in{};
  std::memcpy(&in, address, sizeof in);
  return is_private6(in.sin6_addr.s6_addr);
}

}  // namespace earshot::notifier
