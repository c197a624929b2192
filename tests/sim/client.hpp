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
struct Received {
  std::string cursor, text;
};

/// What a client holds of a stream.
struct ReceivedStream {
  std::string base;  // from here on it was told everything that it asked for; empty: from the beginning
  std::vector<Received> events;  // after `base`
  bool unsure = false;        // it `lagged`: a session frame says where it is, if anything was missed
  bool restarted = false;  // a session frame may say where it is, else it begins anew: a `reset` with an id
  std::string
      violation;  // what was out of place: a reset must come. (An edit that is hidden: only at a resume.)
  bool catching_up = false;  // what `after` missed is still to come
  /// Nothing that was wanted lies between where it is and there: the comparison finds out.
  void advance(const std::string& cursor) {
    if (place() != cursor) events.push_back({cursor, {}});
  }
  std::string place() const { return events.empty() ? base : events.back().cursor; }
};

class Client {
 public:
  struct ClientOptions {
    std::string name;
    std::vector<std::string> types;  // of its filter; empty: all
    bool catch_up = false;           // on_lag
    bool whole = false;              // of the streams that there are it wants everything from the beginning
  };

  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  /// A new connection, with what it holds as `after`; `streams` are those that a whole client knows of.
  void connect(std::shared_ptr<Connection> line, const std::set<std::string>& streams);
  void leave();
  bool connected() const { return connection_ && !connection_->ended; }
  Connection* line() { return connection_.get(); }

  /// Takes in what came. What the protocol does not say throws std::runtime_error.
  void look();
  std::function<void(const std::string&)> trace;  // hears of every frame; empty: nobody listens

  const ClientOptions& options() const { return options_; }
  const std::map<std::string, ReceivedStream>& held() const { return held_; }
  bool wants(std::string_view type) const;
  bool is_ready() const { return ready_; }                                // and has been sent what it missed
  const std::vector<std::string>& sessions() const { return sessions_; }  // frames of this connection

 private:
  void frame(const std::string& text);
  void session(const std::string& text, const std::vector<std::string>& cursors);
  void note_violation(const std::string& stream, const std::string& what, const std::string& frame);
  [[noreturn]] void fail(const std::string& what, const std::string& frame) const;

  const ClientOptions options_;
  std::shared_ptr<Connection> connection_;
  std::map<std::string, ReceivedStream> held_;
  std::string partial_;
  std::vector<std::string> sessions_;
  bool welcomed_ = false, ready_ = false, resumed_ = false;
};

/// `<stream>:<cursor>`
std::pair<std::string, std::string> split_position(const std::string& place);

}  // namespace earshot::sim
