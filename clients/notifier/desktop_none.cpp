// For systems without D-Bus and macOS.
#include "notifier/desktop.hpp"

namespace earshot::notifier {
namespace {

class NoDesktop : public Desktop {
 public:
  explicit NoDesktop(Hooks hooks) : hooks_(std::move(hooks)) {}
  void show(const QueuedNotice& queued) override {
    hooks_.done(queued.key(), {.permanent = true, .why = "this build has no desktop support: use another sink"});
  }
  void close(const std::string&, const std::string&) override {}
  void open(const std::string& url) override { hooks_.cannot_open(url); }

 private:
  Hooks hooks_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Hooks hooks, Shown) {
  return std::make_unique<NoDesktop>(std::move(hooks));
}

}  // namespace earshot::notifier
