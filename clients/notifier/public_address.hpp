// Recognises addresses of this machine and private networks, which redirects must not lead to.
#pragma once
#include <sys/socket.h>

namespace earshot::notifier {

/// Loopback, private, link-local, shared, multicast and reserved addresses, also embedded in IPv6. Other
/// address families are private.
bool is_private(const sockaddr* address);

}  // namespace earshot::notifier
