// `/v1/sessions`: the sessions, a page at a time.
#pragma once
#include "serve/http/router.hpp"

namespace earshot::serve {

/// A page, sorted by name; or Kind::cold when some of it is to be read first.
HttpResponse sessions_answer(const Request& request, const RequestContext& caller, ServerContext& context);

}  // namespace earshot::serve
