// The configuration file, earshot.toml, as the words that stand in it.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/options.hpp"

namespace earshot {

/// As the words stand on the command line or in the file; nothing: not said there.
struct RawOptions {
  std::vector<std::string> roots;
  std::optional<std::string> listen, socket, state, recent, log_level, host, watch, sweep;
  std::optional<bool> demo, redact;

  // Only in the file
  std::optional<bool> allow_remote;
  std::optional<std::string> tls_cert, tls_key, remote_view;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> redaction;  // name → pattern
  serve::Limits limits;
  std::optional<std::uint64_t> log_bytes;
  std::optional<RelayWords> relay;
  std::optional<HubWords> hub;  // on the command line: with what the file says, if it says something
};

struct Failure : std::runtime_error {  // for people; exit code 2
  using std::runtime_error::runtime_error;
};

/// Throws Failure, with the place in the file.
RawOptions read_file(const std::string& file);

/// Which of `known` is most like `word`: by the number of letters to change.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace earshot
