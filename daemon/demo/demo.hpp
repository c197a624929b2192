// Plays small invented sessions into a temporary directory, one of each agent program in turn, so that a new
// user sees events within a minute.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agents/roots.hpp"
#include "demo/player.hpp"

namespace earshot::demo {

class Demo {
 public:
  static constexpr std::size_t old_sessions_max = 5;  // older ones are removed

  /// Creates the directory, 0700, below $TMPDIR or /tmp; the destructor removes it with its contents.
  /// Throws std::system_error on failure. `speed` 2 is twice as fast; 0 or less is as fast as possible.
  explicit Demo(boost::asio::io_context& io, double speed = 1.0);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  /// A root of each program, in the order in which their sessions are played.
  const std::vector<Root>& roots() const { return roots_; }
  void start();
  void stop();

 private:
  void wait(int ms);
  void play();

  double speed_;
  std::string directory_;
  boost::asio::steady_timer timer_;
  std::vector<Root> roots_;
  std::vector<Player> players_;            // of the roots, in their order
  std::size_t current_ = 0;                // player
  std::deque<std::set<std::string>> old_;  // the files of each ended session, oldest first
  std::shared_ptr<bool> running_ = std::make_shared<bool>(false);  // waiting handlers share it
};

}  // namespace earshot::demo
