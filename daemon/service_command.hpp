// What the program may be started for instead of listening: to become a service, or none.
#pragma once
#include <string>

#include "config/options.hpp"

namespace earshot {

/// Exit code, see service/service.hpp. Tells on stdout what it does.
int run_errand(const Options& options, const Environment& environment);

}  // namespace earshot
