// What is at which path, and who may have it. Text in, text out: no socket.
#pragma once
#include <chrono>

#include "base/clock.hpp"
#include "serve/http/request.hpp"
#include "serve/server_context.hpp"

namespace earshot::serve {

struct RequestContext {
  TransportKind transport_kind = TransportKind::tcp;
  AuthResult auth_result = AuthResult::anonymous;
  watch::Clock::time_point now;
  View view = View::full;      // at most this much
  bool cold_is_read = false;   // asks again after Answer::Kind::cold
  const User* user = nullptr;  // of Standing::user: what is shown to him
};

/// A path that is one of ours, in words that a log may have: whatever else was asked for is not repeated.
std::string_view route_name(std::string_view path);

/// The answer to a request whose Host and Origin are ours.
HttpResponse route(const Request& request, const RequestContext& caller, ServerContext& context);

}  // namespace earshot::serve
