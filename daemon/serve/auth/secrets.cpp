#include "serve/auth/secrets.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "base/fd.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t token_bytes = 32;
constexpr std::size_t key_bytes = 8;
constexpr std::size_t file_bytes_max = 256;  // a secret file holds one line; a longer one is none of ours

std::string said(const std::string& path, int error) { return path + ": " + std::strerror(error); }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Content {
  std::optional<std::string> line;  // nothing: there is no such file
  std::string error;
};

Content read_secret(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return {};
    return {{}, said(path, errno)};
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return {{}, said(path, errno)};
  if (!S_ISREG(info.st_mode)) return {{}, path + ": not a regular file"};
  if (info.st_uid != ::geteuid()) return {{}, path + ": belongs to another user"};
  if (info.st_mode & 077) {
    return {{},
            path + ": others can read it; if nobody else has seen it, run: chmod 600 " + path +
                "; otherwise delete it and a new one is made"};
  }
  std::array<char, file_bytes_max> buffer;
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n < 0) return {{}, said(path, errno)};
  std::string line(buffer.data(), static_cast<std::size_t>(n));
  if (!line.empty() && line.back() == '\n') line.pop_back();
  return {line, {}};
}

/// What a crash leaves of a secret: fewer digits than there were, none, or NULs in their place.
bool is_torn(std::string_view line, std::size_t digits) {
  const bool is_ours = line.find_first_not_of(std::string_view("0123456789abcdef\n\0", 18)) == line.npos;
  return is_ours && line.size() <= digits + 1 && !(line.size() == digits && is_hex(line));
}

/// The secret of `bytes` bytes in hex digits in this file, made when there is none.
Content secret(const std::string& path, std::size_t bytes, std::vector<std::string>& set_aside) {
  Content content = read_secret(path);
  if (!content.error.empty()) return content;
  if (content.line && is_torn(*content.line, 2 * bytes)) {
    const std::string torn = path + ".torn";
    if (::rename(path.c_str(), torn.c_str()) != 0) return {{}, said(torn, errno)};
    set_aside.push_back(path + " was torn: it is now " + torn + ", and a new one is made");
    content.line.reset();
  }
  if (!content.line) {
    const std::string fresh = random_hex(bytes) + "\n";
    if (std::string error = write_private_file(path, fresh, Existing::keep); !error.empty())
      return {{}, error};
    content = read_secret(path);  // another daemon may have been first
    if (!content.error.empty()) return content;
    if (!content.line) return {{}, path + ": vanished while it was made"};
  }
  if (content.line->size() != 2 * bytes || !is_hex(*content.line)) {
    return {{},
            path + ": does not hold " + std::to_string(2 * bytes) +
                " hex digits; delete it and a new one is made"};
  }
  return content;
}

}  // namespace

std::string own_directory(const std::string& path) {
  std::error_code ec;
  const std::filesystem::path parent = std::filesystem::path(path).lexically_normal().parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ec);
  if (ec) return path + ": " + ec.message();
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return said(path, errno);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return said(path, errno);
  if (!S_ISDIR(info.st_mode)) return path + ": not a directory";
  if (info.st_uid != ::geteuid()) return path + ": belongs to another user";
  if (info.st_mode & 022) return path + ": others can write into it; run: chmod 700 " + path;
  return {};
}

std::string random_hex(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::getrandom(bytes.data() + done, count - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), "getrandom");
    done += static_cast<std::size_t>(n);
  }
  std::string hex;
  hex.reserve(2 * count);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string write_private_file(const std::string& path, std::string_view content, Existing existing) {
  const std::string temporary = path + "." + random_hex(4) + ".tmp";
  {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return said(temporary, errno);
    if (!write_all(fd.get(), content) || ::fsync(fd.get()) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return said(temporary, error);
    }
  }
  const int failed = existing == Existing::replace ? ::rename(temporary.c_str(), path.c_str())
                                                   : ::link(temporary.c_str(), path.c_str());
  const int error = failed ? errno : 0;
  if (failed || existing == Existing::keep) ::unlink(temporary.c_str());
  if (error == EEXIST && existing == Existing::keep) return {};
  return error ? said(path, error) : std::string();
}

std::variant<Secrets, AuthError> load_secrets(const std::string& state_directory) {
  if (std::string error = own_directory(state_directory); !error.empty()) return AuthError{std::move(error)};
  Secrets secrets;
  Content token = secret(state_directory + "/token", token_bytes, secrets.set_aside);
  if (!token.error.empty()) return AuthError{std::move(token.error)};
  Content key = secret(state_directory + "/key", key_bytes, secrets.set_aside);
  if (!key.error.empty()) return AuthError{std::move(key.error)};
  secrets.token = std::move(*token.line);
  std::from_chars(key.line->data(), key.line->data() + key.line->size(), secrets.hash_key, 16);
  return secrets;
}

bool same_secret(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

}  // namespace earshot::serve
