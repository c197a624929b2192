// A subscriber that checks the guarantees of the protocol.
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

/// A received event and its cursor; without text: a cursor only.
struct Received {
  std::string cursor, text;
};

/// The events of a stream that a client has.
struct ReceivedStream {
  std::string base;  // it has all events it subscribed to after this cursor; empty: from the beginning
  std::vector<Received> events;  // after `base`
  bool unsure = false;           // after `lagged`: a session frame gives its position if anything was missed
  bool restarted = false;        // after a `reset` with an id: a session frame may give its position
  bool replaced = false;         // that session frame gave it: `base` includes all earlier events
  std::string violation;  // an event out of order: a reset must follow (after a hidden edit only at a resume)
  bool catching_up = false;  // events that `after` missed are still to be sent
  /// No subscribed event lies in between; compare() checks that.
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
    bool whole = false;              // resumes all existing streams from the beginning
    std::uint64_t second_after = 0;  // frames; then a second subscription resumes the same streams; 0: none
  };

  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  /// Connects and resumes what it has; `streams`: the existing streams, for a client with `whole`.
  void connect(std::shared_ptr<Connection> line, const std::set<std::string>& streams);
  void leave();
  bool connected() const { return connection_ && !connection_->ended; }
  Connection* line() { return connection_.get(); }

  /// Processes received frames. Throws std::runtime_error if they violate the protocol.
  void process_received();
  std::function<void(const std::string&)> trace;  // called for each frame; may be empty

  const ClientOptions& options() const { return options_; }
  const std::map<std::string, ReceivedStream>& held() const { return held_; }
  bool wants(std::string_view type) const;
  bool is_ready() const { return ready_; }                                // and received what it missed
  const std::vector<std::string>& sessions() const { return sessions_; }  // frames of this connection

 private:
  void subscribe(const std::string& id, const std::vector<std::string>& after);
  void frame(const std::string& text);
  void session(const std::string& text, const std::vector<std::string>& cursors);
  void note_violation(const std::string& stream, const std::string& what, const std::string& frame);
  [[noreturn]] void fail(const std::string& what, const std::string& frame) const;

  const ClientOptions options_;
  std::shared_ptr<Connection> connection_;
  std::map<std::string, ReceivedStream> held_;
  std::string partial_;
  std::uint64_t frames_ = 0;  // of this connection
  std::vector<std::string> sessions_;
  bool welcomed_ = false, ready_ = false, resumed_ = false;
  bool second_pending_ = false;  // events that the second subscription requested are still to be sent
};

/// `<stream>:<cursor>`
std::pair<std::string, std::string> split_position(const std::string& place);

}  // namespace earshot::sim
