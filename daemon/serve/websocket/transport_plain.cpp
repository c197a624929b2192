#include "serve/websocket/transport_impl.hpp"

namespace earshot::serve {

std::unique_ptr<Transport> make_plain_transport(Transport::Socket socket, const Limits& limits) {
  return std::make_unique<TransportOf<Transport::Socket>>(std::move(socket), limits);
}

}  // namespace earshot::serve
