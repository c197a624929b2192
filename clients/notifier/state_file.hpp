// The state file: cursors, decisions and held notices, for a restart.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "notifier/rule_engine.hpp"

namespace earshot::notifier {

struct State {
  static constexpr std::size_t bytes_max = 16 << 20;  // larger files are ignored
  static constexpr std::size_t cursors_max =
      512;  // streams with the latest events; those of others would be too old

  EngineState engine;
  std::vector<Notice> outgoing;                                // decided, and not yet in the spool
  std::vector<std::pair<std::string, std::string>> cursors;    // stream, cursor; latest last
  std::string bus;                                             // notification server of the ids below
  std::vector<std::pair<std::string, std::uint32_t>> shown;    // slot → id of the server
  std::vector<std::pair<std::string, std::string>> shown_ids;  // slot → notice id
};

std::string to_json(const State& state);
/// Nothing if it is not a state file.
std::optional<State> parse_state(std::string_view json);

}  // namespace earshot::notifier
