// For systems without D-Bus and macOS.
#include "notifier/desktop.hpp"

namespace earshot::notifier {
namespace {

class NoDesktop : public Desktop {
 public:
  explicit NoDesktop(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void show(const QueuedNotice& queued) override {
    callbacks_.on_done(queued.key(),
                       {.permanent = true, .why = "this build has no desktop support: use another sink"});
  }
  void close(const std::string&, const std::string&) override {}
  void open(const std::string& url) override { callbacks_.on_open_failed(url); }

 private:
  Callbacks callbacks_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Callbacks callbacks, ShownNotices) {
  return std::make_unique<NoDesktop>(std::move(callbacks));
}

}  // namespace earshot::notifier
