// A small session that plays in a loop into a temporary root: a newcomer sees events within the first minute.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

namespace earshot::demo {

class Demo {
 public:
  static constexpr std::size_t old_sessions_max = 5;  // older ones are removed

  /// Makes the root, 0700, below $TMPDIR or /tmp; it is removed with everything in it when the object goes.
  /// Throws std::system_error when that cannot be done. `speed` 2 is twice as fast; 0 or less, as fast as
  /// possible.
  explicit Demo(boost::asio::io_context& io, double speed = 1.0);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  const std::string& root() const;
  void start();
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::demo
