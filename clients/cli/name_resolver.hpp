// Who is who: what sessions, agents and calls are called, learned from the frames that pass.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/lru_set.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

class NameResolver {
 public:
  static constexpr std::size_t sessions_max =
      8192;  // the longest known is forgotten: its label falls back to the stream's name
  static constexpr std::size_t agents_max = 8192;  // the same: it is shown by its id

  /// Takes from any frame what it says about names.
  void learn(const Fields& frame);

  /// What a line is headed with: the project's last path component; with a part of the session's id where
  /// sessions of a host share a project, and with the host's name where it is not the daemon's own. Raw text,
  /// to be made printable.
  std::string label(const Fields& frame) const;
  /// The project's path; empty: not known.
  std::string_view project(std::string_view session) const;
  /// Explore, or the beginning of the id.
  std::string agent(std::string_view id) const;

 private:
  struct Session {
    std::string project, name, host;  // name: the last component
    std::string place() const { return host + ':' + name; }
  };
  void learn_session(const Fields& frame, std::string_view project);
  void learn_agent(std::string_view id, std::string_view type);

  std::string host_;  // the daemon's
  Recent<Session, sessions_max> sessions_;
  Recent<std::string, agents_max> agents_;
  std::unordered_map<std::string, std::size_t>
      sharing_;  // host and project's name → how many sessions have them
};

}  // namespace earshot::cli
