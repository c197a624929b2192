#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {

Sinks::Sinks(Desktop::Callbacks callbacks, ShownNotices shown)
    : on_done_(callbacks.on_done), desktop_(Desktop::make(std::move(callbacks), std::move(shown))) {}

void Sinks::stop() {
  stop_at_ = std::chrono::steady_clock::now() + shutdown_grace;
  workers_.clear();
  desktop_.reset();
}

void Sinks::send(const Sink& sink, const QueuedNotice& queued) {
  if (sink.kind == SinkKind::desktop) return desktop_->show(queued);
  workers_[sink.name].post([this, &sink, queued] {
    const auto is_stopped = [this] { return std::chrono::steady_clock::now() > stop_at_.load(); };
    on_done_(queued.key(), sink.kind == SinkKind::bell      ? write_bell(sink)
                           : sink.kind == SinkKind::command ? run_command(sink, queued.notice)
                                                            : send_webhook(sink, queued.notice, is_stopped));
  });
}

void Desktop::close(const std::string&, const std::string&) {}

std::vector<std::string> osascript_command(const Notice& notice) {
  return {"osascript",
          "-e",
          "on run argv",
          "-e",
          "display notification (item 2 of argv) with title (item 1 of argv) subtitle (item 3 of argv)",
          "-e",
          "end run",
          "--",
          notice.title,
          notice.body,
          notice.urgency == Urgency::critical ? "earshot: needs your attention" : "earshot"};
}

#ifndef EARSHOT_DBUS  // otherwise desktop_dbus.cpp is compiled
// osascript on macOS, whose notices can be neither replaced nor closed; otherwise no desktop.
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
#endif

}  // namespace earshot::notifier
