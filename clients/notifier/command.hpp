// The command and bell sinks. Both block.
#pragma once
#include <string>

#include "notifier/queued_notice.hpp"
#include "notifier/rules.hpp"

namespace earshot::notifier {

/// Runs the sink's command without a shell, with the notice as JSON on stdin and in EARSHOT_* variables. An
/// error includes the beginning of its stderr. After the sink's timeout it is killed with its children.
Delivery run_command(const Sink& sink, const Notice& notice);

/// Runs any program the same way.
Delivery run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                     const std::string& input, std::int64_t timeout_ms);

/// Writes BEL to the sink's terminal or the controlling terminal.
Delivery write_bell(const Sink& sink);

}  // namespace earshot::notifier
