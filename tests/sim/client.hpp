// A subscriber that believes what the protocol says and nothing else, and complains when it does not hold.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "line.hpp"

namespace earshot::sim {

/// An event as it came, with its place; without text: a bookmark.
struct Heard {
  std::string cursor, text;
};

/// What a client holds of a stream.
struct Held {
  std::string base;  // from here on it was told everything that it asked for; empty: from the beginning
  std::vector<Heard> events;  // after `base`
  bool unsure = false;        // it `lagged`: a session frame says where it is, if anything was missed
  bool restarted = false;  // a session frame may say where it is, else it begins anew: a `reset` with an id
  std::string
      muddled;  // what was out of place: a reset must come. (An edit that is hidden: only at a resume.)
  bool catching_up = false;  // what `after` missed is still to come
  /// Nothing that was wanted lies between where it is and there: the comparison finds out.
  void advance(const std::string& cursor) {
    if (place() != cursor) events.push_back({cursor, {}});
  }
  std::string place() const { return events.empty() ? base : events.back().cursor; }
};

class Client {
 public:
  struct Ways {
    std::string name;
    std::vector<std::string> types;  // of its filter; empty: all
    bool catch_up = false;           // on_lag
    bool whole = false;              // of the streams that there are it wants everything from the beginning
  };

  explicit Client(Ways ways) : ways_(std::move(ways)) {}

  /// A new connection, with what it holds as `after`; `streams` are those that a whole client knows of.
  void connect(std::shared_ptr<Line> line, const std::set<std::string>& streams);
  void leave();
  bool connected() const { return line_ && !line_->ended; }
  Line* line() { return line_.get(); }

  /// Takes in what came. What the protocol does not say throws std::runtime_error.
  void look();
  std::function<void(const std::string&)> trace;  // hears of every frame; empty: nobody listens

  const Ways& ways() const { return ways_; }
  const std::map<std::string, Held>& held() const { return held_; }
  bool wants(std::string_view type) const;
  bool is_ready() const { return ready_; }                                // and has been sent what it missed
  const std::vector<std::string>& sessions() const { return sessions_; }  // frames of this connection

 private:
  void frame(const std::string& text);
  void session(const std::string& text, const std::vector<std::string>& cursors);
  void out_of_place(const std::string& stream, const std::string& what, const std::string& frame);
  [[noreturn]] void complain(const std::string& what, const std::string& frame) const;

  const Ways ways_;
  std::shared_ptr<Line> line_;
  std::map<std::string, Held> held_;
  std::string partial_;
  std::vector<std::string> sessions_;
  bool welcomed_ = false, ready_ = false, resumed_ = false;
};

/// `<stream>:<cursor>`
std::pair<std::string, std::string> parted(const std::string& place);

}  // namespace earshot::sim
