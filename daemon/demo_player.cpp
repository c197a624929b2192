#include "demo_player.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/hex.hpp"

namespace earshot::demo {

std::unique_ptr<Player> make_player(std::string_view program, std::string root) {
  if (program == "claude-code") return make_claude_code_player(std::move(root));
  return make_line_player(program, std::move(root));
}

void write_file(const std::string& path, std::string_view text, int flags) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600));
  if (!fd) throw std::system_error(errno, std::generic_category(), path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::system_error(errno, std::generic_category(), path);
}

std::string fill(std::string_view text, const std::function<std::string(std::string_view name)>& value) {
  std::string filled;
  for (;;) {
    const auto begin = text.find("${");
    const auto end = begin == text.npos ? text.npos : text.find('}', begin);
    filled.append(text.substr(0, begin));
    if (end == text.npos) return filled;
    filled.append(value(text.substr(begin + 2, end - begin - 2)));
    text.remove_prefix(end + 1);
  }
}

std::string random_text(std::string_view alphabet, std::size_t count) {
  static std::mt19937_64 random{std::random_device{}()};
  std::string text;
  std::uniform_int_distribution<std::size_t> pick(0, alphabet.size() - 1);
  while (text.size() < count) text += alphabet[pick(random)];
  return text;
}

std::string random_uuid() {
  return random_hex(4) + "-" + random_hex(2) + "-4" + random_hex(2).substr(1) + "-" + random_text("89ab", 1) +
         random_hex(2).substr(1) + "-" + random_hex(6);
}

}  // namespace earshot::demo
