#include "seen_file.hpp"

#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "base/file.hpp"
#include "log/log.hpp"

namespace earshot {
namespace {

void store(const std::string& path, const std::string& text) {
  const std::string error = write_private_file(path, text);
  if (!error.empty()) log_warn("which sessions you have seen is not remembered: {}", error);
}

}  // namespace

SeenFile::SeenFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
                   std::function<const serve::SeenMarks&()> marks)
    : disk_(std::move(disk)), path_(std::move(path)), marks_(std::move(marks)), timer_(io) {}

serve::SeenMarks SeenFile::read() {
  const SmallFile file = read_small_file(path_, serve::SeenMarks::text_bytes_max);
  if (auto marks = file.ok() ? serve::SeenMarks::parse(file.text) : std::nullopt) return std::move(*marks);
  if (!file.is_missing()) {
    const std::string aside = path_ + ".torn";
    const bool is_moved = std::rename(path_.c_str(), aside.c_str()) == 0;
    log_warn("{} is unreadable{}{}: all sessions count as seen", path_, is_moved ? ", moved to " : "",
             is_moved ? aside : "");
  }
  changed();
  return serve::SeenMarks(wall_now_ms());
}

void SeenFile::changed() {
  ++revision_;
  if (std::exchange(is_scheduled_, true)) return;
  timer_.expires_after(delay);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) write();
  });
}

void SeenFile::write() {
  is_scheduled_ = false;
  boost::asio::post(disk_, [path = path_, text = marks_().text(), revision = revision_, stored = stored_] {
    store(path, text);
    *stored = revision;
  });
}

void SeenFile::flush() {
  if (*stored_ != revision_) store(path_, marks_().text());
}

}  // namespace earshot
