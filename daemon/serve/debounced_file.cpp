#include "serve/debounced_file.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "base/file.hpp"
#include "log/log.hpp"

namespace earshot::serve {

DebouncedFile::DebouncedFile(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                             Settings settings, std::function<Text()> copy)
    : disk_(std::move(disk)), settings_(std::move(settings)), copy_(std::move(copy)), timer_(io) {}

std::optional<std::string> DebouncedFile::read_text(std::size_t bytes_max) const {
  if (settings_.is_private) {
    PrivateFile file = read_private_file(settings_.path, bytes_max);
    if (!file.error.empty()) set_aside(file.error);
    return std::move(file.text);
  }
  SmallFile file = read_small_file(settings_.path, bytes_max);
  if (file.ok()) return std::move(file.text);
  if (!file.is_missing()) set_aside(settings_.path + " is unreadable");
  return std::nullopt;
}

void DebouncedFile::set_aside(const std::string& reason) const {
  const std::string aside = settings_.path + ".torn";
  const bool is_moved = std::rename(settings_.path.c_str(), aside.c_str()) == 0;
  log_warn("{}{}{}: {}", reason, is_moved ? ", moved to " : "", is_moved ? aside : "", settings_.if_damaged);
}

void DebouncedFile::changed() {
  ++revision_;
  write_after(problem_.empty() ? settings_.delay : settings_.retry_delay);
}

void DebouncedFile::store(Done done) {
  ++revision_;
  write(std::move(done));
}

void DebouncedFile::write_after(std::chrono::milliseconds wait) {
  if (std::exchange(is_scheduled_, true)) return;
  timer_.expires_after(wait);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (ec) return;
    is_scheduled_ = false;
    if (stored_ != revision_) write({});
  });
}

void DebouncedFile::write(Done done) {
  boost::asio::post(
      disk_, [this, alive = std::weak_ptr<char>(alive_), path = settings_.path, text = copy_(),
              revision = revision_, loop = timer_.get_executor(), done = std::move(done)]() mutable {
        std::string error = write_private_file(path, text());
        boost::asio::post(loop, [this, alive, revision, error = std::move(error), done = std::move(done)] {
          if (!alive.expired()) on_written(revision, error);
          if (done) done(error);
        });
      });
}

/// Warns once, not with each attempt.
void DebouncedFile::on_written(std::uint64_t revision, const std::string& error) {
  if (error.empty()) {
    stored_ = std::max(stored_, revision);
    if (!std::exchange(problem_, {}).empty()) log_info("{} is remembered again", settings_.what);
    return;
  }
  const bool is_known = !problem_.empty();
  problem_ = settings_.what + " is not remembered: " + error;
  if (!is_known) log_warn("{}", problem_);
  write_after(settings_.retry_delay);
}

void DebouncedFile::flush() {
  if (stored_ != revision_) on_written(revision_, write_private_file(settings_.path, copy_()()));
}

}  // namespace earshot::serve
