// A daemon that a test controls byte by byte. No Beast: the client must not be tested against the same
// implementation.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace earshot::common::test {

/// The token of the fake daemon, which it proves to have.
constexpr std::string_view fake_token = "t0ken";

/// One connection as the daemon sees it. A wait that takes too long throws.
class Peer {
 public:
  explicit Peer(int descriptor) : descriptor_(descriptor) {}
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// Reads the request and makes the connection a WebSocket; the request, headers and all.
  std::string upgrade();
  /// Reads the request and answers it with no WebSocket.
  std::string refuse(std::string_view status_line);
  /// Reads a request's head. A request for the proof is answered, and the next one on the connection
  /// returned.
  std::string request();
  /// Reads a request's head, whatever it is.
  std::string head();
  /// Everything until the client closes the connection.
  std::string rest();
  /// Of a request for the proof; empty: another request.
  static std::string nonce_of(std::string_view request);
  static std::string proof(const std::string& nonce, const std::string& address);
  /// The address at which it listens.
  std::string authority() const;
  void answer_proof(std::string_view status_line, const std::string& body);
  /// Reads a request with its body and answers it with JSON; the request.
  std::string answer(std::string_view status_line, std::string_view json);
  void send(std::string_view text) { frame(1, text); }
  void ping() { frame(9, "are you there"); }
  void close(int code, std::string_view reason);
  void raw(std::string_view bytes);
  /// The next frame of the client: its opcode and what it carries, unmasked. Opcode 0: the connection ended.
  struct Frame {
    int opcode = 0;
    std::string payload;
  };
  Frame receive();
  /// The next frame of this opcode; others are passed over.
  Frame receive(int opcode);
  /// upgrade(), then the client's first message.
  std::string subscription() {
    upgrade();
    return receive(1).payload;
  }
  /// Waits until the client closes the connection, and closes it too.
  void finish() {
    receive(8);
    close(1000, "");
  }

 private:
  void frame(int opcode, std::string_view payload);
  bool read(char* bytes, std::size_t size);
  int descriptor_;
};

/// Listens on a port of its own on loopback, or on a Unix socket; each connection gets the next script.
class FakeDaemon {
 public:
  explicit FakeDaemon(std::vector<std::function<void(Peer&)>> scripts, const std::string& socket = {});
  /// Waits for the last script.
  ~FakeDaemon();
  std::string url() const;  // of the port
  /// What a script threw, once all have ended; empty: nothing.
  const std::string& join();

 private:
  void bind_port();
  void bind_socket(const std::string& path);
  int listener_;
  int port_ = 0;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace earshot::common::test
