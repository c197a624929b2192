// `/v1/sessions`: the sessions, a page at a time.
#pragma once
#include "serve/http/message.hpp"
#include "serve/http/router.hpp"
#include "serve/server_context.hpp"

namespace earshot::serve {

/// A page sorted by name.
HttpResponse sessions(const Request& request, const RequestContext& request_context, ServerContext& context);

}  // namespace earshot::serve
