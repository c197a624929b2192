// Plays small invented sessions into a temporary directory, one of each agent program in turn, so that a new
// user sees events within a minute.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "agents/roots.hpp"

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
  const std::vector<Root>& roots() const;
  void start();
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::demo
