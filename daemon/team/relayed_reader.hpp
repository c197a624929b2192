#pragma once
#include "core/record_reader.hpp"

namespace earshot {

/// Reads transcripts whose lines are events that other daemons published (a hub's event store).
const RecordReader& relayed_reader();

}  // namespace earshot
