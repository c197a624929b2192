// Reads the rollouts of Codex CLI. A line is an envelope around `payload`:
//   {"timestamp":…,"type":"response_item","payload":{"type":"function_call","name":…,"arguments":"{…}","call_id":…}}
//   {"timestamp":…,"type":"event_msg","payload":{"type":"item_completed","turn_id":…,"item":{"type":"AgentMessage",…}}}
// response_item is the model's own history; event_msg reports what happened and mostly repeats it.
// Before version 0.32 a line is a bare item without envelope and time.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "core/record_reader.hpp"

namespace earshot::codex {

constexpr std::string_view program_name = "codex";

enum class Era {
  items,      // `codex-items`: bare items, to 0.31
  events,     // `codex-events`, 0.32 to 0.146
  paginated,  // `codex-paginated`, from 0.147
};

std::unique_ptr<RecordReader> make_reader();

/// The era that a record proves; absent if it proves none.
std::optional<Era> era_of(const Value& record);

}  // namespace earshot::codex
