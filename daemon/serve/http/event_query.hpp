// `/v1/events?…` as the `subscribe` message that it stands for: one parser judges both.
#pragma once
#include <string_view>

#include "serve/http/response.hpp"

namespace earshot::serve {

/// Kind::events with the message in `subscription` (its id is "events"), or 400.
HttpResponse events_answer(std::string_view query);

}  // namespace earshot::serve
