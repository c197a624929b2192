// macOS: shown by osascript; it can neither be replaced nor closed.
#include "notifier/command.hpp"
#include "notifier/desktop.hpp"
#include "notifier/worker.hpp"

namespace earshot::notifier {
namespace {

class Osascript : public Desktop {
 public:
  explicit Osascript(Hooks hooks) : hooks_(std::move(hooks)) {}
  void show(const Letter& letter) override {
    worker_.post([this, letter] {
      hooks_.done(letter.key(), run_words(osascript_words(letter.notice), {}, {}, answer_ms));
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
