#pragma once
#include "agents/agent.hpp"

namespace earshot {

/// Reads transcripts whose lines are events that other daemons published (a hub's event store).
const RecordReader& relayed_reader();

/// The program of a hub's root.
const AgentProgram& relayed_program();

}  // namespace earshot
