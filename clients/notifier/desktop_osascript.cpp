// macOS: osascript. Notices can be neither replaced nor closed.
#include "notifier/command.hpp"
#include "notifier/desktop.hpp"
#include "notifier/worker.hpp"

namespace earshot::notifier {
namespace {

class Osascript : public Desktop {
 public:
  explicit Osascript(Hooks hooks) : hooks_(std::move(hooks)) {}
  void show(const QueuedNotice& queued) override {
    worker_.post([this, queued] {
      hooks_.done(queued.key(), run_words(osascript_words(queued.notice), {}, {}, answer_ms));
    });
  }
  void close(const std::string&, const std::string&) override {}
  void open(const std::string& url) override { hooks_.cannot_open(url); }

 private:
  Hooks hooks_;
  Worker worker_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Hooks hooks, Shown) {
  return std::make_unique<Osascript>(std::move(hooks));
}

}  // namespace earshot::notifier
