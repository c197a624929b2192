#include "demo/demo.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "log/log.hpp"

namespace earshot::demo {

namespace fs = std::filesystem;

namespace {

constexpr int pause_ms = 3000;  // between two sessions

std::string create_directory() {
  const char* chosen = std::getenv("TMPDIR");
  for (const std::string& below : {std::string(chosen ? chosen : ""), std::string("/tmp")}) {
    if (below.empty()) continue;
    std::string path = below + "/earshot-demo-XXXXXX";
    if (::mkdtemp(path.data())) return path;  // 0700
  }
  throw std::system_error(errno, std::generic_category(), "no temporary directory for the demo");
}

}  // namespace

Demo::Demo(boost::asio::io_context& io, double speed)
    : speed_(speed), directory_(create_directory()), timer_(io) {
  for (const auto& [program, text] : session_files()) {
    const std::string path = directory_ + '/' + std::string(program);
    fs::create_directory(path);
    roots_.push_back({"demo-" + std::string(program), path, true, find_agent_program(program)});
    players_.emplace_back(text, path);
  }
}

Demo::~Demo() {
  stop();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void Demo::start() {
  if (*running_) return;
  *running_ = true;
  wait(players_[current_].begin());
}

void Demo::stop() {
  *running_ = false;
  timer_.cancel();
}

void Demo::wait(int ms) {
  const double scaled = speed_ > 0 ? ms * 1000.0 / speed_ : 0;
  timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(scaled)));
  timer_.async_wait([this, running = running_](const boost::system::error_code& failed) {
    if (failed || !*running) return;
    try {
      play();
    } catch (const std::exception& error) {  // such as a full disk: the daemon continues without it
      log_warn("the demo stops: {}", error.what());
      *running = false;
    }
  });
}

void Demo::play() {
  if (const auto ms = players_[current_].play()) return wait(*ms);
  old_.push_back(players_[current_].files());
  current_ = (current_ + 1) % players_.size();
  if (old_.size() > old_sessions_max) {
    std::error_code ignored;
    for (fs::path path : old_.front())  // and the directories that this leaves empty, but not the roots
      while (path.parent_path() != directory_ && fs::remove(path, ignored)) path = path.parent_path();
    old_.pop_front();
  }
  wait(pause_ms + players_[current_].begin());
}

}  // namespace earshot::demo
