// The TLS context of a listener.
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <variant>

#include "serve/auth/secrets.hpp"

namespace earshot::serve {

/// TLS 1.2 and later, forward secrecy only, no tickets. The key file must not be readable by others.
std::variant<std::unique_ptr<boost::asio::ssl::context>, AuthError> load_tls(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace earshot::serve
