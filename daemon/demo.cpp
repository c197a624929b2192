#include "demo.hpp"

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "demo_player.hpp"
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

struct Demo::Impl : std::enable_shared_from_this<Demo::Impl> {
  Impl(boost::asio::io_context& io, double given_speed)
      : speed(given_speed), directory(create_directory()), timer(io) {
    for (const AgentProgram* program : agent_programs()) {
      const std::string path = directory + '/' + std::string(program->program());
      auto player = make_player(program->program(), path);
      if (!player) continue;
      fs::create_directory(path);
      roots.push_back({"demo-" + std::string(program->program()), path, true, program});
      players.push_back(std::move(player));
    }
  }

  void begin();
  void next();
  void end();
  void wait(int ms, void (Impl::*then)());

  double speed;
  std::string directory;
  boost::asio::steady_timer timer;
  std::vector<Root> roots;
  std::vector<std::unique_ptr<Player>> players;  // of the roots, in their order
  std::size_t current = 0;                       // player
  std::deque<std::vector<std::string>> old;      // the files of each ended session, oldest first
  bool running = false;
};

void Demo::Impl::wait(int ms, void (Impl::*then)()) {
  const double scaled = speed > 0 ? ms * 1000.0 / speed : 0;
  timer.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(scaled)));
  timer.async_wait([weak = weak_from_this(), then](const boost::system::error_code& failed) {
    const auto self = weak.lock();
    if (failed || !self || !self->running) return;
    try {
      (self.get()->*then)();
    } catch (const std::exception& error) {  // such as a full disk: the daemon goes on without the demo
      log_warn("the demo stops: {}", error.what());
      self->running = false;
    }
  });
}

void Demo::Impl::begin() { wait(players[current]->begin(), &Impl::next); }

void Demo::Impl::next() {
  if (const auto ms = players[current]->play()) return wait(*ms, &Impl::next);
  end();
  wait(pause_ms, &Impl::begin);
}

void Demo::Impl::end() {
  old.push_back(players[current]->files());
  current = (current + 1) % players.size();
  while (old.size() > old_sessions_max) {
    for (const std::string& path : old.front()) fs::remove_all(path);
    old.pop_front();
  }
}

Demo::Demo(boost::asio::io_context& io, double speed) : impl_(std::make_shared<Impl>(io, speed)) {}

Demo::~Demo() {
  stop();
  std::error_code ignored;
  fs::remove_all(impl_->directory, ignored);
}

const std::vector<Root>& Demo::roots() const { return impl_->roots; }

void Demo::start() {
  if (impl_->running) return;
  impl_->running = true;
  impl_->begin();
}

void Demo::stop() {
  impl_->running = false;
  impl_->timer.cancel();
}

}  // namespace earshot::demo
