#include "common/endpoint.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace earshot::common;
namespace fs = std::filesystem;

namespace {

class State {
 public:
  State() { REQUIRE(mkdtemp(path_) != nullptr); }
  ~State() { fs::remove_all(path_); }
  std::string path() const { return path_; }
  void put(const std::string& name, const std::string& text, int mode = 0600) {
    const std::string file = path() + "/" + name;
    std::ofstream(file) << text;
    chmod(file.c_str(), static_cast<mode_t>(mode));
  }
  /// The TCP address, which is the last one.
  DaemonAddress find(ConnectOptions options = {}) const {
    options.state = path();
    const auto found = find_daemon(options);
    REQUIRE(std::holds_alternative<DaemonAddresses>(found));
    return std::get<DaemonAddresses>(found).back();
  }

 private:
  char path_[40] = "/tmp/earshot-cli-state-XXXXXX";
};

std::string error_of(std::string_view url) {
  const auto endpoint = parse_endpoint(url);
  const auto* error = std::get_if<std::string>(&endpoint);
  return error == nullptr ? std::string() : *error;
}

Endpoint endpoint(std::string_view url) {
  const auto found = parse_endpoint(url);
  REQUIRE(std::holds_alternative<Endpoint>(found));
  return std::get<Endpoint>(found);
}

}  // namespace

TEST_CASE("an address has a host and optionally a port and a path") {
  CHECK(endpoint("ws://127.0.0.1:8000/v1/ws").url() == "ws://127.0.0.1:8000/v1/ws");
  CHECK(endpoint("ws://localhost").url() == "ws://localhost:7717/v1/ws");
  CHECK(endpoint("ws://localhost:0080/").url() == "ws://localhost:80/v1/ws");
  CHECK(endpoint("ws://[::1]:9/x").host == "::1");
  CHECK(endpoint("ws://[::1]:9/x").url() == "ws://[::1]:9/x");
}

TEST_CASE("a malformed address is refused with the reason") {
  for (const char* url :
       {"", "localhost", "http://x", "wss://", "wss:/x", "ws://", "ws://:80", "ws://h:", "ws://h:0",
        "ws://h:65536", "ws://h:8a", "ws://[::1", "ws://[::1]x", "ws://h\r\nX:1/", "ws://h/a b"}) {
    CAPTURE(url);
    CHECK_FALSE(error_of(url).empty());
  }
}

TEST_CASE("the address is read from the state directory, there is a default") {
  State state;
  CHECK(state.find().endpoint.url() == "ws://127.0.0.1:7717/v1/ws");
  CHECK(state.find().address_source.starts_with("the default"));
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  CHECK(state.find().endpoint.port == "40001");
  CHECK(state.find({.connect = "ws://127.0.0.1:5/v1/ws"}).endpoint.port == "5");
}

TEST_CASE("the token is read without its line end, a missing one is reported") {
  State state;
  CHECK(state.find().token.empty());
  CHECK(state.find().token_error == "No such file or directory");
  state.put("token", "abc123\n");
  CHECK(state.find().token == "abc123");
  CHECK(state.find().token_error.empty());
  CHECK(state.find().warning.empty());
  state.put("other", "zzz");
  CHECK(state.find({.token_file = state.path() + "/other"}).token == "zzz");
}

TEST_CASE("a token with characters that end an HTTP header is refused") {
  State state;
  state.put("token", "abc\r\nX-Evil: 1\n");
  CHECK(state.find().token.empty());
  CHECK(state.find().token_error == "contains no token");
}

TEST_CASE("a token that other users can read is used with a warning") {
  State state;
  state.put("token", "abc", 0644);
  CHECK(state.find().token == "abc");
  CHECK(state.find().warning.find("chmod 600") != std::string::npos);
}

TEST_CASE("a directory in place of the token file is an error") {
  State state;
  fs::create_directory(state.path() + "/token");
  CHECK_FALSE(state.find().token_error.empty());
}

TEST_CASE("the key of prefix hashes is sixteen hex digits") {
  State state;
  CHECK(std::holds_alternative<std::string>(read_prefix_key(state.path())));
  state.put("key", "00000000deadbeef\n");
  CHECK(std::get<std::uint64_t>(read_prefix_key(state.path())) == 0xdeadbeef);
  for (const char* text : {"", "deadbeef", "00000000deadbeeg", "00000000deadbeef0"}) {
    state.put("key", text);
    CHECK(std::holds_alternative<std::string>(read_prefix_key(state.path())));
  }
}

TEST_CASE("the socket named in STATE is tried first, then TCP") {
  State state;
  state.put("socket", "/run/user/1000/earshot/sock\n");
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  const DaemonAddresses addresses = std::get<DaemonAddresses>(find_daemon({.state = state.path()}));
  REQUIRE(addresses.size() == 2);
  CHECK(addresses[0].endpoint.url() == "unix:/run/user/1000/earshot/sock");
  CHECK(addresses[0].token.empty());
  CHECK(addresses[1].endpoint.port == "40001");
}

TEST_CASE("an address given as an option is the only one") {
  State state;
  state.put("socket", "/run/user/1000/earshot/sock\n");
  CHECK(
      std::get<DaemonAddresses>(find_daemon({.connect = "ws://127.0.0.1:5", .state = state.path()})).size() ==
      1);
  const DaemonAddresses addresses =
      std::get<DaemonAddresses>(find_daemon({.socket = "/x/sock", .state = state.path()}));
  REQUIRE(addresses.size() == 1);
  CHECK(addresses[0].endpoint.url() == "unix:/x/sock");
  CHECK(std::holds_alternative<std::string>(find_daemon({.connect = "ws://h", .socket = "/x"})));
  CHECK(std::holds_alternative<std::string>(find_daemon({.socket = std::string(108, 'x')})));
}

TEST_CASE("the default socket is not used with a given state directory") {
  State runtime, state;
  fs::create_directory(runtime.path() + "/earshot");
  runtime.put("earshot/sock", "");
  setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  setenv("XDG_STATE_HOME", state.path().c_str(), 1);
  CHECK(std::get<DaemonAddresses>(find_daemon({})).front().endpoint.socket ==
        runtime.path() + "/earshot/sock");
  CHECK_FALSE(std::get<DaemonAddresses>(find_daemon({.state = state.path()})).front().endpoint.is_unix());
  unsetenv("XDG_RUNTIME_DIR");
  unsetenv("XDG_STATE_HOME");
}

TEST_CASE("an address with TLS needs no proof") {
  State state;
  state.put("address", "wss://dev7.example:7717/v1/ws\n");
  state.put("token", "abc");
  const DaemonAddress address = state.find({.tls_ca = "/x/ca.pem"});
  CHECK(address.endpoint.url() == "wss://dev7.example:7717/v1/ws");
  CHECK(address.endpoint.authority() == "dev7.example:7717");
  CHECK(address.tls_ca == "/x/ca.pem");
  CHECK_FALSE(address.needs_proof());
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  CHECK(state.find().needs_proof());
}

TEST_CASE("fault 87: the address of a daemon that has ended is not used") {
  State state;
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  CHECK(state.find().unusable.empty());  // no daemon can be asked
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  state.put("lock", std::to_string(ended) + "\n");
  CHECK_FALSE(state.find().unusable.empty());
  CHECK(state.find({.connect = "ws://127.0.0.1:5/v1/ws"}).unusable.empty());
  const int lock = open((state.path() + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(lock, LOCK_EX | LOCK_NB) == 0);  // by a process whose number has another meaning here
  CHECK(state.find().unusable.empty());
  close(lock);
  state.put("lock", std::to_string(getpid()) + "\n");
  CHECK(state.find().unusable.empty());
}

TEST_CASE("a proof is the HMAC of nonce and address") {
  // printf '00112233445566778899aabbccddeeff127.0.0.1:7717' | openssl dgst -sha256 -hmac "$token"
  const std::string token(64, 'a'), nonce = "00112233445566778899aabbccddeeff";
  const std::string proof = "315f3b5ee41a036965f47389341b9ef708f7b1d8298c2ef49de5945375229ba9";
  CHECK(is_proof(proof, token, nonce, "127.0.0.1:7717"));
  CHECK(is_proof(proof + "\n", token, nonce, "127.0.0.1:7717"));
  CHECK_FALSE(is_proof(proof + "\n\n", token, nonce, "127.0.0.1:7717"));
  CHECK_FALSE(is_proof(proof, token, nonce, "127.0.0.1:7718"));
  CHECK_FALSE(is_proof(proof, std::string(64, 'b'), nonce, "127.0.0.1:7717"));
  CHECK_FALSE(is_proof(proof.substr(0, 63), token, nonce, "127.0.0.1:7717"));
  CHECK_FALSE(is_proof("", token, nonce, "127.0.0.1:7717"));
  CHECK(host_and_port("::1", 7717) == "[::1]:7717");
  CHECK(make_nonce().size() == 32);
  CHECK(make_nonce() != make_nonce());
}
