// `/v1/sessions`: the sessions, a page at a time.
#pragma once
#include "serve/routes.hpp"

namespace earshot::serve {

/// A page, sorted by name; or Kind::cold when some of it is to be read first.
Answer sessions_answer(const Request& request, const Asker& asker, Shared& shared);

}  // namespace earshot::serve
