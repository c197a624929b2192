#include "otlp/position_file.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "base/file.hpp"
#include "log/log.hpp"

namespace earshot::otlp {

PositionFile::PositionFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
                           std::chrono::milliseconds retain)
    : disk_(std::move(disk)), path_(std::move(path)), retain_(retain), timer_(io) {}

void PositionFile::read() {
  const SmallFile file = read_small_file(path_, Positions::text_bytes_max);
  if (auto found = file.ok() ? Positions::parse(file.text) : std::nullopt) {
    positions_ = std::move(*found);
  } else if (!file.is_missing()) {
    const std::string aside = path_ + ".torn";
    const bool is_moved = std::rename(path_.c_str(), aside.c_str()) == 0;
    log_warn("otlp: {} is unreadable{}{}: recent events are exported again", path_,
             is_moved ? ", moved to " : "", is_moved ? aside : "");
  }
}

void PositionFile::set(const std::string& stream, Position position) {
  const Position* known = positions_.find(stream);
  if (known && *known == position) return;
  positions_.set(stream, std::move(position));
  changed();
}

void PositionFile::changed() {
  ++revision_;
  write_after(problem_.empty() ? delay : failed_delay);
}

void PositionFile::write_after(std::chrono::milliseconds wait) {
  if (std::exchange(is_scheduled_, true)) return;
  timer_.expires_after(wait);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) write();
  });
}

const Positions& PositionFile::kept() {
  positions_.drop_before(wall_now_ms() - retain_.count());
  return positions_;
}

/// The text of thousands of streams takes milliseconds: it is made on `disk_`, from a copy.
void PositionFile::write() {
  is_scheduled_ = false;
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), path = path_, positions = kept(),
                            revision = revision_, loop = timer_.get_executor()] {
    std::string error = write_private_file(path, positions.text());
    boost::asio::post(loop, [this, alive, revision, error = std::move(error)] {
      if (!alive.expired()) on_written(revision, error);
    });
  });
}

/// Warns once, not with each attempt.
void PositionFile::on_written(std::uint64_t revision, const std::string& error) {
  if (error.empty()) {
    stored_ = std::max(stored_, revision);
    if (!std::exchange(problem_, {}).empty()) log_info("otlp: what was exported is remembered again");
    return;
  }
  if (problem_.empty())
    log_warn("otlp: what was exported is not remembered, and would be sent again after a restart: {}", error);
  problem_ = error;
  write_after(failed_delay);
}

void PositionFile::flush() {
  if (stored_ != revision_) on_written(revision_, write_private_file(path_, kept().text()));
}

}  // namespace earshot::otlp
