// Who came, in the log of a daemon that has users beside its owner: a line a connection, and one more
// whenever who it is, or what it is given, is another. No token, code or query is in any of them.
#pragma once
#include <string>
#include <string_view>

#include "serve/websocket/transport.hpp"

namespace earshot::serve {

class Audit {
 public:
  /// From here on there are lines. To be called while the socket is connected.
  void begin(Transport::Socket& socket, TransportKind transport_kind);
  /// `audit: WHO from ADDRESS asks for WHAT and GETS`, unless the line before said the same of who and gets.
  void note(std::string_view who, std::string_view what, std::string_view gets);
  /// Likewise, in any case.
  void tell(std::string_view who, std::string_view what, std::string_view gets);
  /// It is to have a line, and had none.
  bool owes() const { return !from_.empty() && last_.empty(); }

 private:
  std::string from_;  // empty: there are no lines
  std::string last_;
};

}  // namespace earshot::serve
