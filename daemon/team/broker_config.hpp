// How to reach the message broker, as the configuration says it. All of it is what libnats has.
#pragma once
#include <string>
#include <vector>

namespace earshot::team {

struct BrokerConfig {
  std::vector<std::string> urls;   // nats://HOST:PORT or tls://…; tried in this order
  std::string stream = "earshot";  // JetStream's stream of events; statuses are in `<stream>_status`
  std::string credentials;         // a .creds file; empty: none
  std::string nkey, nkey_seed;     // a user's public key, and the file with its seed; both or none
  std::string tls_ca;              // a file; empty: the system's
  std::string tls_cert, tls_key;   // files, for a server that asks for a certificate; both or none
  std::string inbox = "_INBOX";    // what answers to us come to begins so
  bool operator==(const BrokerConfig&) const = default;

  /// For people: where the first one is, without a password.
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
