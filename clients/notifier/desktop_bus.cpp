// Linux: org.freedesktop.Notifications on the session bus, with sd-bus, on a separate thread so that a bus
// that hangs blocks nothing else.
#include <poll.h>
#include <sys/eventfd.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <variant>

#include "common/http.hpp"
#include "notifier/desktop.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* server_name = "org.freedesktop.Notifications";
constexpr const char* server_path = "/org/freedesktop/Notifications";
constexpr const char* portal_name = "org.freedesktop.portal.Desktop";
constexpr const char* portal_path = "/org/freedesktop/portal/desktop";
constexpr std::chrono::milliseconds reconnect_pause{1000};
constexpr std::uint64_t reply_usec = Desktop::reply_ms_max * 1000;

struct Bus {
  sd_bus* bus = nullptr;
  Bus() = default;
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus() { close(); }
  void close() {
    if (bus != nullptr) sd_bus_close_unref(bus);
    bus = nullptr;
  }
};

struct Message {
  sd_bus_message* message = nullptr;
  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { sd_bus_message_unref(message); }
};

class BusDesktop : public Desktop {
 public:
  BusDesktop(Callbacks callbacks, ShownNotices before)
      : callbacks_(std::move(callbacks)),
        shown_(std::move(before)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { run(); }) {}

  ~BusDesktop() override {
    post(Stop{});
    thread_.join();
    ::close(wake_);
  }

  void show(const QueuedNotice& queued) override { post(queued); }
  void close(const std::string& slot, const std::string& notice) override { post(Closing{slot, notice}); }
  void open(const std::string& url) override { post(Page{url}); }

 private:
  struct Stop {};
  struct Closing {
    std::string slot, notice;
  };
  struct Page {
    std::string url;
  };
  using Task = std::variant<QueuedNotice, Closing, Page, Stop>;

  // A call whose reply is pending.
  struct Call {
    BusDesktop* self;
    std::string key, slot, notice, url;
    bool close_at_once = false;  // the notice was answered before the server replied with its id
  };

  void post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    if (::write(wake_, &one, sizeof one) < 0) return;  // the counter is at its maximum: the thread is awake
  }

  std::deque<Task> take_tasks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(tasks_, {});
  }

  void run() {
    while (true) {
      for (Task& task : take_tasks()) {
        if (std::holds_alternative<Stop>(task)) return stop();
        pending_.push_back(std::move(task));
      }
      run_pending();
      while (bus_.bus != nullptr) {
        const int more = sd_bus_process(bus_.bus, nullptr);
        if (more < 0) on_disconnect(more);
        if (more <= 0) break;
      }
      if (ready_ && !pending_.empty()) continue;  // the server has just replied
      wait();
    }
  }

  // Posted tasks reach the bus before the thread ends.
  void stop() {
    if (ready_) run_pending();
    if (bus_.bus != nullptr) sd_bus_flush(bus_.bus);
    bus_.close();
    for (const Call* call : std::exchange(calls_, {})) delete call;
  }

  void wait() {
    pollfd ready[2] = {{wake_, POLLIN, 0}, {-1, 0, 0}};
    int timeout_ms = -1;
    if (bus_.bus != nullptr) {
      std::uint64_t until = 0;
      ready[1] = {sd_bus_get_fd(bus_.bus), static_cast<short>(std::max(0, sd_bus_get_events(bus_.bus))), 0};
      if (sd_bus_get_timeout(bus_.bus, &until) >= 0 && until != UINT64_MAX) {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        const std::uint64_t now_usec = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
                                       static_cast<std::uint64_t>(now.tv_nsec) / 1000;
        timeout_ms = until <= now_usec
                         ? 0
                         : static_cast<int>(std::min<std::uint64_t>((until - now_usec) / 1000 + 1, 60'000));
      }
    }
    ::poll(ready, bus_.bus != nullptr ? 2 : 1, timeout_ms);
    std::uint64_t count = 0;
    if (::read(wake_, &count, sizeof count) < 0) return;  // woken by the bus or the timeout
  }

  void run_pending() {
    if (pending_.empty()) return;
    if (bus_.bus == nullptr && !connect()) return;
    if (!ready_) return request_capabilities();
    for (Task& task : std::exchange(pending_, {})) {
      if (bus_.bus == nullptr) {
        reject(task, "on_disconnect the session bus");
      } else if (const auto* queued = std::get_if<QueuedNotice>(&task)) {
        notify(*queued);
      } else if (const auto* closing = std::get_if<Closing>(&task)) {
        close_shown(*closing);
      } else if (const auto* page = std::get_if<Page>(&task)) {
        open_page(page->url);
      }
    }
  }

  void reject(const Task& task, const std::string& why) {
    if (const auto* queued = std::get_if<QueuedNotice>(&task))
      callbacks_.on_done(queued->key(), {.why = why});
    if (const auto* page = std::get_if<Page>(&task)) callbacks_.on_open_failed(page->url);
  }

  void reject_all(const std::string& why) {
    ready_ = is_asking_ = false;
    for (const Task& task : std::exchange(pending_, {})) reject(task, why);
    for (const Call* call : std::exchange(calls_, {})) {
      if (!call->key.empty()) callbacks_.on_done(call->key, {.why = why});
      delete call;
    }
  }

  bool connect() {
    const auto now = std::chrono::steady_clock::now();
    std::string why = "no session bus";
    if (now >= next_connect_) {
      next_connect_ = now + reconnect_pause;
      const int opened = sd_bus_open_user(&bus_.bus);
      if (opened >= 0) {
        const char* const from = server_name;
        sd_bus_match_signal_async(bus_.bus, nullptr, from, server_path, server_name, "NotificationClosed",
                                  on_closed, nullptr, this);
        sd_bus_match_signal_async(bus_.bus, nullptr, from, server_path, server_name, "ActionInvoked",
                                  on_action, nullptr, this);
        sd_bus_match_signal_async(bus_.bus, nullptr, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                  "org.freedesktop.DBus", "NameOwnerChanged", on_owner, nullptr, this);
        return true;
      }
      bus_.bus = nullptr;
      why += std::string(": ") + std::strerror(-opened);
    }
    reject_all(why);
    return false;
  }

  void on_disconnect(int error) {
    bus_.close();
    reject_all(std::string("on_disconnect the session bus: ") + std::strerror(-error));
  }

  // Asks for the server's capabilities and identity: another server does not have the saved ids.
  void request_capabilities() {
    if (is_asking_) return;
    is_asking_ = true;
    const int sent = sd_bus_call_method_async(bus_.bus, nullptr, server_name, server_path, server_name,
                                              "GetCapabilities", on_capabilities, this, nullptr);
    if (sent < 0) on_disconnect(sent);
  }

  static int on_capabilities(sd_bus_message* reply, void* user_data, sd_bus_error*) {
    auto& self = *static_cast<BusDesktop*>(user_data);
    self.is_asking_ = false;
    if (const sd_bus_error* error = sd_bus_message_get_error(reply)) {
      self.reject_all("no notification server answers on the session bus" +
                      (error->message != nullptr ? std::string(": ") + error->message : std::string()));
      return 0;
    }
    self.markup_ = self.actions_ = false;
    if (sd_bus_message_enter_container(reply, 'a', "s") > 0) {
      const char* capability = nullptr;
      while (sd_bus_message_read_basic(reply, 's', &capability) > 0) {
        self.markup_ = self.markup_ || std::strcmp(capability, "body-markup") == 0;
        self.actions_ = self.actions_ || std::strcmp(capability, "actions") == 0;
      }
    }
    const char* const sender = sd_bus_message_get_sender(reply);
    sd_id128_t bus_id{};
    char bus_text[SD_ID128_STRING_MAX] = "";
    if (sd_bus_get_bus_id(self.bus_.bus, &bus_id) >= 0) sd_id128_to_string(bus_id, bus_text);
    const std::string server = std::string(bus_text) + (sender == nullptr ? "" : sender);
    if (server != self.shown_.server) {
      self.shown_ = {server, {}};
      self.callbacks_.on_shown(self.shown_);
    }
    self.ready_ = true;
    return 0;
  }

  ShownNotices::Entry* find(const std::string& slot) {
    const auto found = std::find_if(shown_.entries.begin(), shown_.entries.end(),
                                    [&](const auto& each) { return each.slot == slot; });
    return found == shown_.entries.end() ? nullptr : &*found;
  }

  void notify(const QueuedNotice& queued) {
    const Notice& notice = queued.notice;
    const ShownNotices::Entry* const before = find(notice.slot);
    const std::string body = markup_ ? escape_markup(notice.body) : notice.body;
    Message call;
    int made = sd_bus_message_new_method_call(bus_.bus, &call.message, server_name, server_path, server_name,
                                              "Notify");
    const auto add = [&](auto append) {
      if (made >= 0) made = append();
    };
    add([&] {
      return sd_bus_message_append(call.message, "susss", "earshot", before == nullptr ? 0U : before->id,
                                   "utilities-terminal", notice.title.c_str(), body.c_str());
    });
    add([&] {
      return actions_ ? sd_bus_message_append(call.message, "as", 4, "default", "Open", "open", "Open")
                      : sd_bus_message_append(call.message, "as", 0);
    });
    add([&] {
      return sd_bus_message_append(call.message, "a{sv}i", 2, "urgency", "y",
                                   static_cast<int>(notice.urgency), "category", "s", "im.received", -1);
    });
    auto* const call_state = new Call{this, queued.key(), notice.slot, notice.id, {}};
    if (made >= 0)
      made = sd_bus_call_async(bus_.bus, nullptr, call.message, on_shown, call_state, reply_usec);
    if (made >= 0) {
      calls_.insert(call_state);
      return;
    }
    delete call_state;
    callbacks_.on_done(queued.key(),
                       {.permanent = made == -EINVAL, .why = std::string("Notify: ") + std::strerror(-made)});
  }

  static int on_shown(sd_bus_message* reply, void* call_pointer, sd_bus_error*) {
    auto* const call = static_cast<Call*>(call_pointer);
    BusDesktop& self = *call->self;
    if (self.calls_.erase(call) == 0) return 0;
    std::uint32_t id = 0;
    if (const sd_bus_error* error = sd_bus_message_get_error(reply)) {
      self.callbacks_.on_done(call->key, {.why = std::string("the notification server: ") +
                                                 (error->message != nullptr ? error->message : error->name)});
    } else if (sd_bus_message_read_basic(reply, 'u', &id) > 0) {
      std::erase_if(self.shown_.entries, [&](const auto& each) { return each.slot == call->slot; });
      self.shown_.entries.push_back({call->slot, call->notice, id});
      if (self.shown_.entries.size() > entries_max) self.shown_.entries.erase(self.shown_.entries.begin());
      self.callbacks_.on_shown(self.shown_);
      self.callbacks_.on_done(call->key, {.done = true});
      if (call->close_at_once) self.close_shown({call->slot, call->notice});
    }
    delete call;
    return 0;
  }

  void close_shown(const Closing& closing) {
    for (Call* call : calls_) {
      if (call->slot == closing.slot && call->notice == closing.notice) call->close_at_once = true;
    }
    const ShownNotices::Entry* const entry = find(closing.slot);
    if (entry == nullptr || entry->notice != closing.notice) return;
    sd_bus_call_method_async(bus_.bus, nullptr, server_name, server_path, server_name, "CloseNotification",
                             nullptr, nullptr, "u", entry->id);
    remove_shown(entry->id);
  }

  void remove_shown(std::uint32_t id) {
    if (std::erase_if(shown_.entries, [&](const auto& each) { return each.id == id; }) > 0)
      callbacks_.on_shown(shown_);
  }

  static int on_closed(sd_bus_message* signal, void* self, sd_bus_error*) {
    std::uint32_t id = 0, reason = 0;
    if (sd_bus_message_read(signal, "uu", &id, &reason) > 0) static_cast<BusDesktop*>(self)->remove_shown(id);
    return 0;
  }

  static int on_action(sd_bus_message* signal, void* user_data, sd_bus_error*) {
    auto& self = *static_cast<BusDesktop*>(user_data);
    std::uint32_t id = 0;
    const char* action = nullptr;
    if (sd_bus_message_read(signal, "us", &id, &action) <= 0) return 0;
    const bool ours = std::any_of(self.shown_.entries.begin(), self.shown_.entries.end(),
                                  [&](const auto& each) { return each.id == id; });
    if (ours) self.callbacks_.on_clicked();
    return 0;
  }

  static int on_owner(sd_bus_message* signal, void* user_data, sd_bus_error*) {
    auto& self = *static_cast<BusDesktop*>(user_data);
    const char *name = nullptr, *before = nullptr, *now = nullptr;
    if (sd_bus_message_read(signal, "sss", &name, &before, &now) <= 0 || std::strcmp(name, server_name) != 0)
      return 0;
    if (*before == '\0') return 0;  // it just appeared: request_capabilities() handles it
    self.ready_ = false;
    self.shown_ = {};
    self.callbacks_.on_shown(self.shown_);
    return 0;
  }

  // The portal starts the browser outside of this program's sandbox.
  void open_page(const std::string& url) {
    auto* const call_state = new Call{this, {}, {}, {}, url};
    const int sent = sd_bus_call_method_async(bus_.bus, nullptr, portal_name, portal_path,
                                              "org.freedesktop.portal.OpenURI", "OpenURI", on_page,
                                              call_state, "ssa{sv}", "", url.c_str(), 0);
    if (sent >= 0) {
      calls_.insert(call_state);
      return;
    }
    delete call_state;
    callbacks_.on_open_failed(url);
  }

  static int on_page(sd_bus_message* reply, void* call_pointer, sd_bus_error*) {
    auto* const call = static_cast<Call*>(call_pointer);
    BusDesktop& self = *call->self;
    if (self.calls_.erase(call) == 0) return 0;
    if (sd_bus_message_get_error(reply) != nullptr) self.callbacks_.on_open_failed(call->url);
    delete call;
    return 0;
  }

  Callbacks callbacks_;
  // Used by the thread only, except tasks_.
  ShownNotices shown_;
  Bus bus_;
  bool ready_ = false, is_asking_ = false;
  bool markup_ = false, actions_ = false;
  std::chrono::steady_clock::time_point next_connect_{};
  std::deque<Task> pending_;
  std::set<Call*> calls_;
  std::mutex mutex_;
  std::deque<Task> tasks_;
  int wake_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Callbacks callbacks, ShownNotices before) {
  return std::make_unique<BusDesktop>(std::move(callbacks), std::move(before));
}

}  // namespace earshot::notifier
