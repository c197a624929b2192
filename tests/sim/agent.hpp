// A simulated agent program that writes transcripts: it is killed inside a line, restarts, copies, moves and
// edits files.
#pragma once
#include <string>

#include "machine.hpp"
#include "records.hpp"

namespace earshot::sim {

class Agent {
 public:
  Agent(Machine& machine, const AgentProgram& program, const std::string& root)
      : machine_(machine), root_(root), records_(program, root) {}

  /// Changes the files once. Returns a description for the trace.
  std::string act();

 private:
  std::string lines(std::uint64_t count);
  std::string new_place();         // a new path; its directory exists
  NodePtr any(std::string& path);  // null: none

  std::string write_on(std::string& path, const NodePtr& file);

  Machine& machine_;
  const std::string root_;
  Records records_;
  std::vector<NodePtr> unlinked_;  // still written to
  std::vector<std::string> away_;  // directories that were moved out of the root
};

}  // namespace earshot::sim
