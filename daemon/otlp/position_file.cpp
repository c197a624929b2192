#include "otlp/position_file.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "base/file.hpp"

namespace earshot::otlp {
namespace {

void store(const std::string& path, const std::string& text) {
  const std::string error = write_private_file(path, text);
  if (!error.empty()) spdlog::warn("otlp: what was exported is not remembered: {}", error);
}

}  // namespace

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
    spdlog::warn("otlp: {} is unreadable{}{}: recent events are exported again", path_,
                 is_moved ? ", moved to " : "", is_moved ? aside : "");
  }
}

void PositionFile::set(const std::string& stream, Position position) {
  const Position* known = positions_.find(stream);
  if (known && *known == position) return;
  positions_.set(stream, std::move(position));
  changed();
}

void PositionFile::remove(std::string_view stream) {
  if (!positions_.find(stream)) return;
  positions_.remove(stream);
  changed();
}

void PositionFile::changed() {
  ++revision_;
  if (std::exchange(is_scheduled_, true)) return;
  timer_.expires_after(delay);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) write();
  });
}

std::string PositionFile::text() {
  positions_.drop_before(wall_now_ms() - retain_.count());
  return positions_.text();
}

void PositionFile::write() {
  is_scheduled_ = false;
  boost::asio::post(disk_, [path = path_, text = text(), revision = revision_, stored = stored_] {
    store(path, text);
    *stored = revision;
  });
}

void PositionFile::flush() {
  if (*stored_ == revision_) return;
  store(path_, text());
  *stored_ = revision_;
}

}  // namespace earshot::otlp
