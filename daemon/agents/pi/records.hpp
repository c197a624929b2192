// Reads the records of Pi, formats 1 to 3. A line is an object with `type`; all but the header have an id:
//   {"type":"session","version":3,"id":…,"timestamp":…,"cwd":…}
//   {"type":"message","id":…,"timestamp":…,"message":{"role":"assistant","content":[…],"stopReason":…,"usage":{…}}}
// The file is a tree of entries; it is read in the order of the file.
#pragma once
#include <memory>
#include <string_view>

#include "core/record_reader.hpp"

namespace earshot::pi {

constexpr std::string_view program_name = "pi";
constexpr std::string_view dialect_name = "pi";

std::unique_ptr<RecordReader> make_reader();

/// True for a record that only Pi writes at the beginning of a file.
bool is_header(const Value& record);

/// The session's id in the name of a transcript, without its suffix.
std::string_view session_of(std::string_view stem);

}  // namespace earshot::pi
