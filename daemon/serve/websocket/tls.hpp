// The certificate and the key of a listener for other machines.
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <variant>

#include "serve/auth/secrets.hpp"

namespace earshot::serve {

/// A server's context: TLS 1.2 and later, forward secrecy only, no tickets. The key's file must be ours
/// alone.
std::variant<std::unique_ptr<boost::asio::ssl::context>, AuthError> load_tls(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace earshot::serve
