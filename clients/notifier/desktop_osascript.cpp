// macOS: osascript. Notices can be neither replaced nor closed.
#include "notifier/command.hpp"
#include "notifier/desktop.hpp"
#include "notifier/worker.hpp"

namespace earshot::notifier {
namespace {

class Osascript : public Desktop {
 public:
  explicit Osascript(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void show(const QueuedNotice& queued) override {
    worker_.post([this, queued] {
      callbacks_.on_done(queued.key(), run_program(osascript_command(queued.notice), {}, {}, reply_ms_max));
    });
  }
  void close(const std::string&, const std::string&) override {}
  void open(const std::string& url) override { callbacks_.on_open_failed(url); }

 private:
  Callbacks callbacks_;
  Worker worker_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Callbacks callbacks, ShownNotices) {
  return std::make_unique<Osascript>(std::move(callbacks));
}

}  // namespace earshot::notifier
