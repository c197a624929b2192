#include "cli/x11_window.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/file.hpp"
#include "base/sockets.hpp"

namespace earshot::cli {
namespace {

// Numbers of the X protocol. All integers are sent in this machine's byte order, which the client announces.
enum Opcode : std::uint8_t {
  map_window = 8,
  configure_window = 12,
  query_tree = 15,
  intern_atom = 16,
  get_property = 20,
  send_event = 25,
  set_input_focus = 42,
  get_input_focus = 43,
};
constexpr std::uint32_t any_type = 0, atom_cardinal = 6, atom_window = 33, atom_wm_client_machine = 36;
constexpr std::uint8_t client_message = 33, reply_packet = 1;
constexpr std::uint32_t substructure_redirect_and_notify = (1U << 20) | (1U << 19);
constexpr std::size_t packet_bytes = 32;

constexpr int answer_seconds_max = 2;
constexpr std::size_t windows_max = 10'000;            // examined of a display; further ones are not
constexpr std::size_t reply_bytes_max = 1 << 20;       // a longer one ends the connection
constexpr std::size_t authority_bytes_max = 64 << 10;  // of an Xauthority file

constexpr std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

// A request or a part of a reply under construction.
class Bytes {
 public:
  Bytes& u8(unsigned value) {
    text_ += static_cast<char>(value);
    return *this;
  }
  Bytes& u16(unsigned value) { return number(static_cast<std::uint16_t>(value)); }
  Bytes& u32(std::uint32_t value) { return number(value); }
  Bytes& padded_text(std::string_view text) {
    text_ += text;
    text_.resize(padded(text_.size()), '\0');
    return *this;
  }
  std::string& text() { return text_; }

 private:
  template <class Number>
  Bytes& number(Number value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string text_;
};

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<std::uint32_t> cardinals_of(std::string_view bytes) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
    out.push_back(number_at<std::uint32_t>(bytes, at));
  return out;
}

// A connection to the X server. After a failure every request returns nothing.
class Display {
 public:
  /// Returns the reason if there is no connection.
  std::string connect(const X11Options& options);
  const std::vector<std::uint32_t>& roots() const { return roots_; }

  /// 0: the server knows no atom of this name.
  std::uint32_t atom(std::string_view name);
  /// The property's bytes, at most reply_bytes_max of them; empty: there is none.
  std::string property(std::uint32_t window, std::uint32_t name, std::uint32_t type);
  std::vector<std::uint32_t> children(std::uint32_t window);
  void activate_by_manager(std::uint32_t root, std::uint32_t window);
  void raise_and_focus(std::uint32_t window);
  /// Waits until the server has handled all requests.
  void sync() { ask(request(get_input_focus, 0)); }

 private:
  /// The length is set when it is sent.
  static Bytes request(Opcode opcode, unsigned data) { return std::move(Bytes().u8(opcode).u8(data).u16(0)); }
  void send(Bytes request);
  std::optional<std::string> ask(Bytes request);
  std::string receive(std::size_t size);

  Fd fd_;
  std::uint16_t sequence_ = 0;
  std::vector<std::uint32_t> roots_;
};

Fd connect_to(unsigned display) {
  const std::string path = "/tmp/.X11-unix/X" + std::to_string(display);
  for (const bool abstract : {false, true}) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t begin = abstract ? 1 : 0;
    std::memcpy(address.sun_path + begin, path.data(), path.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + begin + path.size());
    Fd fd = open_socket(AF_UNIX, SOCK_STREAM);
    if (fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  }
  return {};
}

std::string Display::connect(const X11Options& options) {
  const auto number = local_display(options.display);
  if (!number) return "the display " + options.display + " is not one of this machine";
  fd_ = connect_to(*number);
  if (!fd_) return "no X server answers at the display " + options.display;
  const timeval limit{answer_seconds_max, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);

  std::string cookie;
  if (!options.authority.empty())
    cookie = find_x11_cookie(read_small_file(options.authority, authority_bytes_max, Symlinks::follow).text,
                             *number, host_name());
  const std::string_view name = cookie.empty() ? "" : "MIT-MAGIC-COOKIE-1";
  constexpr std::uint16_t byte_order = 1;
  const bool little = *reinterpret_cast<const std::uint8_t*>(&byte_order) == 1;
  constexpr unsigned protocol_major = 11;
  Bytes hello;
  hello.u8(little ? 'l' : 'B').u8(0).u16(protocol_major).u16(0);
  hello.u16(static_cast<unsigned>(name.size())).u16(static_cast<unsigned>(cookie.size())).u16(0);
  hello.padded_text(name).padded_text(cookie);
  if (!write_all(fd_.get(), hello.text())) return "the X server closed the connection";
  const std::string head = receive(8);
  const std::string setup = receive(std::size_t{number_at<std::uint16_t>(head, 6)} * 4);
  if (!fd_) return "the X server did not answer";
  if (head[0] != 1) {
    fd_.reset();
    return "the X server refused the connection";
  }
  // Fixed fields, the vendor's name, formats; then the screens, each with its depths and their visuals.
  const std::size_t vendor = number_at<std::uint16_t>(setup, 16);
  const std::size_t screens = number_at<std::uint8_t>(setup, 20),
                    formats = number_at<std::uint8_t>(setup, 21);
  std::size_t at = 32 + padded(vendor) + formats * 8;
  for (std::size_t n = 0; n < screens && at + 40 <= setup.size(); ++n) {
    roots_.push_back(number_at<std::uint32_t>(setup, at));
    const std::size_t depths = number_at<std::uint8_t>(setup, at + 39);
    at += 40;
    for (std::size_t depth = 0; depth < depths; ++depth)
      at += 8 + std::size_t{number_at<std::uint16_t>(setup, at + 2)} * 24;
  }
  return roots_.empty() ? "the X server has no screen" : "";
}

std::string Display::receive(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t got = 0; fd_ && got < size;) {
    const ssize_t part = ::recv(fd_.get(), bytes.data() + got, size - got, 0);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) fd_.reset();
    if (part > 0) got += static_cast<std::size_t>(part);
  }
  return bytes;
}

void Display::send(Bytes request) {
  std::string& text = request.text();
  const auto words = static_cast<std::uint16_t>(text.size() / 4);
  std::memcpy(text.data() + 2, &words, sizeof words);
  ++sequence_;
  if (fd_ && !write_all(fd_.get(), text)) fd_.reset();
}

// A window may disappear at any time: an error is an answer, too.
std::optional<std::string> Display::ask(Bytes request) {
  send(std::move(request));
  while (fd_) {
    std::string packet = receive(packet_bytes);
    if (!fd_) break;
    const auto kind = static_cast<std::uint8_t>(packet[0]);
    const bool is_answer = number_at<std::uint16_t>(packet, 2) == sequence_;
    if (kind == reply_packet) {
      const std::size_t more = std::size_t{number_at<std::uint32_t>(packet, 4)} * 4;
      if (more > reply_bytes_max) {
        fd_.reset();
        break;
      }
      packet += receive(more);
      if (is_answer) return packet;
    } else if (kind == 0 && is_answer) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::uint32_t Display::atom(std::string_view name) {
  constexpr unsigned only_if_exists = 1;
  Bytes asked = request(intern_atom, only_if_exists);
  asked.u16(static_cast<unsigned>(name.size())).u16(0).padded_text(name);
  const auto reply = ask(std::move(asked));
  return reply ? number_at<std::uint32_t>(*reply, 8) : 0;
}

std::string Display::property(std::uint32_t window, std::uint32_t name, std::uint32_t type) {
  if (name == 0) return {};
  Bytes asked = request(get_property, 0);
  asked.u32(window).u32(name).u32(type).u32(0).u32(reply_bytes_max / 4 - packet_bytes);
  const auto reply = ask(std::move(asked));
  if (!reply || reply->size() < packet_bytes) return {};
  const std::size_t size =
      std::size_t{number_at<std::uint32_t>(*reply, 16)} * (static_cast<std::uint8_t>((*reply)[1]) / 8);
  return reply->substr(packet_bytes, size);
}

std::vector<std::uint32_t> Display::children(std::uint32_t window) {
  const auto reply = ask(std::move(request(query_tree, 0).u32(window)));
  return reply ? cardinals_of(std::string_view(*reply).substr(packet_bytes)) : std::vector<std::uint32_t>();
}

void Display::activate_by_manager(std::uint32_t root, std::uint32_t window) {
  constexpr unsigned format = 32, from_pager = 2;
  Bytes asked = request(send_event, 0);
  asked.u32(root).u32(substructure_redirect_and_notify);
  asked.u8(client_message).u8(format).u16(0).u32(window).u32(atom("_NET_ACTIVE_WINDOW"));
  asked.u32(from_pager).u32(0).u32(0).u32(0).u32(0);
  send(std::move(asked));
}

void Display::raise_and_focus(std::uint32_t window) {
  constexpr unsigned stack_mode = 0x40, above = 0, revert_to_parent = 2;
  send(std::move(request(map_window, 0).u32(window)));
  send(std::move(request(configure_window, 0).u32(window).u16(stack_mode).u16(0).u32(above)));
  send(std::move(request(set_input_focus, revert_to_parent).u32(window).u32(0)));
}

struct Found {
  std::uint32_t root = 0, window = 0;
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
    for (const std::uint32_t root : display_.roots()) {
      const std::vector<std::uint32_t> managed =
          cardinals_of(display_.property(root, stacking_, atom_window));
      if (managed.empty()) {
        below(root, root, 0);
      } else {
        for (const std::uint32_t window : managed) examine(root, window);
      }
    }
    return std::move(found_);
  }

 private:
  // Without a window manager a terminal's window is a child of the root; with an old one it has a frame.
  void below(std::uint32_t root, std::uint32_t window, int depth) {
    constexpr int depth_max = 3;
    for (const std::uint32_t child : display_.children(window))
      if (!examine(root, child) && depth < depth_max && examined_ < windows_max)
        below(root, child, depth + 1);
  }

  bool examine(std::uint32_t root, std::uint32_t window) {
    if (++examined_ > windows_max) return false;
    const std::string pid = display_.property(window, wm_pid_, atom_cardinal);
    if (pid.size() < 4) return false;
    // The numbers of processes are those of the machine that the window's program runs on.
    const std::string machine = display_.property(window, atom_wm_client_machine, any_type);
    if (machine.empty() || machine == host_)
      found_.push_back({root, window, number_at<std::uint32_t>(pid, 0)});
    return true;
  }

  Display& display_;
  std::uint32_t wm_pid_, stacking_;
  std::string host_;
  std::size_t examined_ = 0;
  std::vector<Found> found_;
};

}  // namespace

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

// Entries of big-endian 16-bit numbers and counted texts: family, address, display number, name, data.
std::string find_x11_cookie(std::string_view authority, unsigned display, std::string_view host) {
  constexpr unsigned family_local = 256, family_any = 65'535;
  std::size_t at = 0;
  bool is_cut = false;
  const auto number = [&] {
    is_cut = is_cut || at + 2 > authority.size();
    if (is_cut) return 0U;
    const auto high = static_cast<std::uint8_t>(authority[at]),
               low = static_cast<std::uint8_t>(authority[at + 1]);
    at += 2;
    return high * 256U + low;
  };
  const auto text = [&] {
    const std::size_t size = number();
    is_cut = is_cut || at + size > authority.size();
    if (is_cut) return std::string_view();
    at += size;
    return authority.substr(at - size, size);
  };
  while (at < authority.size()) {
    const unsigned family = number();
    const std::string_view address = text(), display_number = text(), name = text(), data = text();
    if (is_cut) break;
    const bool is_here = family == family_any || (family == family_local && address == host);
    const bool is_display = display_number.empty() || display_number == std::to_string(display);
    if (is_here && is_display && name == "MIT-MAGIC-COOKIE-1") return std::string(data);
  }
  return {};
}

std::variant<X11Window, std::string> activate_x11_window(const X11Options& options,
                                                         const std::vector<std::int64_t>& pids,
                                                         std::uint32_t preferred) {
  Display display;
  if (const std::string reason = display.connect(options); !reason.empty()) return reason;
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
    const bool managed =
        !display.property(chosen->root, display.atom("_NET_SUPPORTING_WM_CHECK"), atom_window).empty();
    if (managed)
      display.activate_by_manager(chosen->root, chosen->window);
    else
      display.raise_and_focus(chosen->window);
    display.sync();
    return X11Window{chosen->window, pid, count - 1};
  }
  return "no window of the display " + options.display + " belongs to it";
}

}  // namespace earshot::cli
