#include "agents/pi/program.hpp"

#include <algorithm>

#include "agents/pi/records.hpp"
#include "agents/stream_name.hpp"
#include "core/nested_json.hpp"

namespace earshot::pi {
namespace {

class Format final : public RecordFormat {
 public:
  std::string_view program() const override { return program_name; }
  const Dialect* detect(const Value& json) const override {
    static constexpr Dialect dialect{dialect_name};
    return is_header(json) ? &dialect : nullptr;
  }
  std::unique_ptr<RecordReader> make_reader(bool) const override { return pi::make_reader(); }
};

/// `2026-11-28T10-00-00-000Z_<id>.jsonl`
bool is_session_file(std::string_view name) {
  constexpr std::string_view shape = "0000-00-00T00-00-00-000Z_";
  if (name.size() <= shape.size() + transcript_suffix.size() || !name.ends_with(transcript_suffix))
    return false;
  return std::equal(shape.begin(), shape.end(), name.begin(), [](char expected, char c) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
}

// `<root>/sessions/--home-ada-lamp--/<time>_<id>.jsonl`; `<root>/<time>_<id>.jsonl` where a variable or the
// settings name the directory
class Pi final : public AgentProgram {
 public:
  std::string_view program() const override { return program_name; }
  const RecordFormat& format() const override {
    static const Format format;
    return format;
  }

  std::vector<std::string> default_roots(const Environment& environment) const override {
    std::vector<std::string> roots;
    if (const auto directory = environment("PI_CODING_AGENT_DIR"); directory && !directory->empty())
      roots.push_back(*directory);
    else if (const auto home = environment("HOME"); home && !home->empty())
      roots.push_back(*home + "/.pi/agent");
    // A relative one is of each process.
    if (const auto directory = environment("PI_CODING_AGENT_SESSION_DIR");
        directory && (directory->starts_with('/') || directory->starts_with("~/")))
      roots.push_back(*directory);
    return roots;
  }
  std::string_view settings_file() const override { return "settings.json"; }
  std::string moved_transcripts(std::string_view settings) const override {
    NestedJson json;
    return std::string(json.parse(settings).value.text_of("sessionDir"));
  }

  bool is_root_entry(std::string_view path) const override {
    constexpr std::string_view prefix = "sessions/--";
    if (is_session_file(path)) return true;
    return path.starts_with(prefix) && path.ends_with("--") && path.size() > prefix.size() + 2;
  }
  std::string_view root_name(std::string_view directory) const override {
    return directory.ends_with("/.pi/agent") ? "pi" : "";
  }

  std::span<const std::string_view> transcript_directories() const override {
    static constexpr std::string_view directories[] = {"sessions", ""};
    return directories;
  }
  FileKind classify(std::string_view directory, std::string_view name) const override {
    const bool is_transcript =
        directory.empty() ? is_session_file(name)
                          : name.ends_with(transcript_suffix) && name.size() > transcript_suffix.size();
    return is_transcript ? FileKind::transcript : FileKind::other;
  }
  StreamIdentity identify(std::string_view below) const override {
    StreamIdentity identity;
    identity.is_likely = below.starts_with('/');  // elsewhere: the header names the session
    identity.session = percent_encode(session_of(below.substr(below.rfind('/') + 1)));
    if (const auto slash = below.find('/'); slash != below.npos && !identity.is_likely)
      identity.directory = percent_encode(below.substr(0, slash));
    return identity;
  }

  std::span<const std::string_view> resume_command() const override {
    static constexpr std::string_view words[] = {"pi", "--session"};
    return words;
  }
  bool matches_process(std::span<const std::string> arguments) const override {
    const auto is_pi = [](std::string_view path) {
      return path.substr(path.rfind('/') + 1) == "pi" ||
             (path.ends_with("/cli.js") && path.find("pi-coding-agent") != path.npos);
    };
    return std::any_of(arguments.begin(),
                       arguments.begin() + std::min<std::ptrdiff_t>(2, std::ssize(arguments)), is_pi);
  }
};

}  // namespace

const AgentProgram& program() {
  static const Pi pi;
  return pi;
}

}  // namespace earshot::pi
