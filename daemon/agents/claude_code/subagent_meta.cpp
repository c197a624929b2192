#include "agents/claude_code/subagent_meta.hpp"

#include <simdjson.h>

#include <algorithm>

namespace earshot::tail {

AgentMeta parse_meta(std::string_view text) {
  AgentMeta meta;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(text.data(), text.size()).get(object)) return meta;
  struct Field {
    std::string_view key;
    std::string AgentMeta::*into;
  };
  constexpr Field fields[] = {
      {"agentType", &AgentMeta::agent_type},
      {"description", &AgentMeta::description},
      {"toolUseId", &AgentMeta::call},
      {"parentAgentId", &AgentMeta::parent_agent},
  };
  for (const Field& field : fields)
    if (std::string_view value; !object[field.key].get(value)) meta.*field.into = value;
  if (std::int64_t depth = 0; !object["spawnDepth"].get(depth))
    meta.depth = static_cast<int>(std::clamp<std::int64_t>(depth, 0, 1000));
  return meta;
}

}  // namespace earshot::tail
