#include "cli/x11_window.hpp"

#ifdef EARSHOT_X11
#include <xcb/xcb.h>
#endif

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include "base/sockets.hpp"

namespace earshot::cli {

std::optional<unsigned> local_display(std::string_view display) {
  const std::size_t colon = display.rfind(':');
  if (colon == display.npos) return std::nullopt;
  const std::string_view host = display.substr(0, colon);
  if (!host.empty() && host != "unix") return std::nullopt;
  std::string_view number = display.substr(colon + 1);
  number = number.substr(0, number.find('.'));
  unsigned value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  constexpr unsigned display_max = 65'535;
  if (error != std::errc() || end != number.data() + number.size() || value > display_max)
    return std::nullopt;
  return value;
}

#ifdef EARSHOT_X11
namespace {

constexpr std::chrono::seconds answer_time_max{2};  // of the server, for all requests
constexpr std::size_t windows_max = 10'000;         // examined of a display; further ones are not
constexpr std::uint32_t property_bytes_max = 1 << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class Reply>
using Answer = std::unique_ptr<Reply, Free>;

// A window may disappear at any time: an error is an empty answer.
class Display {
 public:
  explicit Display(unsigned number)
      : connection_(xcb_connect(("unix:" + std::to_string(number)).c_str(), nullptr), &xcb_disconnect) {}
  bool is_open() const { return xcb_connection_has_error(connection_.get()) == 0; }

  std::vector<xcb_window_t> roots() const {
    std::vector<xcb_window_t> roots;
    for (auto at = xcb_setup_roots_iterator(xcb_get_setup(connection_.get())); at.rem > 0;
         xcb_screen_next(&at))
      roots.push_back(at.data->root);
    return roots;
  }
  /// XCB_ATOM_NONE: the server knows no atom of this name.
  xcb_atom_t atom(std::string_view name) {
    const auto asked =
        xcb_intern_atom(connection_.get(), 1, static_cast<std::uint16_t>(name.size()), name.data());
    const Answer<xcb_intern_atom_reply_t> reply(xcb_intern_atom_reply(connection_.get(), asked, nullptr));
    return reply ? reply->atom : XCB_ATOM_NONE;
  }
  /// At most property_bytes_max; empty: there is none.
  std::string property(xcb_window_t window, xcb_atom_t name, xcb_atom_t type) {
    if (name == XCB_ATOM_NONE) return {};
    const auto asked = xcb_get_property(connection_.get(), 0, window, name, type, 0, property_bytes_max / 4);
    const Answer<xcb_get_property_reply_t> reply(xcb_get_property_reply(connection_.get(), asked, nullptr));
    if (!reply) return {};
    return {static_cast<const char*>(xcb_get_property_value(reply.get())),
            static_cast<std::size_t>(xcb_get_property_value_length(reply.get()))};
  }
  /// Of 32 bits each.
  std::vector<std::uint32_t> numbers(xcb_window_t window, xcb_atom_t name, xcb_atom_t type) {
    const std::string bytes = property(window, name, type);
    std::vector<std::uint32_t> numbers(bytes.size() / sizeof(std::uint32_t));
    bytes.copy(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(std::uint32_t));
    return numbers;
  }
  std::vector<xcb_window_t> children(xcb_window_t window) {
    const auto asked = xcb_query_tree(connection_.get(), window);
    const Answer<xcb_query_tree_reply_t> reply(xcb_query_tree_reply(connection_.get(), asked, nullptr));
    if (!reply) return {};
    const xcb_window_t* const first = xcb_query_tree_children(reply.get());
    return {first, first + xcb_query_tree_children_length(reply.get())};
  }
  void activate_by_manager(xcb_window_t root, xcb_window_t window) {
    constexpr std::uint32_t from_pager = 2;
    xcb_client_message_event_t event{};
    event.response_type = XCB_CLIENT_MESSAGE;
    event.format = 32;
    event.window = window;
    event.type = atom("_NET_ACTIVE_WINDOW");
    event.data.data32[0] = from_pager;
    xcb_send_event(connection_.get(), 0, root,
                   XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY,
                   reinterpret_cast<const char*>(&event));
  }
  void raise_and_focus(xcb_window_t window) {
    constexpr std::uint32_t above = XCB_STACK_MODE_ABOVE;
    xcb_map_window(connection_.get(), window);
    xcb_configure_window(connection_.get(), window, XCB_CONFIG_WINDOW_STACK_MODE, &above);
    xcb_set_input_focus(connection_.get(), XCB_INPUT_FOCUS_PARENT, window, XCB_CURRENT_TIME);
  }
  /// Waits until the server has handled all requests.
  void sync() {
    const auto asked = xcb_get_input_focus(connection_.get());
    Answer<xcb_get_input_focus_reply_t>(xcb_get_input_focus_reply(connection_.get(), asked, nullptr));
  }

 private:
  const std::unique_ptr<xcb_connection_t, decltype(&xcb_disconnect)> connection_;
};

struct Found {
  xcb_window_t root = 0, window = 0;
  std::int64_t pid = 0;
};

class WindowSearch {
 public:
  explicit WindowSearch(Display& display)
      : display_(display),
        wm_pid_(display.atom("_NET_WM_PID")),
        stacking_(display.atom("_NET_CLIENT_LIST_STACKING")),
        host_(host_name()) {}

  /// All windows that name their process, the lowest first.
  std::vector<Found> windows() {
    for (const xcb_window_t root : display_.roots()) {
      const std::vector<xcb_window_t> managed = display_.numbers(root, stacking_, XCB_ATOM_WINDOW);
      if (managed.empty()) {
        below(root, root, 0);
      } else {
        for (const xcb_window_t window : managed) examine(root, window);
      }
    }
    return std::move(found_);
  }

 private:
  // Without a window manager a terminal's window is a child of the root; with an old one it has a frame.
  void below(xcb_window_t root, xcb_window_t window, int depth) {
    constexpr int depth_max = 3;
    for (const xcb_window_t child : display_.children(window))
      if (!examine(root, child) && depth < depth_max && examined_ < windows_max)
        below(root, child, depth + 1);
  }

  bool examine(xcb_window_t root, xcb_window_t window) {
    if (++examined_ > windows_max) return false;
    const std::vector<std::uint32_t> pid = display_.numbers(window, wm_pid_, XCB_ATOM_CARDINAL);
    if (pid.empty()) return false;
    // The numbers of processes are those of the machine that the window's program runs on.
    const std::string machine = display_.property(window, XCB_ATOM_WM_CLIENT_MACHINE, XCB_ATOM_ANY);
    if (machine.empty() || machine == host_) found_.push_back({root, window, pid.front()});
    return true;
  }

  Display& display_;
  xcb_atom_t wm_pid_, stacking_;
  std::string host_;
  std::size_t examined_ = 0;
  std::vector<Found> found_;
};

std::variant<X11Window, std::string> activate(const std::string& name, unsigned number,
                                              const std::vector<std::int64_t>& pids,
                                              std::uint32_t preferred) {
  Display display(number);
  if (!display.is_open()) return "no X server can be used at the display " + name;
  const std::vector<Found> windows = WindowSearch(display).windows();
  for (const std::int64_t pid : pids) {
    const Found* chosen = nullptr;
    std::size_t count = 0;
    for (const Found& each : windows) {
      if (each.pid != pid) continue;
      ++count;
      if (chosen == nullptr || chosen->window != preferred) chosen = &each;
    }
    if (chosen == nullptr) continue;
    const xcb_atom_t manager = display.atom("_NET_SUPPORTING_WM_CHECK");
    if (display.property(chosen->root, manager, XCB_ATOM_WINDOW).empty())
      display.raise_and_focus(chosen->window);
    else
      display.activate_by_manager(chosen->root, chosen->window);
    display.sync();
    return X11Window{chosen->window, pid, count - 1};
  }
  return "no window of the display " + name + " belongs to it";
}

}  // namespace
#endif

std::variant<X11Window, std::string> activate_x11_window(const X11Options& options,
                                                         const std::vector<std::int64_t>& pids,
                                                         std::uint32_t preferred) {
  const auto number = local_display(options.display);
  if (!number) return "the display " + options.display + " is not one of this machine";
#ifdef EARSHOT_X11
  if (!options.authority.empty()) ::setenv("XAUTHORITY", options.authority.c_str(), 1);
  // The library waits without end for a server that does not answer.
  std::promise<std::variant<X11Window, std::string>> promise;
  auto result = promise.get_future();
  std::thread([name = options.display, number = *number, pids, preferred,
               promise = std::move(promise)]() mutable {
    promise.set_value(activate(name, number, pids, preferred));
  }).detach();
  if (result.wait_for(answer_time_max) == std::future_status::ready) return result.get();
  return "the X server at the display " + options.display + " did not answer";
#else
  static_cast<void>(pids), static_cast<void>(preferred);
  return "this build cannot activate windows of X11";
#endif
}

}  // namespace earshot::cli
