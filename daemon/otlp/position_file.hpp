// The file of the state directory that keeps what was exported.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "otlp/positions.hpp"

namespace earshot::otlp {

/// All calls on the thread that runs `io`, which also outlives this object; the file is written on `disk`.
class PositionFile {
 public:
  static constexpr std::chrono::milliseconds delay{500};  // of a write: changes within it are one write
  static constexpr std::chrono::milliseconds failed_delay{
      30'000};  // after one that failed, as on a full disk

  /// Events before `retain` are not exported again, so their streams are not kept.
  PositionFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
               std::chrono::milliseconds retain);

  /// Before the loop runs. A file with another content is renamed to `<path>.torn`, and everything within
  /// `retain` is exported again.
  void read();
  const Positions& positions() const { return positions_; }
  void set(const std::string& stream, Position position);
  /// After the loop and the disk threads: writes the positions that are not stored yet.
  void flush();
  /// Why what was exported is not remembered, for users; empty: it is.
  const std::string& problem() const { return problem_; }

 private:
  void changed();
  void write_after(std::chrono::milliseconds wait);
  void write();
  void on_written(std::uint64_t revision, const std::string& error);
  const Positions& kept();

  const boost::asio::any_io_executor disk_;
  const std::string path_;
  const std::chrono::milliseconds retain_;
  Timer timer_;
  Positions positions_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::uint64_t revision_ = 0, stored_ = 0;
  std::string problem_;
  bool is_scheduled_ = false;
};

}  // namespace earshot::otlp
