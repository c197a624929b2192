#include "common/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/display_text.hpp"
#include "common/format.hpp"

namespace earshot::common {

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

void Output::write_json(std::string_view json) {
  if (is_terminal_)
    write(to_display_json(json));
  else
    write(json);
}

void Output::write_json_line(std::string_view json) {
  if (is_terminal_ || json.find('\n') != json.npos)
    write(to_display_json(json) + "\n");
  else
    buffer_.append(json).append("\n");
  flush_if_full();
}

void Output::write_json_array(const std::vector<std::string>& items) {
  write("[");
  for (const std::string& item : items) {
    if (&item != &items.front()) write(",\n ");
    write_json(item);
  }
  write("]\n");
}

void Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_ && error_.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno == EAGAIN) {
      pollfd writable{fd_, POLLOUT, 0};  // stdout may be shared and non-blocking
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      error_ = std::strerror(errno);
    }
  }
  buffer_.clear();
}

int finish(Output& out) {
  out.flush();
  if (out.error().empty()) return 0;
  print_message("cannot write the output: " + out.error());
  return 1;
}

int write_stdout(std::string_view text) {
  Output out;
  out.write(text);
  return finish(out);
}

}  // namespace earshot::common
