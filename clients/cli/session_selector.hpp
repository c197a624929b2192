// Which session is meant.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

struct Selection {
  std::string frame;     // the session frame; empty: none
  std::string trouble;   // why not, for stderr
  bool several = false;  // more than one is called so
};

class SessionSelector {
 public:
  static constexpr std::size_t listed_max = 20;  // of more only the number is said

  void add(const Fields& session_frame, std::string_view json);
  bool empty() const { return sessions_.empty(); }

  /// The one whose id this is; else the only one whose id begins so.
  Selection named(std::string_view typed) const;
  /// The one that was active last.
  Selection last() const;

 private:
  struct Session {
    std::string id, host, about, json;
    std::int64_t activity_ms = 0;
  };
  static Selection ambiguous(std::string_view typed, std::vector<const Session*> sessions);
  std::vector<Session> sessions_;
};

}  // namespace earshot::cli
