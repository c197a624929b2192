#include "tail/host_names.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>

namespace earshot::tail {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";
constexpr std::size_t hash_digits = 32;

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

void append_hex(std::string& out, std::uint64_t number) {
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[number >> shift & 15];
}

}  // namespace

std::string escape(std::string_view text) {
  if (text.empty()) return "=";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (stays(c))
      out += c;
    else
      out += {'=', digits[byte >> 4], digits[byte & 15]};
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
    const auto high = digits.find(from[at + 1]), low = digits.find(from[at + 2]);
    if (high == digits.npos || low == digits.npos) return {};
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

Identity relayed_identity(std::string_view below) {
  Identity identity;
  const auto slash = below.find('/');
  if (slash == below.npos) return identity;
  const auto host = unescape(below.substr(0, slash)), stream = unescape(below.substr(slash + 1));
  identity.directory = host ? percent(*host) : std::string(below.substr(0, slash));
  if (!host || !stream) return identity;
  const auto of_root = stream->find('/');
  if (of_root == stream->npos) return identity;
  const auto place = place_of(std::string_view(*stream).substr(of_root + 1));
  if (!place) return identity;
  Identity there = identity_of(place->below);
  identity.agent = std::move(there.agent);
  identity.session = session_on_host(there.session, percent(*host));
  if (!there.directory.empty()) identity.directory = std::move(there.directory);
  return identity;
}

}  // namespace earshot::tail
