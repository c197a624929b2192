#include "core/event_json.hpp"
#include "core/prefix_hash.hpp"
#include "team/broker_client.hpp"

namespace earshot::team {

std::string beat_payload(const Heartbeat& beat) {
  std::string out = R"({"type":"host","host":)";
  append_string(out, beat.host);
  out += R"(,"owner":)";
  append_string(out, beat.owner);
  out += R"(,"instance":)";
  append_string(out, beat.instance);
  out += R"(,"beat_ms":)" + std::to_string(BrokerClient::beat_ms) + "}";
  return out;
}

std::string owner_of(std::uint64_t hash_key) {
  PrefixHash prefix_hash(hash_key);
  prefix_hash.add_line(std::string_view("who publishes\n"));
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[prefix_hash.value() >> shift & 15];
  return out;
}

}  // namespace earshot::team
