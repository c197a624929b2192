#include "browsers_file.hpp"

#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "base/file.hpp"
#include "log/log.hpp"

namespace earshot {
namespace {

std::string write(const std::string& path, const std::string& text) {
  std::string error = write_private_file(path, text);
  if (!error.empty()) log_warn("which browsers are signed in is not remembered: {}", error);
  return error;
}

}  // namespace

BrowsersFile::BrowsersFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::string path,
                           std::function<const serve::Browsers&()> browsers)
    : io_(io), disk_(std::move(disk)), path_(std::move(path)), browsers_(std::move(browsers)), timer_(io) {}

serve::Browsers BrowsersFile::read() {
  const PrivateFile file = read_private_file(path_, serve::Browsers::text_bytes_max);
  if (file.text) {
    if (auto browsers = serve::Browsers::parse(*file.text)) return std::move(*browsers);
  }
  if (file.text || !file.error.empty()) {
    const std::string aside = path_ + ".torn";
    const bool is_moved = std::rename(path_.c_str(), aside.c_str()) == 0;
    log_warn("{}{}{}: browsers must sign in again, with `earshot open`",
             file.text ? path_ + " is unreadable" : file.error, is_moved ? ", moved to " : "",
             is_moved ? aside : "");
  }
  return {};
}

void BrowsersFile::store(std::function<void(std::string)> done) {
  const std::uint64_t revision = ++revision_;
  boost::asio::post(disk_, [&io = io_, path = path_, text = browsers_().text(), revision, stored = stored_,
                            done = std::move(done)]() mutable {
    std::string error = write(path, text);
    if (error.empty()) *stored = revision;
    boost::asio::post(
        io, [done = std::move(done), error = std::move(error)]() mutable { done(std::move(error)); });
  });
}

void BrowsersFile::browser_used() {
  ++revision_;
  if (std::exchange(is_scheduled_, true)) return;
  timer_.expires_after(delay);
  timer_.async_wait([this](boost::system::error_code ec) {
    is_scheduled_ = false;
    if (!ec) store([](const std::string&) {});
  });
}

void BrowsersFile::flush() {
  if (*stored_ != revision_) write(path_, browsers_().text());
}

}  // namespace earshot
