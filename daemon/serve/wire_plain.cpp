#include "serve/wire_impl.hpp"

namespace earshot::serve {

std::unique_ptr<Wire> plain_wire(Wire::Socket socket, const Limits& limits) {
  return std::make_unique<WireOf<Wire::Socket>>(std::move(socket), limits);
}

}  // namespace earshot::serve
