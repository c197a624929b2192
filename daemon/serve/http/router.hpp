// The paths of the HTTP interface and who may use them. Pure.
#pragma once
#include <chrono>

#include "base/clock.hpp"
#include "serve/auth/access.hpp"
#include "serve/http/request.hpp"
#include "serve/server_context.hpp"

namespace earshot::serve {

struct RequestContext {
  Caller caller;
  Clock::time_point now;
  bool cold_sessions_read = false;  // repeated after HttpResponse::Kind::cold
};

/// The path for the audit log; unknown paths, which may contain secrets, are not repeated.
std::string_view route_name(std::string_view path);

/// The response to a request that passed refuse().
HttpResponse route(const Request& request, const RequestContext& request_context, ServerContext& context);

}  // namespace earshot::serve
