// The file of the state directory that keeps until when the user has seen each session.
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
#include "serve/stream/seen_marks.hpp"

namespace earshot {

/// All calls on the thread that runs `io`, which also outlives this object; files are written on `disk`.
class SeenFile {
 public:
  static constexpr std::chrono::milliseconds delay{500};  // of a write: changes within it are one write

  /// `marks` is called when the file is written.
  SeenFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
           std::function<const serve::SeenMarks&()> marks);

  /// Before the loop runs. A file that is not one of SeenMarks is renamed to `<path>.torn`. Without a
  /// file everything before now counts as seen, and the file is written to remember this time.
  serve::SeenMarks read();
  void changed();
  /// After the loop and the disk threads: writes changes that are not stored yet.
  void flush();

 private:
  void write();

  const boost::asio::any_io_executor disk_;
  const std::string path_;
  const std::function<const serve::SeenMarks&()> marks_;
  Timer timer_;
  std::uint64_t revision_ = 0;  // of the marks
  const std::shared_ptr<std::atomic<std::uint64_t>> stored_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  bool is_scheduled_ = false;
};

}  // namespace earshot
