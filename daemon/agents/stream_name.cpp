#include "agents/stream_name.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "agents/roots.hpp"

namespace earshot {
namespace {

constexpr std::string_view upper_hex = "0123456789ABCDEF";

bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

/// Size of the UTF-8 character at the beginning of `text`; 0 if that must be encoded.
std::size_t plain_bytes(std::string_view text) {
  const auto at = [&](std::size_t n) { return static_cast<unsigned char>(n < text.size() ? text[n] : 0); };
  const unsigned char c = at(0);
  if (c < 0x80) return c < 0x20 || c == 0x7f || c == ':' || c == '%' ? 0 : 1;
  if (c < 0xc2) return 0;
  if (c < 0xe0) {
    if (!is_continuation(at(1)) || (c == 0xc2 && at(1) < 0xa0)) return 0;  // U+0080 to U+009F are controls
    return 2;
  }
  if (c < 0xf0) {
    if (!is_continuation(at(1)) || !is_continuation(at(2))) return 0;
    if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f)) return 0;
    return 3;
  }
  if (c > 0xf4 || !is_continuation(at(1)) || !is_continuation(at(2)) || !is_continuation(at(3))) return 0;
  if ((c == 0xf0 && at(1) < 0x90) || (c == 0xf4 && at(1) > 0x8f)) return 0;
  return 4;
}

void append_encoded(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += {'%', upper_hex[byte >> 4], upper_hex[byte & 15]};
}

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

/// `name` with its first character encoded.
std::string escaped_directory(std::string_view name) {
  std::string escaped;
  append_encoded(escaped, name.front());
  return escaped.append(name.substr(1));
}

/// The part of an absolute path below the last transcript directory in it.
struct Location {
  std::size_t directory = 0;   // of the program
  std::string_view root_path;  // above the transcript directory
  std::string_view below;      // with the file name
};
std::optional<Location> find_location(const AgentProgram& program, std::string_view path) {
  const auto directories = program.transcript_directories();
  std::optional<Location> found;  // of adjacent transcript directories the outermost is the root's
  for (auto slash = path.rfind('/'); slash != path.npos && slash > 0;) {
    const std::size_t begin = path.rfind('/', slash - 1) + 1;  // 0 after npos
    const auto at = std::find(directories.begin(), directories.end(), path.substr(begin, slash - begin));
    if (at != directories.end() && begin > 1) {
      found = Location{static_cast<std::size_t>(at - directories.begin()), path.substr(0, begin - 1),
                       path.substr(slash + 1)};
    } else if (found) {
      break;
    }
    slash = begin == 0 ? path.npos : begin - 1;
  }
  return found;
}

std::string_view without_suffix(std::string_view name) {
  if (name.ends_with(transcript_suffix)) name.remove_suffix(transcript_suffix.size());
  return name;
}

constexpr std::size_t hash_digits = 32;

bool is_kept(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

void append_hex(std::string& out, std::uint64_t number) {
  for (int shift = 60; shift >= 0; shift -= 4) out += upper_hex[number >> shift & 15];
}

}  // namespace

std::string percent_encode(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t plain = plain_bytes(bytes);
    if (plain == 0)
      append_encoded(text, bytes.front());
    else
      text += bytes.substr(0, plain);
    bytes.remove_prefix(std::max<std::size_t>(plain, 1));
  }
  return text;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      bytes += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const auto high = upper_hex.find(text[at + 1]), low = upper_hex.find(text[at + 2]);
    if (high == upper_hex.npos || low == upper_hex.npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
    at += 2;
  }
  if (percent_encode(bytes) != text) return std::nullopt;
  return bytes;
}

std::string stream_name(const AgentProgram& program, std::size_t directory, std::string_view below) {
  const auto directories = program.transcript_directories();
  if (directory > 0) return std::string(directories[directory]) + '/' + percent_encode(below);
  const std::string_view first = first_component(below);
  const bool is_ambiguous = !first.empty() && first.size() < below.size() &&
                            std::find(directories.begin() + 1, directories.end(), first) != directories.end();
  if (is_ambiguous) return escaped_directory(first) + percent_encode(below.substr(first.size()));
  return percent_encode(below);
}

std::optional<TranscriptPath> parse_stream_name(const AgentProgram& program, std::string_view name) {
  TranscriptPath path;
  const auto directories = program.transcript_directories();
  const std::string_view first = first_component(name);
  if (first.size() < name.size()) {
    for (std::size_t each = 1; each < directories.size(); ++each) {
      if (first == directories[each]) {
        path.directory = each;
        name.remove_prefix(first.size() + 1);
        break;
      }
      if (!directories[each].empty() && first == escaped_directory(directories[each])) {
        path.below = directories[each];
        name.remove_prefix(first.size());
        break;
      }
    }
  }
  const auto rest = percent_decode(name);
  if (!rest || rest->empty()) return std::nullopt;
  path.below += *rest;
  return path;
}

bool is_directory_prefix(std::string_view component) {
  const auto programs = agent_programs();
  return !component.empty() &&
         std::any_of(programs.begin(), programs.end(), [&](const AgentProgram* program) {
           const auto directories = program->transcript_directories();
           return std::find(directories.begin() + 1, directories.end(), component) != directories.end();
         });
}

TranscriptPlace place_transcript(const AgentProgram& program, std::string_view path) {
  TranscriptPlace place;
  const auto location = find_location(program, path);
  const std::string_view below =
      without_suffix(location ? location->below : path.substr(path.rfind('/') + 1));
  StreamIdentity identity = program.identify(location ? below : without_suffix(path));
  place.session = std::move(identity.session);
  place.agent = std::move(identity.agent);
  place.is_likely = identity.is_likely;
  if (!location) {
    place.stream = percent_encode(below);
    return place;
  }
  // As in discovery, the directory's own prefix is needed only if the name alone means another file.
  std::string name = percent_encode(below);
  const auto meant = parse_stream_name(program, name);
  if (!meant || meant->directory != 0 || meant->below != below)
    name = stream_name(program, location->directory, below);
  place.stream = root_name(location->root_path) + '/' + name;
  return place;
}

TranscriptPlace place_of(std::string_view path, const AgentProgram& program) {
  if (path == "-") return {.stream = "stdin", .session = "stdin"};
  return place_transcript(program, std::filesystem::absolute(path).lexically_normal().native());
}

const AgentProgram& program_of_path(std::string_view path) {
  const std::string absolute = std::filesystem::absolute(path).lexically_normal();
  for (const AgentProgram* program : agent_programs())
    if (find_location(*program, absolute) && is_transcript_path(*program, absolute)) return *program;
  return default_program();
}

bool is_transcript_path(const AgentProgram& program, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  std::string_view directory = path.substr(0, path.size() - name.size());
  if (directory.ends_with('/')) directory.remove_suffix(1);
  if (const auto location = find_location(program, path))  // below it, with a leading slash
    directory.remove_prefix(std::min(directory.size(), path.size() - location->below.size() - 1));
  return program.classify(directory, name) == FileKind::transcript;
}

std::string escape_token(std::string_view text) {
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

std::optional<std::string> unescape_token(std::string_view from) {
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
  if (escape_token(out) != from) return {};
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
  const auto host = unescape_token(below.substr(0, slash)), stream = unescape_token(below.substr(slash + 1));
  identity.directory = host ? percent_encode(*host) : std::string(below.substr(0, slash));
  if (!host || !stream) return identity;
  const auto root_end = stream->find('/');
  if (root_end == stream->npos) return identity;
  // The program is unknown. A subagent's path is unmistakable; else all that may have it must agree.
  std::optional<StreamIdentity> original;
  for (const AgentProgram* program : agent_programs()) {
    const auto path = parse_stream_name(*program, std::string_view(*stream).substr(root_end + 1));
    if (!path) continue;
    const std::string file = '/' + path->below + std::string(transcript_suffix);
    if (program != &default_program() && !is_transcript_path(*program, file)) continue;
    StreamIdentity each = program->identify(path->below);
    const bool is_subagent = !each.agent.empty() && !each.session.empty();
    if (!original) {
      original = std::move(each);
      if (is_subagent) break;
    } else if (each.session != original->session || each.is_likely) {
      original->session.clear();
    }
  }
  if (!original) return identity;
  identity.agent = std::move(original->agent);
  identity.session = session_on_host(original->session, percent_encode(*host));
  if (!original->directory.empty()) identity.directory = std::move(original->directory);
  return identity;
}

}  // namespace earshot
