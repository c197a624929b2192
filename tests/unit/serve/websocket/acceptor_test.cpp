// The Unix socket and the lock of the state directory.
#include "serve/websocket/acceptor.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "base/sockets.hpp"
#include "serve/auth/secrets.hpp"
#include "unit/serve/support.hpp"

namespace acceptor_test {

using namespace earshot;
using namespace earshot::serve;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

UnixListener claimed(const std::string& path) {
  auto result = UnixListener::open(path);
  if (const auto* error = std::get_if<UnixError>(&result)) FAIL(error->text);
  return std::get<UnixListener>(std::move(result));
}

UnixError refused(const std::string& path) {
  auto result = UnixListener::open(path);
  const auto* error = std::get_if<UnixError>(&result);
  return error ? *error : UnixError{};
}

bool says(const UnixError& error, std::string_view part) {
  return error.text.find(part) != std::string::npos;
}

int bound(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

}  // namespace

TEST_CASE("the socket is accessible to its owner only, and its directory is created") {
  const test::TemporaryDirectory home;
  const std::string path = home / "run/earshot/sock";
  {
    const UnixListener listener = claimed(path);
    REQUIRE(listener.path() == path);
    REQUIRE(mode_of(path) == 0600);
    REQUIRE(mode_of(home / "run/earshot") == 0700);
  }
  REQUIRE_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a stale socket is replaced") {
  const test::TemporaryDirectory home;
  const int dead = bound(home / "sock");
  ::close(dead);
  REQUIRE(std::filesystem::exists(home / "sock"));
  REQUIRE(claimed(home / "sock").path() == home / "sock");
}

TEST_CASE("a live socket is never replaced") {
  const test::TemporaryDirectory home;
  const UnixListener first = claimed(home / "ours");
  const UnixError ours = refused(home / "ours");
  REQUIRE(ours.live);
  REQUIRE(says(ours, "process " + std::to_string(::getpid())));
  REQUIRE(mode_of(home / "ours") == 0600);

  const int other = bound(home / "theirs");  // without a lock
  REQUIRE(::listen(other, 1) == 0);
  const UnixError theirs = refused(home / "theirs");
  REQUIRE(theirs.live);
  REQUIRE(std::filesystem::exists(home / "theirs"));
  ::close(other);
}

TEST_CASE("a path that is not a socket is left unchanged") {
  const test::TemporaryDirectory home;
  home.write("file", "precious");
  REQUIRE(says(refused(home / "file"), "is not a socket"));
  REQUIRE(home.read("file") == "precious");
  std::filesystem::create_symlink(home / "file", home / "link");
  REQUIRE(says(refused(home / "link"), "is not a socket"));
  std::filesystem::create_directory(home / "directory");
  REQUIRE(says(refused(home / "directory"), "is not a socket"));
}

TEST_CASE("a socket path that is too long is refused with its length") {
  const test::TemporaryDirectory home;
  const std::string longest = home / std::string(UnixListener::path_bytes_max - home.path().size() - 1, 's');
  REQUIRE(longest.size() == UnixListener::path_bytes_max);
  REQUIRE(claimed(longest).path() == longest);
  const UnixError longer = refused(longest + "s");
  REQUIRE(says(longer, "107"));
  REQUIRE(says(longer, "108"));
  REQUIRE_FALSE(longer.live);
}

TEST_CASE("a directory writable by others is refused") {
  const test::TemporaryDirectory home;
  std::filesystem::create_directory(home / "open");
  REQUIRE(::chmod((home / "open").c_str(), 0777) == 0);
  REQUIRE(says(refused(home / "open/sock"), "chmod 700"));
}

TEST_CASE("only a socket that is still ours is unlinked") {
  const test::TemporaryDirectory home;
  UnixListener listener = claimed(home / "sock");
  std::filesystem::remove(home / "sock");
  home.write("sock", "somebody else's");
  listener.remove();
  REQUIRE(home.read("sock") == "somebody else's");
}

TEST_CASE("a moved listener is removed once") {
  const test::TemporaryDirectory home;
  UnixListener first = claimed(home / "sock");
  UnixListener second = std::move(first);
  first.remove();
  REQUIRE(std::filesystem::exists(home / "sock"));
  second.remove();
  REQUIRE_FALSE(std::filesystem::exists(home / "sock"));
}

TEST_CASE("the peer's user is checked") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  REQUIRE(is_own_peer(pair[0]));
  ::close(pair[0]);
  ::close(pair[1]);
  REQUIRE_FALSE(is_own_peer(-1));
}

TEST_CASE("a state directory has one daemon") {
  const test::TemporaryDirectory home;
  {
    auto first = StateLock::acquire(home.path());
    REQUIRE(std::holds_alternative<StateLock>(first));
    REQUIRE(mode_of(home / "lock") == 0600);
    auto second = StateLock::acquire(home.path());
    const auto* error = std::get_if<AuthError>(&second);
    REQUIRE(error);
    REQUIRE(error->text.find("process " + std::to_string(::getpid())) != std::string::npos);
    REQUIRE(error->text.find("--state") != std::string::npos);
  }
  REQUIRE(std::holds_alternative<StateLock>(StateLock::acquire(home.path())));
  REQUIRE(std::holds_alternative<AuthError>(StateLock::acquire(home / "absent")));
}

}  // namespace acceptor_test
