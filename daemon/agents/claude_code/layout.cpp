#include "agents/claude_code/layout.hpp"

#include <array>

namespace earshot::tail {
namespace {

constexpr std::string_view suffix = ".jsonl";
constexpr std::string_view meta_suffix = ".meta.json";
constexpr std::string_view conversations = "conversations";
constexpr std::string_view conversations_escaped = "%63onversations";

bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

/// Bytes of the plain character that `text` begins with; 0: none that may stand in a name.
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

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

}  // namespace

std::string_view directory_of(TranscriptDir hall) {
  return hall == TranscriptDir::projects ? "projects" : conversations;
}

std::string percent(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t plain = plain_bytes(bytes);
    if (plain == 0) {
      const auto c = static_cast<unsigned char>(bytes[0]);
      text += {'%', digits[c >> 4], digits[c & 15]};
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, plain);
      bytes.remove_prefix(plain);
    }
  }
  return text;
}

std::optional<std::string> unpercent(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      bytes += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = hex_digit(text[at + 1]), low = hex_digit(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
    at += 2;
  }
  if (percent(bytes) != text) return std::nullopt;
  return bytes;
}

std::string stream_name(TranscriptDir hall, std::string_view below) {
  if (hall == TranscriptDir::conversations) return std::string(conversations) + '/' + percent(below);
  const std::string_view first = first_component(below);
  if (first == conversations && first.size() < below.size())
    return std::string(conversations_escaped) + percent(below.substr(first.size()));
  return percent(below);
}

std::optional<Place> place_of(std::string_view name) {
  Place place{TranscriptDir::projects, {}};
  std::string prefix;
  const std::string_view first = first_component(name);
  if (first.size() < name.size()) {
    if (first == conversations) {
      place.hall = TranscriptDir::conversations;
      name.remove_prefix(first.size() + 1);
    } else if (first == conversations_escaped) {
      prefix = conversations;
      name.remove_prefix(first.size());
    }
  }
  const auto rest = unpercent(name);
  if (!rest || rest->empty()) return std::nullopt;
  place.below = prefix + *rest;
  return place;
}

Identity identity_of(std::string_view below) {
  Identity identity;
  const auto slash = below.rfind('/');
  const std::string_view stem = slash == std::string_view::npos ? below : below.substr(slash + 1);
  if (slash != std::string_view::npos) identity.directory = percent(first_component(below));
  constexpr std::string_view prefix = "agent-";
  if (!stem.starts_with(prefix) || stem.size() == prefix.size()) {
    identity.session = percent(stem);
    return identity;
  }
  identity.agent = percent(stem.substr(prefix.size()));
  // `<session>/subagents/**/agent-<id>`: the directory above the first `subagents`.
  std::string_view before, rest = below;
  for (auto end = rest.find('/'); end != std::string_view::npos; end = rest.find('/')) {
    const std::string_view component = rest.substr(0, end);
    if (component == "subagents" && !before.empty()) {
      identity.session = percent(before);
      break;
    }
    before = component;
    rest.remove_prefix(end + 1);
  }
  return identity;
}

std::string_view stem_of(std::string_view name) {
  for (const std::string_view each : {suffix, meta_suffix})
    if (name.ends_with(each)) return name.substr(0, name.size() - each.size());
  return name;
}

FileKind kind_of(std::string_view directory, std::string_view name) {
  if (name.ends_with(meta_suffix))
    return name.starts_with("agent-") ? FileKind::agent_meta : FileKind::nothing;
  if (!name.ends_with(suffix) || name.size() == suffix.size()) return FileKind::nothing;
  if (name.starts_with("agent-acompact-")) return FileKind::compaction;
  if (name.starts_with("agent-aprompt_suggestion-") || name == "history.jsonl") return FileKind::nothing;
  if (name == "journal.jsonl" && directory.find("/workflows/") != std::string_view::npos)
    return FileKind::nothing;
  return FileKind::transcript;
}

bool worth_entering(std::size_t depth, std::string_view name) {
  // Below a session: outputs of tools, one file each, and scripts.
  constexpr std::array<std::string_view, 2> bulk = {"tool-results", "scripts"};
  if (depth < 2) return true;
  for (const auto& each : bulk)
    if (name == each) return false;
  return true;
}

}  // namespace earshot::tail
