// What to tell a person when the daemon cannot be reached.
#pragma once
#include <string>

#include "common/client.hpp"
#include "common/endpoint.hpp"

namespace earshot::common {

/// Whether it makes sense to come back: not when the token is wrong or the daemon said so (close codes
/// 4500–4999).
bool is_final(const Outcome& outcome);

/// What happened, at which doors and with which token, and what to do: for stderr, without the last line
/// end.
std::string explain(const Visit& visit, const Doors& doors);

}  // namespace earshot::common
