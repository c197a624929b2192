// The command line again, as a service manager is to say it later, from another directory.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/options_file.hpp"

namespace earshot {

struct Options;

/// What `line` said, with whole paths. What `options` took from a file as a relative path is said as a whole
/// one.
std::vector<std::string> words_of(const RawOptions& line, const std::optional<std::string>& config,
                                  const Options& options);

}  // namespace earshot
