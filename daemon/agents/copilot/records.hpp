// Reads the event log of GitHub Copilot CLI. A line is an envelope around `data`:
//   {"type":"assistant.message","id":…,"timestamp":…,"agentId":…,"data":{"messageId":…,"content":…,"toolRequests":[…]}}
// assistant.turn_start and .turn_end enclose one request to the model, not a turn. Records with an agent have
// no turns.
#pragma once
#include <memory>
#include <string_view>

#include "core/record_reader.hpp"

namespace earshot::copilot {

constexpr std::string_view program_name = "copilot";
constexpr std::string_view dialect_name = "copilot-cli";

std::unique_ptr<RecordReader> make_reader();

/// True for a record that only Copilot CLI writes.
bool is_record(const Value& record);

}  // namespace earshot::copilot
