// Names of sessions and agents, learned from frames, and the selection of a session by a name the user typed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/containers.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

class NameResolver {
 public:
  static constexpr std::size_t sessions_max = 8192;  // beyond this the oldest is labelled by its stream
  static constexpr std::size_t agents_max = 8192;    // beyond this the oldest is shown by its id

  /// Learns the names in any frame.
  void observe(const Fields& frame);

  /// The label of a line: the last component of the project's path; with a part of the session's id if
  /// several sessions of a host share the project, and with the host's name if it is not the daemon's own.
  /// Raw text: make it displayable before printing.
  std::string label(const Fields& frame) const;
  /// The project's path; empty: not known.
  std::string_view project(std::string_view session) const;
  /// The agent's type (Explore), or the beginning of its id.
  std::string agent(std::string_view id) const;

 private:
  struct Session {
    std::string project, name, host;  // name: the last component of the project
    std::size_t label_id_bytes = 4;   // of its id, to distinguish it from others of the project
    std::string place() const { return host + ':' + name; }
  };
  void observe_session(const Fields& frame, std::string_view project);
  void observe_agent(std::string_view id, std::string_view type);

  std::string host_;  // the daemon's
  BoundedMap<Session, sessions_max> sessions_;
  BoundedMap<std::string, agents_max> agents_;
  std::unordered_map<std::string, std::size_t>
      sessions_by_place_;  // host and project name → number of sessions
};

/// The result of selecting a session.
struct Selection {
  std::string frame;       // the session frame; empty: none
  std::string error;       // why there is none, for stderr
  bool ambiguous = false;  // several sessions match
};

class SessionSelector {
 public:
  static constexpr std::size_t listed_max = 20;  // of an ambiguous name; the number of the others is printed

  void add(const Fields& session_frame, std::string_view json);
  bool empty() const { return sessions_.empty(); }

  /// The session with this id, else the only session that was added.
  Selection named(std::string_view typed) const;
  /// The session with the latest activity.
  Selection last() const;
  /// The id or its beginning among the added sessions that is most similar to `typed`; empty: none is
  /// similar.
  std::string suggest(std::string_view typed) const;

 private:
  struct Session {
    std::string id, host, description, json;
    std::int64_t activity_ms = 0;
  };
  static Selection ambiguous(std::string_view typed, std::vector<const Session*> sessions);
  std::vector<Session> sessions_;
};

}  // namespace earshot::cli
