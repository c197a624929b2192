#pragma once
#include "config/options.hpp"

namespace earshot {

/// --install-service or --uninstall-service (service_manager.hpp). Prints each step; returns the exit code.
int run_service_command(const config::Options& options, const config::Environment& environment);

}  // namespace earshot
