// Without D-Bus: osascript on macOS, whose notices can be neither replaced nor closed; otherwise no desktop.
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {
namespace {

class FallbackDesktop : public Desktop {
 public:
  explicit FallbackDesktop(Callbacks callbacks) : Desktop(std::move(callbacks)) {}
  void show(const QueuedNotice& queued) override {
#ifdef __APPLE__
    if (queued.is_update) return callbacks_.on_done(queued.key(), {.done = true});  // it cannot be replaced
    worker_.post([this, queued] {
      callbacks_.on_done(queued.key(), run_program(osascript_command(queued.notice), {}, {}, reply_ms_max));
    });
#else
    callbacks_.on_done(queued.key(),
                       {.permanent = true, .why = "this build has no desktop support: use another sink"});
#endif
  }

 private:
  Worker worker_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Callbacks callbacks, ShownNotices) {
  return std::make_unique<FallbackDesktop>(std::move(callbacks));
}

}  // namespace earshot::notifier
