// Which addresses belong to this machine or the networks around it: a redirect may not lead there.
#pragma once
#include <sys/socket.h>

namespace earshot::notifier {

/// Loopback, private, link-local, shared, multicast, reserved; also inside IPv6. What is neither IPv4 nor
/// IPv6 is private.
bool is_private(const sockaddr* address);

}  // namespace earshot::notifier
