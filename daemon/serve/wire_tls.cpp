#include "serve/wire_impl.hpp"

namespace earshot::serve {

std::unique_ptr<Wire> tls_wire(Wire::Socket socket, const Limits& limits, asio::ssl::context& context) {
  return std::make_unique<WireOf<asio::ssl::stream<Wire::Socket>>>(std::move(socket), limits, context);
}

}  // namespace earshot::serve
