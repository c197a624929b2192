#include "tail/host_names.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>

#include "agents/stream_name.hpp"

namespace earshot::tail {
namespace {

constexpr std::string_view upper_hex = "0123456789ABCDEF";
constexpr std::size_t hash_digits = 32;

bool is_kept(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

void append_hex(std::string& out, std::uint64_t number) {
  for (int shift = 60; shift >= 0; shift -= 4) out += upper_hex[number >> shift & 15];
}

}  // namespace

std::string escape(std::string_view text) {
  if (text.empty()) return "=";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_kept(c))
      out += c;
    else
      out += {'=', upper_hex[byte >> 4], upper_hex[byte & 15]};
  }
  if (out.size() <= escaped_bytes_max) return out;
  out.resize(escaped_bytes_max - hash_digits - 2);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  out += "==";
  append_hex(out, hash.high64);
  append_hex(out, hash.low64);
  return out;
}

std::optional<std::string> unescape(std::string_view from) {
  if (from == "=") return "";
  std::string out;
  for (std::size_t at = 0; at < from.size(); ++at) {
    if (from[at] != '=') {
      out += from[at];
      continue;
    }
    if (from.size() - at < 3) return {};
    const auto high = upper_hex.find(from[at + 1]), low = upper_hex.find(from[at + 2]);
    if (high == upper_hex.npos || low == upper_hex.npos) return {};
    out += static_cast<char>(high << 4 | low);
    at += 2;
  }
  if (escape(out) != from) return {};
  return out;
}

std::string session_on_host(std::string_view session, std::string_view host) {
  if (session.empty()) return {};
  return std::string(session) + host_separator + std::string(host);
}

StreamIdentity relayed_identity(std::string_view below) {
  StreamIdentity identity;
  const auto slash = below.find('/');
  if (slash == below.npos) return identity;
  const auto host = unescape(below.substr(0, slash)), stream = unescape(below.substr(slash + 1));
  identity.directory = host ? percent_encode(*host) : std::string(below.substr(0, slash));
  if (!host || !stream) return identity;
  const auto root_end = stream->find('/');
  if (root_end == stream->npos) return identity;
  const AgentProgram& program = default_program();
  const auto path = parse_stream_name(program, std::string_view(*stream).substr(root_end + 1));
  if (!path) return identity;
  StreamIdentity original = program.identify(path->below);
  identity.agent = std::move(original.agent);
  identity.session = session_on_host(original.session, percent_encode(*host));
  if (!original.directory.empty()) identity.directory = std::move(original.directory);
  return identity;
}

}  // namespace earshot::tail
