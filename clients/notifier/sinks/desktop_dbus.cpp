// Linux: org.freedesktop.Notifications on the session bus, with sd-bus, on a separate thread so that a bus
// that hangs blocks nothing else.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <variant>

#include "base/display_text.hpp"
#include "base/system.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* server_name = "org.freedesktop.Notifications";
constexpr const char* server_path = "/org/freedesktop/Notifications";
constexpr const char* local_name = "org.freedesktop.DBus.Local";
constexpr std::chrono::milliseconds reconnect_pause{1000};
constexpr std::uint64_t reply_usec = Desktop::reply_ms_max * 1000;

std::string error_text(const sd_bus_error& error) {
  return error.message != nullptr ? error.message : error.name;
}

class BusDesktop : public Desktop {
 public:
  BusDesktop(Callbacks callbacks, ShownNotices before)
      : Desktop(std::move(callbacks)),
        shown_(std::move(before)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { run(); }) {}
  ~BusDesktop() override {
    post(Stop{});
    thread_.join();
  }

  void show(const QueuedNotice& queued) override { post(queued); }
  void close(const std::string& slot, const std::string& notice) override { post(Closing{slot, notice}); }
  void open(const std::string& url) override { post(Page{url}); }
  void run_outside(const std::vector<std::string>& command) override { post(Program{command}); }

 private:
  struct Stop {};
  struct Closing {
    std::string slot, notice;
  };
  struct Page {
    std::string url;
  };
  struct Program {
    std::vector<std::string> command;
  };
  using Task = std::variant<QueuedNotice, Closing, Page, Program, Stop>;

  struct Unref {
    void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
  };
  // A call whose reply is pending. Its destruction cancels the callback, which refers to it.
  struct Call {
    BusDesktop& self;
    std::string key = {};
    ShownNotices::Entry entry = {};
    std::string url = {};
    std::vector<std::string> command = {};
    bool close_at_once = false;  // the notice was answered before the server replied with its id
    std::unique_ptr<sd_bus_slot, Unref> reply = nullptr;
  };

  static BusDesktop& desktop(void* self) { return *static_cast<BusDesktop*>(self); }

  void post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0) return;  // the counter is at its maximum: it is awake
  }

  void run() {
    sd_event_new(&event_);
    sd_event_add_io(event_, nullptr, wake_.get(), EPOLLIN, on_wake, this);
    sd_event_loop(event_);
    // Posted tasks reach the bus before the thread ends.
    if (bus_ != nullptr) sd_bus_flush(bus_);
    disconnect();
    sd_event_unref(event_);
  }

  static int on_wake(sd_event_source*, int fd, std::uint32_t, void* user_data) {
    BusDesktop& self = desktop(user_data);
    std::uint64_t count = 0;
    if (::read(fd, &count, sizeof count) < 0) return 0;
    std::deque<Task> tasks;
    {
      const std::lock_guard lock(self.mutex_);
      tasks = std::exchange(self.tasks_, {});
    }
    bool stopping = false;
    for (Task& task : tasks) {
      stopping = stopping || std::holds_alternative<Stop>(task);
      if (!stopping) self.pending_.push_back(std::move(task));
    }
    if (!stopping || self.ready_) self.run_pending();
    if (stopping) sd_event_exit(self.event_, 0);
    return 0;
  }

  void run_pending() {
    if (pending_.empty() || (bus_ == nullptr && !connect())) return;
    std::deque<Task> waiting;
    for (Task& task : std::exchange(pending_, {})) {
      if (const auto* page = std::get_if<Page>(&task)) {
        open_page(page->url);
      } else if (const auto* program = std::get_if<Program>(&task)) {
        start_unit(program->command);
      } else if (!ready_) {
        waiting.push_back(std::move(task));
      } else if (const auto* queued = std::get_if<QueuedNotice>(&task)) {
        notify(*queued);
      } else if (const auto* closing = std::get_if<Closing>(&task)) {
        close_shown(*closing);
      }
    }
    pending_ = std::move(waiting);
    if (!pending_.empty()) request_capabilities();
  }

  void reject_pending(const std::string& why) {
    for (const Task& task : std::exchange(pending_, {})) {
      if (const auto* queued = std::get_if<QueuedNotice>(&task))
        callbacks_.on_done(queued->key(), {.why = why});
      if (const auto* page = std::get_if<Page>(&task)) callbacks_.on_open_failed(page->url);
      if (const auto* program = std::get_if<Program>(&task)) callbacks_.on_run_failed(program->command);
    }
  }

  bool connect() {
    const auto now = std::chrono::steady_clock::now();
    std::string why = "no session bus";
    if (now >= next_connect_) {
      next_connect_ = now + reconnect_pause;
      const int opened = sd_bus_open_user(&bus_);
      if (opened >= 0) {
        const auto match = [this](const char* sender, const char* path, const char* interface,
                                  const char* signal, sd_bus_message_handler_t handler) {
          sd_bus_match_signal_async(bus_, nullptr, sender, path, interface, signal, handler, nullptr, this);
        };
        match(server_name, server_path, server_name, "NotificationClosed", on_closed);
        match(server_name, server_path, server_name, "ActionInvoked", on_action);
        match("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged",
              on_owner);
        match(local_name, "/org/freedesktop/DBus/Local", local_name, "Disconnected", on_disconnected);
        sd_bus_attach_event(bus_, event_, SD_EVENT_PRIORITY_NORMAL);
        return true;
      }
      bus_ = nullptr;
      why += std::string(": ") + std::strerror(-opened);
    }
    reject_pending(why);
    return false;
  }

  void disconnect() {
    calls_.clear();
    ready_ = is_asking_ = false;
    if (bus_ == nullptr) return;
    sd_bus_detach_event(bus_);
    sd_bus_close_unref(std::exchange(bus_, nullptr));
  }

  // Pending calls have been answered with errors before.
  static int on_disconnected(sd_bus_message*, void* user_data, sd_bus_error*) {
    desktop(user_data).disconnect();
    desktop(user_data).reject_pending("lost the session bus");
    return 0;
  }

  // Asks for the server's capabilities and identity: another server does not have the saved ids.
  void request_capabilities() {
    if (is_asking_) return;
    is_asking_ = true;
    const int sent = sd_bus_call_method_async(bus_, nullptr, server_name, server_path, server_name,
                                              "GetCapabilities", on_capabilities, this, nullptr);
    if (sent >= 0) return;
    is_asking_ = false;
    reject_pending(std::string("GetCapabilities: ") + std::strerror(-sent));
  }

  static int on_capabilities(sd_bus_message* reply, void* user_data, sd_bus_error*) {
    BusDesktop& self = desktop(user_data);
    self.is_asking_ = false;
    if (const sd_bus_error* error = sd_bus_message_get_error(reply)) {
      self.reject_pending("no notification server answers on the session bus: " + error_text(*error));
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
    if (sd_bus_get_bus_id(self.bus_, &bus_id) >= 0) sd_id128_to_string(bus_id, bus_text);
    const std::string server = std::string(bus_text) + (sender == nullptr ? "" : sender);
    if (server != self.shown_.server) {
      self.shown_ = {server, {}};
      self.callbacks_.on_shown(self.shown_);
    }
    self.ready_ = true;
    self.run_pending();
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
    if (queued.is_update && (before == nullptr || before->notice != notice.id))
      return callbacks_.on_done(queued.key(), {.done = true});  // it was closed or replaced
    const std::string body = markup_ ? escape_markup(notice.body) : notice.body;
    sd_bus_message* message = nullptr;
    int made =
        sd_bus_message_new_method_call(bus_, &message, server_name, server_path, server_name, "Notify");
    if (made >= 0)
      made = sd_bus_message_append(message, "susss", "earshot", before == nullptr ? 0U : before->id,
                                   "utilities-terminal", notice.title.c_str(), body.c_str());
    const bool can_focus = notice.is_here && !notice.session.empty();
    const int action_words = !actions_ ? 0 : can_focus ? 6 : 4;
    if (made >= 0)
      made = sd_bus_message_append(message, "as", action_words, "default", "Open", "open", "Open", "focus",
                                   "Focus");
    if (made >= 0)
      made = sd_bus_message_append(message, "a{sv}i", 2, "urgency", "y", static_cast<int>(notice.urgency),
                                   "category", "s", "im.received", -1);
    calls_.push_back(
        Call{*this, queued.key(), {notice.slot, notice.id, 0, notice.link, can_focus ? notice.session : ""}});
    Call& call = calls_.back();
    sd_bus_slot* reply = nullptr;
    if (made >= 0) made = sd_bus_call_async(bus_, &reply, message, on_notified, &call, reply_usec);
    call.reply.reset(reply);
    sd_bus_message_unref(message);
    if (made >= 0) return;
    calls_.pop_back();
    callbacks_.on_done(queued.key(),
                       {.permanent = made == -EINVAL, .why = std::string("Notify: ") + std::strerror(-made)});
  }

  void finish(const Call& call) {
    calls_.remove_if([&](const Call& each) { return &each == &call; });
  }

  static int on_notified(sd_bus_message* reply, void* user_data, sd_bus_error*) {
    const Call& call = *static_cast<Call*>(user_data);
    BusDesktop& self = call.self;
    std::uint32_t id = 0;
    if (const sd_bus_error* error = sd_bus_message_get_error(reply)) {
      self.callbacks_.on_done(call.key, {.why = "the notification server: " + error_text(*error)});
    } else if (sd_bus_message_read_basic(reply, 'u', &id) > 0) {
      auto& entries = self.shown_.entries;
      std::erase_if(entries, [&](const auto& each) { return each.slot == call.entry.slot; });
      entries.push_back(call.entry);
      entries.back().id = id;
      if (entries.size() > entries_max) entries.erase(entries.begin());
      self.callbacks_.on_shown(self.shown_);
      self.callbacks_.on_done(call.key, {.done = true, .answer = "displayed"});
      if (call.close_at_once) self.close_shown({call.entry.slot, call.entry.notice});
    }
    self.finish(call);
    return 0;
  }

  void close_shown(const Closing& closing) {
    for (Call& call : calls_) {
      if (call.entry.slot == closing.slot && call.entry.notice == closing.notice) call.close_at_once = true;
    }
    const ShownNotices::Entry* const entry = find(closing.slot);
    if (entry == nullptr || entry->notice != closing.notice) return;
    sd_bus_call_method_async(bus_, nullptr, server_name, server_path, server_name, "CloseNotification",
                             nullptr, nullptr, "u", entry->id);
    remove_shown(entry->id);
  }

  void remove_shown(std::uint32_t id) {
    if (std::erase_if(shown_.entries, [&](const auto& each) { return each.id == id; }) > 0)
      callbacks_.on_shown(shown_);
  }

  static int on_closed(sd_bus_message* signal, void* user_data, sd_bus_error*) {
    std::uint32_t id = 0, reason = 0;
    if (sd_bus_message_read(signal, "uu", &id, &reason) > 0) desktop(user_data).remove_shown(id);
    return 0;
  }

  static int on_action(sd_bus_message* signal, void* user_data, sd_bus_error*) {
    BusDesktop& self = desktop(user_data);
    std::uint32_t id = 0;
    const char* action = nullptr;
    if (sd_bus_message_read(signal, "us", &id, &action) <= 0) return 0;
    const auto& entries = self.shown_.entries;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.id == id; });
    if (entry == entries.end()) return 0;
    const bool is_focus = std::strcmp(action, "focus") == 0 && !entry->session.empty();
    (is_focus ? self.callbacks_.on_focus : self.callbacks_.on_clicked)(*entry);
    return 0;
  }

  static int on_owner(sd_bus_message* signal, void* user_data, sd_bus_error*) {
    BusDesktop& self = desktop(user_data);
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
    calls_.push_back(Call{*this, {}, {}, url});
    Call& call = calls_.back();
    sd_bus_slot* reply = nullptr;
    const int sent = sd_bus_call_method_async(
        bus_, &reply, "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
        "org.freedesktop.portal.OpenURI", "OpenURI", on_page, &call, "ssa{sv}", "", url.c_str(), 0);
    call.reply.reset(reply);
    if (sent >= 0) return;
    calls_.pop_back();
    callbacks_.on_open_failed(url);
  }

  static int on_page(sd_bus_message* reply, void* user_data, sd_bus_error*) {
    const Call& call = *static_cast<Call*>(user_data);
    BusDesktop& self = call.self;
    if (sd_bus_message_get_error(reply) != nullptr) self.callbacks_.on_open_failed(call.url);
    self.finish(call);
    return 0;
  }

  // A transient unit. The manager replaces `$NAME` and `%x` in its words: such commands are not for it.
  void start_unit(const std::vector<std::string>& command) {
    const auto is_plain = [](const std::string& word) { return word.find_first_of("$%") == word.npos; };
    if (!command.front().starts_with('/') || !std::all_of(command.begin(), command.end(), is_plain))
      return callbacks_.on_run_failed(command);
    const std::string name =
        "earshot-notify-" + std::to_string(::getpid()) + "-" + std::to_string(++units_) + ".service";
    sd_bus_message* message = nullptr;
    int made = sd_bus_message_new_method_call(bus_, &message, "org.freedesktop.systemd1",
                                              "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                                              "StartTransientUnit");
    const auto add = [&](int result) { made = made < 0 ? made : result; };
    if (made >= 0) {
      add(sd_bus_message_append(message, "ss", name.c_str(), "fail"));
      add(sd_bus_message_open_container(message, 'a', "(sv)"));
      add(sd_bus_message_append(message, "(sv)", "CollectMode", "s", "inactive-or-failed"));
      add(sd_bus_message_open_container(message, 'r', "sv"));
      add(sd_bus_message_append(message, "s", "ExecStart"));
      add(sd_bus_message_open_container(message, 'v', "a(sasb)"));
      add(sd_bus_message_open_container(message, 'a', "(sasb)"));
      add(sd_bus_message_open_container(message, 'r', "sasb"));
      add(sd_bus_message_append(message, "s", command.front().c_str()));
      add(sd_bus_message_open_container(message, 'a', "s"));
      for (const std::string& word : command) add(sd_bus_message_append(message, "s", word.c_str()));
      for (int depth = 0; depth < 5; ++depth) {
        if (depth == 1) add(sd_bus_message_append(message, "b", 0));
        add(sd_bus_message_close_container(message));
      }
      add(sd_bus_message_close_container(message));
      add(sd_bus_message_append(message, "a(sa(sv))", 0));
    }
    calls_.push_back(Call{.self = *this, .command = command});
    Call& call = calls_.back();
    sd_bus_slot* reply = nullptr;
    if (made >= 0) made = sd_bus_call_async(bus_, &reply, message, on_unit_started, &call, reply_usec);
    call.reply.reset(reply);
    sd_bus_message_unref(message);
    if (made >= 0) return;
    calls_.pop_back();
    callbacks_.on_run_failed(command);
  }

  static int on_unit_started(sd_bus_message* reply, void* user_data, sd_bus_error*) {
    const Call& call = *static_cast<Call*>(user_data);
    BusDesktop& self = call.self;
    if (sd_bus_message_get_error(reply) != nullptr) self.callbacks_.on_run_failed(call.command);
    self.finish(call);
    return 0;
  }

  // Used by the thread only, except tasks_.
  ShownNotices shown_;
  sd_event* event_ = nullptr;
  sd_bus* bus_ = nullptr;
  bool ready_ = false, is_asking_ = false;
  bool markup_ = false, actions_ = false;
  unsigned units_ = 0;  // started ones
  std::chrono::steady_clock::time_point next_connect_{};
  std::deque<Task> pending_;
  std::list<Call> calls_;
  std::mutex mutex_;
  std::deque<Task> tasks_;
  Fd wake_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Desktop> Desktop::make(Callbacks callbacks, ShownNotices before) {
  return std::make_unique<BusDesktop>(std::move(callbacks), std::move(before));
}

}  // namespace earshot::notifier
