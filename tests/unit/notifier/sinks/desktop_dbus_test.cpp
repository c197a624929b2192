// The desktop sink on a session bus that the test plays: it decides when, and whether, a call is answered.
#if __has_include(<systemd/sd-bus.h>) && !defined(__APPLE__)
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/system.hpp"
#include "notifier/sinks/sinks.hpp"
#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

constexpr const char* server_name = "org.freedesktop.Notifications";
constexpr const char* no_server = "org.freedesktop.DBus.Error.NameHasNoOwner";

/// One connection of a session bus. Calls are counted; those in `held` are answered by answer().
class FakeBus {
 public:
  FakeBus() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ / "bus";
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    ::setenv("DBUS_SESSION_BUS_ADDRESS", ("unix:path=" + path).c_str(), 1);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeBus() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
  }
  FakeBus(const FakeBus&) = delete;
  FakeBus& operator=(const FakeBus&) = delete;

  /// Calls of this method are answered only by answer().
  void hold(const std::string& method) {
    const std::lock_guard lock(mutex_);
    held_[method];
  }
  /// Whether there is a notification server.
  void set_server(bool present) {
    run_there([this, present] {
      has_server_ = present;
      sd_bus_message* signal = nullptr;
      sd_bus_message_new_signal(bus_, &signal, "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                "NameOwnerChanged");
      sd_bus_message_set_sender(signal, "org.freedesktop.DBus");
      sd_bus_message_append(signal, "sss", server_name, present ? "" : ":1.2", present ? ":1.2" : "");
      sd_bus_send(bus_, signal, nullptr);
      sd_bus_message_unref(signal);
    });
  }
  /// Answers the held calls of this method with an error.
  void answer(const std::string& method) {
    post([this, method] {
      const std::lock_guard lock(mutex_);
      for (sd_bus_message* call : std::exchange(held_[method], {})) {
        sd_bus_reply_method_errorf(call, no_server, "late");
        sd_bus_message_unref(call);
      }
    });
  }
  /// The user chooses an action of a notice.
  void invoke(std::uint32_t id, const std::string& action) {
    run_there([this, id, action] {
      sd_bus_message* signal = nullptr;
      sd_bus_message_new_signal(bus_, &signal, "/org/freedesktop/Notifications", server_name,
                                "ActionInvoked");
      sd_bus_message_set_sender(signal, server_name);
      sd_bus_message_append(signal, "us", id, action.c_str());
      sd_bus_send(bus_, signal, nullptr);
      sd_bus_message_unref(signal);
    });
  }
  /// The server does not support actions.
  void refuse_actions() { has_actions_ = false; }
  void remove_manager() {
    run_there([this] { has_manager_ = false; });
  }
  /// Of the latest unit: the program, then its arguments from the name on.
  std::string command() {
    const std::lock_guard lock(mutex_);
    return command_;
  }
  /// Of the latest notice: names and labels.
  std::string actions() {
    const std::lock_guard lock(mutex_);
    return actions_;
  }
  std::size_t count(const std::string& method) {
    const std::lock_guard lock(mutex_);
    return counts_[method];
  }

 private:
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  /// Returns when the thread has done it: later calls of the other side are handled after it.
  void run_there(const std::function<void()>& work) {
    const auto done = std::make_shared<std::promise<void>>();
    post([work, done] {
      work();
      done->set_value();
    });
    REQUIRE(done->get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  }

  static int on_call(sd_bus_message* call, void* user_data, sd_bus_error*) {
    auto& self = *static_cast<FakeBus*>(user_data);
    const char* const member = sd_bus_message_get_member(call);
    if (sd_bus_message_is_method_call(call, nullptr, nullptr) <= 0 || member == nullptr) return 0;
    const std::string method = member;
    const std::lock_guard lock(self.mutex_);
    ++self.counts_[method];
    if (const auto held = self.held_.find(method); held != self.held_.end()) {
      held->second.push_back(sd_bus_message_ref(call));
      return 1;
    }
    if (method == "Hello") return sd_bus_reply_method_return(call, "s", ":1.1");
    const char* const interface = sd_bus_message_get_interface(call);
    if (interface != nullptr && std::strcmp(interface, server_name) == 0 && !self.has_server_)
      return sd_bus_reply_method_errorf(call, no_server, "no server");
    if (method == "GetCapabilities")
      return sd_bus_reply_method_return(call, "as", 1, self.has_actions_ ? "actions" : "body");
    if (method == "Notify") self.read_actions(call);
    if (method == "StartTransientUnit") {
      self.read_command(call);
      return self.has_manager_ ? sd_bus_reply_method_return(call, "o", "/job/1")
                               : sd_bus_reply_method_errorf(call, no_server, "no manager");
    }
    if (method == "Notify") return sd_bus_reply_method_return(call, "u", ++self.last_id_);
    return sd_bus_reply_method_return(call, "");
  }

  void read_actions(sd_bus_message* call) {
    actions_.clear();
    sd_bus_message_skip(call, "susss");
    sd_bus_message_enter_container(call, 'a', "s");
    const char* word = nullptr;
    while (sd_bus_message_read_basic(call, 's', &word) > 0)
      actions_ += (actions_.empty() ? "" : " ") + std::string(word);
  }

  void read_command(sd_bus_message* call) {
    command_.clear();
    const char *unit = nullptr, *mode = nullptr, *word = nullptr;
    sd_bus_message_read(call, "ss", &unit, &mode);
    sd_bus_message_enter_container(call, 'a', "(sv)");
    while (sd_bus_message_enter_container(call, 'r', "sv") > 0) {
      sd_bus_message_read(call, "s", &word);
      if (std::strcmp(word, "ExecStart") == 0) {
        sd_bus_message_enter_container(call, 'v', "a(sasb)");
        sd_bus_message_enter_container(call, 'a', "(sasb)");
        sd_bus_message_enter_container(call, 'r', "sasb");
        sd_bus_message_read(call, "s", &word);
        command_ = word;
        sd_bus_message_enter_container(call, 'a', "s");
        while (sd_bus_message_read_basic(call, 's', &word) > 0) command_ += std::string("|") + word;
        return;
      }
      sd_bus_message_skip(call, "v");
      sd_bus_message_exit_container(call);
    }
  }

  void run() {
    const int connection = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    sd_id128_t id{};
    sd_id128_randomize(&id);
    sd_bus_new(&bus_);
    sd_bus_set_fd(bus_, connection, connection);  // which it closes
    sd_bus_set_server(bus_, 1, id);
    sd_bus_set_anonymous(bus_, 1);
    sd_bus_add_filter(bus_, nullptr, on_call, this);
    sd_bus_start(bus_);
    while (!stopping_) {
      std::vector<std::function<void()>> work;
      {
        const std::lock_guard lock(mutex_);
        work = std::exchange(work_, {});
      }
      for (const auto& each : work) each();
      const int more = sd_bus_process(bus_, nullptr);
      if (more < 0) break;
      if (more == 0) sd_bus_wait(bus_, 10'000);
    }
    for (auto& [method, calls] : held_) {
      for (sd_bus_message* call : calls) sd_bus_message_unref(call);
    }
    sd_bus_close_unref(bus_);
  }

  TemporaryDirectory directory_;
  Fd listener_;
  sd_bus* bus_ = nullptr;   // used by the thread
  bool has_server_ = true;  // likewise
  std::atomic<bool> has_actions_ = true;
  bool has_manager_ = true;
  std::uint32_t last_id_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards the rest
  std::map<std::string, std::vector<sd_bus_message*>> held_;
  std::map<std::string, std::size_t> counts_;
  std::string actions_, command_;
  std::vector<std::function<void()>> work_;
  std::thread thread_;
};

/// The desktop sink on the bus, and what it reported.
class DesktopHarness {
 public:
  DesktopHarness()
      : desktop_(Desktop::make(
            {[this](const std::string& key, const Delivery& delivery) {
               add(key + (delivery.done ? " done" : " failed: " + delivery.why));
             },
             [this](const ShownNotices::Entry& entry) { add("clicked " + entry.link); },
             [this](const ShownNotices::Entry& entry) { add("focus " + entry.session); },
             [this](const ShownNotices& shown) { add("shown " + std::to_string(shown.entries.size())); },
             [this](const std::string& url) { add("not opened " + url); },
             [this](const std::vector<std::string>& command) { add("not run " + command.back()); }},
            {})) {}
  Desktop& operator*() { return *desktop_; }
  Desktop* operator->() { return desktop_.get(); }
  void show(const std::string& id, bool is_update = false) {
    QueuedNotice queued{sample_notice("title", "body"), "desktop"};
    queued.notice.id = id;
    queued.notice.slot = "slot";
    queued.is_update = is_update;
    desktop_->show(queued);
  }
  /// A notice about a session.
  void show_session(const std::string& id, const std::string& session, bool is_here) {
    QueuedNotice queued{sample_notice("title", "body"), "desktop"};
    queued.notice.id = id;
    queued.notice.slot = queued.notice.session = session;
    queued.notice.link = "http://h.test/?session=" + session;
    queued.notice.is_here = is_here;
    desktop_->show(queued);
  }
  /// Waits until this was reported `times` times.
  void wait(const std::string& what, std::ptrdiff_t times = 1) {
    std::unique_lock lock(mutex_);
    INFO(what);
    REQUIRE(wake_.wait_for(lock, std::chrono::seconds(60), [&] { return count(what) >= times; }));
  }
  std::ptrdiff_t reported(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return count(what);
  }

 private:
  std::ptrdiff_t count(const std::string& what) const {
    return std::count_if(reports_.begin(), reports_.end(),
                         [&](const std::string& each) { return each.starts_with(what); });
  }
  void add(std::string report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    wake_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::string> reports_;
  std::unique_ptr<Desktop> desktop_;
};

template <class Condition>
void wait_until(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

TEST_CASE("a notice is displayed, refined while it is displayed, and closed") {
  FakeBus bus;
  DesktopHarness desktop;
  desktop.show("a");
  desktop.wait("a-desktop done");
  desktop.show("a", true);
  desktop.wait("a-desktop done", 2);
  CHECK(bus.count("Notify") == 2);
  desktop.show("b", true);  // of a notice that is not displayed
  desktop.wait("b-desktop done");
  CHECK(bus.count("Notify") == 2);
  desktop->close("slot", "a");
  desktop.wait("shown 0", 2);
  wait_until([&] { return bus.count("CloseNotification") == 1; });
}

TEST_CASE("fault 102: a reply that arrives after its notification server is gone is handled once") {
  FakeBus bus;
  bus.hold("OpenURI");
  DesktopHarness desktop;
  desktop.show("a");
  desktop.wait("a-desktop done");
  desktop->open("http://127.0.0.1/#code");
  wait_until([&] { return bus.count("OpenURI") == 1; });
  bus.set_server(false);
  desktop.wait("shown 0", 2);
  desktop.show("b");  // fails: no notification server answers
  desktop.wait("b-desktop failed: no notification server");
  bus.answer("OpenURI");
  desktop.wait("not opened http://127.0.0.1/#code");
  bus.set_server(true);
  desktop.show("c");
  desktop.wait("c-desktop done");
  CHECK(desktop.reported("not opened") == 1);
}

TEST_CASE(
    "fault 102: calls without a reply are cancelled when the desktop stops, and fail when the bus closes") {
  for (const bool bus_first : {true, false}) {
    auto bus = std::make_unique<FakeBus>();
    bus->hold("OpenURI");
    bus->hold("Notify");
    DesktopHarness desktop;
    desktop.show("a");
    desktop->open("http://127.0.0.1/#code");
    wait_until([&] { return bus->count("OpenURI") == 1 && bus->count("Notify") == 1; });
    if (!bus_first) continue;  // the desktop is destroyed before the bus
    bus.reset();
    desktop.wait("a-desktop failed");
    desktop.wait("not opened http://127.0.0.1/#code");
  }
}

TEST_CASE("a notice has the action Focus if its session runs here, each action names the session") {
  FakeBus bus;
  DesktopHarness desktop;
  desktop.show_session("a", "one", true);
  desktop.wait("a-desktop done");
  CHECK(bus.actions() == "default Open open Open focus Focus");
  desktop.show_session("b", "two", false);
  desktop.wait("b-desktop done");
  CHECK(bus.actions() == "default Open open Open");
  bus.invoke(1, "focus");
  desktop.wait("focus one");
  bus.invoke(1, "default");
  desktop.wait("clicked http://h.test/?session=one");
  bus.invoke(2, "open");
  desktop.wait("clicked http://h.test/?session=two");
  bus.invoke(2, "focus");  // was not offered
  desktop.wait("clicked http://h.test/?session=two", 2);
  bus.invoke(7, "focus");  // of another program
  bus.invoke(1, "focus");
  desktop.wait("focus one", 2);
  CHECK(desktop.reported("focus") == 2);
}

TEST_CASE("a command runs outside as a unit of the service manager, or it is returned") {
  FakeBus bus;
  DesktopHarness desktop;
  desktop->run_outside({"/opt/ear shot/earshot", "focus", "--", "s 1"});
  wait_until([&] { return bus.count("StartTransientUnit") == 1; });
  CHECK(bus.command() == "/opt/ear shot/earshot|/opt/ear shot/earshot|focus|--|s 1");
  desktop->run_outside({"/usr/bin/earshot", "focus", "--", "$HOME"});  // the manager would replace it
  desktop.wait("not run $HOME");
  desktop->run_outside({"earshot", "focus", "--", "relative"});
  desktop.wait("not run relative");
  CHECK(bus.count("StartTransientUnit") == 1);
  bus.remove_manager();
  desktop->run_outside({"/usr/bin/earshot", "focus", "--", "s2"});
  desktop.wait("not run s2");
  CHECK(desktop.reported("not run") == 3);
}

TEST_CASE("a server without actions receives none") {
  FakeBus bus;
  bus.refuse_actions();
  DesktopHarness desktop;
  desktop.show_session("a", "one", true);
  desktop.wait("a-desktop done");
  CHECK(bus.actions().empty());
}
#endif
