#include "serve/websocket/tls.hpp"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace earshot::serve {
namespace {

namespace asio = boost::asio;

constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";  // of TLS 1.2

AuthError wrong(const std::string& file, const std::string& what) { return {file + ": " + what}; }

}  // namespace

std::variant<std::unique_ptr<asio::ssl::context>, AuthError> load_tls(const std::string& certificate_file,
                                                                      const std::string& key_file) {
  struct stat info {};
  if (::stat(key_file.c_str(), &info) != 0) return wrong(key_file, std::strerror(errno));
  if (info.st_mode & 077)
    return wrong(key_file,
                 "others can read this key; if nobody else has seen it, run: chmod 600 " + key_file);

  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET |
                                  SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // an idle client keeps no buffers
  boost::system::error_code ec;
  if (SSL_CTX_set_cipher_list(native, ciphers) != 1)
    return wrong("TLS", "OpenSSL supports none of the required ciphers");
  context->use_certificate_chain_file(certificate_file, ec);
  if (ec) return wrong(certificate_file, "not a PEM certificate: " + ec.message());
  context->use_private_key_file(key_file, asio::ssl::context::pem, ec);
  if (ec) return wrong(key_file, "not a PEM private key for " + certificate_file + ": " + ec.message());
  return context;
}

}  // namespace earshot::serve
