// How to connect to the message broker. Each field is an option of libnats.
#pragma once
#include <string>
#include <vector>

namespace earshot::team {

struct BrokerConfig {
  std::vector<std::string> urls;   // nats://HOST:PORT or tls://…; tried in this order
  std::string stream = "earshot";  // JetStream's stream of events; statuses are in `<stream>_status`
  std::string credentials;         // a .creds file, or empty
  std::string nkey, nkey_seed;     // a user's public key, and the file with its seed; both or neither
  std::string tls_ca;              // a file; empty: the system's certificate authorities
  std::string tls_cert, tls_key;   // files, for a server that requires a client certificate; both or neither
  std::string inbox = "_INBOX";    // prefix of the subjects for replies
  bool operator==(const BrokerConfig&) const = default;

  /// The first URL without credentials, for messages.
  std::string where() const {
    if (urls.empty()) return "NATS";
    const std::string& url = urls.front();
    const auto begin = url.find("://"), at = url.rfind('@');
    if (at == std::string::npos) return url;
    return (begin == std::string::npos ? std::string() : url.substr(0, begin + 3)) + url.substr(at + 1);
  }
  std::string status_stream() const { return stream + "_status"; }
};

}  // namespace earshot::team
