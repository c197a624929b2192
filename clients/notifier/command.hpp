// What runs a program for a notice, and what rings a terminal. Both block.
#pragma once
#include <string>

#include "notifier/queued_notice.hpp"
#include "notifier/rules.hpp"

namespace earshot::notifier {

/// The sink's command, without a shell: the notice as JSON on its stdin, and in EARSHOT_* of its environment;
/// what it writes to stderr is kept for when it fails. After the sink's timeout it is ended, its children
/// too.
Delivery run_command(const Sink& sink, const Notice& notice);

/// The same for any words.
Delivery run_words(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                   const std::string& input, std::int64_t timeout_ms);

/// BEL, to the sink's terminal or the one that the program was started from.
Delivery ring_bell(const Sink& sink);

}  // namespace earshot::notifier
