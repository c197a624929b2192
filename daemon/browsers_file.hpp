// The file of the state directory that keeps which browsers are signed in.
#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "serve/auth/browsers.hpp"

namespace earshot {

/// All calls on the thread that runs `io`, which also outlives this object; files are written on `disk`, one
/// after another.
class BrowsersFile {
 public:
  static constexpr std::chrono::seconds delay{5};  // of a write of when browsers were last used

  /// `browsers` is called when the file is written.
  BrowsersFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
               std::function<const serve::Browsers&()> browsers);

  /// Before the loop runs. A file that others could have written or that is damaged is renamed to
  /// `<path>.torn`: browsers must sign in anew.
  serve::Browsers read();
  /// Writes the file; `done` is called on the loop, with an error for users (empty: stored).
  void store(std::function<void(std::string error)> done);
  void browser_used();
  /// After the loop and the disk threads: writes what is not stored yet.
  void flush();

 private:
  boost::asio::io_context& io_;
  const boost::asio::any_io_executor disk_;
  const std::string path_;
  const std::function<const serve::Browsers&()> browsers_;
  Timer timer_;
  std::uint64_t revision_ = 0;
  const std::shared_ptr<std::atomic<std::uint64_t>> stored_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  bool is_scheduled_ = false;
};

}  // namespace earshot
