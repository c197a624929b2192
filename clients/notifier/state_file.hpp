// What a restart must know, in one small file: where the streams were, what was told, what waits.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "notifier/rule_engine.hpp"

namespace earshot::notifier {

struct State {
  static constexpr std::size_t bytes_max = 16 << 20;  // a larger file is not ours
  static constexpr std::size_t cursors_max =
      512;  // of the streams that moved last: older ones are too old to tell of

  Memory memory;
  std::vector<Notice> outgoing;  // told, and not yet in the spool
  std::vector<std::pair<std::string, std::string>>
      cursors;      // stream, cursor; the one that moved last is the last
  std::string bus;  // whose the ids below are
  std::vector<std::pair<std::string, std::uint32_t>> shown;    // desktop slot → the server's id
  std::vector<std::pair<std::string, std::string>> shown_ids;  // desktop slot → the notice
};

std::string written(const State& state);
/// Nothing: it is no state.
std::optional<State> parse_state(std::string_view json);

}  // namespace earshot::notifier
